//! The cluster: nodes, network and clock in one thread. What happens next is the earliest event; all chance comes from
//! the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use barnabas_base::{BrokerId, DirectoryId, DurationMs, ErrorCode, LeaderEpoch, Offset};

use super::disk::{Stored, keys};
use super::invariants::{self, Invariant};
use super::node::{Brief, Node, endpoint, voter};
use super::plan::Plan;
use super::rng::{Rng, hash, mix};
use super::wire::{self, Versions};
use super::{DiskMistake, Failure};
use crate::raft::history::History;
use crate::raft::message::{AddVoter, RemoveVoter, ReplicaKey, Request, Response, UpdateVoter};
use crate::raft::quorum_state::QuorumState;
use crate::raft::{Effect, RoleName};
use crate::snapshot::SnapshotId;
use crate::voters::Voters;

/// Who asks for changes of voters.
const ADMIN: i32 = -100;
const LIVENESS_MS: u64 = 90_000;

#[derive(Debug, Clone)]
enum Event {
    Request { from: i32, to: i32, number: u64, body: Box<Request> },
    Response { from: i32, to: i32, number: u64, body: Option<Box<Response>> },
    Synced { node: i32, life: u32 },
    Stored { node: i32, life: u32, id: SnapshotId },
    Tick { node: i32, life: u32, at: u64 },
    Restart { node: i32 },
    Client,
    Admin,
    Fault,
}

/// What a node said, and what was on its disk then.
#[derive(Debug, Clone)]
pub struct Said {
    pub epoch: i32,
    pub durable: Option<QuorumState>,
    pub durable_end: Offset,
    pub what: What,
}

#[derive(Debug, Clone)]
pub enum What {
    Granted(ReplicaKey),
    Asked,
    Fetched(Offset),
    Other,
}

/// One node's step: what it was, what it is, what it did.
#[derive(Debug)]
pub struct Step {
    pub node: i32,
    pub before: Option<Brief>,
    pub after: Option<Brief>,
    pub said: Vec<Said>,
    pub appended: Vec<(Rc<Stored>, Option<Rc<Stored>>)>,
    /// Where the ledger ended before.
    pub ledger_from: usize,
    pub committed: Option<Offset>,
}

/// What a run amounted to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub steps: u64,
    pub simulated_ms: u64,
    pub crashes: u64,
    pub cuts: u64,
    pub pauses: u64,
    pub elections: u64,
    pub committed: u64,
    pub voter_changes: u64,
    pub snapshots_fetched: u64,
    pub truncations: u64,
    pub replaced: u64,
    /// Requests, answers, syncs, snapshots stored, ticks, others.
    pub events: [u64; 6],
}

pub struct Cluster {
    pub plan: Plan,
    versions: Versions,
    rng: Rng,
    pub now: u64,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    pub nodes: BTreeMap<i32, Node>,
    cut: BTreeSet<(i32, i32)>,
    /// Everything that was ever committed, in order. Its members are what no node may contradict.
    pub ledger: Vec<Rc<Stored>>,
    /// In which epoch each of them was committed: that of the leader, who may have got it from an earlier one.
    pub ledger_epochs: Vec<i32>,
    invariants: Vec<Box<dyn Invariant>>,
    pub hash: u64,
    pub counts: Counts,
    is_calm: bool,
    mistake: Option<DiskMistake>,
    failure: Option<String>,
    next_directory: u8,
    /// When somebody last asked for a replica to become a voter.
    asked_for: BTreeMap<ReplicaKey, u64>,
    /// Whether to print what happens: `QUORUM_TRACE=1`.
    trace: bool,
}

