//! Whose a node's log directories are: opened, held against each other and the file of settings, given their
//! identities, taken into use.
//!
//! Always true:
//! 1. nothing is written into a directory before it is known to be this node's and this cluster's
//! 2. the mark of a clean stop stays until the node knows its cluster, and goes before the first partition is opened

use super::Failure;

use crate::controller::format::{Beginning, format};
use crate::log_dirs::directories::places::Place;
use crate::log_dirs::directories::{Directories, Directory, random_uuid};
use crate::node::Node;
use crate::upkeep::in_force;
use crate::upkeep::replay;
use barnabas_base::Text;
use barnabas_clock::Clock;
use barnabas_config::NodeConfig;
use barnabas_metadata::config::BrokerConfig;
use barnabas_storage::{Disk, LogDir, MetaProperties, StorageError};
use std::path::Path;
use std::sync::Arc;

const NONE_LEFT: &str = "log.dirs: none of the directories can be used";

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
        let place = Place::look(disk, path, config.log_dirs.iter().any(|dir| dir == path))?;
        if let Some(problem) = place.problem.as_deref().filter(|_| *path == *config.metadata_log_dir) {
            return Err(cannot_be(config, path, problem));
        }
        places.push(place);
    }
    let judged = judge(config, disk, &places)?;
    for (place, verdict) in places.iter_mut().zip(judged.verdicts) {
        if let Verdict::Unusable(problem) = verdict {
            place.problem = Some(problem);
        }
    }
    check_any_left(&places)?;
    Ok(places)
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
                    return Err(cannot_be(config, &path, &error.to_string()));
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

/// # Errors
/// No directory is left that could hold partitions.
fn check_any_left(places: &[Place]) -> Result<(), Failure> {
    let of_partitions = || places.iter().filter(|place| place.holds_partitions);
    if of_partitions().any(|place| place.problem.is_none()) {
        return Ok(());
    }
    let why = of_partitions()
        .filter_map(|place| Some(format!("{}: {}", place.path.display(), place.problem.as_deref()?)));
    Err(format!("{NONE_LEFT}. {}", why.collect::<Vec<_>>().join("; ")).into())
}

/// What becomes of each directory, and the cluster that all of them belong to.
struct Judged {
    cluster_id: Text,
    verdicts: Vec<Verdict>,
}

enum Verdict {
    Keep,
    Format,
    /// Written by a Kafka before 3.7: the directory gets its identity now (KIP-858).
    Complete(MetaProperties),
    Unusable(String),
}

