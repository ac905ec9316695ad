//! One planted bug for each invariant, and nothing to say about a shard that is well.

use barnabas_base::{DurationMs, MonotonicMs, PartitionIndex, Text, TimestampMs};
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{JoinGroupRequest, OffsetCommitRequest, SyncGroupRequest};

use crate::framework::{BatchId, Caller, Now, Ticket};
use crate::groups::Group;
use crate::groups::classic::{ClassicGroup, State};
use crate::outbox::Effect;
use crate::outbox::TimerKey;
use crate::records::OffsetKey;
use crate::{GroupConfig, GroupShard, Request, Response};

const NOW: Now = Now { wall: TimestampMs(1_000), mono: MonotonicMs(1_000) };

fn send(shard: &mut GroupShard, ticket: u64, request: Request) -> Vec<Effect> {
    let caller = Caller {
        client_id: "c",
        client_host: "/127.0.0.1",
        version: 3,
        random: [u8::try_from(ticket).expect("few tickets"); 16],
        ..Caller::default()
    };
    shard.handle(&caller, request, Ticket(ticket), NOW)
}

fn join(instance: Option<&str>) -> Request {
    let protocol = JoinGroupRequestProtocol { name: "range".into(), ..Default::default() };
    Request::JoinGroup(JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        group_instance_id: instance.map(Into::into),
        protocol_type: "consumer".into(),
        protocols: vec![protocol],
        ..Default::default()
    })
}

/// A stable group of two, one of them static; an offset; a third member on its way in.
fn shard() -> GroupShard {
    let delay = DurationMs(0);
    let mut shard = GroupShard::new(GroupConfig { initial_rebalance_delay: delay, ..GroupConfig::default() });
    shard.activate(NOW);
    send(&mut shard, 1, join(None));
    send(&mut shard, 2, join(Some("i")));
    let effects = shard.tick(NOW);
    let leader = effects.iter().find_map(|effect| match effect {
        Effect::Answer { response: Response::JoinGroup(joined), .. } => Some(joined.leader.clone()),
        _ => None,
    });
    let leader = leader.expect("a leader");
    let assignment = SyncGroupRequestAssignment { member_id: leader.clone(), ..Default::default() };
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: leader,
        assignments: vec![assignment],
        ..Default::default()
    };
    send(&mut shard, 3, Request::SyncGroup(sync));
    let partitions = vec![OffsetCommitRequestPartition { committed_offset: 5, ..Default::default() }];
    let topic = OffsetCommitRequestTopic { name: "t".into(), partitions, ..Default::default() };
    let commit = OffsetCommitRequest { group_id: "h".into(), topics: vec![topic], ..Default::default() };
    send(&mut shard, 4, Request::OffsetCommit(commit));
    shard.durable(BatchId(99), NOW);
    assert_eq!(group(&mut shard).state, State::Stable);
    shard
}

fn group(shard: &mut GroupShard) -> &mut ClassicGroup {
    match shard.groups.get_mut("g") {
        Some(Group::Classic(group)) => group,
        other => panic!("{other:?}"),
    }
}

fn first_member(shard: &mut GroupShard) -> Text {
    group(shard).members.keys().next().cloned().expect("a member")
}

fn check(sentence: &str, bug: impl FnOnce(&mut GroupShard)) {
    caught(shard(), sentence, bug);
}

/// `bug` breaks what `sentence` is about, in a shard that is well.
pub(super) fn caught(mut shard: GroupShard, sentence: &str, bug: impl FnOnce(&mut GroupShard)) {
    assert_eq!(shard.violations(), Vec::<String>::new());
    bug(&mut shard);
    let said = shard.violations();
    assert!(said.iter().any(|violation| violation.contains(sentence)), "{sentence:?} not among {said:?}");
}

#[test]
fn a_group_has_its_own_name() {
    check("is called", |shard| group(shard).id = "other".into());
}

#[test]
fn a_state_fits_the_members() {
    check("is Empty and has members", |shard| group(shard).state = State::Empty);
    check("has no members", |shard| {
        let group = group(shard);
        let ids: Vec<Text> = group.members.keys().cloned().collect();
        ids.iter().for_each(|id| drop(group.remove(id)));
    });
    check("has no leader", |shard| group(shard).leader = Some("gone".into()));
    check("speaks nothing", |shard| group(shard).protocol = None);
}

#[test]
fn counts_are_true() {
    check("wait to join", |shard| group(shard).awaiting_join = 1);
    check("protocols", |shard| {
        group(shard).supported.insert("sticky".into(), 1);
    });
}

#[test]
fn an_instance_is_one_member() {
    check("stands for", |shard| drop(group(shard).static_members.insert("i".into(), "gone".into())));
    check("not all known", |shard| group(shard).static_members.clear());
}

#[test]
fn members_have_a_protocol_in_common() {
    check("no protocol in common", |shard| group(shard).supported.clear());
}

#[test]
fn no_id_is_a_member_and_pending() {
    check("is a member and pending", |shard| {
        let id = first_member(shard);
        group(shard).pending_members.insert(id);
    });
    check("is to sync and no member", |shard| {
        group(shard).pending_sync.insert("gone".into());
    });
}

#[test]
fn members_are_watched() {
    check("no timer for member", |shard| {
        let key = TimerKey::Session { group: "g".into(), member: first_member(shard) };
        shard.out.timers.cancel(&key);
    });
    check("no timer for pending member", |shard| {
        group(shard).pending_members.insert("new".into());
    });
}

#[test]
fn phases_are_watched() {
    check("no timer for the join phase", |shard| group(shard).state = State::PreparingRebalance);
    check("a join phase that is over", |shard| {
        shard.out.set_timer(TimerKey::Join("g".into()), DurationMs(1));
    });
    check("a sync phase that is over", |shard| {
        shard.out.set_timer(TimerKey::Join("g".into()), DurationMs(1));
        shard.out.set_timer(TimerKey::Sync("g".into()), DurationMs(1));
        group(shard).state = State::PreparingRebalance;
    });
    check("no timer for the sync phase", |shard| {
        shard.out.timers.cancel(&TimerKey::Sync("g".into()));
        group(shard).state = State::CompletingRebalance;
    });
    check("nothing is on its way to disk", |shard| {
        let group = group(shard);
        group.state = State::CompletingRebalance;
        group.pending_sync.clear();
    });
}

#[test]
fn timers_have_an_object() {
    check("timers where at most", |shard| {
        for number in 0..10 {
            let key = TimerKey::Join(format!("gone {number}").into());
            shard.out.set_timer(key, DurationMs(1));
        }
    });
}

#[test]
fn a_ticket_waits_once() {
    check("waits twice", |shard| {
        let group = group(shard);
        group.members.values_mut().for_each(|member| member.sync = Some(Ticket(7)));
    });
}

#[test]
fn offsets_have_a_group() {
    check("which is not there", |shard| drop(shard.groups.remove("h")));
}

#[test]
fn an_offset_is_one() {
    check("keeps an offset that is none", |shard| {
        let key = OffsetKey { group: "g".into(), topic: "t".into(), partition: PartitionIndex(0) };
        shard.offsets.change(BatchId(50), &key, None);
        shard.offsets.plant_hollow(BatchId(50), &key);
    });
}
