//! Whose a node's log directories are: opened, held against each other and the file of settings, given their
//! identities, taken into use.
//!
//! Judged by core/identity/src/owner.rs.
//!
//! Always true:
//! 1. nothing is written into a directory before it is known to be this node's and this cluster's
//! 2. the mark of a clean stop stays until the node knows its cluster, and goes before the first partition is opened

use super::Failure;

use crate::config::machine::machine_name;
use crate::log_dirs::directories::places;
use crate::log_dirs::directories::{Directories, Directory, random_uuid};
use crate::node::Node;
use crate::upkeep::in_force;
use crate::upkeep::replay;
use barnabas_base::Text;
use barnabas_clock::Clock;
use barnabas_config::NodeConfig;
use barnabas_identity::{
    Beginning, Judged, Machine, NONE_LEFT, Place, Verdict, cannot_be, check_any_left, format, judge,
};
use barnabas_metadata::config::BrokerConfig;
use barnabas_storage::{Disk, LogDir, StorageError};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The directories as the node keeps them.
pub fn take(config: &BrokerConfig, mut log_dirs: Vec<(LogDir, bool)>) -> Directories {
    let is_synced = config.value("log.ack.durability") != Some("written");
    log_dirs.iter_mut().for_each(|(log_dir, _)| log_dir.set_synced(is_synced));
    let directories = known_directories(log_dirs);
    in_force::set_min_free(&directories, config);
    directories
}

/// Judges the directories as they lie there. Nothing is made or written: a start that is refused after this leaves them
/// as they were.
///
/// # Errors
/// Another process works in one of them; the metadata log's cannot be used, or no other one; one is of another node or
/// cluster.
pub fn look(config: &NodeConfig, disk: &dyn Disk) -> Result<Vec<Place>, Failure> {
    let mut places = Vec::new();
    for path in config.directories() {
        let place = look_at(disk, path, config.log_dirs.iter().any(|dir| dir == path))?;
        if let Some(problem) = place.problem.as_deref().filter(|_| *path == *config.metadata_log_dir) {
            return Err(cannot_be(config, path, problem).into());
        }
        places.push(place);
    }
    let judged = judge(config, disk, &places, &mut random_uuid)?;
    for (place, verdict) in places.iter_mut().zip(judged.verdicts) {
        if let Verdict::Unusable(problem) = verdict {
            place.problem = Some(problem);
        }
    }
    check_any_left(&places)?;
    Ok(places)
}

/// A process that was killed keeps its locks until the kernel has closed its files.
fn look_at(disk: &dyn Disk, path: &Path, holds_partitions: bool) -> Result<Place, StorageError> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let begun = barnabas_clock::now();
    loop {
        let looked = places::look(disk, path, holds_partitions);
        if !matches!(looked, Err(StorageError::Locked(_))) || barnabas_clock::since(begun) >= PATIENCE {
            return looked;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Makes what is missing, locks and reads every directory; with each, whether partitions may lie in it. One that cannot
/// be used is dead: the node goes on without it while another one holds partitions, unless it is the metadata log's
/// (Kafka `LogManager`, `KafkaRaftServer`).
///
/// # Errors
/// Another process works in one of them: that is no fault of the directory.
pub fn open_directories(
    config: &NodeConfig,
    disk: &Arc<dyn Disk>,
    places: Vec<Place>,
) -> Result<Vec<(LogDir, bool)>, Failure> {
    let mut log_dirs = Vec::new();
    for Place { path, holds_partitions, problem, .. } in places {
        let opened = match problem {
            Some(problem) => Err(problem),
            None => match LogDir::open(disk.clone(), &path) {
                Err(error @ StorageError::Locked(_)) => return Err(error.into()),
                Err(error) if path == config.metadata_log_dir => {
                    return Err(cannot_be(config, &path, &error.to_string()).into());
                }
                opened => opened.map_err(|error| error.to_string()),
            },
        };
        let log_dir = opened.unwrap_or_else(|problem| dead(disk, &path, &problem));
        log_dirs.push((log_dir, holds_partitions));
    }
    Ok(log_dirs)
}

fn dead(disk: &Arc<dyn Disk>, path: &Path, why: &str) -> LogDir {
    tracing::error!("log directory {} is offline until the next start: {why}", path.display());
    LogDir::dead(disk.clone(), path)
}

/// Which cluster and node the directories belong to; formats them where the node does that by itself.
///
/// # Errors
/// They were changed since [`look`], or cannot be written.
pub fn identify(config: &NodeConfig, log_dirs: &mut [(LogDir, bool)], clock: Clock) -> Result<Text, Failure> {
    let machine = machine_name();
    let Some((first, _)) = log_dirs.first() else { return Err(NONE_LEFT.into()) };
    let disk = first.disk().clone();
    let places: Vec<Place> = log_dirs.iter().map(|(log_dir, holds)| Place::of(log_dir, *holds)).collect();
    let Judged { cluster_id, verdicts } = judge(config, &*disk, &places, &mut random_uuid)?;
    for ((log_dir, _), verdict) in log_dirs.iter_mut().zip(verdicts) {
        match verdict {
            Verdict::Keep => {}
            Verdict::Format => {
                let fresh = (random_uuid(), Machine(&machine));
                format(log_dir, config, &Beginning::newest(cluster_id.clone()), fresh, clock.wall())?;
                tracing::info!("formatted {} for cluster {cluster_id}", log_dir.path().display());
            }
            Verdict::Complete(meta) => log_dir.write_meta(meta)?,
            Verdict::Unusable(problem) if log_dir.is_online() => {
                *log_dir = dead(log_dir.disk(), log_dir.path(), &problem);
            }
            Verdict::Unusable(_) => {}
        }
    }
    check_any_left(&log_dirs.iter().map(|(log_dir, holds)| Place::of(log_dir, *holds)).collect::<Vec<_>>())?;
    Ok(cluster_id)
}

/// The directories under the identities that they have in the cluster.
fn known_directories(log_dirs: Vec<(LogDir, bool)>) -> Directories {
    let known = log_dirs.into_iter().map(|(log_dir, holds_partitions)| {
        let id = log_dir.meta().and_then(|meta| meta.directory_id).unwrap_or_default();
        Directory::new(log_dir, id, holds_partitions)
    });
    Directories::new(known.collect())
}

/// What is written from here on, the last clean stop does not vouch for. Called once the node knows its cluster: a
/// start that ends before that, be it by a kill, leaves the mark of the clean stop, and the broker epoch in it, as it
/// found it. A directory that does not even take that in is dead.
///
/// # Errors
/// None is left that could hold partitions, or the metadata log's takes nothing in.
///
/// # Source
/// Kafka `LogManager.loadLogs` (`cleanShutdownFileHandler.delete`), which runs once the broker has caught up with the
/// metadata log.
pub fn begin(config: &NodeConfig, node: &Node) -> Result<(), Failure> {
    for (index, directory) in node.log_dirs.directories.iter().enumerate().filter(|(_, dir)| dir.is_online())
    {
        let begun = replay::discard_stale(directory).and_then(|()| directory.lock().begin());
        match begun {
            Ok(()) => {}
            Err(error) if *directory.path == *config.metadata_log_dir => return Err(error.into()),
            Err(error) => node.directory_failed(index, &error),
        }
    }
    if node.log_dirs.directories.iter().any(Directory::is_usable) { Ok(()) } else { Err(NONE_LEFT.into()) }
}
