//! Whatever happens, what is on disk says what the shard says: after any sequence of requests, timers and lost batches,
//! a shard loaded from the log has the same offsets and the same stable groups as the one that lived through it all.
//!
//! The sequence follows from the seed. `REPLAY_SEEDS=10000 cargo test -p barnabas-coordinator --test replay` looks
//! longer.

// A test may read its environment.
#![allow(clippy::disallowed_methods)]

mod rig;

use std::collections::BTreeMap;

use barnabas_base::{CoordinatorEpoch, DurationMs, ErrorCode, ProducerEpoch, ProducerId, Text, Uuid};
use barnabas_coordinator::{
    BatchId, Effect, EndTransaction, GroupConfig, GroupShard, Producer, Request, Response, Ticket,
    TransactionVersion,
};
use barnabas_wire::Str;
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use barnabas_wire::messages::offset_delete_request::{
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use barnabas_wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, GroupRecordKey, GroupRecordValue, HeartbeatRequest,
    JoinGroupRequest, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest,
    SyncGroupRequest, TxnOffsetCommitRequest,
};
use bytes::Bytes;
use rig::Rig;

/// xorshift64*: enough to be arbitrary.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

const GROUPS: [&str; 3] = ["g", "h", "i"];
const TOPICS: [&str; 3] = ["t", "u", "v"];
const CLIENTS: u64 = 6;
const PRODUCERS: u64 = 3;

