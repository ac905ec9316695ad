//! Hashes as Apache's `Utils.computeTopicHash` and `computeGroupHash` of Kafka 4.4.0 gave them for the same topics.

use barnabas_base::{LeaderEpoch, Offset, Text, TimestampMs, Uuid};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord};

use super::*;
use crate::groups::consumer::{ConsumerGroup, ConsumerMember};

const NAMES: [&str; 3] = ["t", "a.much-longer_name-of-a-topic", "no-racks"];
const HASHES: [i64; 3] = [4715116491618081933, -2936982047074175355, 4040886442801746899];
const GROUP: i64 = -8776539150649680702;

/// Topic n of 2n partitions; the even ones on two racks, the odd ones on a third, the last topic on none.
fn image() -> Image {
    let mut records = Vec::new();
    for (broker_id, rack) in [(1, Some("rack-b")), (2, Some("rack-a")), (3, Some("rack-c")), (4, None)] {
        let rack = rack.map(Into::into);
        records.push(MetadataRecord::RegisterBroker(RegisterBrokerRecord {
            broker_id,
            rack,
            ..Default::default()
        }));
    }
    for (n, name) in NAMES.iter().enumerate() {
        let topic_id = Uuid(std::array::from_fn(|at| (at * 17 + n + 1) as u8));
        records.push(MetadataRecord::Topic(TopicRecord {
            name: (*name).into(),
            topic_id,
            ..Default::default()
        }));
        for partition_id in 0..2 * (n as i32 + 1) {
            let replicas = if n == 2 {
                vec![4]
            } else if partition_id % 2 == 0 {
                vec![1, 2]
            } else {
                vec![3]
            };
            records.push(MetadataRecord::Partition(PartitionRecord {
                topic_id,
                partition_id,
                replicas: replicas.clone(),
                isr: replicas,
                leader: 1,
                ..Default::default()
            }));
        }
    }
    let mut delta = Delta::new(Image::default());
    records.iter().for_each(|record| delta.replay(record).expect("a good record"));
    let (last_epoch, last_timestamp) = (LeaderEpoch(1), TimestampMs(0));
    delta.advance(Provenance { end: Offset(9), last_epoch, last_timestamp });
    delta.apply().0
}

#[test]
fn hashes_are_kafkas() {
    let image = image();
    for (name, hash) in NAMES.iter().zip(HASHES) {
        assert_eq!(topic_hash(image.topics.by_name(name).expect("a topic"), &image), hash, "{name}");
    }
    let mut group = ConsumerGroup::new(Text::from("g"));
    let mut world = World::new(image);
    assert_eq!(group.metadata_hash(&mut world), 0);
    let mut member = ConsumerMember::new(Text::from("m"));
    let mut names: Vec<Text> = NAMES.iter().map(|name| Text::from(*name)).collect();
    names.push(Text::from("there-is-none"));
    names.sort();
    member.own.names = std::sync::Arc::new(names);
    group.put(member);
    assert_eq!(group.metadata_hash(&mut world), GROUP);
}
