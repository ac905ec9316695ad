//! What this broker tells the controller of its log directories: which partition lies where, which directories have
//! failed, which are cordoned (KIP-858, KIP-1066). And what follows if it cannot tell.
//!
//! A partition gets its directory when the first image with it is published, not with its first write: so the
//! metadata log soon names the directory of each partition, and a missing directory affects no others. Assignments
//! that the controller did not accept are sent again once a second.
//!
//! Source: Kafka `AssignmentsManager`, `BrokerLifecycleManager.propagateDirectoryFailure`, `DynamicLogConfig`.

use crate::mailbox::PartitionKey;
use crate::node::Node;
use barnabas_base::{DirectoryId, TopicPartition};
use barnabas_metadata::{Changes, Image, ResourceType};
use barnabas_storage::{DiskError, DiskErrorKind};
use barnabas_wire::TaggedFields;
use barnabas_wire::messages::assign_replicas_to_dirs_request as assign;
use barnabas_wire::messages::{AssignReplicasToDirsRequest, BrokerHeartbeatRequest};
use std::collections::BTreeMap;
use std::time::Duration;

/// Partitions in one request.
const ASSIGNED_MAX: usize = 10_000;

/// Before an image is published: cordons, and gives new partitions their directories. Returns what to tell the
/// controller of, with [`after_publishing`], once the image is published.
pub fn before_publishing(
    node: &Node,
    before: &Image,
    image: &Image,
    changes: &Changes,
) -> Vec<(PartitionKey, usize)> {
    let directories = &node.log_dirs.directories;
    let of_broker = |resource: &barnabas_metadata::Resource| resource.kind == ResourceType::Broker;
    if changes.everything || changes.features || changes.configs.iter().any(of_broker) {
        let is_known = image.metadata_version().has_cordoned_log_dirs();
        let config = node.cluster.config.load();
        directories.cordon(if is_known { config.list("cordoned.log.dirs") } else { Vec::new() });
    }
    if !directories.are_several() {
        return Vec::new();
    }
    if changes.everything || !image.metadata_version().has_directories() {
        return Vec::new();
    }
    let mut placed = Vec::new();
    for (&id, change) in &changes.topics {
        let Some(topic) = image.topics.by_id(id) else { continue };
        let known = before.topics.by_id(id);
        for &partition in &change.partitions {
            // One that was there before may hold records that only a failed directory knows of.
            let is_new = known.is_none_or(|topic| topic.partition(partition).is_none());
            let Some(row) = topic.partition(partition).filter(|_| is_new) else { continue };
            let key = PartitionKey { topic: id, partition };
            let name = TopicPartition { topic: change.name.clone(), partition };
            if let Some(directory) = node.log_dirs.moves.take_preferred(&name) {
                directories.figures.prefer(key, directory);
                placed.push((key, directory));
            } else if row.directory(node.identity.broker_id) == Some(DirectoryId::DIRECTORY_UNASSIGNED)
                && let Some(directory) = directories.place(key)
            {
                placed.push((key, directory));
            }
        }
    }
    placed
}

/// Once an image is published: counts what changed, and tells the controller what it does not know.
pub fn after_publishing(
    node: &Node,
    before: &Image,
    image: &Image,
    changes: &Changes,
    placed: &[(PartitionKey, usize)],
) {
    let directories = &node.log_dirs.directories;
    if directories.are_several() {
        directories
            .figures
            .follow(before, image, changes, node.identity.broker_id, |id| directories.by_id(id));
    }
    assign(node, placed);
    if is_out_of_step(node) {
        heartbeat(node);
    }
}

/// Tells the controller where partitions lie.
pub fn assign(node: &Node, placed: &[(PartitionKey, usize)]) {
    if !node.cluster.image.load().metadata_version().has_directories() {
        return;
    }
    for part in placed.chunks(ASSIGNED_MAX) {
        let mut by_directory: BTreeMap<usize, BTreeMap<_, Vec<_>>> = BTreeMap::new();
        for &(key, directory) in part {
            let partition_index = key.partition.get();
            let row = assign::PartitionData { partition_index, ..Default::default() };
            by_directory.entry(directory).or_default().entry(key.topic).or_default().push(row);
        }
        let topics = |topics: BTreeMap<_, Vec<_>>| {
            let topic =
                |(topic_id, partitions)| assign::TopicData { topic_id, partitions, ..Default::default() };
            topics.into_iter().map(topic).collect()
        };
        let directories = by_directory.into_iter().map(|(directory, of)| assign::DirectoryData {
            id: node.log_dirs.directories[directory].id,
            topics: topics(of),
            ..Default::default()
        });
        let request = AssignReplicasToDirsRequest {
            broker_id: node.identity.broker_id.get(),
            broker_epoch: node.identity.broker_epoch().get(),
            directories: directories.collect(),
            ..AssignReplicasToDirsRequest::default()
        };
        if node.peers.controller.tell(request, 0).is_err() {
            tracing::debug!("the controller does not know of some partitions' directories yet: it is busy");
        }
    }
}