/// Which cluster and node the directories belong to; formats them where the node does that by itself.
///
/// # Errors
/// They were changed since [`look`], or cannot be written.
pub fn identify(config: &NodeConfig, log_dirs: &mut [(LogDir, bool)], clock: Clock) -> Result<Text, Failure> {
    let Some((first, _)) = log_dirs.first() else { return Err(NONE_LEFT.into()) };
    let disk = first.disk().clone();
    let places: Vec<Place> = log_dirs.iter().map(|(log_dir, holds)| Place::of(log_dir, *holds)).collect();
    let Judged { cluster_id, verdicts } = judge(config, &*disk, &places)?;
    for ((log_dir, _), verdict) in log_dirs.iter_mut().zip(verdicts) {
        match verdict {
            Verdict::Keep => {}
            Verdict::Format => {
                format(log_dir, config, &Beginning::newest(cluster_id.clone()), clock.wall())?;
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

fn judge(config: &NodeConfig, disk: &dyn Disk, places: &[Place]) -> Result<Judged, Failure> {
    let known = places.iter().find_map(|place| place.meta.as_ref()?.cluster_id.clone());
    let cluster_id = match (&known, config.formats_itself) {
        (Some(id), _) => id.clone(),
        (None, true) => Text::from(random_uuid().to_string()),
        (None, false) => {
            let Some(first) = places.first() else { return Err(NONE_LEFT.into()) };
            return Err(cannot_be(config, &first.path, &not_formatted(config, first, None)));
        }
    };
    check_kraft(config, disk, places)?;
    let verdict = |place| judge_one(config, place, &cluster_id);
    let verdicts = places.iter().map(verdict).collect::<Result<_, _>>()?;
    Ok(Judged { cluster_id, verdicts })
}

fn judge_one(config: &NodeConfig, place: &Place, cluster_id: &Text) -> Result<Verdict, Failure> {
    if let Some(problem) = &place.problem {
        return Ok(Verdict::Unusable(problem.clone()));
    }
    let Some(meta) = place.meta.clone() else {
        if config.formats_itself {
            return check_empty(place).map(|()| Verdict::Format);
        }
        let problem = not_formatted(config, place, Some(cluster_id));
        return match place.path == config.metadata_log_dir {
            true => Err(cannot_be(config, &place.path, &problem)),
            false => Ok(Verdict::Unusable(problem)),
        };
    };
    let path = place.path.display();
    if meta.cluster_id.as_ref().is_some_and(|found| found != cluster_id) {
        let found = meta.cluster_id.unwrap_or_default();
        return Err(format!("{path} belongs to cluster {found}, another directory to {cluster_id}").into());
    }
    if let Some(found) = meta.node_id
        && found != config.node_id
    {
        let problem = format!("is {}, but {path} belongs to node {found}", config.node_id);
        return Err(format!("node.id: {problem}. Example: node.id={found}").into());
    }
    if meta.directory_id.is_some() && meta.version > 0 {
        return Ok(Verdict::Keep);
    }
    Ok(Verdict::Complete(MetaProperties {
        version: 1,
        cluster_id: Some(cluster_id.clone()),
        node_id: Some(config.node_id),
        directory_id: meta.directory_id.or_else(|| Some(random_uuid())),
    }))
}

/// Version 0 of `meta.properties` is ZooKeeper mode's. Unless a metadata log says what its partitions are (after
/// Kafka's own migration, KIP-866), that stands in ZooKeeper: beginning an empty cluster there would make strays of all
/// of them.
fn check_kraft(config: &NodeConfig, disk: &dyn Disk, places: &[Place]) -> Result<(), Failure> {
    for place in places {
        let metadata_log = config.metadata_log_dir.join("__cluster_metadata-0");
        let is_old = place.meta.as_ref().is_some_and(|meta| meta.version == 0);
        if is_old && disk.stat(&metadata_log)?.is_none() {
            return Err(format!(
                "{} is of a Kafka with ZooKeeper (version=0 in its meta.properties), and what its topics are stands in ZooKeeper. \
                 Nothing was changed. Migrate it to KRaft with Apache Kafka 3.9 first, then start here; or start with another \
                 directory: --override log.dirs=/some/empty/place",
                place.path.display()
            )
            .into());
        }
    }
    Ok(())
}

/// A directory that holds partitions has lost its `meta.properties`: it has data, so it is not a new node's.
fn check_empty(place: &Place) -> Result<(), Failure> {
    let Some(found) = &place.partition else { return Ok(()) };
    Err(format!(
        "{} holds data ({found} and perhaps more) but no meta.properties, so it cannot be told whose it is. Put that file back \
         from a copy, or start with another directory: --override log.dirs=/some/empty/place",
        place.path.display()
    )
    .into())
}

/// Under the key that names the directory.
fn cannot_be(config: &NodeConfig, path: &Path, why: &str) -> Failure {
    let is_of_partitions = config.log_dirs.iter().any(|dir| dir == path);
    let key = if is_of_partitions { "log.dirs" } else { "metadata.log.dir" };
    format!("{key}: {}: {why}", path.display()).into()
}

/// `known`: the cluster of the node's other directories. Another id would make this one a stranger's.
fn not_formatted(config: &NodeConfig, place: &Place, known: Option<&Text>) -> String {
    if let Some(found) = &place.partition {
        return format!(
            "it holds data ({found} and perhaps more) but no meta.properties, so it cannot be told whose it is: put that file back \
             from a copy"
        );
    }
    let is_dynamic = config.is_controller && !config.has_static_voters();
    match known {
        // A voter that has lost its disk is no voter until it is added again: it must not start a quorum of its own.
        Some(cluster) => format!(
            "it is not formatted, and the node's other log directories are of cluster {cluster}. If its disk is not mounted, mount \
             it and start again; if its disk was replaced, format it for that cluster and start again: \
             barnabas storage format -g -t {cluster} -c FILE.properties{}",
            if is_dynamic { " --no-initial-controllers" } else { "" }
        ),
        // A cluster's id is made once, with its first controllers.
        None if !config.is_controller => "it is not formatted. A broker is formatted with the id of the cluster that it joins: barnabas \
             storage format -t CLUSTER-ID -c FILE.properties. The id is cluster.id in a controller's meta.properties, and a running \
             cluster shows it: kafka-cluster cluster-id --bootstrap-server HOST:PORT"
            .to_owned(),
        None => format!(
            "it is not formatted. Format it first: barnabas storage format -t $(barnabas storage random-uuid) -c FILE.properties{}. \
             A node that joins a cluster is formatted with that cluster's id{}",
            if is_dynamic { " --standalone" } else { "" },
            if is_dynamic { " and --no-initial-controllers" } else { "" }
        ),
    }
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
