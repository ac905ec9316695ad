//! The record of a message, or of a record, that cannot be delivered: its body as it came, and why.
//!
//! # Source
//! Kafka Connect's `DeadLetterQueueReporter`: the names of the headers.

use barnabas_client::Outgoing;
use bytes::Bytes;

/// Where it came from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub connector: &'a str,
    /// `VALUE_CONVERTER` or `TASK_PUT`, as in Connect.
    pub stage: &'static str,
    /// Of a record: topic, partition, offset.
    pub record: Option<(&'a str, i32, i64)>,
}

/// Adds the reason to `letter`.
pub fn with_reason(mut letter: Outgoing, origin: Origin<'_>, why: &str) -> Outgoing {
    let mut add = |name: &str, value: String| {
        let name = format!("__connect.errors.{name}");
        letter.headers.push((Bytes::from(name), Some(Bytes::from(value))));
    };
    if let Some((topic, partition, offset)) = origin.record {
        add("topic", topic.to_owned());
        add("partition", partition.to_string());
        add("offset", offset.to_string());
    }
    add("connector.name", origin.connector.to_owned());
    add("task.id", "0".to_owned());
    add("stage", origin.stage.to_owned());
    add("exception.message", why.to_owned());
    letter
}
