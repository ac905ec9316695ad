//! A classic group settles soon after its members have come and gone, whatever they did before: clients that close,
//! that die, that give up on a request and ask again, and answers that are lost. Sessions are 10 s and rebalance
//! timeouts 5 min, so a group that waits for the wrong thing waits for minutes.
//!
//! What happens follows from the seed. `SETTLE_SEEDS=10000 cargo test -p barnabas-coordinator --test classic_settles`
//! looks longer.

// A test may read its environment.
#![allow(clippy::disallowed_methods)]

mod rig;

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, ErrorCode};
use barnabas_coordinator::{Effect, GroupConfig, Request, Response, Ticket};
use barnabas_wire::Str;
use barnabas_wire::messages::join_group_request::JoinGroupRequestProtocol;
use barnabas_wire::messages::leave_group_request::MemberIdentity;
use barnabas_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use barnabas_wire::messages::{HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest};
use bytes::Bytes;
use rig::Rig;

const SESSION_MS: u64 = 10_000;
const REBALANCE_MS: i32 = 300_000;
const BEAT_MS: u64 = 3_000;
const CLIENTS: u64 = 8;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Wants to join.
    Out,
    Joining,
    /// Has joined and is to sync.
    Joined,
    Syncing,
    In,
    Gone,
}

#[derive(Debug, Clone)]
struct Client {
    state: State,
    id: String,
    generation: i32,
    is_leader: bool,
    members: Vec<String>,
    /// What it waits for.
    ticket: Option<Ticket>,
    beats_at: u64,
    /// Some speak a version in which the first answer gives the id alone.
    version: i16,
    instance: Option<String>,
}

