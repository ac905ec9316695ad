//! DescribeLogDirs: what lies in which directory, by what the file system says.
//!
//! Partitions are not opened for it: a log's size is that of its segment files. It may take a while with many partitions,
//! so that it runs beside the worker.

use super::{Answer, Call, Started};
use crate::directories::Directory;
use crate::node::Node;
use barnabas_api::k35_describe_log_dirs::{self, Directory as Described, Replica, Wanted};
use barnabas_base::{Text, TopicPartition};
use barnabas_storage::{DirKind, StorageError};
use barnabas_wire::messages::DescribeLogDirsRequest;
use std::collections::BTreeSet;
use std::sync::Arc;

pub fn describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> Started {
    let node = call.session.node.clone();
    Started::wait(async move {
        let version = call.version;
        let described = tokio::task::spawn_blocking(move || {
            let wanted = k35_describe_log_dirs::plan(request);
            let directories = describe_all(&node, &wanted);
            k35_describe_log_dirs::respond(&wanted, directories, version)
        });
        described.await.map_or(Answer::Close, |response| Answer::Reply(response.into()))
    })
}

fn describe_all(node: &Arc<Node>, wanted: &Wanted) -> Vec<Described> {
    let mut on_disk = BTreeSet::new();
    let mut described: Vec<Described> = Vec::new();
    for directory in node.directories.iter().filter(|directory| directory.holds_partitions) {
        let path = std::path::absolute(&directory.path).unwrap_or_else(|_| directory.path.to_path_buf());
        let path = Text::from(path.to_string_lossy().into_owned());
        let found = if directory.is_online() { partitions(directory, wanted).ok() } else { None };
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
    add_unwritten(node, wanted, &on_disk, &mut described);
    described
}

fn partitions(directory: &Directory, wanted: &Wanted) -> Result<Vec<Replica>, StorageError> {
    let listed = directory.lock().partitions()?;
    let mut replicas = Vec::new();
    for entry in listed {
        let TopicPartition { topic, partition } = entry.topic_partition;
        // The metadata log is no topic of anybody's.
        let is_metadata = *topic == *barnabas_base::name::CLUSTER_METADATA;
        let is_shown = matches!(entry.kind, DirKind::Current | DirKind::Future) && !is_metadata;
        if !is_shown || !wanted.contains(&topic, partition) {
            continue;
        }
        let dir = directory.path.join(&entry.name);
        let mut size_bytes = 0;
        for file in directory.disk.list(&dir)?.iter().filter(|file| file.name.ends_with(".log")) {
            size_bytes += directory.disk.stat(&dir.join(&file.name))?.map_or(0, |stat| stat.len);
        }
        let is_future = entry.kind == DirKind::Future;
        replicas.push(Replica { topic, partition, size_bytes, offset_lag: 0, is_future });
    }
    Ok(replicas)
}

/// Partitions that nothing was written to have no directory here; Kafka's have, with nothing in it.
fn add_unwritten(
    node: &Node,
    wanted: &Wanted,
    on_disk: &BTreeSet<TopicPartition>,
    described: &mut [Described],
) {
    let holding = node.directories.iter().filter(|directory| directory.holds_partitions);
    let ids: Vec<_> = holding.map(|directory| directory.id).collect();
    let image = node.image.load();
    for topic in image.topics.iter() {
        for (partition, state) in topic.partitions() {
            let name = TopicPartition { topic: topic.name.clone(), partition };
            let is_wanted = state.has_replica(node.broker_id) && wanted.contains(&topic.name, partition);
            if !is_wanted || on_disk.contains(&name) {
                continue;
            }
            let assigned = state.directory(node.broker_id);
            let place = ids.iter().position(|id| Some(*id) == assigned).unwrap_or(0);
            if let Some(directory) = described.get_mut(place).filter(|directory| !directory.is_offline) {
                let topic = topic.name.clone();
                directory.partitions.push(Replica {
                    topic,
                    partition,
                    size_bytes: 0,
                    offset_lag: 0,
                    is_future: false,
                });
            }
        }
    }
}
