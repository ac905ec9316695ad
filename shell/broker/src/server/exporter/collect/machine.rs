//! The machine as the system shows it: cgroup limits, swap, clock, network counters, and the devices of the log
//! directories. Read from /proc and /sys only when a reader asks.
//!
//! A file that is not there (cgroup version 1, a container without /sys) gives nothing, and its metrics are missing.

use crate::node::Node;
use barnabas_metrics::text::Page;
use std::fs;
use std::path::{Path, PathBuf};

const CGROUPS: &str = "/sys/fs/cgroup";
/// Interfaces on a page; those with the most bytes first.
const INTERFACES_MAX: usize = 16;
/// Clock ticks a second, as /proc/stat counts them.
const TICKS: f64 = 100.0;

pub fn write(page: &mut Page, node: &Node) {
    cgroup(page);
    let status = read("/proc/self/status");
    if let Some(kib) = status.lines().find_map(|line| line.strip_prefix("VmSwap:")).and_then(first) {
        page.value("barnabas_process_swap_bytes", &[], kib * 1024.0);
    }
    clock(page, node);
    network(page);
    directories(page, node);
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first word of a text, as a number.
fn first(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The value behind a word at the beginning of a line.
fn named(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(known, _)| *known == name).and_then(|(_, value)| first(value))
}

/// The node's cgroup and those above it (version 2): limits of each hold.
fn cgroups() -> Vec<PathBuf> {
    let own = read("/proc/self/cgroup");
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let own = Path::new(CGROUPS).join(own);
    own.ancestors().take_while(|path| path.starts_with(CGROUPS)).map(Path::to_path_buf).collect()
}

fn cgroup(page: &mut Page) {
    let groups = cgroups();
    let quotas = groups.iter().filter_map(|group| quota(&read(group.join("cpu.max"))));
    let processors = std::thread::available_parallelism().map_or(1.0, |number| number.get() as f64);
    page.value("barnabas_cpus_granted", &[], quotas.fold(processors, f64::min));
    // The one whose quota stops the node counts; one without a quota has no periods.
    let stats: Vec<String> = groups.iter().map(|group| read(group.join("cpu.stat"))).collect();
    let periods = |stat: &&String| named(stat, "nr_periods").is_some_and(|periods| periods > 0.0);
    if let Some(stat) = stats.iter().find(periods).or_else(|| stats.first()) {
        for (name, key) in [
            ("barnabas_cgroup_cpu_periods_total", "nr_periods"),
            ("barnabas_cgroup_cpu_throttled_periods_total", "nr_throttled"),
        ] {
            if let Some(value) = named(stat, key) {
                page.value(name, &[], value);
            }
        }
    }
    let limits = groups.iter().filter_map(|group| first(&read(group.join("memory.max"))));
    if let Some(limit) = limits.min_by(f64::total_cmp) {
        page.value("barnabas_cgroup_memory_limit_bytes", &[], limit);
    }
    let events = groups.first().map(|group| read(group.join("memory.events"))).unwrap_or_default();
    if let Some(kills) = named(&events, "oom_kill") {
        page.value("barnabas_cgroup_oom_kills_total", &[], kills);
    }
}

/// `cpu.max`: microseconds of each period; `None`: no limit.
fn quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let (quota, period): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn clock(page: &mut Page, node: &Node) {
    page.value("barnabas_clock_seconds", &[], node.clock.wall().0 as f64 / 1000.0);
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if !source.trim().is_empty() {
        page.count("barnabas_clock_source", &[("name", source.trim())], 1);
    }
    if let Some((all, steal)) = processors(&read("/proc/stat")) {
        page.value("barnabas_machine_cpu_seconds_total", &[], all);
        page.value("barnabas_machine_cpu_steal_seconds_total", &[], steal);
    }
}

/// Seconds of all processors, idle ones included, and those of them that the hypervisor gave to others. Guests' time
/// is counted as user time already.
fn processors(stat: &str) -> Option<(f64, f64)> {
    const STEAL: usize = 7;
    let words = stat.lines().find_map(|line| line.strip_prefix("cpu "))?.split_whitespace();
    let times: Vec<f64> = words.take(STEAL + 1).map_while(|word| word.parse().ok()).collect();
    Some((times.iter().sum::<f64>() / TICKS, times.get(STEAL)? / TICKS))
}

fn network(page: &mut Page) {
    let snmp = read("/proc/net/snmp");
    if let (Some(out), Some(again)) =
        (counter(&snmp, "Tcp:", "OutSegs"), counter(&snmp, "Tcp:", "RetransSegs"))
    {
        page.value("barnabas_machine_tcp_segments_out_total", &[], out);
        page.value("barnabas_machine_tcp_segments_retransmitted_total", &[], again);
    }
    if let Some(drops) = counter(&read("/proc/net/netstat"), "TcpExt:", "ListenDrops") {
        page.value("barnabas_machine_tcp_listen_drops_total", &[], drops);
    }
    let mut interfaces = interfaces(&read("/proc/net/dev"));
    interfaces.sort_by(|one, other| other.bytes().total_cmp(&one.bytes()));
    interfaces.truncate(INTERFACES_MAX);
    for Interface { name, received, sent, .. } in &interfaces {
        for (direction, bytes) in [("in", received), ("out", sent)] {
            let labels = [("interface", name.as_str()), ("direction", direction)];
            page.value("barnabas_machine_network_bytes_total", &labels, *bytes);
        }
    }
    let mut each = |name: &str, of: &dyn Fn(&Interface) -> Option<f64>| {
        for interface in &interfaces {
            if let Some(value) = of(interface) {
                page.value(name, &[("interface", &interface.name)], value);
            }
        }
    };
    let sys = |interface: &Interface, key: &str| {
        first(&read(Path::new("/sys/class/net").join(&interface.name).join(key))).filter(|value| *value > 0.0)
    };
    each("barnabas_machine_network_dropped_packets_total", &|interface| Some(interface.dropped));
    each("barnabas_machine_network_mtu_bytes", &|interface| sys(interface, "mtu"));
    // In Mbit/s; absent for a virtual interface.
    each("barnabas_machine_network_speed_bytes", &|interface| {
        sys(interface, "speed").map(|speed| speed * 1e6 / 8.0)
    });
}

/// A counter of /proc/net/snmp or netstat: a line of names, then one of values, with the same first word.
fn counter(text: &str, protocol: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let (names, values) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(values).find(|(known, _)| *known == name)?.1.parse().ok()
}

#[derive(Debug, PartialEq)]
struct Interface {
    name: String,
    received: f64,
    sent: f64,
    /// In both directions.
    dropped: f64,
}

impl Interface {
    fn bytes(&self) -> f64 {
        self.received + self.sent
    }
}

/// The interfaces of /proc/net/dev, without loopback.
fn interfaces(text: &str) -> Vec<Interface> {
    const DROPPED: usize = 3;
    const OF_SENDING: usize = 8;
    let interface = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<f64> = counters.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let of = |at: usize| counters.get(at).copied();
        let name = name.trim();
        let interface = Interface {
            name: name.to_owned(),
            received: of(0)?,
            sent: of(OF_SENDING)?,
            dropped: of(DROPPED)? + of(DROPPED + OF_SENDING)?,
        };
        (name != "lo").then_some(interface)
    };
    text.lines().filter_map(interface).collect()
}

