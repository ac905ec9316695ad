//! `partition.metadata`: the id of the topic that a partition directory belongs to.
//!
//! Source: Kafka `PartitionMetadataFile`, KIP-516.

use barnabas_base::{TopicId, Uuid};

pub(crate) const FILE_NAME: &str = "partition.metadata";

pub(crate) fn render(topic_id: TopicId) -> String {
    format!("version: 0\ntopic_id: {topic_id}")
}

pub(crate) fn parse(text: &[u8]) -> Option<TopicId> {
    let text = std::str::from_utf8(text).ok()?;
    let mut lines = text.lines();
    let version = lines.next()?.strip_prefix("version:")?.trim();
    let topic_id = lines.next()?.strip_prefix("topic_id:")?.trim();
    let topic_id = Uuid::parse(topic_id)?;
    (version == "0" && !topic_id.is_zero()).then_some(topic_id)
}
