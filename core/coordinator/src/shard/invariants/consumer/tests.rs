//! One planted bug for each invariant of consumer groups, and nothing to say about a group that is well.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{ErrorCode, MonotonicMs, Text, TimestampMs, Uuid};
use barnabas_wire::messages::ConsumerGroupHeartbeatRequest;

use super::super::tests::caught;
use crate::framework::{BatchId, Caller, Now, Ticket};
use crate::groups::Group;
use crate::groups::consumer::{ConsumerGroup, ConsumerMember};
use crate::outbox::TimerKey;
use crate::records::Entry;
use crate::{GroupConfig, GroupShard, Request};

const NOW: Now = Now { wall: TimestampMs(1_000), mono: MonotonicMs(1_000) };
const TOPIC: Uuid = Uuid([7; 16]);

/// A group of two, one of them static; what they have is put there by hand, as there are no topics.
fn shard() -> GroupShard {
    let mut shard = GroupShard::new(GroupConfig::default());
    shard.activate(NOW);
    for (ticket, member, instance) in [(1, "a", None), (2, "b", Some("i"))] {
        let caller = Caller { client_id: "c", client_host: "/127.0.0.1", version: 1, ..Caller::default() };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: member.into(),
            instance_id: instance.map(Into::into),
            rebalance_timeout_ms: 1_000,
            subscribed_topic_names: Some(vec!["t".into()]),
            topic_partitions: Some(Vec::new()),
            ..Default::default()
        };
        shard.handle(&caller, Request::ConsumerGroupHeartbeat(request), Ticket(ticket), NOW);
    }
    change(&mut shard, "a", |member| member.assigned = assigned(0));
    change(&mut shard, "b", |member| member.assigned = assigned(1));
    shard.durable(BatchId(99), NOW);
    shard
}

fn assigned(partition: i32) -> Arc<crate::groups::consumer::Assigned> {
    Arc::new(BTreeMap::from([(TOPIC, BTreeMap::from([(partition, 1)]))]))
}

fn group(shard: &mut GroupShard) -> &mut ConsumerGroup {
    match shard.groups.get_mut("g") {
        Some(Group::Consumer(group)) => group,
        other => panic!("{other:?}"),
    }
}

/// As the group itself would.
fn change(shard: &mut GroupShard, id: &str, how: impl FnOnce(&mut ConsumerMember)) {
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
fn a_partition_has_one_owner() {
    check("both have partition 1", |shard| change(shard, "a", |member| member.assigned = assigned(1)));
    check("its owners are not", |shard| group(shard).plant_owner(TOPIC, 5, "a"));
}

#[test]
fn an_instance_is_one_member() {
    check("stands for", |shard| group(shard).plant_instance("i", "gone"));
    check("stands for", |shard| group(shard).plant_instance("j", "a"));
}

#[test]
fn counts_are_true() {
    check("what is counted", |shard| group(shard).own.names.plant("u"));
}

#[test]
fn an_expression_is_somebodys() {
    check("nobody subscribes by x.*", |shard| {
        let resolved = crate::assignment::Resolved { topics: Arc::default(), version: 0, timestamp: 0 };
        group(shard).own.resolved.insert("x.*".into(), resolved);
    });
}

#[test]
fn a_target_is_a_members() {
    check("has a target and is no member", |shard| {
        group(shard).targets.insert("gone".into(), Arc::default());
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
fn what_was_lost_is_watched() {
    check("written again by nobody", |shard| {
        let Some(Group::Consumer(group)) = shard.groups.get_mut("g") else { panic!("no group") };
        group.lost(vec![Entry::Group], &mut shard.out);
        shard.out.timers.cancel(&TimerKey::Save("g".into()));
    });
    let mut shard = shard();
    let effects = shard.failed(BatchId(50), ErrorCode::KafkaStorageError, NOW);
    assert_eq!(effects, []);
}
