//! The process as the system sees it: CPU time and waiting time of each thread, memory,
//! descriptors. Read from the system only when a reader asks.
//!
//! A file that is not there (a container without /proc) gives nothing, and its metrics are missing.

use std::fs;

/// One thread's time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadTime {
    /// As it is called, with a number where several have one name.
    pub name: String,
    pub cpu_ns: u64,
    /// Ready to run, and no processor free.
    pub queued_ns: u64,
}

/// All threads of this process, sorted by name; those of one name are added up (tokio's blocking threads come and go).
pub fn threads() -> Vec<ThreadTime> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut threads: Vec<ThreadTime> = Vec::new();
    for task in tasks.flatten() {
        let path = task.path();
        // One that has just ended has no files any more.
        let (Ok(name), Ok(times)) =
            (fs::read_to_string(path.join("comm")), fs::read_to_string(path.join("schedstat")))
        else {
            continue;
        };
        let Some((cpu_ns, queued_ns)) = schedstat(&times) else { continue };
        let name = name.trim().to_owned();
        match threads.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.cpu_ns += cpu_ns;
                known.queued_ns += queued_ns;
            }
            None => threads.push(ThreadTime { name, cpu_ns, queued_ns }),
        }
    }
    threads.sort_by(|one, other| one.name.cmp(&other.name));
    threads
}

/// `/proc/PID/task/TID/schedstat`: time on a processor, time waiting for one, both in nanoseconds, and how often.
fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// What the process holds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Process {
    pub cpu_seconds: f64,
    pub resident_bytes: u64,
    pub open_fds: u64,
    pub max_fds: Option<u64>,
    /// Read from and written to storage (`/proc/self/io`); Kafka 4.4 shows the same.
    pub disk_read_bytes: Option<u64>,
    pub disk_write_bytes: Option<u64>,
}

pub fn process() -> Process {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let times = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Process {
        cpu_seconds: times.tv_sec as f64 + times.tv_nsec as f64 / 1e9,
        resident_bytes: field(&status, "VmRSS:").unwrap_or(0) * 1024,
        open_fds: fs::read_dir("/proc/self/fd").map_or(0, |fds| fds.count() as u64),
        max_fds: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        disk_read_bytes: field(&io, "read_bytes:"),
        disk_write_bytes: field(&io, "write_bytes:"),
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_writes_is_understood() {
        assert_eq!(schedstat("2284291 1500 7\n"), Some((2_284_291, 1500)));
        assert_eq!(schedstat(""), None);
        assert_eq!(schedstat("x 1 1"), None);
        assert_eq!(field("Name:\tx\nVmRSS:\t  1234 kB\n", "VmRSS:"), Some(1234));
        assert_eq!(field("", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_threads_memory_and_files() {
        let process = process();
        assert!(process.resident_bytes > 0 && process.open_fds > 2);
        assert!(threads().iter().map(|thread| thread.cpu_ns).sum::<u64>() > 0);
    }
}