/// What a client knows of itself.
#[derive(Debug, Clone, Default)]
struct Client {
    group: usize,
    instance: Option<Str>,
    member_id: Str,
    generation: i32,
    leads: Vec<Str>,
    /// What it was last told to do.
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Next {
    #[default]
    Join,
    Sync,
    Anything,
}

struct World {
    rig: Rig,
    random: Random,
    clients: Vec<Client>,
    asked: BTreeMap<Ticket, usize>,
    /// A group's record was lost, so an empty group may come back with the members it last had.
    lost_groups: bool,
    /// The log stood still for a while. Members are not kept waiting for it, so a group may have gone on without a
    /// record that then gets to disk all the same. Offsets must be right even so.
    stalled: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let config = GroupConfig {
            initial_rebalance_delay: DurationMs(100),
            offsets_retention: DurationMs(60_000),
            offsets_retention_check_interval: DurationMs(7_000),
            group_size_max: 4,
            ..GroupConfig::default()
        };
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let clients = (0..CLIENTS).map(|number| Client {
            group: random.below(GROUPS.len() as u64) as usize,
            instance: random.chance(30).then(|| format!("i{}", number % 4).into()),
            ..Client::default()
        });
        let clients = clients.collect();
        let mut rig = Rig::new(config);
        rig.disk_is_quick = false;
        Self { rig, random, clients, asked: BTreeMap::new(), lost_groups: false, stalled: false }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..20 => self.settle(),
            20..30 => {
                let is_patient = self.random.chance(95);
                while is_patient && !self.rig.pending.is_empty() {
                    self.settle();
                }
                self.stalled |= !self.rig.pending.is_empty();
                let long = self.random.chance(8);
                let time = if long { 20_000 } else { [10, 100, 1_000][self.random.below(3) as usize] };
                let mut seen = Vec::new();
                self.rig.disk_is_quick = true;
                self.rig.wait(DurationMs(time), |_, effects| seen.extend(effects));
                self.rig.disk_is_quick = false;
                self.learn(&seen);
            }
            30..32 => {
                let topic = self.topic();
                let now = self.rig.now();
                let id = self.topic_id();
                let effects = self.rig.shard.topics_deleted(&[(Text::from(topic), id)], now);
                let effects = self.rig.carry_out(effects);
                self.learn(&effects);
            }
            32..33 => {
                let effects = self.rig.restart();
                self.learn(&effects);
            }
            _ => {
                let who = self.random.below(CLIENTS) as usize;
                let (version, request) = self.request(who);
                let (ticket, effects) = self.rig.send(&format!("c{who}"), version, request);
                self.asked.insert(ticket, who);
                self.learn(&effects);
            }
        }
    }

    /// One batch, or all of them, gets to disk; or one does not.
    fn settle(&mut self) {
        let Some(oldest) = self.rig.pending.keys().next().copied() else { return };
        let effects = match self.random.below(10) {
            0 => {
                let index = self.random.below(self.rig.pending.len() as u64) as usize;
                let batch = *self.rig.pending.keys().nth(index).expect("one of them");
                let is_group = |key: &Bytes| key.starts_with(&[0, 2]);
                self.lost_groups |= self.rig.pending[&batch]
                    .iter()
                    .filter_map(rig::Logged::record)
                    .any(|record| is_group(&record.key));
                self.rig.fail(batch, ErrorCode::NotEnoughReplicas)
            }
            1..4 => self.rig.durable(oldest),
            _ => self.rig.durable(BatchId(u64::MAX - 1)),
        };
        self.learn(&effects);
    }

    fn topic(&mut self) -> &'static str {
        TOPICS[self.random.below(TOPICS.len() as u64) as usize]
    }

    fn topic_id(&mut self) -> Uuid {
        let mut id = [0; 16];
        id[0] = self.random.below(3) as u8;
        Uuid(id)
    }

    fn request(&mut self, who: usize) -> (i16, Request) {
        let client = self.clients[who].clone();
        let group_id = Str::from(GROUPS[client.group]);
        let whim = match client.next {
            Next::Join if self.random.chance(60) => 0,
            Next::Sync if self.random.chance(80) => 50,
            _ => self.random.below(100),
        };
        match whim {
            0..35 => (if self.random.chance(50) { 9 } else { 3 }, self.join(&client, group_id)),
            35..55 => (5, self.sync(&client, group_id)),
            55..63 => (
                4,
                Request::Heartbeat(HeartbeatRequest {
                    group_id,
                    generation_id: client.generation,
                    member_id: client.member_id,
                    group_instance_id: client.instance,
                    ..Default::default()
                }),
            ),
            63..68 => {
                let who = MemberIdentity {
                    member_id: if self.random.chance(50) { client.member_id } else { Str::default() },
                    group_instance_id: client.instance,
                    ..Default::default()
                };
                let members = vec![who];
                (5, Request::LeaveGroup(LeaveGroupRequest { group_id, members, ..Default::default() }))
            }
            68..80 => (self.random.below(8) as i16 + 2, self.commit(&client, group_id)),
            80..86 => (5, self.commit_in_transaction(&client, group_id)),
            86..88 => (2, self.end_transaction()),
            88..92 => {
                let partitions = (0..2).map(|partition_index| OffsetDeleteRequestPartition {
                    partition_index,
                    ..Default::default()
                });
                let topics = vec![OffsetDeleteRequestTopic {
                    name: self.topic().into(),
                    partitions: partitions.collect(),
                    ..Default::default()
                }];
                (0, Request::OffsetDelete(OffsetDeleteRequest { group_id, topics, ..Default::default() }))
            }
            92..94 => {
                let groups_names = vec![group_id];
                (2, Request::DeleteGroups(DeleteGroupsRequest { groups_names, ..Default::default() }))
            }
            94..97 => {
                let group = OffsetFetchRequestGroup { group_id, topics: None, ..Default::default() };
                (9, Request::OffsetFetch { group, require_stable: self.random.chance(50) })
            }
            97..98 => (5, Request::ListGroups(ListGroupsRequest::default())),
            _ => {
                let groups = vec![group_id];
                (6, Request::DescribeGroups(DescribeGroupsRequest { groups, ..Default::default() }))
            }
        }
    }

    fn join(&mut self, client: &Client, group_id: Str) -> Request {
        let names: &[&str] =
            [&["range", "sticky"][..], &["sticky", "range"], &["range"]][self.random.below(3) as usize];
        let said = if self.random.chance(80) { "always" } else { "anew" };
        let protocols = names.iter().map(|name| JoinGroupRequestProtocol {
            name: (*name).into(),
            metadata: Bytes::from_static(said.as_bytes()),
            ..Default::default()
        });
        Request::JoinGroup(JoinGroupRequest {
            group_id,
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: [0, 1_000, 6_000][self.random.below(3) as usize],
            member_id: if self.random.chance(90) { client.member_id.clone() } else { Str::default() },
            group_instance_id: client.instance.clone(),
            protocol_type: if self.random.chance(95) { "consumer" } else { "connect" }.into(),
            protocols: protocols.collect(),
            ..Default::default()
        })
    }

    fn sync(&mut self, client: &Client, group_id: Str) -> Request {
        let assigned: Vec<u64> = client.leads.iter().map(|_| self.random.below(1_000)).collect();
        let assignments =
            client.leads.iter().zip(assigned).map(|(member, assigned)| SyncGroupRequestAssignment {
                member_id: member.clone(),
                assignment: Bytes::from(assigned.to_string()),
                ..Default::default()
            });
        Request::SyncGroup(SyncGroupRequest {
            group_id,
            generation_id: client.generation,
            member_id: client.member_id.clone(),
            group_instance_id: client.instance.clone(),
            protocol_type: Some("consumer".into()),
            protocol_name: Some(if self.random.chance(50) { "range" } else { "sticky" }.into()),
            assignments: assignments.collect(),
            ..Default::default()
        })
    }

    fn commit(&mut self, client: &Client, group_id: Str) -> Request {
        let is_member = self.random.chance(50);
        let mut topics = Vec::new();
        for _ in 0..self.random.below(3) {
            let partition = OffsetCommitRequestPartition {
                partition_index: self.random.below(2) as i32,
                committed_offset: self.random.below(1_000_000) as i64,
                committed_leader_epoch: self.random.below(5) as i32 - 1,
                committed_metadata: self.random.chance(20).then(|| "note".into()),
                ..Default::default()
            };
            topics.push(OffsetCommitRequestTopic {
                name: self.topic().into(),
                topic_id: self.topic_id(),
                partitions: vec![partition],
                ..Default::default()
            });
        }
        Request::OffsetCommit(OffsetCommitRequest {
            group_id,
            generation_id_or_member_epoch: if is_member { client.generation } else { -1 },
            member_id: if is_member { client.member_id.clone() } else { Str::default() },
            retention_time_ms: if self.random.chance(10) { 30_000 } else { -1 },
            topics,
            ..Default::default()
        })
    }

    /// Producer 0 knows of no group members; the others may.
    fn commit_in_transaction(&mut self, client: &Client, group_id: Str) -> Request {
        let Request::OffsetCommit(plain) = self.commit(client, group_id) else { unreachable!("a commit") };
        let topics = plain.topics.into_iter().map(|topic| TxnOffsetCommitRequestTopic {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: topic
                .partitions
                .into_iter()
                .map(|partition| TxnOffsetCommitRequestPartition {
                    partition_index: partition.partition_index,
                    committed_offset: partition.committed_offset,
                    committed_metadata: partition.committed_metadata,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        });
        let producer_id = self.random.below(PRODUCERS) as i64;
        let says = producer_id > 0;
        Request::TxnOffsetCommit(TxnOffsetCommitRequest {
            group_id: plain.group_id,
            producer_id,
            producer_epoch: 0,
            generation_id_or_member_epoch: if says { plain.generation_id_or_member_epoch } else { -1 },
            member_id: if says { plain.member_id } else { Str::default() },
            topics: topics.collect(),
            ..Default::default()
        })
    }

    fn end_transaction(&mut self) -> Request {
        let id = ProducerId(self.random.below(PRODUCERS) as i64);
        Request::EndTransaction(EndTransaction {
            producer: Producer { id, epoch: ProducerEpoch(0) },
            commit: self.random.chance(60),
            coordinator_epoch: CoordinatorEpoch(0),
            version: TransactionVersion::V0,
        })
    }

    /// Clients take in what they are told.
    fn learn(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Answer { ticket, response } = effect else { continue };
            let Some(who) = self.asked.remove(ticket) else { continue };
            let client = &mut self.clients[who];
            let code = match response {
                Response::JoinGroup(joined) => {
                    client.next = if joined.error_code == 0 { Next::Sync } else { Next::Join };
                    if matches!(joined.error_code, 0 | 79) {
                        client.member_id = joined.member_id.clone();
                        client.generation = joined.generation_id;
                        client.leads = joined.members.iter().map(|member| member.member_id.clone()).collect();
                    }
                    joined.error_code
                }
                Response::SyncGroup(synced) => {
                    client.next = if synced.error_code == 0 { Next::Anything } else { Next::Join };
                    synced.error_code
                }
                Response::Heartbeat(heartbeat) => heartbeat.error_code,
                _ => 0,
            };
            match ErrorCode::from_code(code) {
                ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId => {
                    client.member_id = Str::default();
                    client.next = Next::Join;
                }
                ErrorCode::RebalanceInProgress => client.next = Next::Join,
                _ => {}
            }
        }
    }

    /// Everything gets to disk; then a shard is loaded and compared.
    fn compare(&mut self, seed: u64) {
        while !self.rig.pending.is_empty() {
            let effects = self.rig.durable(BatchId(u64::MAX - 1));
            self.learn(&effects);
        }
        let mut loaded = self.rig.reloaded();
        let now = self.rig.now();
        loaded.activate(now);
        assert_eq!(loaded.violations(), Vec::<String>::new(), "seed {seed}");
        let truth = committed(&self.rig.log);
        for group in GROUPS {
            let live = offsets(&mut self.rig.shard, group, false, now);
            assert_eq!(shown(&live), truth.get(group).cloned().unwrap_or_default(), "seed {seed}: {group}");
            for stable in [false, true] {
                let live = offsets(&mut self.rig.shard, group, stable, now);
                let stored = offsets(&mut loaded, group, stable, now);
                assert_eq!(live, stored, "seed {seed}: offsets of {group}, stable: {stable}");
            }
            let (live, stored) =
                (describe(&mut self.rig.shard, group, now), describe(&mut loaded, group, now));
            let state = state_of(&live);
            if self.stalled {
                continue;
            }
            if state == "Stable" || (state == "Empty" && !self.lost_groups && !is_bare(&live)) {
                assert_eq!(live, stored, "seed {seed}: group {group}");
            }
        }
    }
}

