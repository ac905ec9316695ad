//! The topic that audit lines are written to besides the file: which partition takes this node's lines, how a missing
//! topic is created, and which batch is written.
//!
//! A line is one record: its key is the node's id, its value the JSON object, its timestamp the broker's time at which
//! the batch is built. All lines of a node go to one partition, so that they keep their order.

use barnabas_base::{BrokerId, Text, TimestampMs, check_topic_name};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::records::{BatchBuilder, BatchError, BatchOptions};
use bytes::Bytes;

use crate::own_topics::{self, INTERNAL, Place};

/// See the file's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTopic(Text);

/// As many lines as a batch holds, from the first on.
#[derive(Debug, PartialEq, Eq)]
pub enum Batched {
    Lines {
        records: Bytes,
        count: usize,
    },
    /// The first line alone is larger than the topic takes.
    TooLarge {
        bytes: usize,
    },
}

impl AuditTopic {
    /// # Errors
    /// It is no name of a topic, or one that brokers keep for themselves, in words.
    pub fn parse(name: &str) -> Result<Self, String> {
        check_topic_name(name).map_err(|error| error.to_string())?;
        match name.starts_with(INTERNAL) {
            true => Err(format!("{name} is a name that brokers keep for themselves")),
            false => Ok(Self(Text::from(name))),
        }
    }

    pub fn name(&self) -> &Text {
        &self.0
    }

    /// Where the lines of `node` go. `None`: there is no such topic.
    pub fn destination(&self, node: BrokerId, image: &Image, config: &BrokerConfig) -> Option<Place> {
        Place::of(&self.0, node.get(), image, config)
    }

    /// The request that creates the topic: partitions, replicas and retention are the cluster's defaults, and
    /// compaction removes no line.
    pub fn creation(&self, config: &BrokerConfig) -> CreateTopicsRequest {
        own_topics::creation(&self.0, &[("cleanup.policy", "delete")], config)
    }
}

/// The batch of the first of `lines`, of which there is one at least.
///
/// # Errors
/// As [`BatchBuilder::build`].
pub fn batch<'a>(
    lines: impl IntoIterator<Item = &'a str>,
    node: BrokerId,
    now: TimestampMs,
    bytes_max: usize,
) -> Result<Batched, BatchError> {
    let key = node.to_string();
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let mut count = 0;
    for line in lines {
        let (key, value) = (Some(key.as_bytes()), Some(line.trim_end().as_bytes()));
        let bytes = builder.size_bytes_with(now, key, value, &[]);
        if bytes > bytes_max && count == 0 {
            return Ok(Batched::TooLarge { bytes });
        }
        if bytes > bytes_max {
            break;
        }
        builder.push(now, key, value, &[]);
        count += 1;
    }
    Ok(Batched::Lines { records: builder.build()?, count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, config, partition, topic};
    use barnabas_base::Uuid;
    use barnabas_wire::records::Batch;

    const ID: Uuid = Uuid([0xa1; 16]);

    #[test]
    fn names_that_no_topic_may_have_are_refused() {
        assert!(AuditTopic::parse("audit").is_ok());
        for name in ["", "..", "a b", "__audit"] {
            assert!(AuditTopic::parse(name).is_err(), "{name}");
        }
    }

    #[test]
    fn all_lines_of_a_node_go_to_one_partition() {
        let audit = AuditTopic::parse("audit").expect("a name");
        let mut fixture = Fixture::new();
        let at = |fixture: &Fixture, node| audit.destination(BrokerId(node), &fixture.image, &fixture.config);
        assert_eq!(at(&fixture, 1), None);
        fixture.add(&[topic("audit", ID), partition(ID, 0, 1), partition(ID, 1, 2)]);
        fixture.add(&[config(2, "audit", "max.message.bytes", "1000")]);
        let of = |node| at(&fixture, node).map(|found| (found.partition.get(), found.leader.get()));
        assert_eq!([0, 1, 2, 5].map(of), [Some((0, 1)), Some((1, 2)), Some((0, 1)), Some((1, 2))]);
        assert_eq!(at(&fixture, 1).map(|found| found.bytes_max), Some(1000));
    }

    #[test]
    fn missing_topic_is_created_with_the_clusters_defaults() {
        let audit = AuditTopic::parse("audit").expect("a name");
        let creation = audit.creation(&Fixture::new().config);
        let [topic] = &creation.topics[..] else { panic!("one topic") };
        assert_eq!((topic.name.as_str(), topic.num_partitions, topic.replication_factor), ("audit", -1, -1));
        assert_eq!(topic.configs[0].value.as_deref(), Some("delete"));
    }

    #[test]
    fn batch_holds_what_the_topic_takes() {
        let lines = ["{\"a\":1}\n", "{\"b\":2}\n", "{\"c\":3}\n"];
        let built = |max| batch(lines, BrokerId(7), TimestampMs(9), max).expect("a batch");
        let Batched::Lines { records, count } = built(1000) else { panic!("too large") };
        assert_eq!(count, 3);
        let batch = Batch::new(records).expect("a batch");
        batch.check_crc().expect("sound");
        let records = batch.records().expect("records");
        let all = records.iter().map(|record| record.expect("a record"));
        let all: Vec<_> = all.map(|record| (record.key, record.value)).collect();
        assert_eq!(all[2], (Some(&b"7"[..]), Some(&b"{\"c\":3}"[..])));
        let Batched::Lines { records, count } = built(90) else { panic!("too large") };
        assert!(count < 3 && records.len() <= 90, "{count}");
        assert!(matches!(built(40), Batched::TooLarge { bytes } if bytes > 40));
    }
}