/// What holds a log directory.
#[derive(Debug, Default)]
struct Holder {
    path: String,
    file_system: String,
    device: String,
    scheduler: String,
    rotational: String,
    write_cache: String,
    fua: String,
    busy_seconds: Option<f64>,
    inodes: Option<(u64, u64)>,
}

fn directories(page: &mut Page, node: &Node) {
    let mounts = read("/proc/self/mountinfo");
    let held = node.log_dirs.directories.iter().filter(|directory| directory.holds_partitions);
    let holders: Vec<Holder> = held.map(|directory| holder(&directory.path, &mounts)).collect();
    for holder in &holders {
        let labels = [
            ("log_directory", holder.path.as_str()),
            ("device", holder.device.as_str()),
            ("file_system", holder.file_system.as_str()),
            ("scheduler", holder.scheduler.as_str()),
            ("rotational", holder.rotational.as_str()),
            ("write_cache", holder.write_cache.as_str()),
            ("fua", holder.fua.as_str()),
        ];
        page.count("barnabas_log_directory_info", &labels, 1);
    }
    let mut each = |name: &str, of: &dyn Fn(&Holder) -> Option<f64>| {
        for holder in &holders {
            if let Some(value) = of(holder) {
                page.value(name, &[("log_directory", &holder.path)], value);
            }
        }
    };
    each("barnabas_log_directory_device_busy_seconds_total", &|holder| holder.busy_seconds);
    each("barnabas_log_directory_free_inodes", &|holder| holder.inodes.map(|(free, _)| free as f64));
    each("barnabas_log_directory_total_inodes", &|holder| holder.inodes.map(|(_, total)| total as f64));
}

fn holder(directory: &Path, mounts: &str) -> Holder {
    let real = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    let mut holder = Holder { path: directory.to_string_lossy().into_owned(), ..Holder::default() };
    if let Ok(space) = rustix::fs::statvfs(&real) {
        // Some file systems have no table of inodes, and say 0 of 0.
        holder.inodes = (space.f_files > 0).then_some((space.f_favail, space.f_files));
    }
    let Some(mount) = mount(mounts, &real) else { return holder };
    holder.file_system = mount.file_system.to_owned();
    let device = Path::new("/sys/dev/block").join(mount.device);
    let Ok(device) = fs::canonicalize(device) else { return holder };
    holder.busy_seconds = busy(&read(device.join("stat")));
    // The queue of a partition is that of its disk.
    if let Some(disk) = device.ancestors().take(2).find(|disk| disk.join("queue").is_dir()) {
        holder.device = disk.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let value = |key: &str| read(disk.join("queue").join(key)).trim().to_owned();
        holder.scheduler = chosen(&value("scheduler"));
        holder.rotational = value("rotational");
        holder.write_cache = value("write_cache");
        holder.fua = value("fua");
    }
    holder
}

