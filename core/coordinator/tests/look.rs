//! What operators see of groups: their states, where they have come to, and how often what happened.

mod rig;

use barnabas_base::{DurationMs, Offset, PartitionIndex, Text};
use barnabas_coordinator::{CommittedOffset, GroupConfig, GroupCounts, GroupKind, Request, Response};
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatRequest, OffsetCommitRequest, OffsetDeleteRequest, ShareGroupHeartbeatRequest,
};
use rig::Rig;

fn commit(rig: &mut Rig, group: &str, offsets: &[(i32, i64)]) {
    let partitions = offsets.iter().map(|(partition, offset)| OffsetCommitRequestPartition {
        partition_index: *partition,
        committed_offset: *offset,
        ..Default::default()
    });
    let topic =
        OffsetCommitRequestTopic { name: "t".into(), partitions: partitions.collect(), ..Default::default() };
    let request = OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let Response::OffsetCommit(answer) = rig.ask(2, Request::OffsetCommit(request)) else {
        panic!("another answer");
    };
    assert!(answer.topics[0].partitions.iter().all(|partition| partition.error_code == 0));
}

fn look(rig: &Rig) -> Vec<barnabas_coordinator::GroupLook> {
    let mut names = rig.shard.group_names();
    names.sort();
    let (looks, seen) = rig.shard.look(&names, usize::MAX);
    assert_eq!(seen, names.len());
    looks
}

#[test]
fn a_group_is_seen_with_its_kind_state_and_offsets() {
    let mut rig = Rig::new(GroupConfig::default());
    rig.topic("t", 1, 2);
    commit(&mut rig, "a", &[(0, 7), (1, 9)]);
    let joins = ConsumerGroupHeartbeatRequest {
        group_id: "b".into(),
        member_id: "m".into(),
        rebalance_timeout_ms: 60_000,
        subscribed_topic_names: Some(vec!["t".into()]),
        topic_partitions: Some(Vec::new()),
        ..Default::default()
    };
    rig.ask(1, Request::ConsumerGroupHeartbeat(joins));
    let shares = ShareGroupHeartbeatRequest {
        group_id: "c".into(),
        member_id: "m".into(),
        subscribed_topic_names: Some(vec!["t".into()]),
        ..Default::default()
    };
    rig.ask(1, Request::ShareGroupHeartbeat(shares));
    let looks = look(&rig);
    let seen: Vec<_> = looks.iter().map(|look| (look.group.as_str(), look.kind, look.state)).collect();
    assert_eq!(
        seen,
        [
            ("a", GroupKind::Classic, "Empty"),
            ("b", GroupKind::Consumer, "Stable"),
            ("c", GroupKind::Share, "Stable"),
        ]
    );
    for look in &looks {
        assert!(look.kind.states().contains(&look.state), "{look:?}");
    }
    let at = |partition: i32, offset| CommittedOffset {
        topic: "t".into(),
        topic_id: Default::default(),
        partition: PartitionIndex(partition),
        offset: Offset(offset),
    };
    assert_eq!(looks[0].committed, [at(0, 7), at(1, 9)]);
    assert_eq!(looks[2].shared.len(), 1);
    assert_eq!(looks[2].shared[0].1, [0, 1]);
    let counts = rig.shard.take_counts();
    assert_eq!((counts.offset_commits, counts.consumer_rebalances, counts.share_rebalances), (2, 1, 1));
    assert_eq!(rig.shard.take_counts(), GroupCounts::default());
}

#[test]
fn groups_are_shown_some_at_a_time() {
    let mut rig = Rig::new(GroupConfig::default());
    for group in ["a", "b", "c"] {
        commit(&mut rig, group, &[(0, 1), (1, 1)]);
    }
    let names: Vec<Text> = ["a", "b", "gone", "c"].map(Text::from).to_vec();
    let (looks, seen) = rig.shard.look(&names, 3);
    assert_eq!((looks.len(), seen), (2, 2));
    let (looks, seen) = rig.shard.look(&names[seen..], 3);
    assert_eq!((looks.len(), seen), (1, 2));
}

#[test]
fn what_is_not_on_disk_is_not_shown() {
    let mut rig = Rig::new(GroupConfig::default());
    commit(&mut rig, "a", &[(0, 1)]);
    rig.disk_is_quick = false;
    let topic = OffsetCommitRequestTopic {
        name: "t".into(),
        partitions: vec![OffsetCommitRequestPartition { committed_offset: 5, ..Default::default() }],
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: "a".into(),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    rig.send("c", 2, Request::OffsetCommit(request));
    assert_eq!(look(&rig)[0].committed[0].offset, Offset(1));
}

#[test]
fn offsets_that_end_are_counted_by_why() {
    let mut rig = Rig::new(GroupConfig::default());
    commit(&mut rig, "a", &[(0, 1), (1, 1), (2, 1)]);
    let partition = |partition_index| OffsetDeleteRequestPartition { partition_index, ..Default::default() };
    let topic =
        OffsetDeleteRequestTopic { name: "t".into(), partitions: vec![partition(0)], ..Default::default() };
    let request = OffsetDeleteRequest { group_id: "a".into(), topics: vec![topic], ..Default::default() };
    rig.ask(0, Request::OffsetDelete(request));
    rig.wait(DurationMs(8 * 24 * 3_600_000), |_, _| {});
    let counts = rig.shard.take_counts();
    assert_eq!((counts.offset_commits, counts.offset_deletions, counts.offset_expirations), (3, 1, 2));
    assert!(look(&rig).is_empty(), "the group has ended with the last of them");
}
