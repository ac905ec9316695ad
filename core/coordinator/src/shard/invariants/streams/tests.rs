//! One planted bug for each invariant of streams groups, and nothing to say about a group that is well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{ErrorCode, MonotonicMs, Text, TimestampMs};
use barnabas_wire::messages::StreamsGroupHeartbeatRequest;
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, Topology};

use super::super::tests::caught;
use crate::assignment::streams::Held;
use crate::framework::{BatchId, Caller, Now, Ticket};
use crate::groups::Group;
use crate::groups::reconciled::MemberState;
use crate::groups::streams::{StreamsGroup, StreamsMember};
use crate::outbox::TimerKey;
use crate::records::Entry;
use crate::{GroupConfig, GroupShard, Request};

const NOW: Now = Now { wall: TimestampMs(1_000), mono: MonotonicMs(1_000) };

/// A group of two, one of them static; what they have is put there by hand, as there are no topics.
fn shard() -> GroupShard {
    let mut shard = GroupShard::new(GroupConfig::default());
    shard.activate(NOW);
    for (ticket, member, instance) in [(1, "a", None), (2, "b", Some("i"))] {
        let caller = Caller { client_id: "c", client_host: "/127.0.0.1", version: 1, ..Caller::default() };
        let subtopology =
            Subtopology { subtopology_id: "0".into(), source_topics: vec!["t".into()], ..Default::default() };
        let request = StreamsGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: member.into(),
            instance_id: instance.map(Into::into),
            rebalance_timeout_ms: 1_000,
            topology: Some(Topology { subtopologies: vec![subtopology], ..Default::default() }),
            active_tasks: Some(Vec::new()),
            standby_tasks: Some(Vec::new()),
            warmup_tasks: Some(Vec::new()),
            ..Default::default()
        };
        shard.handle(&caller, Request::StreamsGroupHeartbeat(Box::new(request)), Ticket(ticket), NOW);
    }
    change(&mut shard, "a", |member| member.assigned = active(0));
    change(&mut shard, "b", |member| member.assigned = active(1));
    shard.durable(BatchId(99), NOW);
    shard
}

/// The task of one partition, and a standby task of another.
fn active(partition: i32) -> Arc<Held> {
    Arc::new(Held {
        active: BTreeMap::from([("0".into(), BTreeMap::from([(partition, 1)]))]),
        standby: BTreeMap::from([("0".into(), BTreeSet::from([partition + 10]))]),
        warmup: BTreeMap::from([("0".into(), BTreeSet::from([partition + 20]))]),
    })
}

fn group(shard: &mut GroupShard) -> &mut StreamsGroup {
    match shard.groups.get_mut("g") {
        Some(Group::Streams(group)) => group,
        other => panic!("{other:?}"),
    }
}

/// As the group itself would.
fn change(shard: &mut GroupShard, id: &str, how: impl FnOnce(&mut StreamsMember)) {
    let group = group(shard);
    let mut member = (**group.member(id).expect("a member")).clone();
    how(&mut member);
    group.put(member);
}

fn check(sentence: &str, bug: impl FnOnce(&mut GroupShard)) {
    caught(shard(), sentence, bug);
}

#[test]
fn a_group_has_its_own_name() {
    check("is called", |shard| group(shard).id = "other".into());
}

#[test]
fn a_task_has_one_owner() {
    check("both run task 0_1", |shard| change(shard, "a", |member| member.assigned = active(1)));
    check("both run task 0_1", |shard| change(shard, "a", |member| member.revoking = active(1)));
    check("its owners are not", |shard| group(shard).plant_owner("0", 5, "a"));
}

#[test]
fn copies_are_counted() {
    check("its Standby tasks are not", |shard| group(shard).plant_standby("0", 5, "a"));
}

#[test]
fn an_instance_is_one_member() {
    check("stands for", |shard| group(shard).plant_instance("i", "gone"));
    check("stands for", |shard| group(shard).plant_instance("j", "a"));
}

#[test]
fn a_target_is_a_members() {
    check("has a target and is no member", |shard| {
        group(shard).targets.insert("gone".into(), Arc::default());
    });
}

#[test]
fn task_offsets_are_a_members() {
    check("has task offsets and is no member", |shard| {
        group(shard).own.task_offsets.insert("gone".into(), Default::default());
    });
}

#[test]
fn epochs_follow_each_other() {
    check("its target is of", |shard| group(shard).assignment_epoch = 9);
    check("a is in 9", |shard| change(shard, "a", |member| member.epoch = 9));
}

#[test]
fn nothing_is_left_unwritten() {
    check("was not handed out", |shard| group(shard).note(Entry::Group));
}

#[test]
fn members_are_watched() {
    check("nobody watches member a", |shard| {
        shard.out.timers.cancel(&TimerKey::Session { group: "g".into(), member: Text::from("a") });
    });
}

#[test]
fn what_is_to_be_given_up_is_watched() {
    check("nobody watches what a is to give up", |shard| {
        change(shard, "a", |member| member.state = MemberState::Unrevoked);
    });
}

#[test]
fn what_was_lost_is_watched() {
    check("written again by nobody", |shard| {
        let Some(Group::Streams(group)) = shard.groups.get_mut("g") else { panic!("no group") };
        group.lost(vec![Entry::Group], &mut shard.out);
        shard.out.timers.cancel(&TimerKey::Save("g".into()));
    });
    let mut shard = shard();
    let effects = shard.failed(BatchId(50), ErrorCode::KafkaStorageError, NOW);
    assert_eq!(effects, []);
}
