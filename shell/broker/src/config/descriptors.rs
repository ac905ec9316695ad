//! How the process's descriptors are divided: so many for log files, so many for connections, the rest for all else.
//!
//! The soft limit is raised to the hard one first. core/storage's file pools and the gate in shell/net each keep to
//! the share set here: a node with `ulimit -n 1024` serves any number of partitions, and refuses connections beyond
//! its share with a line in the log.
//!
//! Always true: `log files + connections + all else ≤ the limit`.

use barnabas_disk::SPARE;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::endpoint::CONNECTIONS_MAX;
use rustix::process::{Resource, getrlimit, setrlimit};

/// A node that could take fewer connections would be of no use.
const CONNECTIONS_MIN: u64 = 16;
/// What one pool needs in the middle of one step: a segment, its indexes, and one that waits for a sync.
const POOL_FILES_MIN: u64 = 4;
/// Standard streams, listeners, metrics connections, the metadata log, snapshots, moves, and the files of libraries.
const PROCESS_FILES: u64 = 48 + SPARE as u64 + CONNECTIONS_MAX as u64;
/// The console, where it listens: its clients, and a connection to a broker for each.
const CONSOLE_FILES: u64 = 2 * barnabas_console::CONNECTIONS_MAX as u64;
/// Each log directory: the ring of its journal, its lock, its file system, one that is being listed, small files.
const DIRECTORY_FILES: u64 = 16;
/// Each worker: its runtime's poll and wake-ups, one small file, one directory.
const WORKER_FILES: u64 = 6;
/// Each cleaner: a segment with its indexes to read and one to write.
const CLEANER_FILES: u64 = 8;
/// A higher limit has no use, and tables of so many descriptors take memory.
const LIMIT_MAX: u64 = 1 << 20;

/// Who may open how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Over all workers and log directories: `log.open.files.max` as it is in force.
    pub log_files: usize,
    pub connections: usize,
}

/// Raises the limit and divides it.
///
/// # Errors
/// The limit is too low for this node, in words for the operator.
pub fn share_out(config: &BrokerConfig, workers: usize, directories: usize) -> Result<Shares, String> {
    let limit = raise().min(LIMIT_MAX);
    let cleaners = u64::try_from(config.int("log.cleaner.threads")).unwrap_or(1);
    let (workers, directories) = (workers as u64, directories as u64);
    let console = if config.value(barnabas_console::KEY).is_some_and(|address| !address.is_empty()) {
        CONSOLE_FILES
    } else {
        0
    };
    let fixed = PROCESS_FILES
        + console
        + directories * DIRECTORY_FILES
        + workers * WORKER_FILES
        + cleaners * CLEANER_FILES;
    let wanted = u64::try_from(config.long("log.open.files.max")).ok();
    let shares = divide(limit, fixed, workers * directories, wanted).map_err(|needed| {
        format!(
            "the process may open {limit} files (ulimit -n), and a node with {workers} workers and {directories} log directories needs \
             {needed} at least: raise the limit (of a systemd unit: LimitNOFILE=)"
        )
    })?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted > shares.log_files as u64) {
        tracing::warn!(
            "log.open.files.max={wanted} is more than the process's limit of {limit} open files (ulimit -n) leaves for log files: \
             {} are used. Raise the limit, or lower the key",
            shares.log_files
        );
    }
    barnabas_disk::keep_spare().map_err(|error| format!("no descriptor can be kept in hand: {error}"))?;
    Ok(shares)
}

/// Returns the limit that is in force then.
fn raise() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Three quarters of what is left are for log files, or what is `wanted`: 20,000 descriptors keep the segments of
/// 10,000 partitions open.
///
/// # Errors
/// The least limit with which this node could work.
fn divide(limit: u64, fixed: u64, pools: u64, wanted: Option<u64>) -> Result<Shares, u64> {
    let files_min = pools * POOL_FILES_MIN;
    let needed = fixed + files_min + CONNECTIONS_MIN;
    let Some(spare) = limit.checked_sub(needed) else { return Err(needed) };
    let left = files_min + spare + CONNECTIONS_MIN;
    let log_files = wanted.unwrap_or(left / 4 * 3).clamp(files_min, files_min + spare);
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Ok(Shares { log_files: count(log_files), connections: count(left - log_files) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_exceed_the_limit() {
        for limit in [200, 256, 1024, 20_000, 1 << 20] {
            for wanted in [None, Some(64), Some(900), Some(1 << 20)] {
                let Ok(shares) = divide(limit, 120, 8, wanted) else {
                    assert!(limit < 120 + 32 + 16, "{limit}");
                    continue;
                };
                assert!(120 + shares.log_files + shares.connections <= limit as usize, "{limit} {wanted:?}");
                assert!(shares.log_files >= 32 && shares.connections >= 16, "{limit} {wanted:?}");
            }
        }
        assert_eq!(divide(1024, 120, 4, None), Ok(Shares { log_files: 678, connections: 226 }));
        assert_eq!(divide(1024, 120, 4, Some(700)), Ok(Shares { log_files: 700, connections: 204 }));
        assert_eq!(divide(1024, 120, 4, Some(5000)), Ok(Shares { log_files: 888, connections: 16 }));
        assert_eq!(divide(100, 120, 4, None), Err(152));
    }
}
