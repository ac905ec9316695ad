//! One planted bug for each invariant of consumer groups, and nothing to say about a group that is well.

use std::collections::BTreeMap;
use std::sync::Arc;

use barnabas_base::Uuid;
use barnabas_wire::messages::ConsumerGroupHeartbeatRequest;

use super::super::reconciled::tests::{NOW, change, group, planted_bugs_are_caught};
use super::super::tests::caught;
use crate::framework::{BatchId, Caller, Ticket};
use crate::groups::consumer::{Assigned, Consumer};
use crate::{GroupConfig, GroupShard, Request};

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
    change::<Consumer>(&mut shard, "a", |member| member.assigned = assigned(0));
    change::<Consumer>(&mut shard, "b", |member| member.assigned = assigned(1));
    shard.durable(BatchId(99), NOW);
    shard
}

fn assigned(partition: i32) -> Arc<Assigned> {
    Arc::new(BTreeMap::from([(TOPIC, BTreeMap::from([(partition, 1)]))]))
}

fn check(sentence: &str, bug: impl FnOnce(&mut GroupShard)) {
    caught(shard(), sentence, bug);
}

#[test]
fn what_all_kinds_share_is_checked() {
    planted_bugs_are_caught::<Consumer>(shard);
}

#[test]
fn a_partition_has_one_owner() {
    check("both have partition 1", |shard| {
        change::<Consumer>(shard, "a", |member| member.assigned = assigned(1))
    });
    check("its owners are not", |shard| group::<Consumer>(shard).plant_owner(TOPIC, 5, "a"));
}

#[test]
fn counts_are_true() {
    check("what is counted", |shard| group::<Consumer>(shard).own.names.plant("u"));
}

#[test]
fn an_expression_is_somebodys() {
    check("no member subscribes by x.*", |shard| {
        let resolved = crate::assignment::Resolved { topics: Arc::default(), version: 0, timestamp: 0 };
        group::<Consumer>(shard).own.resolved.insert("x.*".into(), resolved);
    });
}
