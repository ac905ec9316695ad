//! Loading what Apache's brokers wrote, and records that no broker should have written.

mod rig;

use barnabas_base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use barnabas_coordinator::{GroupConfig, GroupShard, LoadError, Request, Response};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestGroup;
use barnabas_wire::messages::{
    DeleteGroupsRequest, GroupMetadataKey, GroupMetadataValue, GroupRecordKey, GroupRecordValue,
    JoinGroupRequest, LegacyOffsetCommitKey, LegacyOffsetCommitValue, ListGroupsRequest, OffsetCommitKey,
    OffsetCommitValue, ShareGroupMetadataKey, ShareGroupMetadataValue,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, ControlType, EndTxnMarker, control_batch};
use bytes::Bytes;
use rig::Rig;

fn offset(topic: &str, offset: i64) -> (Bytes, Bytes) {
    let key = OffsetCommitKey { group: "g".into(), topic: topic.into(), ..Default::default() };
    let value = OffsetCommitValue { offset, ..Default::default() };
    (
        GroupRecordKey::OffsetCommit(key).encode_key().expect("a key"),
        GroupRecordValue::OffsetCommit(value).encode_value(3).expect("a value"),
    )
}

fn options(base: i64, producer: i64) -> BatchOptions {
    BatchOptions {
        base_offset: Offset(base),
        producer_id: ProducerId(producer),
        producer_epoch: ProducerEpoch(if producer < 0 { -1 } else { 0 }),
        transactional: producer >= 0,
        ..BatchOptions::default()
    }
}

fn batch(base: i64, producer: i64, records: &[(Bytes, Option<Bytes>)]) -> Bytes {
    let mut builder = BatchBuilder::new(options(base, producer));
    for (key, value) in records {
        builder.push(TimestampMs(0), Some(key), value.as_deref(), &[]);
    }
    builder.build().expect("a batch")
}

fn marker(base: i64, producer: i64, commit: bool) -> Bytes {
    let end = EndTxnMarker { commit, coordinator_epoch: barnabas_base::CoordinatorEpoch(0) };
    let control = if commit { ControlType::Commit } else { ControlType::Abort };
    control_batch(options(base, producer), TimestampMs(0), control, &end.value()).expect("a batch")
}

fn load(batches: &[Bytes]) -> Rig {
    let mut rig = Rig::new(GroupConfig::default());
    let mut shard = GroupShard::new(GroupConfig::default());
    shard.replay_batches(batches.concat().into()).expect("readable batches");
    rig.shard = shard;
    let effects = rig.shard.activate(rig.now());
    rig.carry_out(effects);
    rig
}

