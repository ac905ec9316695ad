//! Topics by name: what a name may be, and which names are the cluster's own.

use crate::{PartitionIndex, Text};

/// One partition of a topic, by name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TopicPartition {
    pub topic: Text,
    pub partition: PartitionIndex,
}

impl TopicPartition {
    pub fn new(topic: impl Into<Text>, partition: PartitionIndex) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl std::fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl std::fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The names that Kafka gives to its own topics.
pub mod name {
    pub const CLUSTER_METADATA: &str = "__cluster_metadata";
    pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
    pub const SHARE_GROUP_STATE: &str = "__share_group_state";
    pub const TRANSACTION_STATE: &str = "__transaction_state";
}

/// Whether clients see this topic marked as internal.
///
/// # Source
/// Kafka `Topic.isInternal`: `__cluster_metadata` is not among them, as no client ever sees it.
pub fn is_internal_topic(topic: &str) -> bool {
    matches!(topic, name::CONSUMER_OFFSETS | name::TRANSACTION_STATE | name::SHARE_GROUP_STATE)
}

/// Why a name is no topic's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TopicNameError {
    #[error("a topic's name cannot be empty")]
    Empty,
    #[error("a topic's name cannot be '.' or '..'")]
    Dots,
    #[error("a topic's name cannot be longer than 249 characters")]
    TooLong,
    #[error("a topic's name holds only ASCII letters, digits, '.', '_' and '-'")]
    Character,
}

/// A directory is called `topic-partition` and may get a suffix. Kafka `Topic.MAX_NAME_LENGTH`.
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// # Errors
/// The first rule that the name breaks.
///
/// # Source
/// Kafka `Topic.validate`.
pub fn check_topic_name(name: &str) -> Result<(), TopicNameError> {
    if name.is_empty() {
        return Err(TopicNameError::Empty);
    }
    if name == "." || name == ".." {
        return Err(TopicNameError::Dots);
    }
    if name.len() > TOPIC_NAME_BYTES_MAX {
        return Err(TopicNameError::TooLong);
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')) {
        return Err(TopicNameError::Character);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_kafka_judges_them() {
        assert_eq!(check_topic_name("a.b_c-D9"), Ok(()));
        assert_eq!(check_topic_name(""), Err(TopicNameError::Empty));
        assert_eq!(check_topic_name(".."), Err(TopicNameError::Dots));
        assert_eq!(check_topic_name(&"a".repeat(249)), Ok(()));
        assert_eq!(check_topic_name(&"a".repeat(250)), Err(TopicNameError::TooLong));
        assert_eq!(check_topic_name("a b"), Err(TopicNameError::Character));
        assert_eq!(check_topic_name("é"), Err(TopicNameError::Character));
    }
}
