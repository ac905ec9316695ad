//! DescribeLogDirs: what lies in which directory, by what the file system says. AlterReplicaLogDirs: what shall lie
//! where (moves.rs).
//!
//! Partitions are not opened for it: the owners tell the sizes of those that are open (part of which may be in memory
//! alone), and the size of another is that of its segment files. It may take a while with many partitions, so that it
//! runs beside the worker; one at a time, with a share of the memory budget.

use crate::log_dirs::directories::Directory;
use crate::mailbox::MoveCommand;
use crate::mailbox::moves::Begun;
use crate::mailbox::{Command, Declined, PartitionKey};
use crate::node::Node;
use crate::node::workers::repeated::Repeated;
use crate::requests::call::{Answer, Call, Started, pieces};
use crate::routing::owners::ask_workers;
use crate::upkeep::mover;
use barnabas_api::k34_alter_replica_log_dirs as k34;
use barnabas_api::k35_describe_log_dirs::{self, Directory as Described, Replica, Response, Wanted};
use barnabas_base::{DirectoryId, ErrorCode, Map, Text, TopicId, TopicPartition};
use barnabas_metadata::Topic;
use barnabas_net::Claim;
use barnabas_storage::{DirKind, PartitionDir, StorageError};
use barnabas_wire::messages::{AlterReplicaLogDirsRequest, DescribeLogDirsRequest};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// The node makes one such answer at a time: each reads the directories, and is as long as the broker has partitions.
static TURN: Semaphore = Semaphore::const_new(1);

/// How long an answer waits for memory. Clients give up after 30 s, by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer that takes no more does not claim it.
const UNCLAIMED_BYTES: u64 = 64 << 10;

pub fn describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> Started {
    let node = call.session.node.clone();
    Started::wait(async move {
        let version = call.version;
        // Never closed.
        let turn = TURN.acquire().await;
        let counting = node.clone();
        let counted = tokio::task::spawn_blocking(move || replicas_here(&counting));
        let Ok(count) = counted.await else { return Answer::Close };
        let mut claim = call.session.claim();
        if !claim_for(&node, &mut claim, count * k35_describe_log_dirs::LOOK_BYTES).await {
            let paths = holding(&node).map(|(_, directory)| path_of(directory));
            return Answer::Reply(k35_describe_log_dirs::refuse(paths, version).into());
        }
        let described = tokio::task::spawn_blocking(move || {
            let wanted = k35_describe_log_dirs::plan(request);
            let directories = describe_all(&node, &wanted);
            k35_describe_log_dirs::respond(&wanted, directories, version)
        });
        let Ok(response) = described.await else { return Answer::Close };
        drop(turn);
        claim.shrink_to(count * k35_describe_log_dirs::KEPT_BYTES);
        match response {
            Response::Whole(response) => Answer::Held(response.into(), claim),
            Response::Large(large) => {
                pieces::answer(&call, call.moment(), Box::new(large), Some(claim)).await
            }
        }
    })
}

/// Claims what an answer takes while it is made; of a budget that is smaller than that, half. `false`: others have held
/// it for too long.
async fn claim_for(node: &Node, claim: &mut Claim, bytes: u64) -> bool {
    let bytes = bytes.min(node.workers.budget.limit_bytes() / 2);
    if bytes <= UNCLAIMED_BYTES {
        return true;
    }
    tokio::time::timeout(PATIENCE, claim.grow_within_limits(bytes)).await.is_ok()
}

/// How many partitions this broker has.
fn replicas_here(node: &Node) -> u64 {
    let image = node.cluster.image.load();
    let me = node.identity.broker_id;
    let of_topic = |topic: &Arc<Topic>| topic.partitions().filter(|(_, state)| state.has_replica(me)).count();
    image.topics.iter().map(of_topic).sum::<usize>() as u64
}

/// The directories that hold partitions, each with its place among all.
fn holding(node: &Node) -> impl Iterator<Item = (usize, &Directory)> {
    node.log_dirs.directories.iter().enumerate().filter(|entry| entry.1.holds_partitions)
}

fn path_of(directory: &Directory) -> Text {
    let path = std::path::absolute(&directory.path).unwrap_or_else(|_| directory.path.to_path_buf());
    Text::from(path.to_string_lossy().into_owned())
}

