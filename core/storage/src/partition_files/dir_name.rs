//! The names of partition directories: `topic-3`, and what is on its way out or in: `topic-3.<id>-delete`, `-future`,
//! `-stray`.
//!
//! Source: Kafka `LocalLog.parseTopicPartitionName`, `logDeleteDirName`.

use barnabas_base::{PartitionIndex, TopicPartition, Uuid};

/// The longest name that Linux's file systems take.
pub const NAME_BYTES_MAX: usize = 255;

/// The name of a file of ours that belongs to a partition: `PREFIX`, the partition, `SUFFIX`. With `spare` bytes more
/// it is still a name that file systems take: the topic's name is cut short where it must be. `suffix` then tells
/// partitions apart.
pub fn partition_file_name(
    prefix: &str,
    topic_partition: &TopicPartition,
    suffix: &str,
    spare: usize,
) -> String {
    let rest = format!("-{}{suffix}", topic_partition.partition);
    let topic = &*topic_partition.topic;
    let room = NAME_BYTES_MAX.saturating_sub(prefix.len() + rest.len() + spare);
    format!("{prefix}{}{rest}", &topic[..topic.floor_char_boundary(room)])
}

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
    /// Of a deleted or stray directory: the topic's name may be cut short.
    pub topic_partition: TopicPartition,
    pub kind: DirKind,
}

impl PartitionDir {
    /// `None`: the name is no partition directory's.
    pub fn parse(name: &str) -> Option<Self> {
        let kinds = [("-delete", DirKind::Delete), ("-future", DirKind::Future), ("-stray", DirKind::Stray)];
        for (suffix, kind) in kinds {
            // A topic may itself be called `a-delete`: without the dot and the id it is one.
            if let Some((partition, unique)) =
                name.strip_suffix(suffix).and_then(|unsuffixed| unsuffixed.rsplit_once('.'))
                && !unique.is_empty()
                && let Some(topic_partition) = parse_topic_partition(partition)
            {
                return Some(Self { name: name.to_owned(), topic_partition, kind });
            }
        }
        let topic_partition = parse_topic_partition(name)?;
        Some(Self { name: name.to_owned(), topic_partition, kind: DirKind::Current })
    }

    /// The id in the name of a deleted, stray or future directory, where it is one that [`PartitionDir::renamed`]
    /// wrote.
    pub fn unique(&self) -> Option<Uuid> {
        let (_, unique) = self.name.rsplit_once('-')?.0.rsplit_once('.')?;
        let byte = |at: usize| u8::from_str_radix(unique.get(at..at + 2)?, 16).ok();
        let mut bytes = [0; 16];
        for (at, slot) in bytes.iter_mut().enumerate() {
            *slot = byte(2 * at)?;
        }
        (unique.len() == 32).then_some(Uuid(bytes))
    }

    /// Whether the name of a copy in the making would be longer than file systems take (Kafka refuses to move such a
    /// partition).
    pub fn future_is_too_long(topic_partition: &TopicPartition) -> bool {
        Self::renamed(topic_partition, DirKind::Future, Uuid::ZERO).len() > NAME_BYTES_MAX
    }

    /// The name that this directory gets when it becomes `kind`. A topic's name is cut short where the whole would be
    /// too long.
    pub(crate) fn renamed(topic_partition: &TopicPartition, kind: DirKind, unique: Uuid) -> String {
        let suffix = match kind {
            DirKind::Current => return topic_partition.to_string(),
            DirKind::Delete => "delete",
            DirKind::Future => "future",
            DirKind::Stray => "stray",
        };
        let unique: String = unique.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let rest = format!("-{}.{unique}-{suffix}", topic_partition.partition);
        let topic = &*topic_partition.topic;
        let room = if kind == DirKind::Future { topic.len() } else { NAME_BYTES_MAX - rest.len() };
        format!("{}{rest}", &topic[..topic.len().min(room)])
    }
}

fn parse_topic_partition(name: &str) -> Option<TopicPartition> {
    let (topic, partition) = name.rsplit_once('-')?;
    let partition: i32 = partition.parse().ok()?;
    (!topic.is_empty() && partition >= 0).then(|| TopicPartition::new(topic, PartitionIndex(partition)))
}
