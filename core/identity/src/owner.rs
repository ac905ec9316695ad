//! Whose a node's log directories are: held against each other and the file of settings.
//!
//! Always true: what is refused here was not touched.
//!
//! Neighbours: place.rs, what was found (shell/broker/src/log_dirs/directories/places.rs looks);
//! shell/broker/src/server/identity.rs, which opens and formats.

use crate::{IdentityError, Place};
use barnabas_base::{Text, Uuid};
use barnabas_config::NodeConfig;
use barnabas_storage::{Disk, MetaProperties, StorageError};
use std::path::Path;

pub const NONE_LEFT: &str = "log.dirs: none of the directories can be used";

/// Whether there is something to go on with.
///
/// # Errors
/// No directory is left that could hold partitions.
pub fn check_any_left(places: &[Place]) -> Result<(), IdentityError> {
    let of_partitions = || places.iter().filter(|place| place.holds_partitions);
    if of_partitions().any(|place| place.problem.is_none()) {
        return Ok(());
    }
    let why = of_partitions()
        .filter_map(|place| Some(format!("{}: {}", place.path.display(), place.problem.as_deref()?)));
    Err(format!("{NONE_LEFT}. {}", why.collect::<Vec<_>>().join("; ")).into())
}

/// What becomes of each directory, and the cluster that all of them belong to.
#[derive(Debug)]
pub struct Judged {
    pub cluster_id: Text,
    pub verdicts: Vec<Verdict>,
}

/// What becomes of one directory.
#[derive(Debug)]
pub enum Verdict {
    Keep,
    Format,
    /// Written by a Kafka before 3.7: the directory gets its identity now (KIP-858).
    Complete(MetaProperties),
    Unusable(String),
}

/// Which cluster the directories belong to, and what becomes of each. `random`: new identities.
///
/// # Errors
/// One is of another node or cluster, or cannot be this node's.
pub fn judge(
    config: &NodeConfig,
    disk: &dyn Disk,
    places: &[Place],
    random: &mut dyn FnMut() -> Uuid,
) -> Result<Judged, IdentityError> {
    let known = places.iter().find_map(|place| place.meta.as_ref()?.cluster_id.clone());
    let cluster_id = match (&known, config.formats_itself) {
        (Some(id), _) => id.clone(),
        (None, true) => Text::from(random().to_string()),
        (None, false) => {
            let Some(first) = places.first() else { return Err(NONE_LEFT.into()) };
            return Err(cannot_be(config, &first.path, &not_formatted(config, first, None)));
        }
    };
    check_kraft(config, disk, places)?;
    let verdict = |place| judge_one(config, place, &cluster_id, random);
    let verdicts = places.iter().map(verdict).collect::<Result<_, _>>()?;
    Ok(Judged { cluster_id, verdicts })
}

fn judge_one(
    config: &NodeConfig,
    place: &Place,
    cluster_id: &Text,
    random: &mut dyn FnMut() -> Uuid,
) -> Result<Verdict, IdentityError> {
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
        directory_id: meta.directory_id.or_else(|| Some(random())),
    }))
}

/// Version 0 of `meta.properties` is ZooKeeper mode's. Unless a metadata log says what its partitions are (after
/// Kafka's own migration, KIP-866), that stands in ZooKeeper: beginning an empty cluster there would make strays of all
/// of them.
fn check_kraft(config: &NodeConfig, disk: &dyn Disk, places: &[Place]) -> Result<(), IdentityError> {
    for place in places {
        let metadata_log = config.metadata_log_dir.join("__cluster_metadata-0");
        let is_old = place.meta.as_ref().is_some_and(|meta| meta.version == 0);
        if is_old && disk.stat(&metadata_log).map_err(StorageError::from)?.is_none() {
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
fn check_empty(place: &Place) -> Result<(), IdentityError> {
    let Some(found) = &place.partition else { return Ok(()) };
    Err(format!(
        "{} holds data ({found} and perhaps more) but no meta.properties, so it cannot be told whose it is. Put that file back \
         from a copy, or start with another directory: --override log.dirs=/some/empty/place",
        place.path.display()
    )
    .into())
}

/// The refusal of a directory, under the key that names it.
pub fn cannot_be(config: &NodeConfig, path: &Path, why: &str) -> IdentityError {
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