pub fn alter_replica_log_dirs(call: Call, request: AlterReplicaLogDirsRequest) -> Started {
    let node = call.session.node.clone();
    let moment = call.moment();
    let directories: Vec<_> = node
        .log_dirs
        .directories
        .iter()
        .map(|each| k34::Directory { is_online: each.is_online(), is_cordoned: each.is_cordoned() })
        .collect();
    let named = |path: &str| {
        node.log_dirs.directories.iter().position(|each| each.holds_partitions && each.is_called(path))
    };
    let too_long = PartitionDir::future_is_too_long;
    let mut work = k34::plan(request, &directories, named, too_long, &call.context(&moment));
    for (name, directory) in work.preferred.drain(..) {
        node.log_dirs.moves.prefer(name, directory);
    }
    Started::wait(async move {
        for part in work.parts {
            if let Err(code) = alter_one(&node, part.topic, part.partition, part.directory).await {
                work.pending.refuse(part.slot, code);
            }
        }
        Answer::Reply(work.pending.respond().into())
    })
}

/// Begins a move, ends one, or leaves things as they are: in Kafka's order.
async fn alter_one(
    node: &Arc<Node>,
    topic: TopicId,
    name: TopicPartition,
    to: usize,
) -> Result<(), ErrorCode> {
    let key = PartitionKey { topic, partition: name.partition };
    let known = node.log_dirs.moves.get(key);
    if known.as_ref().is_some_and(|each| each.to != to) {
        node.log_dirs.moves.cancel(key, |each| mover::path_of(node, each));
    }
    let (reply, answer) = oneshot::channel();
    node.workers.owner(key).send(Command::Move(MoveCommand::Begin { key, to, reply })).await;
    let bytes = match answer.await {
        Ok(Ok(Begun::There)) => return Ok(()),
        Ok(Ok(Begun::ToCopy { .. })) if known.is_some_and(|each| each.to == to) => return Ok(()),
        Ok(Ok(Begun::ToCopy { bytes })) => bytes,
        Ok(Err(Declined::Refused(_) | Declined::Unknown)) => return Err(ErrorCode::ReplicaNotAvailable),
        Ok(Err(Declined::Storage | Declined::Full | Declined::Damaged)) | Err(_) => {
            return Err(ErrorCode::KafkaStorageError);
        }
    };
    let directory = &node.log_dirs.directories[to];
    if !directory.room.admits_copy(bytes) {
        if let Some(unsaid) = node.workers.repeated.happened_to(Repeated::NotMoved, name.to_string()) {
            tracing::warn!(
                partition = %name,
                "replica is not moved to {}: its {} MiB would leave less free space there than \
                 log.dir.min.free.bytes{unsaid}",
                directory.path.display(),
                bytes.div_ceil(1 << 20)
            );
        }
        return Err(ErrorCode::KafkaStorageError);
    }
    // A copy of it may lie in a directory that is offline: there are never to be two.
    if node.log_dirs.directories.iter().any(|each| each.holds_partitions && !each.is_online()) {
        return Err(ErrorCode::KafkaStorageError);
    }
    let node = node.clone();
    let begun = tokio::task::spawn_blocking(move || {
        let path = node.log_dirs.directories[to].path.clone();
        mover::begin(&node, key, name.clone(), to).inspect_err(|error| {
            if let Some(unsaid) = node.workers.repeated.happened_to(Repeated::NotMoved, name.to_string()) {
                tracing::warn!(partition = %name, %error, "replica cannot be moved to {}{unsaid}", path.display());
            }
        })
    });
    begun.await.ok().and_then(Result::ok).ok_or(ErrorCode::KafkaStorageError)
}

fn describe_all(node: &Arc<Node>, wanted: &Wanted) -> Vec<Described> {
    let sizes = ask_workers(node, Command::Sizes);
    let open: Map<(usize, TopicPartition), u64> =
        sizes.into_iter().map(|size| ((size.directory, size.partition), size.bytes)).collect();
    let mut on_disk = BTreeSet::new();
    let mut described: Vec<Described> = Vec::new();
    for (at, directory) in holding(node) {
        let path = path_of(directory);
        let found = if directory.is_online() { partitions(node, at, wanted, &open).ok() } else { None };
        let space = found.as_ref().and_then(|_| directory.lock().space().ok());
        for replica in found.iter().flatten() {
            on_disk.insert(TopicPartition { topic: replica.topic.clone(), partition: replica.partition });
        }
        described.push(Described {
            path,
            is_offline: found.is_none(),
            is_cordoned: directory.is_cordoned(),
            total_bytes: space.map(|space| space.total),
            usable_bytes: space.map(|space| space.free),
            partitions: found.unwrap_or_default(),
        });
    }
    add_unwritten(node, wanted, &on_disk, &open, &mut described);
    described
}