/// Topic and partition → offset.
type Shown = BTreeMap<(String, i32), i64>;

/// What the log says is committed, group by group, worked out without a shard: a transaction's offsets count from its
/// commit marker on, unless a later commit was faster.
fn committed(log: &[rig::Logged]) -> BTreeMap<String, Shown> {
    type Place = (String, String, i32);
    let mut settled: BTreeMap<Place, (usize, i64)> = BTreeMap::new();
    let mut open: BTreeMap<ProducerId, BTreeMap<Place, (usize, i64)>> = BTreeMap::new();
    for (at, logged) in log.iter().enumerate() {
        let (producer, record) = match logged {
            rig::Logged::Record(producer, record) => (producer, record),
            rig::Logged::Marker(producer, commit) => {
                for (place, entry) in open.remove(producer).unwrap_or_default() {
                    if *commit && settled.get(&place).is_none_or(|known| known.0 < entry.0) {
                        settled.insert(place, entry);
                    }
                }
                continue;
            }
        };
        let Ok(GroupRecordKey::OffsetCommit(key)) = GroupRecordKey::decode_key(record.key.clone()) else {
            continue;
        };
        let place = (key.group.to_string(), key.topic.to_string(), key.partition);
        let Some(value) = record.value.clone() else {
            settled.remove(&place);
            for held in open.values_mut() {
                held.remove(&place);
            }
            continue;
        };
        let (value, _) = GroupRecordValue::decode_value(1, value).expect("a value");
        let GroupRecordValue::OffsetCommit(value) = value else { panic!("{value:?}") };
        let held = if producer.is_some() { open.entry(*producer).or_default() } else { &mut settled };
        held.insert(place, (at, value.offset));
    }
    let mut groups: BTreeMap<String, Shown> = BTreeMap::new();
    for ((group, topic, partition), (_, offset)) in settled {
        groups.entry(group).or_default().insert((topic, partition), offset);
    }
    groups
}