impl Cluster {
    pub fn new(seed: u64, mistake: Option<DiskMistake>) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::of(&mut rng);
        let versions = Versions::of(&plan, rng.next());
        let mut cluster = Self {
            rng,
            now: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            nodes: BTreeMap::new(),
            cut: BTreeSet::new(),
            ledger: Vec::new(),
            ledger_epochs: Vec::new(),
            invariants: invariants::all(),
            hash: 0,
            counts: Counts::default(),
            is_calm: false,
            mistake,
            failure: None,
            next_directory: 0,
            asked_for: BTreeMap::new(),
            trace: super::number("QUORUM_TRACE").is_some(),
            versions,
            plan,
        };
        cluster.format();
        cluster
    }

    fn directory(&mut self) -> DirectoryId {
        self.next_directory += 1;
        DirectoryId::from_random([self.next_directory; 16])
    }

    fn format(&mut self) {
        let Plan { voters, spares, brokers, dynamic, .. } = self.plan;
        let directories: Vec<DirectoryId> =
            (0..voters + spares + brokers).map(|_| self.directory()).collect();
        let with = |id: i32| {
            let directory = if dynamic { directories[id as usize - 1] } else { DirectoryId::ZERO };
            voter(id, directory)
        };
        let first = Voters::new((1..=voters).map(with));
        for id in 1..=voters + spares + brokers {
            let formatted = if dynamic {
                let mut history = History::new(Voters::default());
                let known = (id <= voters).then(|| first.clone());
                history.reset(Offset::ZERO, 1, known);
                history
            } else {
                History::new(first.clone())
            };
            let node = Node::new(id, directories[id as usize - 1], formatted, id <= voters + spares);
            self.nodes.insert(id, node);
            self.at(0, Event::Restart { node: id });
        }
        self.after(self.plan.client_every, Event::Client);
        self.after(self.plan.fault_every, Event::Fault);
        if dynamic {
            self.after(self.plan.admin_every, Event::Admin);
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((time.max(self.now), self.sequence), event);
    }

    fn after(&mut self, delay: u64, event: Event) {
        self.at(self.now + delay, event);
    }

    /// Breaks things for a while and then stops: everything must stay safe, and then get well.
    pub fn run(&mut self) -> Result<(), Failure> {
        self.run_until(self.plan.safety_ms, |_| false)?;
        self.calm();
        let end = self.now + LIVENESS_MS;
        let mut target = 0;
        let is_well = |cluster: &Self| cluster.is_well();
        self.run_until(end, |cluster| {
            if target == 0 && is_well(cluster) {
                target = cluster.ledger.len() + 5;
            }
            target > 0 && cluster.ledger.len() >= target && is_well(cluster)
        })?;
        self.counts.simulated_ms = self.now;
        if self.now >= end {
            return Err(self.fails(format!("liveness: not well after {LIVENESS_MS} ms\n{}", self.describe())));
        }
        Ok(())
    }

    fn run_until(&mut self, end: u64, mut is_done: impl FnMut(&Self) -> bool) -> Result<(), Failure> {
        while let Some((&(time, _), _)) = self.queue.first_key_value() {
            if time >= end {
                break;
            }
            let Some((_, event)) = self.queue.pop_first() else { break };
            self.now = time;
            self.take(event);
            self.counts.steps += 1;
            if let Some(failure) = self.failure.take() {
                return Err(self.fails(failure));
            }
            if self.counts.steps.is_multiple_of(16) && is_done(self) {
                return Ok(());
            }
        }
        self.now = end;
        Ok(())
    }

    fn fails(&self, what: String) -> Failure {
        Failure { what, at: self.now, steps: self.counts.steps }
    }

    fn take(&mut self, event: Event) {
        let kind = match &event {
            Event::Request { .. } => 0,
            Event::Response { .. } => 1,
            Event::Synced { .. } => 2,
            Event::Stored { .. } => 3,
            Event::Tick { .. } => 4,
            _ => 5,
        };
        self.counts.events[kind] += 1;
        let target = match &event {
            Event::Request { to, .. } | Event::Response { to, .. } => Some(*to),
            Event::Synced { node, .. } | Event::Stored { node, .. } | Event::Tick { node, .. } => Some(*node),
            Event::Restart { .. } | Event::Client | Event::Admin | Event::Fault => None,
        };
        let paused = target.and_then(|id| self.nodes.get(&id)).map_or(0, |node| node.paused_until);
        if paused > self.now {
            self.at(paused, event);
            return;
        }
        match event {
            Event::Request { from, to, number, body } => self.deliver(from, to, number, *body),
            Event::Response { from, to, number, body } => {
                let body = body.map(|body| *body);
                self.step(to, |node, now| {
                    let raft = node.raft.as_mut().expect("it is up");
                    raft.response(BrokerId(from), number, body, now).unwrap();
                });
            }
            Event::Synced { node, life } => self.synced(node, life),
            Event::Stored { node, life, id } => self.stored(node, life, id),
            Event::Tick { node, life, at } => {
                // An earlier one may have taken its place.
                if self.nodes[&node].life == life && self.nodes[&node].tick_at == Some(at) {
                    self.step(node, |node, now| {
                        node.tick_at = None;
                        node.raft.as_mut().expect("it is up").tick(now).unwrap();
                    });
                }
            }
            Event::Restart { node } => self.restart(node),
            Event::Client => self.client(),
            Event::Admin => self.admin(),
            Event::Fault => self.fault(),
        }
    }

    fn deliver(&mut self, from: i32, to: i32, number: u64, body: Request) {
        if !self.nodes.contains_key(&to) {
            return;
        }
        if self.nodes[&to].raft.is_none() {
            self.reply(to, from, number, None);
            return;
        }
        if body == Request::ApiVersions {
            let answer = Response::ApiVersions { error: ErrorCode::None, kraft: Some((0, 1)) };
            self.reply(to, from, number, Some(answer));
            return;
        }
        self.step(to, |node, now| {
            node.next_ticket += 1;
            let ticket = node.next_ticket;
            node.tickets.insert(ticket, (from, number));
            node.raft.as_mut().expect("it is up").request(ticket, body, now).unwrap();
        });
    }

    fn synced(&mut self, id: i32, life: u32) {
        if self.nodes[&id].life != life || self.nodes[&id].raft.is_none() {
            return;
        }
        self.step(id, |node, now| {
            node.syncing = false;
            let end = node.disk.sync();
            node.raft.as_mut().expect("it is up").synced(end, now).unwrap();
        });
    }

    fn stored(&mut self, id: i32, life: u32, snapshot: SnapshotId) {
        if self.nodes[&id].life != life || self.nodes[&id].raft.is_none() {
            return;
        }
        self.counts.snapshots_fetched += 1;
        self.step(id, |node, now| {
            let size = node.disk.store(snapshot);
            node.raft.as_mut().expect("it is up").snapshot_stored(snapshot, Some(size), now).unwrap();
        });
    }

    /// Lets a node do something, carries out what follows, and asks every invariant.
    fn step(&mut self, id: i32, act: impl FnOnce(&mut Node, crate::node::Now)) {
        let time = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.raft.is_none() {
            return;
        }
        let mut step = Step {
            node: id,
            before: node.brief(),
            after: None,
            said: Vec::new(),
            appended: Vec::new(),
            ledger_from: self.ledger.len(),
            committed: None,
        };
        let now = node.now(time);
        act(node, now);
        self.carry_out(id, &mut step);
        self.finish(step);
    }

    fn finish(&mut self, mut step: Step) {
        let id = step.node;
        let node = &self.nodes[&id];
        step.after = node.brief();
        let time = self.now;
        if let Some(after) = &step.after {
            let text = (after.epoch as u64) << 32 ^ after.high_watermark.0 as u64 ^ (after.role as u64) << 60;
            self.hash = mix(self.hash, mix(time, text ^ (id as u64) << 52 ^ (after.log_end.0 as u64) << 16));
            let was_leader = step.before.as_ref().is_some_and(|before| before.role == RoleName::Leader);
            self.counts.elections += u64::from(after.role == RoleName::Leader && !was_leader);
        }
        let mut invariants = std::mem::take(&mut self.invariants);
        for invariant in &mut invariants {
            if let Err(what) = invariant.check(self, &step)
                && self.failure.is_none()
            {
                self.failure = Some(format!("{}: {what}", invariant.name()));
            }
        }
        self.invariants = invariants;
        self.plan_tick(id);
    }

    fn plan_tick(&mut self, id: i32) {
        let time = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let now = node.now(time);
        let Some(at) = node.raft.as_ref().and_then(|raft| raft.next_tick(now)) else { return };
        let at = node.global_time(at).max(time + 1);
        if node.tick_at.is_none_or(|known| known > at || known <= time) {
            node.tick_at = Some(at);
            let life = node.life;
            self.at(at, Event::Tick { node: id, life, at });
        }
    }

    fn carry_out(&mut self, id: i32, step: &mut Step) {
        loop {
            let Some(raft) = self.nodes.get_mut(&id).and_then(|node| node.raft.as_mut()) else { return };
            let effects = raft.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                if self.plan.crash_within > 0 && self.rng.below(1_000_000) < self.plan.crash_within {
                    self.crash(id);
                    return;
                }
                self.carry_out_one(id, effect, step);
            }
        }
    }

    fn carry_out_one(&mut self, id: i32, effect: Effect, step: &mut Step) {
        if self.trace && !matches!(effect, Effect::SnapshotPiece { .. }) {
            println!("{} node {id}: {effect:?}", self.now);
        }
        let mistake = self.mistake;
        let node = self.nodes.get_mut(&id).expect("it is there");
        match effect {
            Effect::Persist { state, kraft_version } => {
                let forgets = mistake == Some(DiskMistake::ForgetsState)
                    || (mistake == Some(DiskMistake::ForgetsVotes) && state.voted.is_some());
                if !forgets {
                    node.disk.state = Some(state.to_text(kraft_version));
                }
            }
            Effect::Append(batch) => {
                let stored = Stored::new(&batch);
                let before = node.disk.view.batches.back().cloned();
                node.disk.append(&stored);
                node.batches_since_snapshot += 1;
                step.appended.push((stored, before));
                self.plan_sync(id);
            }
            Effect::Truncate(end) => {
                self.counts.truncations += 1;
                node.disk.truncate(end);
                self.plan_sync(id);
            }
            Effect::RestartLog(snapshot) => node.disk.restart(snapshot.end),
            Effect::SnapshotPiece { id: snapshot, position, bytes } => {
                node.disk.piece(snapshot, position, &bytes);
            }
            Effect::StoreSnapshot(snapshot) => {
                let life = node.life;
                let delay = self.rng.between(0, 20);
                self.after(delay, Event::Stored { node: id, life, id: snapshot });
            }
            Effect::Leader(_) => {}
            Effect::Committed(end) => self.committed(id, end, step),
            Effect::Send { to, endpoint, number, request } => {
                let what = match &request {
                    Request::Vote(vote) if !vote.pre_vote => What::Asked,
                    Request::Fetch(fetch) => What::Fetched(fetch.from),
                    _ => What::Other,
                };
                if let Some(epoch) = epoch_of_request(&request) {
                    self.say(id, epoch, what, step);
                }
                let to_id = if to.get() < 0 { i32::from(endpoint.port) - 9000 } else { to.get() };
                self.send_request(id, to.get(), to_id, number, request);
            }
            Effect::Answer { ticket, response, read } => {
                let granted = matches!(&response, Response::Vote { granted: true, .. });
                let voted = node.raft.as_ref().and_then(|raft| raft.voted()).filter(|_| granted);
                if let Some(epoch) = epoch_of_response(&response) {
                    self.say(id, epoch, voted.map_or(What::Other, What::Granted), step);
                }
                self.answer(id, ticket, response, read);
            }
        }
    }

    fn say(&mut self, id: i32, epoch: LeaderEpoch, what: What, step: &mut Step) {
        let node = &self.nodes[&id];
        let durable = node.disk.state.as_deref().map(|text| QuorumState::parse(text).unwrap());
        let durable_end = node.disk.durable.end();
        step.said.push(Said { epoch: epoch.get(), durable, durable_end, what });
    }

    fn plan_sync(&mut self, id: i32) {
        let slow = self.rng.permille(self.plan.slow_sync) && !self.is_calm;
        let delay = if slow { self.rng.between(50, 900) } else { self.rng.between(0, 4) };
        let node = self.nodes.get_mut(&id).expect("it is there");
        if self.mistake == Some(DiskMistake::SyncsNothing) {
            let end = node.disk.view.end();
            let now = node.now(self.now);
            node.raft.as_mut().expect("it is up").synced(end, now).unwrap();
            return;
        }
        if node.syncing {
            return;
        }
        node.syncing = true;
        let life = node.life;
        self.after(delay, Event::Synced { node: id, life });
    }

    /// A node calls everything below `end` committed: that goes into the ledger, for all time.
    fn committed(&mut self, id: i32, end: Offset, step: &mut Step) {
        step.committed = Some(end);
        let node = &self.nodes[&id];
        let known = self.ledger.last().map_or(Offset::ZERO, |last| last.end);
        if end <= known {
            return;
        }
        let view = &node.disk.view;
        if view.start > known {
            self.failure = Some(format!("node {id} commits up to {end} what nobody committed: {known}"));
            return;
        }
        let new: Vec<Rc<Stored>> =
            view.batches.iter().filter(|batch| batch.base >= known && batch.end <= end).cloned().collect();
        self.counts.committed += new.len() as u64;
        let epoch = node.raft.as_ref().map_or(0, |raft| raft.epoch().get());
        self.ledger_epochs.extend(new.iter().map(|_| epoch));
        self.ledger.extend(new);
    }

    fn delay(&mut self) -> u64 {
        let max = if self.is_calm { 5 } else { self.plan.delay_max };
        // Now and then one takes much longer than the others: that is what reorders.
        let long = self.rng.permille(30) && !self.is_calm;
        self.rng.between(0, if long { max * 10 } else { max })
    }

    fn is_lost(&mut self, from: i32, to: i32) -> bool {
        self.cut.contains(&(from, to)) || (!self.is_calm && self.rng.permille(self.plan.loss))
    }

    fn send_request(&mut self, from: i32, named: i32, to: i32, number: u64, body: Request) {
        let copies = if !self.is_calm && self.rng.permille(self.plan.duplicates) { 2 } else { 1 };
        // The answer's sender is whom the request named: an address without an id stays one.
        let number = (number << 8) | (named as u64 & 0xff);
        let Some(body) = wire::request(body, self.versions) else {
            let event = Event::Response {
                from: named,
                to: from,
                number: number >> 8,
                body: Some(Box::new(wire::no_word())),
            };
            self.after(1, event);
            return;
        };
        for _ in 0..copies {
            if !self.is_lost(from, to) {
                let delay = self.delay();
                self.after(delay, Event::Request { from, to, number, body: Box::new(body.clone()) });
            }
        }
    }

    fn answer(&mut self, id: i32, ticket: u64, response: Response, read: Option<crate::raft::Read>) {
        use crate::raft::Read;
        let node = self.nodes.get_mut(&id).expect("it is there");
        let Some((to, number)) = node.tickets.remove(&ticket) else {
            self.failure = Some(format!("node {id} answers ticket {ticket} twice, or nobody asked"));
            return;
        };
        let response = match read {
            None => response,
            Some(Read::Log { from, end, bytes_max }) => response.fill(node.disk.read(from, end, bytes_max)),
            Some(Read::Snapshot { id, position, bytes_max }) => {
                let Some(bytes) = node.disk.snapshots.get(&id) else { return };
                let from = position as usize;
                let end = (from + bytes_max as usize).min(bytes.len());
                let piece = bytes.slice(from..end);
                response.fill(piece)
            }
        };
        if to == ADMIN {
            let ok = matches!(
                response,
                Response::AddVoter { error: ErrorCode::None, .. }
                    | Response::RemoveVoter { error: ErrorCode::None, .. }
            );
            self.counts.voter_changes += u64::from(ok);
            return;
        }
        let response = wire::response(response, self.versions);
        self.reply(id, to, number, Some(response));
    }

    fn reply(&mut self, from: i32, to: i32, number: u64, body: Option<Response>) {
        if self.is_lost(from, to) {
            return;
        }
        let named = i32::from((number & 0xff) as u8 as i8);
        let delay = self.delay();
        let copies = if !self.is_calm && self.rng.permille(self.plan.duplicates) { 2 } else { 1 };
        for _ in 0..copies {
            let body = body.clone().map(Box::new);
            self.after(delay, Event::Response { from: named, to, number: number >> 8, body });
        }
    }

    fn restart(&mut self, id: i32) {
        let everyone: Vec<i32> =
            self.nodes.values().filter(|node| node.is_controller).map(|node| node.id).collect();
        let seed = self.rng.next();
        let time = self.now;
        let node = self.nodes.get_mut(&id).expect("it is there");
        if node.raft.is_some() {
            return;
        }
        node.life += 1;
        node.syncing = false;
        node.tick_at = None;
        let past = node.disk.past(&node.formatted);
        let config = node.config(&self.plan, seed, &everyone);
        let now = node.now(time);
        node.raft = Some(crate::raft::Raft::new(config, past, now).unwrap());
        let mut step = Step {
            node: id,
            before: None,
            after: None,
            said: Vec::new(),
            appended: Vec::new(),
            ledger_from: self.ledger.len(),
            committed: None,
        };
        self.carry_out(id, &mut step);
        self.finish(step);
    }

    fn crash(&mut self, id: i32) {
        let node = self.nodes.get_mut(&id).expect("it is there");
        if node.raft.take().is_none() {
            return;
        }
        self.counts.crashes += 1;
        if self.trace {
            println!("{} node {id} crashes", self.now);
        }
        node.tickets.clear();
        node.disk.crash(&mut self.rng);
        node.life += 1;
        let delay = if self.is_calm { 10 } else { self.rng.between(5, 2_500) };
        self.after(delay, Event::Restart { node: id });
    }

    fn client(&mut self) {
        let ids: Vec<i32> = self.nodes.keys().copied().collect();
        for id in ids {
            let records = self.rng.between(1, 3);
            let every = self.plan.snapshot_every;
            self.step(id, |node, now| {
                node.write(records, now);
                if every > 0 && node.batches_since_snapshot >= every && node.snapshot(now).is_some() {
                    node.batches_since_snapshot = 0;
                }
            });
        }
        let delay = self.rng.between(1, self.plan.client_every * 2);
        self.after(delay, Event::Client);
    }

    /// Somebody adds, removes or moves a voter, or gives up a node that is none for one with an empty disk.
    fn admin(&mut self) {
        let delay = self.rng.between(1, self.plan.admin_every * 2);
        self.after(delay, Event::Admin);
        if self.is_calm {
            return;
        }
        let leaders = self.nodes.values().filter(|node| node.raft.as_ref().is_some_and(|raft| raft.leads()));
        let leaders: Vec<i32> = leaders.map(|node| node.id).collect();
        let controllers: Vec<i32> =
            self.nodes.values().filter(|node| node.is_controller).map(|node| node.id).collect();
        let (Some(leader), Some(target)) = (self.rng.pick(&leaders), self.rng.pick(&controllers)) else {
            return;
        };
        let voter = self.nodes[&target].key();
        let timeout = DurationMs(1_000);
        let raft = self.nodes[&leader].raft.as_ref().expect("it leads");
        let votes = keys(raft.voters()).contains(&voter);
        let request = match self.rng.below(12) {
            0..=7 if votes => Request::RemoveVoter(RemoveVoter { voter }),
            0..=8 => Request::AddVoter(AddVoter {
                voter,
                endpoints: vec![endpoint(target)],
                ack_when_committed: self.rng.permille(700),
                timeout,
            }),
            9 => Request::RemoveVoter(RemoveVoter { voter }),
            10 => {
                let epoch = self.nodes[&leader].raft.as_ref().expect("it leads").epoch();
                let endpoints = vec![endpoint(target)];
                Request::UpdateVoter(UpdateVoter { epoch, voter, endpoints, kraft_min: 0, kraft_max: 1 })
            }
            _ => return self.replace(target),
        };
        if matches!(request, Request::AddVoter(_)) {
            self.asked_for.insert(voter, self.now);
        }
        self.deliver(ADMIN, leader, 0, request);
    }

    /// A node that nobody takes for a voter comes back with an empty disk, as another replica.
    fn replace(&mut self, id: i32) {
        let key = self.nodes[&id].key();
        let names = |node: &Node| {
            let of_log = node.disk.view.batches.iter().chain(&node.disk.durable.batches);
            let in_log = of_log.filter_map(|batch| batch.voters.as_ref()).any(|voters| voters.contains(&key));
            let known = node.raft.as_ref().is_some_and(|raft| keys(raft.voters()).contains(&key));
            in_log || known || keys(node.formatted.voters()).contains(&key)
        };
        // Somebody may be about to make it one: an operator does not throw a disk away then.
        let asked = self.asked_for.get(&key).is_some_and(|&at| at + 4_000 > self.now);
        let joins = self.plan.auto_join && self.nodes[&id].is_controller;
        if asked || joins || self.nodes.values().any(names) || self.nodes[&id].raft.is_none() {
            return;
        }
        self.counts.replaced += 1;
        self.crash(id);
        let directory = self.directory();
        let mut formatted = History::new(Voters::default());
        formatted.reset(Offset::ZERO, 1, None);
        let node = self.nodes.get_mut(&id).expect("it is there");
        let life = node.life;
        *node = Node::new(id, directory, formatted, node.is_controller);
        node.life = life;
    }

    fn fault(&mut self) {
        let delay = self.rng.between(1, self.plan.fault_every * 2);
        self.after(delay, Event::Fault);
        if self.is_calm {
            return;
        }
        let ids: Vec<i32> = self.nodes.keys().copied().collect();
        let mut draw = self.rng.below(self.plan.faults.iter().sum());
        let mut kind = 0;
        for (at, &weight) in self.plan.faults.iter().enumerate() {
            kind = at;
            if draw < weight {
                break;
            }
            draw -= weight;
        }
        match kind {
            0 => {
                // Leaders crash more often than their share: that is where it hurts.
                let leader =
                    self.nodes.values().find(|node| node.raft.as_ref().is_some_and(|raft| raft.leads()));
                let leader = leader.map(|node| node.id).filter(|_| self.rng.permille(400));
                if let Some(id) = leader.or_else(|| self.rng.pick(&ids)) {
                    self.crash(id);
                }
            }
            1 => self.cut_off(&ids),
            2 => self.cut.clear(),
            _ => {
                self.counts.pauses += 1;
                let until = self.now + self.rng.between(50, 2_000);
                if let Some(node) = self.rng.pick(&ids).and_then(|id| self.nodes.get_mut(&id)) {
                    node.paused_until = until;
                }
            }
        }
    }

    /// Two sides, one node by itself, or single links, both ways or one.
    fn cut_off(&mut self, ids: &[i32]) {
        self.counts.cuts += 1;
        let one_way = self.rng.permille(400);
        let shape = self.rng.below(3);
        let alone = self.rng.pick(ids).unwrap_or(1);
        for &a in ids {
            for &b in ids {
                let apart = match shape {
                    0 => {
                        hash(&[a as u8, self.counts.cuts as u8]) % 2
                            != hash(&[b as u8, self.counts.cuts as u8]) % 2
                    }
                    1 => (a == alone) != (b == alone),
                    _ => self.rng.permille(250),
                };
                if a < b && apart {
                    self.cut.insert((a, b));
                    if !one_way {
                        self.cut.insert((b, a));
                    }
                }
            }
        }
    }

    /// The end of all faults.
    fn calm(&mut self) {
        self.is_calm = true;
        self.cut.clear();
        self.plan.crash_within = 0;
        for node in self.nodes.values_mut() {
            node.paused_until = 0;
        }
    }

    /// One leader, and everybody has what it has.
    fn is_well(&self) -> bool {
        let leads = |node: &&Node| node.raft.as_ref().is_some_and(|raft| raft.leads());
        let mut leaders = self.nodes.values().filter(leads);
        let (Some(leader), None) = (leaders.next(), leaders.next()) else { return false };
        let raft = leader.raft.as_ref().expect("it leads");
        let epoch = raft.epoch();
        let floor = self.ledger.len().checked_sub(3).map_or(Offset::ZERO, |at| self.ledger[at].base);
        self.nodes.values().all(|node| {
            let Some(raft) = &node.raft else { return false };
            raft.epoch() == epoch && raft.high_watermark() >= floor
        })
    }

    fn describe(&self) -> String {
        let mut text = format!("{:?}\nledger {:?}\n", self.plan, self.ledger.last().map(|last| last.end));
        for node in self.nodes.values() {
            let voters = node.raft.as_ref().map(|raft| keys(raft.voters()));
            let voters: Vec<i32> = voters.unwrap_or_default().iter().map(|key| key.id.get()).collect();
            text += &format!("{} {:?} voters {voters:?}\n", node.id, node.brief());
        }
        text
    }
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.simulated_ms += other.simulated_ms;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.pauses += other.pauses;
        self.elections += other.elections;
        self.committed += other.committed;
        self.voter_changes += other.voter_changes;
        self.snapshots_fetched += other.snapshots_fetched;
        self.truncations += other.truncations;
        self.replaced += other.replaced;
        self.events.iter_mut().zip(other.events).for_each(|(mine, other)| *mine += other);
    }
}

fn epoch_of_request(request: &Request) -> Option<LeaderEpoch> {
    match request {
        Request::Vote(vote) => Some(vote.epoch),
        Request::BeginEpoch(begin) => Some(begin.epoch),
        Request::EndEpoch(end) => Some(end.epoch),
        Request::Fetch(fetch) => Some(fetch.epoch),
        Request::FetchSnapshot(fetch) => Some(fetch.epoch),
        Request::UpdateVoter(update) => Some(update.epoch),
        Request::AddVoter(_) | Request::RemoveVoter(_) | Request::ApiVersions => None,
    }
}

fn epoch_of_response(response: &Response) -> Option<LeaderEpoch> {
    match response {
        Response::Vote { head, .. }
        | Response::BeginEpoch(head)
        | Response::EndEpoch(head)
        | Response::UpdateVoter(head) => Some(head.epoch),
        Response::Fetch(fetched) => Some(fetched.head.epoch),
        Response::FetchSnapshot(fetched) => Some(fetched.head.epoch),
        _ => None,
    }
}
