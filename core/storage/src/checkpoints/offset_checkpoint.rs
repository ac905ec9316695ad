//! The offset checkpoints of a log directory: one offset per partition, as text.
//!
//! Source: Kafka `OffsetCheckpointFile`.

use barnabas_base::{Map, Offset, PartitionIndex, TopicPartition};

use crate::checkpoints::text;

pub(crate) const RECOVERY_POINT: &str = "recovery-point-offset-checkpoint";
pub(crate) const LOG_START: &str = "log-start-offset-checkpoint";
pub(crate) const HIGH_WATERMARK: &str = "replication-offset-checkpoint";
pub(crate) const CLEANER: &str = "cleaner-offset-checkpoint";

pub(crate) const ALL: [&str; 4] = [RECOVERY_POINT, HIGH_WATERMARK, LOG_START, CLEANER];

/// Entries are sorted, so that equal states give equal files.
pub(crate) fn render(offsets: &Map<TopicPartition, Offset>) -> String {
    let mut sorted: Vec<_> = offsets.iter().collect();
    sorted.sort_unstable();
    text::render(sorted.into_iter().map(|(at, offset)| format!("{} {} {offset}", at.topic, at.partition)))
}

/// Kafka makes these files empty before it first writes them.
pub(crate) fn parse(text: &[u8]) -> Result<Map<TopicPartition, Offset>, String> {
    if text.is_empty() {
        return Ok(Map::default());
    }
    let entries = text::parse(text, |line| {
        let mut fields = line.split_whitespace();
        let (topic, partition, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let partition = PartitionIndex(partition.parse().ok()?);
        let offset: i64 = offset.parse().ok()?;
        let whole = fields.next().is_none() && partition.get() >= 0 && offset >= 0;
        whole.then(|| (TopicPartition::new(topic, partition), Offset(offset)))
    })?;
    Ok(entries.into_iter().collect())
}