type Sizes = Map<(usize, TopicPartition), u64>;

fn partitions(node: &Node, at: usize, wanted: &Wanted, open: &Sizes) -> Result<Vec<Replica>, StorageError> {
    let directory = &node.log_dirs.directories[at];
    let listed = directory.lock().partitions()?;
    let moves = node.log_dirs.moves.all();
    let lag_of = |name: &TopicPartition| {
        let found = moves.iter().find(|(_, each)| each.name == *name);
        found.map_or(-1, |(_, each)| (each.log_end.get() - each.copied_end.get()).max(0))
    };
    let image = node.cluster.image.load();
    let is_offline = |name: &TopicPartition| {
        let topic = image.topics.id_of(&name.topic);
        let key = topic.map(|topic| PartitionKey { topic, partition: name.partition });
        key.is_some_and(|key| node.log_dirs.impaired.is_offline(key))
    };
    let mut replicas = Vec::new();
    for entry in listed {
        // As in Kafka, where what could not be opened is in no directory's list.
        if is_offline(&entry.topic_partition) {
            continue;
        }
        let is_future = entry.kind == DirKind::Future;
        let offset_lag = if is_future { lag_of(&entry.topic_partition) } else { 0 };
        let known = open.get(&(at, entry.topic_partition.clone())).copied().filter(|_| !is_future);
        let TopicPartition { topic, partition } = entry.topic_partition;
        // The metadata log is no topic of anybody's.
        let is_metadata = *topic == *barnabas_base::name::CLUSTER_METADATA;
        let is_shown = matches!(entry.kind, DirKind::Current | DirKind::Future) && !is_metadata;
        if !is_shown || !wanted.contains(&topic, partition) {
            continue;
        }
        let size_bytes = known.map_or_else(|| directory.size_on_disk(&entry.name), Ok)?;
        replicas.push(Replica { topic, partition, size_bytes, offset_lag, is_future });
    }
    Ok(replicas)
}

/// Partitions that nothing was written back to have no directory here; Kafka's have one, with nothing in it.
fn add_unwritten(
    node: &Node,
    wanted: &Wanted,
    on_disk: &BTreeSet<TopicPartition>,
    open: &Sizes,
    described: &mut [Described],
) {
    // As in `described`: each with its place among all of the node's.
    let holding: Vec<_> = holding(node).collect();
    let place_of: Map<&TopicPartition, (usize, u64)> =
        open.iter().map(|((directory, name), bytes)| (name, (*directory, *bytes))).collect();
    let image = node.cluster.image.load();
    for topic in image.topics.iter() {
        for (partition, state) in topic.partitions() {
            let name = TopicPartition { topic: topic.name.clone(), partition };
            let is_wanted =
                state.has_replica(node.identity.broker_id) && wanted.contains(&topic.name, partition);
            let key = PartitionKey { topic: topic.id, partition };
            if !is_wanted || on_disk.contains(&name) || node.log_dirs.impaired.is_offline(key) {
                continue;
            }
            let assigned = state.directory(node.identity.broker_id);
            let named = holding.iter().position(|entry| Some(entry.1.id) == assigned);
            // If it is stored in an unknown directory, this broker knows nothing about it.
            let nowhere = assigned.is_none_or(|id| id == DirectoryId::DIRECTORY_UNASSIGNED);
            let opened = place_of.get(&name);
            let lies = opened.and_then(|(at, _)| holding.iter().position(|entry| entry.0 == *at));
            let place = lies.or(named).or(nowhere.then_some(0));
            let Some(place) = place else { continue };
            if let Some(directory) = described.get_mut(place).filter(|directory| !directory.is_offline) {
                let topic = topic.name.clone();
                directory.partitions.push(Replica {
                    topic,
                    partition,
                    size_bytes: opened.map_or(0, |(_, bytes)| *bytes),
                    offset_lag: 0,
                    is_future: false,
                });
            }
        }
    }
}
