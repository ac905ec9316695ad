//! The node's logs, lent to its console for searches: segments are read where they lie, beside the owners of
//! partitions.
//!
//! What is not in segments yet, damaged or gone, is not given: the console asks for it by Fetch, as any client does.
//!
//! Neighbours: console.rs, which hands this to the console; core/storage's `segment_reader.rs`, which reads.

use crate::node::Node;
use barnabas_base::{Offset, PartitionIndex, TopicPartition};
use barnabas_console::{OwnLog, OwnLogs};
use barnabas_partition::PartitionKey;
use barnabas_storage::SegmentReader;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// Empty until the node is there.
#[derive(Debug, Default)]
pub struct NodeLogs {
    pub node: OnceLock<Arc<Node>>,
}

/// A partition's log, for as long as this node leads it.
#[derive(Debug)]
struct Led {
    node: Arc<Node>,
    key: PartitionKey,
    reader: SegmentReader,
}

fn leads(node: &Node, key: PartitionKey) -> bool {
    let image = node.cluster.image.load();
    let topic = image.topics.by_id(key.topic);
    let state = topic.and_then(|topic| topic.partition(key.partition));
    // A damaged log is read through its owner, who knows where it can be read.
    let impaired = &node.log_dirs.impaired;
    let is_whole =
        impaired.count() == 0 || !(impaired.is_offline(key) || impaired.all_damaged().contains(&key));
    is_whole && state.is_some_and(|state| state.leader == node.identity.broker_id)
}

impl OwnLogs for NodeLogs {
    fn open(&self, topic: &str, partition: i32) -> Option<Box<dyn OwnLog>> {
        let node = self.node.get()?;
        let image = node.cluster.image.load();
        let topic = image.topics.by_name(topic)?;
        let key = PartitionKey { topic: topic.id, partition: PartitionIndex(partition) };
        if !leads(node, key) {
            return None;
        }
        let name = TopicPartition { topic: topic.name.clone(), partition: key.partition }.to_string();
        let mut usable = node.log_dirs.directories.iter().filter(|directory| directory.is_usable());
        let directory = usable.find(|directory| {
            directory.disk.stat(&directory.path.join(&name)).is_ok_and(|stat| stat.is_some())
        })?;
        let reader = SegmentReader::new(directory.disk.clone(), directory.path.join(&name));
        Some(Box::new(Led { node: node.clone(), key, reader }))
    }

    fn give_way(&self) {
        if let Err(error) = rustix::process::setpriority_process(None, 19) {
            tracing::debug!(%error, "a search keeps its priority");
        }
    }
}

impl OwnLog for Led {
    fn read(&mut self, from: i64, bytes: usize) -> Bytes {
        if !leads(&self.node, self.key) {
            return Bytes::new();
        }
        match self.reader.read(Offset(from), bytes) {
            Ok(piece) => piece,
            Err(error) => {
                tracing::debug!(%error, "a search asks the partition's owner instead");
                Bytes::new()
            }
        }
    }
}
