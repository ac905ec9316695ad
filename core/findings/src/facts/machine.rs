//! The machine of a node, as its metrics page shows it. What an older node, or a system without the file, does not
//! show is not seen.

use super::{Seen, Unseen};
use crate::scrape::Scrape;

/// Fields with `seconds` and those of counters are increases between the two looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub workers: f64,
    pub cpus_granted: Seen<f64>,
    /// Periods of the cgroup's CPU quota, and those in which it stopped the node.
    pub quota_periods: Seen<(f64, f64)>,
    pub resident_bytes: f64,
    /// `Ok(None)`: there is no limit.
    pub memory_limit: Seen<Option<f64>>,
    /// Since the start of the cgroup.
    pub oom_kills_total: Seen<f64>,
    pub swap_bytes: Seen<f64>,
    pub clock_source: Seen<String>,
    /// By which the node's clock is ahead of the doctor's, and how wrong that may be, in milliseconds.
    pub clock_ahead_ms: Seen<(f64, f64)>,
    /// Seconds of all processors, and those stolen.
    pub processor_seconds: Seen<(f64, f64)>,
    /// TCP segments sent, and those of them sent again.
    pub segments: Seen<(f64, f64)>,
    pub listen_drops: Seen<f64>,
    pub interfaces: Seen<Vec<Interface>>,
}

/// A network interface other than loopback.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    pub name: String,
    pub received: f64,
    pub sent: f64,
    pub dropped: f64,
    /// 0: unknown.
    pub mtu: f64,
    /// Bytes a second; `None`: a virtual one.
    pub speed: Option<f64>,
}

impl Interface {
    pub fn bytes(&self) -> f64 {
        self.received + self.sent
    }
}

/// What holds a log directory. Empty: the system does not show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    pub device: String,
    pub file_system: String,
    pub scheduler: String,
    pub rotational: String,
    pub write_cache: String,
    pub fua: String,
}

/// Two pages of a node, and the words for what they lack.
#[derive(Debug)]
pub struct Pages<'a> {
    pub node: i32,
    pub before: &'a Scrape,
    pub after: &'a Scrape,
}

impl Pages<'_> {
    pub fn missing(&self, name: &str) -> Unseen {
        Unseen(format!("node {} does not show {name}", self.node))
    }

    /// A gauge.
    pub fn now(&self, name: &str, labels: &[(&str, &str)]) -> Seen<f64> {
        match self.after.has(name, labels) {
            true => Ok(self.after.sum(name, labels)),
            false => Err(self.missing(name)),
        }
    }

    /// By how much a counter has risen.
    pub fn rise(&self, name: &str, labels: &[(&str, &str)]) -> Seen<f64> {
        let now = self.now(name, labels)?;
        Ok((now - self.before.sum(name, labels)).max(0.0))
    }

    fn rises(&self, first: &str, second: &str) -> Seen<(f64, f64)> {
        Ok((self.rise(first, &[])?, self.rise(second, &[])?))
    }

    pub fn machine(&self) -> Machine {
        let first = |name: &str, label: &str| {
            let sample = self.after.samples(name).first();
            sample.map(|sample| sample.label(label).to_owned()).ok_or_else(|| self.missing(name))
        };
        // A page that shows swap comes from a node that shows all of them.
        let limit = self.now("barnabas_cgroup_memory_limit_bytes", &[]).ok();
        Machine {
            workers: self.after.samples("barnabas_worker_busy_seconds_total").len() as f64,
            cpus_granted: self.now("barnabas_cpus_granted", &[]),
            quota_periods: self
                .rises("barnabas_cgroup_cpu_periods_total", "barnabas_cgroup_cpu_throttled_periods_total"),
            resident_bytes: self.after.sum("process_resident_memory_bytes", &[]),
            memory_limit: self.now("barnabas_process_swap_bytes", &[]).map(|_| limit),
            oom_kills_total: self.now("barnabas_cgroup_oom_kills_total", &[]),
            swap_bytes: self.now("barnabas_process_swap_bytes", &[]),
            clock_source: first("barnabas_clock_source", "name"),
            clock_ahead_ms: Err(Unseen(format!("the clock of node {} was not compared", self.node))),
            processor_seconds: self
                .rises("barnabas_machine_cpu_seconds_total", "barnabas_machine_cpu_steal_seconds_total"),
            segments: self.rises(
                "barnabas_machine_tcp_segments_out_total",
                "barnabas_machine_tcp_segments_retransmitted_total",
            ),
            listen_drops: self.rise("barnabas_machine_tcp_listen_drops_total", &[]),
            interfaces: self.interfaces(),
        }
    }

    fn interfaces(&self) -> Seen<Vec<Interface>> {
        const BYTES: &str = "barnabas_machine_network_bytes_total";
        // A node in a network namespace of its own may have loopback alone.
        self.now("barnabas_machine_tcp_segments_out_total", &[])?;
        let interface = |name: String| {
            let labels = [("interface", name.as_str())];
            Ok(Interface {
                received: self.rise(BYTES, &[("interface", &name), ("direction", "in")])?,
                sent: self.rise(BYTES, &[("interface", &name), ("direction", "out")])?,
                dropped: self.rise("barnabas_machine_network_dropped_packets_total", &labels)?,
                mtu: self.after.sum("barnabas_machine_network_mtu_bytes", &labels),
                speed: self.now("barnabas_machine_network_speed_bytes", &labels).ok(),
                name: name.clone(),
            })
        };
        self.after.values(BYTES, "interface").into_iter().map(interface).collect()
    }

    pub fn holder(&self, directory: &str) -> Seen<Holder> {
        const INFO: &str = "barnabas_log_directory_info";
        let mut samples = self.after.samples(INFO).iter();
        let sample = samples.find(|sample| sample.label("log_directory") == directory);
        let sample = sample.ok_or_else(|| self.missing(INFO))?;
        let label = |name: &str| sample.label(name).to_owned();
        Ok(Holder {
            device: label("device"),
            file_system: label("file_system"),
            scheduler: label("scheduler"),
            rotational: label("rotational"),
            write_cache: label("write_cache"),
            fua: label("fua"),
        })
    }

    pub fn inodes(&self, directory: &str) -> Seen<Option<(f64, f64)>> {
        self.holder(directory)?;
        let labels = [("log_directory", directory)];
        let of = |name: &str| self.now(name, &labels).ok();
        Ok(of("barnabas_log_directory_free_inodes").zip(of("barnabas_log_directory_total_inodes")))
    }
}