struct World {
    rig: Rig,
    random: Random,
    clients: Vec<Client>,
    answers: BTreeMap<Ticket, Response>,
    faults: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let rig =
            Rig::new(GroupConfig { initial_rebalance_delay: DurationMs(3_000), ..GroupConfig::default() });
        let clients = (0..CLIENTS).map(|number| Client {
            state: State::Out,
            id: String::new(),
            generation: -1,
            is_leader: false,
            members: Vec::new(),
            ticket: None,
            beats_at: 0,
            version: if random.chance(70) { 9 } else { 3 },
            instance: random.chance(20).then(|| format!("i{number}")),
        });
        let clients = clients.collect();
        Self { rig, random, clients, answers: BTreeMap::new(), faults: true }
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Answer { ticket, response } = effect {
                self.answers.insert(ticket, response);
            }
        }
    }

    fn send(&mut self, who: usize, request: Request) -> Ticket {
        let (ticket, effects) = self.rig.send("c", self.clients[who].version.min(4), request);
        self.take(effects);
        ticket
    }

    fn pass(&mut self, ms: u64) {
        let mut seen = Vec::new();
        self.rig.wait(DurationMs(ms as i64), |_, effects| seen.extend(effects));
        self.take(seen);
    }

    /// A tenth of a second of everybody.
    fn step(&mut self) {
        for who in 0..self.clients.len() {
            if self.faults && self.random.chance(2) {
                self.fault(who);
            }
            self.act(who);
        }
        self.pass(100);
    }

    /// Something goes wrong with a client: its request or the answer is lost, and it asks again; or it dies; or it
    /// closes.
    fn fault(&mut self, who: usize) {
        let client = &mut self.clients[who];
        match self.random.below(10) {
            0..4 => {
                client.ticket = None;
                client.state = match client.state {
                    State::Syncing => State::Joined,
                    State::Joining => State::Out,
                    other => other,
                };
            }
            // A process that has started again.
            4..7 => {
                client.ticket = None;
                client.state = State::Out;
                client.id = String::new();
            }
            // A pause in which nothing is heard of it.
            7 | 8 => client.beats_at = self.rig.elapsed_ms + 8_000 + 4_000,
            _ => self.close(who),
        }
    }

    fn close(&mut self, who: usize) {
        let (id, instance) = (self.clients[who].id.clone(), self.clients[who].instance.is_some());
        self.clients[who].state = State::Gone;
        self.clients[who].ticket = None;
        // A static member goes without a word.
        if !id.is_empty() && !instance {
            let members = vec![MemberIdentity { member_id: id.as_str().into(), ..Default::default() }];
            self.send(
                who,
                Request::LeaveGroup(LeaveGroupRequest {
                    group_id: "g".into(),
                    members,
                    ..Default::default()
                }),
            );
        }
    }

    fn act(&mut self, who: usize) {
        let answer = self.clients[who].ticket.and_then(|ticket| self.answers.remove(&ticket));
        if let Some(answer) = answer {
            self.clients[who].ticket = None;
            self.hear(who, answer);
        }
        let now = self.rig.elapsed_ms;
        let client = self.clients[who].clone();
        match client.state {
            State::Out => {
                self.clients[who].state = State::Joining;
                let request = Request::JoinGroup(join(&client));
                let ticket = if client.version >= 4 {
                    let (ticket, effects) = self.rig.send("c", client.version, request);
                    self.take(effects);
                    ticket
                } else {
                    self.send(who, request)
                };
                self.clients[who].ticket = Some(ticket);
            }
            State::Joined => {
                self.clients[who].state = State::Syncing;
                let ticket = self.send(who, Request::SyncGroup(sync(&client)));
                self.clients[who].ticket = Some(ticket);
            }
            State::In if client.beats_at <= now && client.ticket.is_none() => {
                self.clients[who].beats_at = now + BEAT_MS;
                let beat = HeartbeatRequest {
                    group_id: "g".into(),
                    generation_id: client.generation,
                    member_id: client.id.as_str().into(),
                    group_instance_id: client.instance.as_deref().map(Str::from),
                    ..Default::default()
                };
                let ticket = self.send(who, Request::Heartbeat(beat));
                self.clients[who].ticket = Some(ticket);
            }
            _ => {}
        }
    }

    fn hear(&mut self, who: usize, answer: Response) {
        let now = self.rig.elapsed_ms;
        let client = &mut self.clients[who];
        let error = match &answer {
            Response::JoinGroup(answer) => answer.error_code,
            Response::SyncGroup(answer) => answer.error_code,
            Response::Heartbeat(answer) => answer.error_code,
            _ => 0,
        };
        match (ErrorCode::from_code(error), answer) {
            (ErrorCode::None, Response::JoinGroup(joined)) => {
                client.id = joined.member_id.to_string();
                client.generation = joined.generation_id;
                client.is_leader = joined.leader == joined.member_id;
                client.members = joined.members.iter().map(|member| member.member_id.to_string()).collect();
                client.state = State::Joined;
            }
            (ErrorCode::None, Response::SyncGroup(_)) => {
                client.state = State::In;
                client.beats_at = now + BEAT_MS;
            }
            (ErrorCode::None, _) => {}
            (ErrorCode::MemberIdRequired, Response::JoinGroup(joined)) => {
                client.id = joined.member_id.to_string();
                client.state = State::Out;
            }
            (ErrorCode::RebalanceInProgress, _) => client.state = State::Out,
            _ => {
                client.id = String::new();
                client.state = State::Out;
            }
        }
    }

    fn is_settled(&self) -> bool {
        let live = || self.clients.iter().filter(|client| client.state != State::Gone);
        let generations: Vec<i32> = live().map(|client| client.generation).collect();
        live().all(|client| client.state == State::In)
            && generations.windows(2).all(|two| two[0] == two[1])
            && self.rig.shard.stats().members == generations.len()
    }
}

fn join(client: &Client) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: SESSION_MS as i32,
        rebalance_timeout_ms: REBALANCE_MS,
        member_id: client.id.as_str().into(),
        group_instance_id: client.instance.as_deref().map(Str::from),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"said"),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn sync(client: &Client) -> SyncGroupRequest {
    let assignments =
        client.members.iter().filter(|_| client.is_leader).map(|id| SyncGroupRequestAssignment {
            member_id: id.as_str().into(),
            assignment: Bytes::from_static(b"given"),
            ..Default::default()
        });
    SyncGroupRequest {
        group_id: "g".into(),
        generation_id: client.generation,
        member_id: client.id.as_str().into(),
        group_instance_id: client.instance.as_deref().map(Str::from),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: assignments.collect(),
        ..Default::default()
    }
}

#[test]
fn group_settles_within_a_minute_after_faults() {
    let seeds = std::env::var("SETTLE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(150);
    let mut longest = 0;
    for seed in 1..=seeds {
        let mut world = World::new(seed);
        (0..600).for_each(|_| world.step());
        world.faults = false;
        // One closes, as a member that is stopped by its application.
        world.close(0);
        let healed = world.rig.elapsed_ms;
        while !world.is_settled() {
            world.step();
            let took = world.rig.elapsed_ms - healed;
            assert!(
                took < 60_000,
                "seed {seed} has not settled: {:?} {:#?}",
                world.rig.shard.stats(),
                world.clients
            );
        }
        longest = longest.max(world.rig.elapsed_ms - healed);
    }
    println!("the longest of {seeds} took {longest} ms");
}
