use super::*;
use crate::testing::{Fixture, ORDERS, carried, versions};
use barnabas_wire::messages::alter_replica_log_dirs_request::{AlterReplicaLogDir, AlterReplicaLogDirTopic};

const DIRECTORIES: [Directory; 3] = [
    Directory { is_online: true, is_cordoned: false },
    Directory { is_online: false, is_cordoned: false },
    Directory { is_online: true, is_cordoned: true },
];

fn plan_for(dirs: &[(&str, &str, &[i32])]) -> Work {
    let dirs = dirs.iter().map(|&(path, topic, partitions)| AlterReplicaLogDir {
        path: path.into(),
        topics: vec![AlterReplicaLogDirTopic {
            name: topic.into(),
            partitions: partitions.to_vec(),
            ..AlterReplicaLogDirTopic::default()
        }],
        ..AlterReplicaLogDir::default()
    });
    let request = AlterReplicaLogDirsRequest { dirs: dirs.collect(), ..Default::default() };
    let named = |path: &str| ["/good", "/dead", "/cordoned"].iter().position(|known| *known == path);
    let fixture = Fixture::new();
    plan(request, &DIRECTORIES, named, |partition| partition.topic.len() > 200, &fixture.ctx())
}

fn codes(work: Work) -> Vec<i16> {
    let topics = work.pending.respond().results.into_iter();
    topics.flat_map(|topic| topic.partitions.into_iter().map(|row| row.error_code)).collect()
}

#[test]
fn checks_come_in_kafkas_order() {
    let long = "x".repeat(210);
    assert_eq!(codes(plan_for(&[("/nowhere", &long, &[0])])), [17], "the name before the directory");
    assert_eq!(codes(plan_for(&[("/nowhere", "nothing", &[0])])), [57], "the directory before the partition");
    assert_eq!(codes(plan_for(&[("/dead", "nothing", &[0])])), [56]);
    assert_eq!(codes(plan_for(&[("/cordoned", "nothing", &[0])])), [39]);
    assert_eq!(codes(plan_for(&[("/good", "nothing", &[0])])), [3], "an unknown topic");
}

#[test]
fn a_partition_that_is_here_is_worked_on_and_another_is_remembered() {
    let work = plan_for(&[("/good", "orders", &[0, 7])]);
    let partition = TopicPartition::new("orders", PartitionIndex(0));
    let part = Part { slot: Slot::new(0, 0), topic: ORDERS, partition, directory: 0 };
    assert_eq!(work.parts, [part]);
    assert_eq!(work.preferred, [(TopicPartition::new("orders", PartitionIndex(7)), 0)]);
    assert_eq!(codes(work), [0, 3]);
}

#[test]
fn what_is_named_twice_goes_to_the_last() {
    let work = plan_for(&[("/dead", "orders", &[0]), ("/good", "orders", &[0])]);
    assert_eq!(work.parts.len(), 1);
    assert_eq!(codes(work), [0]);
}

#[test]
fn every_version_carries_the_answer() {
    for version in versions::<AlterReplicaLogDirsResponse>() {
        let mut work = plan_for(&[("/good", "orders", &[0])]);
        let slot = work.parts[0].slot;
        work.pending.refuse(slot, ErrorCode::KafkaStorageError);
        let response = carried(work.pending.respond(), version);
        assert_eq!(response.results[0].partitions[0].error_code, 56);
    }
}
