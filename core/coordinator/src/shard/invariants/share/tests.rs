//! One planted bug for each invariant of share groups, and nothing to say about a group that is well.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{ErrorCode, LeaderEpoch, MonotonicMs, Offset, TimestampMs, Uuid};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, ShareGroupHeartbeatRequest, TopicRecord};

use super::super::tests::caught;
use crate::framework::{BatchId, Caller, Now, Ticket};
use crate::groups::Group;
use crate::groups::share::{ShareGroup, ShareMember};
use crate::outbox::Effect;
use crate::outbox::TimerKey;
use crate::outbox::{ShareStateDone, ShareStateWork};
use crate::records::Entry;
use crate::{GroupConfig, GroupShard, Request};

const NOW: Now = Now { wall: TimestampMs(1_000), mono: MonotonicMs(1_000) };
const TOPIC: Uuid = Uuid([7; 16]);

fn image() -> Image {
    let mut delta = Delta::new(Image::default());
    let topic = TopicRecord { name: "t".into(), topic_id: TOPIC, ..Default::default() };
    delta.replay(&MetadataRecord::Topic(topic)).expect("a topic");
    for partition_id in 0..2 {
        let partition = PartitionRecord {
            partition_id,
            topic_id: TOPIC,
            replicas: vec![1],
            isr: vec![1],
            leader: 1,
            ..Default::default()
        };
        delta.replay(&MetadataRecord::Partition(partition)).expect("a partition");
    }
    delta.advance(Provenance { end: Offset(9), last_epoch: LeaderEpoch(1), last_timestamp: TimestampMs(0) });
    delta.apply().0
}

/// A group of two that share a topic.
fn shard() -> GroupShard {
    let mut shard = GroupShard::new(GroupConfig::default());
    shard.image_changed(&image(), None, true);
    shard.activate(NOW);
    for (ticket, member) in [(1, "a"), (2, "b")] {
        let caller = Caller { client_id: "c", client_host: "/127.0.0.1", version: 1, ..Caller::default() };
        let request = ShareGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: member.into(),
            subscribed_topic_names: Some(vec!["t".into()]),
            ..Default::default()
        };
        shard.handle(&caller, Request::ShareGroupHeartbeat(request), Ticket(ticket), NOW);
        let newest = shard.out.pending.newest().unwrap_or(BatchId(0));
        for effect in shard.durable(newest, NOW) {
            let Effect::ShareState(order) = effect else { continue };
            let ShareStateWork::Initialize { starts, .. } = order.work else { panic!("not to be set up") };
            let outcomes = starts.into_iter().map(|(key, _)| (key, ErrorCode::None)).collect();
            shard.share_state_done(ShareStateDone { number: order.number, outcomes }, NOW);
        }
        let newest = shard.out.pending.newest().unwrap_or(BatchId(0));
        shard.durable(newest, NOW);
    }
    shard
}

fn group(shard: &mut GroupShard) -> &mut ShareGroup {
    match shard.groups.get_mut("g") {
        Some(Group::Share(group)) => group,
        other => panic!("{other:?}"),
    }
}

fn change(shard: &mut GroupShard, id: &str, how: impl FnOnce(&mut ShareMember)) {
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
fn counts_are_true() {
    check("counted", |shard| group(shard).own.names.plant("u"));
}

#[test]
fn epochs_are_in_order() {
    check("a is in 99", |shard| change(shard, "a", |member| member.epoch = 99));
    check("its target is of", |shard| group(shard).assignment_epoch = 99);
}

#[test]
fn targets_are_of_members() {
    check("has a target and is no member", |shard| {
        group(shard).targets.insert("gone".into(), Arc::default());
    });
}

#[test]
fn what_is_assigned_is_set_up() {
    check("which is not set up", |shard| {
        let assigned = Arc::new(BTreeMap::from([(TOPIC, vec![5])]));
        change(shard, "b", |member| member.assigned = assigned);
    });
}

#[test]
fn members_are_watched() {
    check("nobody watches member a", |shard| {
        shard.out.timers.cancel(&TimerKey::Session { group: "g".into(), member: "a".into() });
    });
}

#[test]
fn an_order_is_known() {
    check("of which nobody knows", |shard| group(shard).own.order = Some(99));
}

#[test]
fn what_changes_is_written() {
    check("nobody writes", |shard| group(shard).note(Entry::Group));
}
