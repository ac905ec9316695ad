//! The record of a message, or of a record, that cannot be delivered: its body as it came, and why.
//!
//! A topic may refuse a letter that is larger than its `max.message.bytes`. The letter then loses its value beyond 64
//! KiB, beyond 1 KiB, and at last all that is not ours. [`VALUE_BYTES`] and [`LEFT_OUT`] say what is missing.
//!
//! # Source
//! Kafka Connect's `DeadLetterQueueReporter`: the names of the headers.

use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Outgoing};
use bytes::Bytes;

/// Header: how many bytes the value had that was cut.
pub const VALUE_BYTES: &str = "__barnabas.bridge.value.bytes";
/// Header: that key and headers of the message were left out.
pub const LEFT_OUT: &str = "__barnabas.bridge.left.out";
/// What a value is cut to, one after the other.
const CUTS: [usize; 2] = [64 << 10, 1 << 10];

/// Letters of a reason that are kept.
const REASON_MAX: usize = 300;

/// Whether a topic has refused a batch for its size: `max.message.bytes`, or `segment.bytes` where that is less.
pub fn is_too_large(error: &ClientError) -> bool {
    matches!(error.code(), Some(ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge))
}

/// Where it came from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub connector: &'a str,
    /// `VALUE_CONVERTER` or `TASK_PUT`, as in Connect.
    pub stage: &'static str,
    /// Of a record: topic, partition, offset.
    pub record: Option<(&'a str, i32, i64)>,
}

/// A record for the dead-letter topic.
#[derive(Debug, Clone)]
pub struct Letter {
    pub record: Outgoing,
    /// The headers of the message itself come first; the others are ours.
    headers_of_message: usize,
    value_bytes: usize,
}

impl Letter {
    /// `why` and where it came from are added as headers where `reason` is given.
    pub fn new(record: Outgoing, reason: Option<(Origin<'_>, &str)>) -> Self {
        let headers_of_message = record.headers.len();
        let value_bytes = record.value.as_ref().map_or(0, Bytes::len);
        let mut letter = Self { record, headers_of_message, value_bytes };
        if let Some((origin, why)) = reason {
            letter.add_reason(origin, why);
        }
        letter
    }

    fn add(&mut self, name: &str, value: String) {
        self.record.headers.push((Bytes::copy_from_slice(name.as_bytes()), Some(Bytes::from(value))));
    }

    fn add_reason(&mut self, origin: Origin<'_>, why: &str) {
        let mut add = |name: &str, value: String| self.add(&format!("__connect.errors.{name}"), value);
        if let Some((topic, partition, offset)) = origin.record {
            add("topic", topic.to_owned());
            add("partition", partition.to_string());
            add("offset", offset.to_string());
        }
        add("connector.name", origin.connector.to_owned());
        add("task.id", "0".to_owned());
        add("stage", origin.stage.to_owned());
        add("exception.message", why.chars().take(REASON_MAX).collect());
    }

    /// Makes it smaller. `false`: only our own headers are left.
    pub fn shrink(&mut self) -> bool {
        let length = self.record.value.as_ref().map_or(0, Bytes::len);
        if let Some(cut) = CUTS.into_iter().find(|cut| *cut < length) {
            self.cut_value(cut);
            return true;
        }
        if length == 0 && self.record.key.is_none() && self.headers_of_message == 0 {
            return false;
        }
        if length > 0 {
            self.cut_value(0);
        }
        if self.record.key.take().is_some() || self.headers_of_message > 0 {
            self.record.headers.drain(..self.headers_of_message);
            self.headers_of_message = 0;
            self.add(LEFT_OUT, "key and headers".to_owned());
        }
        true
    }

    fn cut_value(&mut self, bytes: usize) {
        if let Some(value) = &mut self.record.value {
            value.truncate(bytes);
        }
        // The message may have a header of this name too.
        let ours = self.record.headers.split_off(self.headers_of_message);
        self.record.headers.extend(ours.into_iter().filter(|(name, _)| name != VALUE_BYTES));
        self.add(VALUE_BYTES, self.value_bytes.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(letter: &Letter) -> Vec<&str> {
        letter.record.headers.iter().filter_map(|(name, _)| std::str::from_utf8(name).ok()).collect()
    }

    #[test]
    fn letter_shrinks_to_its_reason_and_no_further() {
        let headers = vec![(Bytes::from_static(b"h"), Some(Bytes::from(vec![0; 9000])))];
        let (key, value) = (Some(Bytes::from_static(b"k")), Some(Bytes::from(vec![1; 100_000])));
        let origin = Origin { connector: "n", stage: "TASK_PUT", record: Some(("t", 1, 2)) };
        let record = Outgoing { key, value, headers, ..Outgoing::default() };
        let mut letter = Letter::new(record, Some((origin, "too large")));
        let mut sizes = Vec::new();
        while letter.shrink() {
            sizes.push(letter.record.value.as_ref().map_or(0, Bytes::len));
        }
        assert_eq!(sizes, [65_536, 1024, 0]);
        assert_eq!(letter.record.key, None);
        let wanted = [
            "__connect.errors.topic",
            "__connect.errors.partition",
            "__connect.errors.offset",
            "__connect.errors.connector.name",
            "__connect.errors.task.id",
            "__connect.errors.stage",
            "__connect.errors.exception.message",
            VALUE_BYTES,
            LEFT_OUT,
        ];
        assert_eq!(names(&letter), wanted);
        assert_eq!(letter.record.headers[7].1.as_deref(), Some(&b"100000"[..]));
    }

    #[test]
    fn headers_of_the_message_with_our_names_are_its_own() {
        let header = || (Bytes::from_static(VALUE_BYTES.as_bytes()), None);
        let value = Some(Bytes::from(vec![1; 100_000]));
        let record = Outgoing { value, headers: vec![header(), header()], ..Outgoing::default() };
        let mut letter = Letter::new(record, None);
        assert!(letter.shrink() && letter.shrink());
        assert_eq!(names(&letter), [VALUE_BYTES; 3]);
        assert!(letter.shrink() && !letter.shrink());
        assert_eq!(names(&letter), [VALUE_BYTES, LEFT_OUT]);
    }

    #[test]
    fn letter_without_anything_of_the_message_does_not_shrink() {
        let mut letter = Letter::new(Outgoing::default(), None);
        assert!(!letter.shrink());
    }
}
