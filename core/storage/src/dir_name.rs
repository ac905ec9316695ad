//! The names of partition directories: `topic-3`, and what is on its way out or in: `topic-3.<id>-delete`, `-future`, `-stray`.
//!
//! Source: Kafka `LocalLog.parseTopicPartitionName`, `logDeleteDirName`.

use barnabas_base::TopicPartition;

/// What a partition directory is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirKind {
    /// The partition's log.
    Current,
    /// Deleted; its files may be removed at any time.
    Delete,
    /// A copy on its way into this directory (AlterReplicaLogDirs).
    Future,
    /// Found without an owner and put aside.
    Stray,
}

/// A directory that holds a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionDir {
    /// The directory's own name, without its parent's.
    pub name: String,
    pub topic_partition: TopicPartition,
    pub kind: DirKind,
}