fn shown(response: &Response) -> Shown {
    let Response::OffsetFetch(response) = response else { panic!("{response:?}") };
    let mut shown = Shown::new();
    for topic in &response.topics {
        let there = topic.partitions.iter().filter(|partition| partition.committed_offset >= 0);
        shown.extend(
            there.map(|part| ((topic.name.to_string(), part.partition_index), part.committed_offset)),
        );
    }
    shown
}

fn ask(shard: &mut GroupShard, request: Request, now: barnabas_coordinator::Now) -> Response {
    let caller = barnabas_coordinator::Caller { version: 6, ..barnabas_coordinator::Caller::default() };
    let mut effects = shard.handle(&caller, request, Ticket(u64::MAX), now);
    match effects.pop() {
        Some(Effect::Answer { response, .. }) => response,
        other => panic!("no answer at once: {other:?}"),
    }
}

/// Every partition there is, in a transaction or not.
fn offsets(shard: &mut GroupShard, group: &str, stable: bool, now: barnabas_coordinator::Now) -> Response {
    let topics = TOPICS.map(|topic| OffsetFetchRequestTopics {
        name: topic.into(),
        partition_indexes: vec![0, 1],
        ..Default::default()
    });
    let topics = Some(topics.to_vec());
    let group = OffsetFetchRequestGroup { group_id: group.into(), topics, ..Default::default() };
    ask(shard, Request::OffsetFetch { group, require_stable: stable }, now)
}

fn describe(shard: &mut GroupShard, group: &str, now: barnabas_coordinator::Now) -> Response {
    let groups = vec![group.into()];
    ask(shard, Request::DescribeGroups(DescribeGroupsRequest { groups, ..Default::default() }), now)
}

fn state_of(response: &Response) -> String {
    match response {
        Response::DescribeGroups(response) => response.groups[0].group_state.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A group that never had members. Without offsets, no record need speak of it.
fn is_bare(response: &Response) -> bool {
    matches!(response, Response::DescribeGroups(response) if response.groups[0].protocol_type.is_empty())
}

#[test]
fn what_is_on_disk_says_what_the_shard_says() {
    let seeds = std::env::var("REPLAY_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let mut stable = 0;
    for seed in 1..=seeds {
        let mut world = World::new(seed);
        for step in 1..=400 {
            world.step();
            if step % 100 == 0 {
                world.compare(seed);
                let now = world.rig.now();
                for group in GROUPS {
                    let described = describe(&mut world.rig.shard, group, now);
                    stable += usize::from(state_of(&described) == "Stable");
                }
            }
        }
        world.rig.pending.clear();
        world.rig.restart();
    }
    println!("{stable} stable groups compared");
    // The clients are clever enough to get anywhere.
    assert!(stable as u64 > seeds / 4, "only {stable} stable groups in {seeds} seeds");
}