fn fetched(rig: &mut Rig, require_stable: bool) -> Vec<(String, i64, i16)> {
    let group = OffsetFetchRequestGroup { group_id: "g".into(), topics: None, ..Default::default() };
    match rig.ask(9, Request::OffsetFetch { group, require_stable }) {
        Response::OffsetFetch(response) => response
            .topics
            .iter()
            .map(|topic| {
                (topic.name.to_string(), topic.partitions[0].committed_offset, topic.partitions[0].error_code)
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn offsets_of_a_transaction_count_from_its_end_on() {
    let (key, value) = offset("t", 5);
    let inside = batch(0, 7, &[(key.clone(), Some(value.clone()))]);
    let mut rig = load(std::slice::from_ref(&inside));
    assert_eq!(fetched(&mut rig, false), []);

    let (_, before) = offset("t", 1);
    let before = batch(0, -1, &[(key.clone(), Some(before))]);
    let inside = batch(1, 7, &[(key.clone(), Some(value))]);
    let mut rig = load(&[before.clone(), inside.clone()]);
    assert_eq!(fetched(&mut rig, false), [("t".to_owned(), 1, 0)]);
    assert_eq!(fetched(&mut rig, true), [("t".to_owned(), -1, 88)], "UNSTABLE_OFFSET_COMMIT");
    rig.shard.replay_marker(ProducerId(7), true);
    assert_eq!(fetched(&mut rig, true), [("t".to_owned(), 5, 0)]);

    let mut rig = load(&[before.clone(), inside.clone(), marker(2, 7, false)]);
    assert_eq!(fetched(&mut rig, true), [("t".to_owned(), 1, 0)]);

    // A plain commit that came after the transaction's wins.
    let (_, later) = offset("t", 9);
    let later = batch(2, -1, &[(key, Some(later))]);
    let mut rig = load(&[before, inside, later, marker(3, 7, true)]);
    assert_eq!(fetched(&mut rig, true), [("t".to_owned(), 9, 0)]);
}

#[test]
fn tombstones_end_offsets_and_groups() {
    let (key, value) = offset("t", 5);
    let (other_key, other) = offset("u", 6);
    let mut rig = load(&[
        batch(0, -1, &[(key.clone(), Some(value.clone())), (other_key, Some(other))]),
        batch(2, -1, &[(key.clone(), None)]),
    ]);
    assert_eq!(fetched(&mut rig, false), [("u".to_owned(), 6, 0)]);
    // A group that was deleted and has offsets again.
    let group = GroupMetadataKey { group: "g".into(), ..Default::default() };
    let group = GroupRecordKey::GroupMetadata(group).encode_key().expect("a key");
    let mut rig = load(&[
        batch(0, -1, &[(key.clone(), Some(value.clone()))]),
        batch(1, -1, &[(group, None)]),
        batch(2, -1, &[(key, Some(value))]),
    ]);
    assert_eq!(fetched(&mut rig, false), [("t".to_owned(), 5, 0)]);
    assert_eq!(rig.shard.stats().groups, 1);
}

#[test]
fn the_oldest_records_are_read() {
    let key = LegacyOffsetCommitKey { group: "g".into(), topic: "t".into(), ..Default::default() };
    let value = LegacyOffsetCommitValue { offset: 3, ..Default::default() };
    let key = GroupRecordKey::LegacyOffsetCommit(key).encode_key().expect("a key");
    let value = GroupRecordValue::LegacyOffsetCommit(value).encode_value(0).expect("a value");
    // Version 0 of a group's record: no time, and one timeout for both.
    let group = GroupMetadataKey { group: "old".into(), ..Default::default() };
    let group = GroupRecordKey::GroupMetadata(group).encode_key().expect("a key");
    let empty = GroupMetadataValue { protocol_type: "consumer".into(), generation: 4, ..Default::default() };
    let empty = GroupRecordValue::GroupMetadata(empty).encode_value(0).expect("a value");
    let mut rig = load(&[batch(0, -1, &[(key, Some(value)), (group, Some(empty))])]);
    assert_eq!(fetched(&mut rig, false), [("t".to_owned(), 3, 0)]);
    assert_eq!(rig.shard.stats().groups, 2);
}

#[test]
fn groups_of_other_kinds_are_no_classic_ones() {
    let key = ShareGroupMetadataKey { group_id: "g".into(), ..Default::default() };
    let key = GroupRecordKey::ShareGroupMetadata(key).encode_key().expect("a key");
    let value = GroupRecordValue::ShareGroupMetadata(ShareGroupMetadataValue::default());
    let value = value.encode_value(0).expect("a value");
    let mut rig = load(&[batch(0, -1, &[(key, Some(value))])]);
    let Response::ListGroups(listed) = rig.ask(5, Request::ListGroups(ListGroupsRequest::default())) else {
        panic!("no list")
    };
    assert_eq!(listed.groups[0].group_type, "share");
    let join = JoinGroupRequest { group_id: "g".into(), session_timeout_ms: 10_000, ..Default::default() };
    let Response::JoinGroup(refused) = rig.ask(9, Request::JoinGroup(join)) else { panic!("no join") };
    assert_eq!(refused.error_code, 23, "INCONSISTENT_GROUP_PROTOCOL");
    let delete = DeleteGroupsRequest { groups_names: vec!["g".into()], ..Default::default() };
    let Response::DeleteGroups(deleted) = rig.ask(2, Request::DeleteGroups(delete)) else { panic!("no") };
    assert_eq!(deleted.results[0].error_code, 0);
    assert_eq!(rig.shard.stats().groups, 0);
}

#[test]
fn what_a_later_kafka_writes_is_passed_over_and_garbage_is_not() {
    let unknown = Bytes::from_static(&[0, 99, 1, 2, 3]);
    let mut rig = load(&[batch(0, -1, &[(unknown, Some(Bytes::from_static(b"x")))])]);
    assert_eq!(rig.shard.stats().groups, 0);
    assert_eq!(fetched(&mut rig, false), []);

    let mut shard = GroupShard::new(GroupConfig::default());
    let garbage = batch(0, -1, &[(Bytes::from_static(&[0, 1, 0]), None)]);
    assert!(matches!(shard.replay_batches(garbage), Err(LoadError::Key { offset: 0, .. })));
    let (key, _) = offset("t", 0);
    let garbage = batch(4, -1, &[(key, Some(Bytes::from_static(&[0, 3, 1])))]);
    assert!(matches!(shard.replay_batches(garbage), Err(LoadError::Value { offset: 4, type_number: 1, .. })));
}

#[test]
fn while_it_loads_nobody_is_told_anything_but_to_come_back() {
    let mut rig = Rig::new(GroupConfig::default());
    rig.shard = GroupShard::new(GroupConfig::default());
    let heartbeat = Request::Heartbeat(Default::default());
    let Response::Heartbeat(told) = rig.ask(4, heartbeat) else { panic!("no heartbeat") };
    assert_eq!(told.error_code, 0);
    let Response::SyncGroup(told) = rig.ask(5, Request::SyncGroup(Default::default())) else { panic!("no") };
    assert_eq!(told.error_code, 27, "REBALANCE_IN_PROGRESS");
    let Response::JoinGroup(told) = rig.ask(9, Request::JoinGroup(Default::default())) else { panic!("no") };
    assert_eq!(told.error_code, 14, "COORDINATOR_LOAD_IN_PROGRESS");
}

#[test]
fn names_that_no_record_can_carry_are_refused() {
    let mut rig = Rig::new(GroupConfig::default());
    let long = "\u{fffd}".repeat(20_000);
    let join = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        protocol_type: long.as_str().into(),
        ..Default::default()
    };
    let Response::JoinGroup(refused) = rig.ask(9, Request::JoinGroup(join)) else { panic!("no join") };
    assert_eq!(refused.error_code, 42, "INVALID_REQUEST");
}
