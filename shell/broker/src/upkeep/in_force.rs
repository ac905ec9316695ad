//! What is in force where the machine has a say: judged before anything is written, and said once at each start.
//!
//! core/metadata's table knows the range of each key. What depends on the machine is measured here and judged by
//! core/config/src/machine.rs: its memory, the size of each directory's file system. How large a file this process may
//! write is judged here.

use crate::log_dirs::directories::places::{parent, space};
use crate::log_dirs::directories::{Directories, Directory};
use crate::log_dirs::full::{self, MIN_FREE};
use crate::log_dirs::journal_thread::journal_config;
use crate::node::Node;
use barnabas_config::ConfigError;
use barnabas_config::machine::{check_file_system, check_memory};
use barnabas_identity::Place;

use barnabas_metadata::config::BrokerConfig;
use barnabas_storage::{Disk, Watermarks};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsStr;
use std::path::Path;

/// Below this not even the journal's smallest ring and a segment of one batch are possible.
const FILE_BYTES_MIN: u64 = 16 << 20;
const MIB: u64 = 1 << 20;

/// Refuses values that the table takes, and this machine cannot hold.
///
/// # Errors
/// Key, value, what it was compared with.
pub fn check(
    config: &BrokerConfig,
    disk: &dyn Disk,
    places: &[Place],
    memory_bytes: u64,
) -> Result<(), ConfigError> {
    check_memory(config, memory_bytes)?;
    for place in places.iter().filter(|place| place.holds_partitions && place.problem.is_none()) {
        // One that cannot be asked says so when it is written to.
        let Some(space) = space(place, disk) else { continue };
        check_file_system(config, &place.path, space.total)?;
    }
    Ok(())
}

/// The largest file that this process may write: `ulimit -f`, in whole blocks. Segments are rolled before they are
/// larger.
///
/// # Errors
/// It is too small for anything.
pub fn file_bytes_max() -> Result<u64, String> {
    let Some(bytes) = getrlimit(Resource::Fsize).current else { return Ok(u64::MAX) };
    if bytes < FILE_BYTES_MIN {
        return Err(format!(
            "the process may write files of {bytes} bytes at most (ulimit -f), and {FILE_BYTES_MIN} are needed: raise the limit (of a \
             systemd unit: LimitFSIZE=)"
        ));
    }
    tracing::warn!(
        "the process may write files of at most {bytes} bytes (ulimit -f). Segments are limited to that \
         size regardless of log.segment.bytes and segment.bytes, and a larger batch is refused. Raise \
         the limit (LimitFSIZE= in a systemd unit) if this is not intended"
    );
    Ok(bytes / 4096 * 4096)
}

/// Takes the operator's `log.dir.min.free.bytes` over.
pub fn set_min_free(directories: &Directories, config: &BrokerConfig) {
    for directory in directories.iter() {
        let is_new = directory.room.set_min_free(config.long(MIN_FREE));
        if let Some(wanted) = full::wanted(config).filter(|_| is_new && directory.is_usable())
            && let Ok(space) = directory.disk.space(&directory.path)
            && wanted > space.total
        {
            let (path, total) = (directory.path.display(), space.total);
            tracing::warn!(
                "{MIN_FREE}={wanted} exceeds the size of the file system of {path} ({total} bytes): \
                 produce requests are refused there until the key is lowered"
            );
        }
    }
}

/// One line for the node, one for each log directory.
pub fn say(node: &Node, connections: usize) {
    tracing::info!(
        "limits: {} log files open at a time (log.open.files.max), {connections} connections, {} MiB of recent batches in memory \
         (log.cache.bytes), {} workers",
        node.log_dirs.open_files_max,
        node.log_dirs.cache_bytes_max / MIB,
        node.workers.count
    );
    for directory in node.log_dirs.directories.iter().filter(|directory| directory.is_usable()) {
        say_directory(node, directory);
    }
}

fn say_directory(node: &Node, directory: &Directory) {
    let path = directory.path.display();
    let Ok(space) = directory.disk.space(&directory.path) else {
        return tracing::info!("log directory {path}: the free space cannot be determined");
    };
    let config = node.cluster.config.load();
    let marks = Watermarks::of(space.total, full::wanted(&config));
    let journal =
        journal_config(&config, space.total, node.workers.memory_bytes, node.log_dirs.file_bytes_max);
    let acks = if node.log_dirs.acks_are_synced {
        let ring = journal.files as u64 * u64::from(journal.file_bytes);
        format!(
            "a journal of {} MiB is set aside with the first record (log.journal.bytes), rounds end {} µs apart at least \
             (log.journal.linger.us), {} bytes and more of one partition go past it (log.journal.append.bytes.max)",
            ring / MIB,
            journal.linger_us,
            journal.append_bytes_max.saturating_add(1)
        )
    } else {
        "no journal, acknowledged from the page cache (log.ack.durability=written)".to_owned()
    };
    tracing::info!(
        "log directory {path}: {} of {} MiB free, produce requests are refused below {} \
         (log.dir.min.free.bytes); {acks}",
        space.free / MIB,
        space.total / MIB,
        marks.refuse_below / MIB
    );
}

/// The first two entries of `log.dirs` that are one place, by way of a link or a mount.
///
/// # Errors
/// Names both.
pub fn check_distinct(directories: &[&Path]) -> Result<(), ConfigError> {
    let places: Vec<_> = directories.iter().map(|path| place_of(path)).collect();
    for (at, found) in places.iter().enumerate().filter(|(_, found)| found.is_some()) {
        if let Some(first) = places[..at].iter().position(|other| other == found) {
            let (first, second) = (directories[first].display(), directories[at].display());
            let problem =
                format!("{first} and {second} are the same directory (by a link, or mounted twice)");
            return Err(ConfigError::value("log.dirs", problem, "log.dirs=/data/1,/data/2"));
        }
    }
    Ok(())
}

/// Device, inode and, of one that does not exist yet, its name there.
fn place_of(path: &Path) -> Option<(u64, u64, Option<&OsStr>)> {
    use std::os::unix::fs::MetadataExt;
    let (there, name) = if path.exists() { (path, None) } else { (parent(path), path.file_name()) };
    std::fs::metadata(there).ok().map(|meta| (meta.dev(), meta.ino(), name))
}
