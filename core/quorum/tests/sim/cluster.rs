//! The cluster: nodes, network and clock in one thread. What happens next is the earliest event; all chance comes from
//! the seed.

mod effects;
mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use barnabas_base::{BrokerId, DirectoryId, ErrorCode, Offset};

use super::counts::Counts;
use super::disk::{Stored, keys};
use super::invariants::{self, Invariant};
use super::node::{Brief, Clock, Node, voter};
use super::plan::Plan;
use super::rng::{Rng, mix};
use super::wire::Versions;
use super::{DiskMistake, Failure};
use crate::SnapshotId;
use crate::raft::RoleName;
use crate::raft::membership::history::History;
use crate::raft::message::{ReplicaKey, Request, Response};
use crate::raft::state::quorum_state::QuorumState;
use crate::voters::Voters;

/// Who asks for changes of voters.
const ADMIN: i32 = -100;
const LIVENESS_MS: u64 = 90_000;

#[derive(Debug, Clone)]
enum Event {
    Request {
        from: i32,
        to: i32,
        number: u64,
        body: Box<Request>,
    },
    Response {
        from: i32,
        to: i32,
        number: u64,
        body: Option<Box<Response>>,
    },
    Synced {
        node: i32,
        life: u32,
    },
    Stored {
        node: i32,
        life: u32,
        id: SnapshotId,
    },
    Tick {
        node: i32,
        life: u32,
        at: u64,
    },
    Restart {
        node: i32,
    },
    /// A connection to `peer` is closed, and no new one comes about.
    Closed {
        node: i32,
        peer: i32,
    },
    /// The end of a clean stop, during which a leader has resigned.
    Stop {
        node: i32,
        life: u32,
    },
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
    /// Nodes that never come back.
    dead: BTreeSet<i32>,
    mistake: Option<DiskMistake>,
    failure: Option<String>,
    next_directory: u8,
    /// When an operator last asked for a replica to become a voter.
    asked_for: BTreeMap<ReplicaKey, u64>,
    /// Whether to print what happens: `QUORUM_TRACE=1`.
    trace: bool,
}

impl Cluster {
    pub fn new(seed: u64, mistake: Option<DiskMistake>) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::of(&mut rng);
        Self::with(plan, rng, mistake)
    }

    pub fn with(plan: Plan, mut rng: Rng, mistake: Option<DiskMistake>) -> Self {
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
            dead: BTreeSet::new(),
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
            let wall_off_ms = self.rng.between(0, 20_000_000) as i64 - 10_000_000;
            let clock = Clock { rate: self.rng.between(950, 1_050), wall_off_ms };
            let is_controller = id <= voters + spares;
            let node = Node::new(id, directories[id as usize - 1], formatted, is_controller, clock);
            self.nodes.insert(id, node);
            self.at(0, Event::Restart { node: id });
        }
        self.after(self.plan.client_every, Event::Client);
        self.after(self.plan.fault_every, Event::Fault);
        if dynamic || self.plan.raises {
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

    /// Kills the leader, whose connections break with it or not. Returns how long nothing was committed, in ms.
    pub fn kill_leader(&mut self, is_heard: bool) -> Result<u64, Failure> {
        self.run_until(self.plan.safety_ms, |_| false)?;
        let leads = |node: &&Node| node.raft.as_ref().is_some_and(|raft| raft.leads());
        let Some(leader) = self.nodes.values().find(leads).map(|node| node.id) else {
            return Err(self.fails("no leader".to_owned()));
        };
        self.dead.insert(leader);
        let (killed, before) = (self.now, self.ledger_epochs.last().copied());
        self.crash_heard(leader, is_heard);
        self.run_until(killed + LIVENESS_MS, |cluster| cluster.ledger_epochs.last().copied() > before)?;
        Ok(self.now - killed)
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
            if self.counts.steps.is_multiple_of(4) && is_done(self) {
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
            Event::Closed { node, .. } | Event::Stop { node, .. } => Some(*node),
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
            Event::Stop { node, life } if self.nodes[&node].life == life => self.crash(node),
            Event::Stop { .. } => {}
            Event::Closed { node, peer } => {
                if self.trace {
                    println!("{} node {node} sees that node {peer} is gone", self.now);
                }
                self.step(node, |node, now| {
                    node.raft.as_mut().expect("it is up").leader_is_gone(BrokerId(peer), now).unwrap();
                });
            }
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
        let fails = !self.is_calm && self.rng.permille(50);
        self.step(id, |node, now| {
            let size = (!fails).then(|| node.disk.store(snapshot));
            node.raft.as_mut().expect("it is up").snapshot_stored(snapshot, size, now).unwrap();
        });
    }

    /// Lets a node do something, carries out what follows, and asks every invariant.
    fn step(&mut self, id: i32, act: impl FnOnce(&mut Node, crate::Now)) {
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
        let Some(at) = node.raft.as_ref().and_then(|raft| raft.next_tick()) else { return };
        let at = node.global_time(at).max(time + 1);
        if node.tick_at.is_none_or(|known| known > at || known <= time) {
            node.tick_at = Some(at);
            let life = node.life;
            self.at(at, Event::Tick { node: id, life, at });
        }
    }

    fn restart(&mut self, id: i32) {
        let everyone: Vec<i32> =
            self.nodes.values().filter(|node| node.is_controller).map(|node| node.id).collect();
        let seed = self.rng.next();
        let time = self.now;
        let node = self.nodes.get_mut(&id).expect("it is there");
        if node.raft.is_some() || self.dead.contains(&id) {
            return;
        }
        node.life += 1;
        node.syncing = false;
        node.tick_at = None;
        let past = node.disk.past(&node.formatted);
        let mut config = node.config(&self.plan, seed, &everyone);
        // Another release than before, now and then: a voter whose record must change.
        config.me.kraft_max = if seed.is_multiple_of(8) { 2 } else { 1 };
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

    /// One leader, and everybody who lives has what it has.
    fn is_well(&self) -> bool {
        let leads = |node: &&Node| node.raft.as_ref().is_some_and(|raft| raft.leads());
        let mut leaders = self.nodes.values().filter(leads);
        let (Some(leader), None) = (leaders.next(), leaders.next()) else { return false };
        let raft = leader.raft.as_ref().expect("it leads");
        let epoch = raft.epoch();
        let floor = self.ledger.len().checked_sub(3).map_or(Offset::ZERO, |at| self.ledger[at].base);
        self.nodes.values().filter(|node| !self.dead.contains(&node.id)).all(|node| {
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
