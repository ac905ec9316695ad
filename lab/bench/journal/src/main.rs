//! What does it cost to make bytes durable, by the way of writing and by the size of a round?
//!
//! Units: CPU in ns per byte and µs per round, of the writing thread (`CLOCK_THREAD_CPUTIME_ID`: system calls included,
//! the block layer's own kernel threads not); wall time per round in µs. Held fixed: one thread, one round at a time,
//! one file system (the folder given), data that does not compress to nothing. Left out on purpose: sockets, threads,
//! several directories. The bound that matters: a page-cache write without any sync, which is what Kafka pays
//! (`buffered unsynced`).
//!
//! `barnabas-bench-journal FOLDER [io|journal|laying|all] [MIB_EACH]` prints one JSON line per case. Under `cargo test`
//! it runs small.

mod io;
mod laying;
mod machine;

use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

/// Wall and CPU time of the calling thread, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub wall_ns: u64,
    pub cpu_ns: u64,
}

impl Clock {
    pub(crate) fn now() -> Self {
        let ns = |id| {
            let time = clock_gettime(id);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        Self { wall_ns: ns(ClockId::Monotonic), cpu_ns: ns(ClockId::ThreadCPUTime) }
    }
}

/// Rounds of one case.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    wall_ns: Vec<u64>,
    cpu_ns: u64,
    bytes: u64,
}

impl Rounds {
    pub(crate) fn add(&mut self, before: Clock, after: Clock, bytes: u64) {
        self.wall_ns.push(after.wall_ns - before.wall_ns);
        self.cpu_ns += after.cpu_ns - before.cpu_ns;
        self.bytes += bytes;
    }

    /// One JSON line; `case` is JSON members.
    pub(crate) fn line(mut self, case: &str) -> String {
        self.wall_ns.sort_unstable();
        let count = self.wall_ns.len().max(1);
        let at = |share: f64| {
            let index = ((count - 1) as f64 * share) as usize;
            self.wall_ns.get(index).map_or(0.0, |ns| *ns as f64 / 1000.0)
        };
        let wall: u64 = self.wall_ns.iter().sum();
        format!(
            "{{{case},\"rounds\":{count},\"cpu_us_per_round\":{:.1},\"cpu_ns_per_byte\":{:.4},\"wall_us_p50\":{:.1},\
             \"wall_us_p99\":{:.1},\"mib_per_s\":{:.0}}}",
            self.cpu_ns as f64 / count as f64 / 1000.0,
            self.cpu_ns as f64 / self.bytes.max(1) as f64,
            at(0.5),
            at(0.99),
            self.bytes as f64 / (1 << 20) as f64 / (wall.max(1) as f64 / 1e9),
        )
    }
}

fn run(folder: &Path, what: &str, mib_each: u64, print: &mut dyn FnMut(String)) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if matches!(what, "io" | "all") {
        io::run(folder, mib_each, print)?;
    }
    if matches!(what, "journal" | "all") {
        machine::run(folder, mib_each, print)?;
    }
    if matches!(what, "laying" | "all") {
        laying::run(folder, mib_each, print)?;
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let folder =
        PathBuf::from(arguments.next().ok_or("usage: FOLDER [io|journal|writing back|all] [MIB_EACH]")?);
    let what = arguments.next().unwrap_or_else(|| "all".into());
    let mib_each =
        arguments.next().map_or(Ok(128), |text| text.parse()).map_err(|_| "MIB_EACH is a number")?;
    run(&folder, &what, mib_each, &mut |line| println!("{line}"))
}

/// Bytes that neither compress nor repeat within a page.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs_small() {
        let folder = std::env::temp_dir().join(format!("barnabas-bench-journal-{}", std::process::id()));
        let mut lines = Vec::new();
        super::run(&folder, "all", 1, &mut |line| lines.push(line)).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(lines.len() > 20 && lines.iter().all(|line| line.ends_with('}')), "{lines:?}");
    }
}