struct Mount<'a> {
    file_system: &'a str,
    /// `MAJOR:MINOR`
    device: &'a str,
}

/// The mount that a path is in: the longest one, and of several at one place the last.
fn mount<'a>(mounts: &'a str, path: &Path) -> Option<Mount<'a>> {
    let mut found: Option<(usize, Mount<'a>)> = None;
    for line in mounts.lines() {
        let Some((words, rest)) = line.split_once(" - ") else { continue };
        let words: Vec<&str> = words.split(' ').collect();
        let (Some(device), Some(point), Some(file_system)) =
            (words.get(2), words.get(4), rest.split(' ').next())
        else {
            continue;
        };
        let point = point.replace("\\040", " ");
        let is_longer = found.as_ref().is_none_or(|(length, _)| point.len() >= *length);
        if is_longer && path.starts_with(&point) {
            found = Some((point.len(), Mount { file_system, device }));
        }
    }
    found.map(|(_, mount)| mount)
}

/// Seconds in which a block device had something to do.
fn busy(stat: &str) -> Option<f64> {
    const IO_TICKS: usize = 9;
    let ms: f64 = stat.split_whitespace().nth(IO_TICKS)?.parse().ok()?;
    Some(ms / 1000.0)
}

/// Of `mq-deadline kyber [none]` the one in brackets.
fn chosen(schedulers: &str) -> String {
    let inner = schedulers.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(schedulers, |(chosen, _)| chosen).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_files_are_understood() {
        assert_eq!(quota("150000 100000\n"), Some(1.5));
        assert_eq!(quota("max 100000\n"), None);
        assert_eq!(quota(""), None);
        let stat = "usage_usec 1\nnr_periods 40\nnr_throttled 3\n";
        assert_eq!((named(stat, "nr_periods"), named(stat, "nr_throttled")), (Some(40.0), Some(3.0)));
        assert_eq!(named("low 0\noom_kill 2\n", "oom_kill"), Some(2.0));
        assert_eq!(named("oom_kill_disable 1\n", "oom_kill"), None);
    }

    #[test]
    fn counters_of_the_network_are_found_by_name() {
        let snmp = "Ip: Forwarding\nIp: 1\nTcp: ActiveOpens OutSegs RetransSegs\nTcp: 1 2000 30\n";
        assert_eq!(counter(snmp, "Tcp:", "OutSegs"), Some(2000.0));
        assert_eq!(counter(snmp, "Tcp:", "RetransSegs"), Some(30.0));
        assert_eq!(counter(snmp, "Udp:", "OutSegs"), None);
        let dev = "Inter-| Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                   eth0: 100 2 3 4 5 6 7 8 900 10 11 6 13 14 15 16\n";
        let eth0 = Interface { name: "eth0".to_owned(), received: 100.0, sent: 900.0, dropped: 10.0 };
        assert_eq!(interfaces(dev), [eth0]);
    }

    #[test]
    fn device_of_a_directory_is_that_of_its_longest_mount() {
        let mounts = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 0:5 / /data rw shared:1 - tmpfs t rw\n\
                      22 20 259:3 / /data rw - xfs /dev/nvme0n1 rw\n23 20 0:9 / /data2 rw - nfs4 h:/ rw\n";
        let of = |path: &str| mount(mounts, Path::new(path)).map(|mount| (mount.file_system, mount.device));
        assert_eq!(of("/data/log"), Some(("xfs", "259:3")));
        assert_eq!(of("/srv"), Some(("ext4", "8:1")));
        assert_eq!(of("/data2"), Some(("nfs4", "0:9")));
        assert_eq!(mount("", Path::new("/")).map(|mount| mount.device), None);
        assert_eq!(chosen("mq-deadline kyber [bfq] none"), "bfq");
        assert_eq!(chosen("none"), "none");
        assert_eq!(busy("1 2 3 4 5 6 7 8 0 2500 11"), Some(2.5));
        assert_eq!(busy(""), None);
    }

    #[test]
    fn time_of_processors_counts_guests_once() {
        let stat = "cpu  100 0 100 700 0 0 0 100 50 0\ncpu0 1 1 1\n";
        assert_eq!(processors(stat), Some((10.0, 1.0)));
        assert_eq!(processors("cpu 1 2"), None);
    }
}