/// Tells the controller which directories have failed, so that it moves what can be moved, and which take nothing new.
pub fn heartbeat(node: &Node) {
    if node.peers.controller.tell(heartbeat_request(node), 2).is_err() {
        tracing::debug!("the controller was not told of the log directories: it is busy");
    }
}

/// A heartbeat of a broker that serves, with what it has to say of its directories and of what it should not lead.
pub fn heartbeat_request(node: &Node) -> BrokerHeartbeatRequest {
    let offline_log_dirs: Vec<DirectoryId> = node
        .log_dirs
        .directories
        .iter()
        .filter(|dir| !dir.is_online() && dir.is_known())
        .map(|dir| dir.id)
        .collect();
    let image = node.cluster.image.load();
    let cordoned = image.metadata_version().has_cordoned_log_dirs();
    let mut more = TaggedFields::default();
    node.log_dirs.impairments(node.clock.monotonic()).write(&mut more);
    BrokerHeartbeatRequest {
        broker_id: node.identity.broker_id.get(),
        broker_epoch: node.identity.broker_epoch().get(),
        current_metadata_offset: image.provenance.end.get() - 1,
        want_fence: false,
        want_shut_down: false,
        offline_log_dirs,
        cordoned_log_dirs: cordoned.then(|| node.log_dirs.directories.cordoned()),
        unknown_tagged_fields: more,
    }
}

/// Once a second: measures, and tells again what the metadata log does not show yet.
pub fn watch(node: &Node) {
    let directories = &node.log_dirs.directories;
    notice_missing(node);
    if directories.are_several() {
        directories.figures.measure(directories);
        let untold = directories.figures.untold();
        if !untold.is_empty() {
            let image = node.cluster.image.load();
            let known = |key: &PartitionKey| image.topics.by_id(key.topic).is_some();
            let untold: Vec<_> = untold.into_iter().filter(|(key, _)| known(key)).collect();
            assign(node, &untold);
        }
    }
    if is_out_of_step(node) {
        heartbeat(node);
        stop_if_unheard(node);
    }
}

/// Notices a missing directory (its disk was removed, its mount point is empty) without waiting for a write to it.
fn notice_missing(node: &Node) {
    for (at, directory) in
        node.log_dirs.directories.iter().enumerate().filter(|(_, directory)| directory.is_online())
    {
        let path = directory.path.join("meta.properties");
        let error = match directory.disk.stat(&path) {
            Ok(Some(_)) => continue,
            Ok(None) => DiskError::new("find", path, DiskErrorKind::NotFound),
            Err(error) if error.kind.is_shortage() => continue,
            Err(error) => error,
        };
        node.directory_failed(at, &error);
    }
}

/// Whether the metadata log says something else of this broker's directories than is so.
fn is_out_of_step(node: &Node) -> bool {
    let image = node.cluster.image.load();
    let Some(broker) = image.cluster.broker(node.identity.broker_id) else { return false };
    let mut offline = node.log_dirs.directories.iter().filter(|dir| !dir.is_online());
    if image.metadata_version().has_directories() && offline.any(|dir| broker.log_dirs.contains(&dir.id)) {
        return true;
    }
    let told = broker.cordoned_log_dirs.as_deref().unwrap_or_default();
    image.metadata_version().has_cordoned_log_dirs() && told != node.log_dirs.directories.cordoned()
}

/// `log.dir.failure.timeout.ms`: a broker that goes on leading what it cannot read any more is worse than one that
/// stops.
fn stop_if_unheard(node: &Node) {
    let timeout_ms =
        u64::try_from(node.cluster.config.load().long("log.dir.failure.timeout.ms")).unwrap_or(30_000);
    let timeout = Duration::from_millis(timeout_ms);
    let image = node.cluster.image.load();
    let Some(broker) = image.cluster.broker(node.identity.broker_id) else { return };
    let unheard = node.log_dirs.directories.iter().find(|directory| {
        let is_late = directory.failed_for().is_some_and(|since| since > timeout);
        is_late && broker.log_dirs.contains(&directory.id)
    });
    if let Some(directory) = unheard {
        let path = directory.path.display();
        tracing::error!(
            "the failure of log directory {path} could not be reported to the controller within \
             {timeout_ms} ms"
        );
        node.shutdown.failed("a failed log directory could not be reported (log.dir.failure.timeout.ms)");
    }
}
