//! What the machine has a say in: how its descriptors are divided, and which values it cannot hold.
//!
//! The machine's figures are handed in. core/metadata's table knows the range of each key; docs/SETTINGS.md says the
//! same rules in words.
//!
//! Always true: `log files + connections + all else ≤ the limit`.
//!
//! Neighbours: shell/broker/src/config/descriptors.rs and upkeep/in_force.rs, which measure.

use crate::ConfigError;
use barnabas_metadata::config::BrokerConfig;
use std::path::Path;

/// A node that could take fewer connections would be of no use.
const CONNECTIONS_MIN: u64 = 16;
/// What one pool needs in the middle of one step: a segment, its indexes, and one that waits for a sync.
const POOL_FILES_MIN: u64 = 4;
/// Standard streams, listeners, the metadata log, snapshots, moves, and the files of libraries.
const PROCESS_FILES: u64 = 48;
/// Each log directory: the ring of its journal, its lock, its file system, one that is being listed, small files.
const DIRECTORY_FILES: u64 = 16;
/// Each worker: its runtime's poll and wake-ups, one small file, one directory.
const WORKER_FILES: u64 = 6;
/// Each cleaner: a segment with its indexes to read and one to write.
const CLEANER_FILES: u64 = 8;
/// A higher limit has no use, and tables of so many descriptors take memory.
pub const LIMIT_MAX: u64 = 1 << 20;

/// Who may open how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Over all workers and log directories: `log.open.files.max` as it is in force.
    pub log_files: usize,
    pub connections: usize,
}

/// How many of each a node has.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    pub workers: u64,
    pub directories: u64,
    /// Descriptors that the shell keeps for itself: spare ones, connections for metrics and of the console.
    pub kept: u64,
}

impl Shares {
    /// Divides the process's limit of open files. Returns what log files could not have as well, if that was wanted.
    ///
    /// # Errors
    /// The limit is too low for this node, in words for the operator.
    pub fn divide(config: &BrokerConfig, limit: u64, parts: Parts) -> Result<(Self, Option<u64>), String> {
        let cleaners = u64::try_from(config.int("log.cleaner.threads")).unwrap_or(1);
        let Parts { workers, directories, kept } = parts;
        let fixed = PROCESS_FILES
            + kept
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
        Ok((shares, wanted.filter(|wanted| *wanted > shares.log_files as u64)))
    }
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

/// Refuses a value that the table takes, and a machine with so much memory cannot hold.
///
/// # Errors
/// Key, value, what it was compared with.
pub fn check_memory(config: &BrokerConfig, memory_bytes: u64) -> Result<(), ConfigError> {
    const CACHE: &str = "log.cache.bytes";
    let given = u64::try_from(config.long(CACHE)).ok();
    let Some(bytes) = given.filter(|bytes| *bytes > memory_bytes / 2) else { return Ok(()) };
    let problem =
        format!("{bytes} bytes are more than half of this machine's memory of {memory_bytes} bytes");
    Err(ConfigError::value(CACHE, problem, format!("{CACHE}=536870912")))
}

/// The same for the file system of a log directory, of `total` bytes.
///
/// # Errors
/// Key, value, what it was compared with.
pub fn check_file_system(config: &BrokerConfig, path: &Path, total: u64) -> Result<(), ConfigError> {
    for (key, most, of, example) in [
        ("log.journal.bytes", total / 2, "half of the file system", "268435456"),
        ("log.dir.min.free.bytes", total, "the file system", "1073741824"),
    ] {
        let given = u64::try_from(config.long(key)).ok();
        if let Some(bytes) = given.filter(|bytes| *bytes > most) {
            let path = path.display();
            let problem = format!("{bytes} bytes are more than {of} of {path}, which has {total} bytes");
            return Err(ConfigError::value(key, problem, format!("{key}={example}")));
        }
    }
    Ok(())
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

    fn config(pairs: &[(&str, &str)]) -> BrokerConfig {
        let mut settings = crate::Settings::default();
        pairs.iter().for_each(|(key, value)| settings.replace(key, (*value).to_owned()));
        crate::check_values(&settings).expect("sound").0
    }

    #[test]
    fn more_log_files_than_the_limit_leaves_are_named() {
        let parts = Parts { workers: 2, directories: 1, kept: 10 };
        let of = |pairs: &[(&str, &str)], limit| Shares::divide(&config(pairs), limit, parts);
        let (shares, missed) = of(&[("log.open.files.max", "5000")], 1024).expect("enough");
        assert_eq!(missed, Some(5000));
        assert!(shares.log_files < 1024, "{shares:?}");
        assert_eq!(of(&[("log.open.files.max", "64")], 1024).expect("enough").1, None);
        let refused = of(&[], 64).expect_err("too few");
        assert!(
            refused.starts_with("the process may open 64 files (ulimit -n), and a node with 2 workers"),
            "{refused}"
        );
    }

    #[test]
    fn value_that_the_machine_cannot_hold_is_refused() {
        let cache = config(&[("log.cache.bytes", "1000")]);
        assert!(check_memory(&cache, 2000).is_ok());
        let refused = check_memory(&cache, 1999).expect_err("too much").to_string();
        assert!(refused.contains("log.cache.bytes") && refused.contains("1999 bytes"), "{refused}");
        let journal = config(&[("log.journal.bytes", "12582912")]);
        let path = Path::new("/data");
        assert!(check_file_system(&journal, path, 2 * 12_582_912).is_ok());
        let refused = check_file_system(&journal, path, 12_582_912).expect_err("too much").to_string();
        assert!(refused.contains("half of the file system of /data"), "{refused}");
        let free = config(&[("log.dir.min.free.bytes", "2000")]);
        assert!(
            check_file_system(&free, path, 2000).is_ok() && check_file_system(&free, path, 1999).is_err()
        );
    }
}
