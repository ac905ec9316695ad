//! One planted bug for each invariant of share groups, and nothing to say about a group that is well.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::{ErrorCode, LeaderEpoch, Offset, TimestampMs, Uuid};
use barnabas_metadata::{Delta, Image, Provenance};
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, ShareGroupHeartbeatRequest, TopicRecord};

use super::super::reconciled::tests::{NOW, change, group, planted_bugs_are_caught};
use super::super::tests::caught;
use crate::framework::{BatchId, Caller, Ticket};
use crate::groups::share::Share;
use crate::outbox::{Effect, ShareStateDone, ShareStateWork};
use crate::{GroupConfig, GroupShard, Request};

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

fn check(sentence: &str, bug: impl FnOnce(&mut GroupShard)) {
    caught(shard(), sentence, bug);
}

#[test]
fn what_all_kinds_share_is_checked() {
    planted_bugs_are_caught::<Share>(shard);
}

#[test]
fn counts_are_true() {
    check("counted", |shard| group::<Share>(shard).own.names.plant("u"));
}

#[test]
fn what_is_assigned_is_set_up() {
    check("which is not set up", |shard| {
        let assigned = Arc::new(BTreeMap::from([(TOPIC, vec![5])]));
        change::<Share>(shard, "b", |member| member.assigned = assigned);
    });
}

#[test]
fn an_order_is_known() {
    check("which does not exist", |shard| group::<Share>(shard).own.order = Some(99));
}
