//! One planted bug for each invariant of streams groups, and nothing to say about a group that is well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::streams_group_heartbeat_request::{Subtopology, Topology};
use barnabas_wire::messages::{JoinGroupRequest, StreamsGroupHeartbeatRequest};

use super::super::reconciled::tests::{NOW, change, group, planted_bugs_are_caught};
use super::super::tests::caught;
use crate::assignment::streams::Held;
use crate::framework::{BatchId, Caller, Ticket};
use crate::groups::reconciled::MemberState;
use crate::groups::streams::Streams;
use crate::outbox::Effect;
use crate::{GroupConfig, GroupShard, Request, Response};

const CALLER: Caller<'static> = Caller {
    client_id: "c",
    client_host: "/127.0.0.1",
    version: 1,
    connection: None,
    random: [0; 16],
    room: None,
};

/// A group of two, one of them static; what they have is put there by hand, as there are no topics.
fn shard() -> GroupShard {
    let mut shard = GroupShard::new(GroupConfig::default());
    shard.activate(NOW);
    for (ticket, member, instance) in [(1, "a", None), (2, "b", Some("i"))] {
        shard.handle(&CALLER, heartbeat(member, instance), Ticket(ticket), NOW);
    }
    change::<Streams>(&mut shard, "a", |member| member.assigned = active(0));
    change::<Streams>(&mut shard, "b", |member| member.assigned = active(1));
    shard.durable(BatchId(99), NOW);
    shard
}

fn heartbeat(member: &str, instance: Option<&str>) -> Request {
    let subtopology =
        Subtopology { subtopology_id: "0".into(), source_topics: vec!["t".into()], ..Default::default() };
    Request::StreamsGroupHeartbeat(Box::new(StreamsGroupHeartbeatRequest {
        group_id: "g".into(),
        member_id: member.into(),
        instance_id: instance.map(Into::into),
        rebalance_timeout_ms: 1_000,
        topology: Some(Topology { subtopologies: vec![subtopology], ..Default::default() }),
        active_tasks: Some(Vec::new()),
        standby_tasks: Some(Vec::new()),
        warmup_tasks: Some(Vec::new()),
        ..Default::default()
    }))
}

/// The task of one partition, and a standby task of another.
fn active(partition: i32) -> Arc<Held> {
    Arc::new(Held {
        active: BTreeMap::from([("0".into(), BTreeMap::from([(partition, 1)]))]),
        standby: BTreeMap::from([("0".into(), BTreeSet::from([partition + 10]))]),
        warmup: BTreeMap::from([("0".into(), BTreeSet::from([partition + 20]))]),
    })
}

fn check(sentence: &str, bug: impl FnOnce(&mut GroupShard)) {
    caught(shard(), sentence, bug);
}

#[test]
fn what_all_kinds_share_is_checked() {
    planted_bugs_are_caught::<Streams>(shard);
}

#[test]
fn a_task_has_one_owner() {
    check("both run task 0_1", |shard| change::<Streams>(shard, "a", |member| member.assigned = active(1)));
    check("both run task 0_1", |shard| change::<Streams>(shard, "a", |member| member.revoking = active(1)));
    check("its owners are not", |shard| group::<Streams>(shard).plant_owner("0", 5, "a"));
}

#[test]
fn copies_are_counted() {
    check("its Standby tasks are not", |shard| group::<Streams>(shard).plant_standby("0", 5, "a"));
}

#[test]
fn task_offsets_are_a_members() {
    check("has task offsets and is no member", |shard| {
        group::<Streams>(shard).own.task_offsets.insert("gone".into(), Default::default());
    });
}

#[test]
fn what_is_to_be_given_up_is_watched() {
    check("no timer for what a has to revoke", |shard| {
        change::<Streams>(shard, "a", |member| member.state = MemberState::Unrevoked);
    });
}

#[test]
fn member_with_an_id_of_the_classic_group_is_watched() {
    let mut shard = GroupShard::new(GroupConfig::default());
    shard.activate(NOW);
    let protocol = JoinGroupRequestProtocol { name: "range".into(), ..Default::default() };
    let join = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    };
    let caller = Caller { version: 4, ..CALLER };
    shard.handle(&caller, Request::JoinGroup(join), Ticket(1), NOW);
    let effects = shard.durable(BatchId(99), NOW);
    let given = effects.iter().find_map(|effect| match effect {
        Effect::Answer { response: Response::JoinGroup(joined), .. } => Some(joined.member_id.clone()),
        _ => None,
    });
    shard.handle(&CALLER, heartbeat(&given.expect("an id"), None), Ticket(2), NOW);
    assert_eq!(group::<Streams>(&mut shard).members().len(), 1);
    assert_eq!(shard.violations(), Vec::<String>::new());
}
