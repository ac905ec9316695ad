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
use barnabas_log_dirs::reports::{DirectoryState, Reporter};
use barnabas_metadata::{Changes, Image, ResourceType};
use barnabas_storage::{DiskError, DiskErrorKind};
use barnabas_wire::messages::BrokerHeartbeatRequest;
use std::time::Duration;

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
    let mut placed = Vec::new();
    reporter(node).unplaced(before, image, changes, |key, name, is_unassigned| {
        if let Some(directory) = node.log_dirs.moves.take_preferred(&name) {
            directories.figures.prefer(key, directory);
            placed.push((key, directory));
        } else if is_unassigned && let Some(directory) = directories.place(key) {
            placed.push((key, directory));
        }
    });
    placed
}

fn reporter(node: &Node) -> Reporter {
    Reporter { broker: node.identity.broker_id, epoch: node.identity.broker_epoch() }
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
    let directories = &node.log_dirs.directories;
    let placed: Vec<_> = placed.iter().map(|&(key, directory)| (key, directories[directory].id)).collect();
    for request in reporter(node).assignments(&placed) {
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
    let directories = &node.log_dirs.directories;
    let offline = directories.iter().filter(|dir| !dir.is_online() && dir.is_known()).map(|dir| dir.id);
    let state = DirectoryState { offline: offline.collect(), cordoned: directories.cordoned() };
    let mut request = reporter(node).heartbeat(&node.cluster.image.load(), state);
    node.log_dirs.impairments(node.clock.monotonic()).write(&mut request.unknown_tagged_fields);
    request
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
    let directories = &node.log_dirs.directories;
    let offline = directories.iter().filter(|dir| !dir.is_online()).map(|dir| dir.id);
    let state = DirectoryState { offline: offline.collect(), cordoned: directories.cordoned() };
    reporter(node).is_out_of_step(&node.cluster.image.load(), &state)
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
