//! A start on files whose epochs are out of range: what a false epoch left under a release that took any.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use barnabas_base::{LeaderEpoch, Offset};
use barnabas_quorum::{Repair, SnapshotId};
use barnabas_wire::messages::CreateTopicsRequest;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::records::batches;
use bytes::{Bytes, BytesMut};
use world::World;

fn create(world: &mut World, name: &str) {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    world.answer(CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() }, 7);
}

fn state(world: &World) -> String {
    world.files.quorum_state.clone().unwrap()
}

/// The field is outside of what the batch's CRC covers.
fn with_epoch(bytes: &Bytes, epoch: i32) -> Bytes {
    let mut bytes = BytesMut::from(&bytes[..]);
    bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
    bytes.freeze()
}

fn set_state_epoch(world: &mut World, epoch: i64) {
    let text = state(world).replace(r#""leaderEpoch":1"#, &format!(r#""leaderEpoch":{epoch}"#));
    world.files.quorum_state = Some(text);
}

#[test]
fn quorum_state_out_of_range_is_repaired() {
    for epoch in [i64::from(i32::MIN), -1, i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::MIN] {
        let mut world = World::started(1);
        create(&mut world, "kept");
        world.crash(0);
        set_state_epoch(&mut world, epoch);
        let found = LeaderEpoch(i32::try_from(epoch).unwrap_or(-1));
        let repairs = world.read().unwrap().repairs();
        assert_eq!(repairs, [Repair::State { found, epoch: LeaderEpoch(2) }]);
        world.start().unwrap();
        world.sync();
        assert!(world.topic_names().contains("kept"), "{epoch}");
        assert_eq!(world.node().epoch(), LeaderEpoch(3));
        assert!(state(&world).contains(r#""leaderEpoch":3"#), "{}", state(&world));
        world.crash(0);
        assert_eq!(world.read().unwrap().repairs(), [], "once");
    }
}

#[test]
fn quorum_state_in_range_is_left_alone() {
    let mut world = World::started(1);
    world.crash(0);
    set_state_epoch(&mut world, 1 << 30);
    assert_eq!(world.read().unwrap().repairs(), []);
    world.start().unwrap();
    assert_eq!(world.node().epoch(), LeaderEpoch((1 << 30) + 1));
}

/// As the attack left it: a Vote of epoch 2^31−1, an election that wrapped, records, a stop.
#[test]
fn log_of_a_wrapped_epoch_keeps_its_records() {
    let mut world = World::started(1);
    create(&mut world, "before");
    let from = world.files.log_end();
    create(&mut world, "after");
    let end = world.files.log_end();
    world.crash(0);
    for batch in world.files.log.iter_mut().filter(|batch| batch.base >= from) {
        batch.bytes = with_epoch(&batch.bytes, i32::MIN);
    }
    set_state_epoch(&mut world, i64::from(i32::MIN));
    let found = LeaderEpoch(i32::MIN);
    let expected = [
        Repair::State { found, epoch: LeaderEpoch(2) },
        Repair::Log { found, epoch: LeaderEpoch(1), from, end },
    ];
    assert_eq!(world.read().unwrap().repairs(), expected);
    world.start().unwrap();
    world.sync();
    assert_eq!(world.topic_names().into_iter().collect::<Vec<_>>(), ["after", "before"]);
    assert_eq!(world.node().epoch(), LeaderEpoch(3));
    // Followers are sent a snapshot in place of those batches.
    let newest = *world.files.snapshots.keys().max().unwrap();
    assert!(newest.end >= end && newest.epoch == LeaderEpoch(3), "{newest}");
    create(&mut world, "later");
    world.crash(0);
    assert_eq!(world.read().unwrap().repairs(), [], "the snapshot is past them");
    world.start().unwrap();
    world.sync();
    assert_eq!(world.topic_names().len(), 3);
    let epochs: Vec<i32> = world
        .files
        .log
        .iter()
        .filter(|batch| batch.base >= newest.end)
        .flat_map(|batch| batches(batch.bytes.clone()))
        .map(|batch| batch.unwrap().header().partition_leader_epoch.get())
        .collect();
    assert!(epochs.is_sorted() && epochs.iter().all(|&epoch| epoch >= 3), "{epochs:?}");
}

#[test]
fn log_whose_first_batches_are_out_of_range_starts() {
    let mut world = World::started(1);
    create(&mut world, "kept");
    world.crash(0);
    for batch in &mut world.files.log {
        batch.bytes = with_epoch(&batch.bytes, -7);
    }
    world.start().unwrap();
    world.sync();
    assert!(world.topic_names().contains("kept"));
    assert!(
        world.files.snapshots.keys().any(|&id| id > SnapshotId { end: Offset(1), epoch: LeaderEpoch(0) })
    );
}
