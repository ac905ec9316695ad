//! An image for tests: the topic `t` on brokers of which some are active.

use barnabas_base::{DirectoryId, TopicId, Uuid};
use barnabas_metadata::{Changes, Delta, Image};
use barnabas_wire::MetadataRecord;
use barnabas_wire::messages::{FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord};

pub const TOPIC: TopicId = Uuid([9; 16]);
/// metadata.version 4.4's predecessors know directories from 17 on.
const LEVEL: i16 = 25;

/// One partition of `t`, by its place.
#[derive(Debug, Clone, Copy)]
pub struct Of<'a> {
    pub leader: i32,
    pub replicas: &'a [i32],
    pub isr: &'a [i32],
    pub directories: &'a [DirectoryId],
}

/// `before` with more partitions; brokers of `active` are registered and unfenced.
pub fn with(before: Image, active: &[i32], first: i32, partitions: &[Of<'_>]) -> (Image, Changes) {
    let mut records: Vec<MetadataRecord> = Vec::new();
    let level =
        FeatureLevelRecord { name: "metadata.version".into(), feature_level: LEVEL, ..Default::default() };
    records.push(level.into());
    for &broker_id in active {
        records.push(RegisterBrokerRecord { broker_id, fenced: false, ..Default::default() }.into());
    }
    if before.topics.by_id(TOPIC).is_none() {
        records.push(TopicRecord { name: "t".into(), topic_id: TOPIC, ..Default::default() }.into());
    }
    for (partition_id, of) in (first..).zip(partitions) {
        let record = PartitionRecord {
            topic_id: TOPIC,
            partition_id,
            leader: of.leader,
            replicas: of.replicas.to_vec(),
            isr: of.isr.to_vec(),
            directories: of.directories.to_vec(),
            ..Default::default()
        };
        records.push(record.into());
    }
    let mut delta = Delta::new(before);
    records.iter().for_each(|record| delta.replay(record).expect("a good record"));
    delta.apply()
}
