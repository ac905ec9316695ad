//! The world: time, what goes wrong in it, and whom it concerns.

use barnabas_base::{BrokerId, ErrorCode, MonotonicMs, Offset};

use super::client::Client;
use super::controller::Controller;
use super::invariants::{Judge, View, Violation};
use super::network::{Letter, Message, Network};
use super::node::{Around, Event, Node};
use super::{Place, Random, Trace};

const BAD_STEPS: usize = 700;
const CALM_STEPS: usize = 2500;

/// What one day came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day {
    pub trace: Trace,
    pub acked: usize,
    pub shown: Offset,
    pub faults: usize,
    pub leader_epochs: i32,
    pub cuts: usize,
    pub heals: usize,
}

pub(super) struct World {
    random: Random,
    now: MonotonicMs,
    nodes: Vec<Node>,
    controller: Controller,
    clients: Vec<Client>,
    network: Network,
    judge: Judge,
    trace: Trace,
    deleted_to: Offset,
    faults: usize,
    cuts: usize,
    heals: usize,
    /// Somebody else leads for a while, and the former leader does not hear of it: until when, who, instead of whom.
    interregnum: Option<(MonotonicMs, BrokerId, BrokerId)>,
    /// Tells everything as it happens.
    pub is_told: bool,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x00ba_dda9);
        let count = 3 + random.below(3) as i32;
        let ids: Vec<BrokerId> = (1..=count).map(BrokerId).collect();
        let min_in_sync = if random.one_in(5) { 1 } else { 2 };
        let mut world = Self {
            random,
            now: MonotonicMs(1000),
            nodes: ids.iter().map(|&id| Node::new(id)).collect(),
            controller: Controller::new(ids, min_in_sync),
            clients: (0..2).map(Client::new).collect(),
            network: Network::default(),
            judge: Judge::default(),
            trace: Trace(0xcbf2_9ce4_8422_2325),
            deleted_to: Offset::ZERO,
            faults: 0,
            cuts: 0,
            heals: 0,
            interregnum: None,
            is_told: false,
        };
        (0..world.nodes.len()).for_each(|at| world.start(at).expect("invariant: nothing has happened yet"));
        world
    }

    /// A world in which leaders are elected at the price of records, and any disk may go.
    pub fn reckless(seed: u64) -> Self {
        let mut world = Self::new(seed);
        world.controller.is_reckless = true;
        world.judge.is_reckless = true;
        world
    }

    /// A bad day, then a calm one.
    pub fn run(mut self) -> Result<Day, Violation> {
        for _ in 0..BAD_STEPS {
            self.nemesis()?;
            self.step()?;
        }
        self.network.heal();
        self.network.is_calm = true;
        self.clients.iter_mut().for_each(|client| client.is_done = true);
        let mut rests = Err("the calm has not begun".to_owned());
        for step in 0..CALM_STEPS {
            for at in 0..self.nodes.len() {
                if self.nodes[at].running.is_none() {
                    self.start(at)?;
                }
            }
            self.step()?;
            if step % 50 == 49 {
                rests = self.judge.at_rest(&self.view());
                if rests.is_ok() {
                    break;
                }
            }
        }
        rests.map_err(|why| format!("no rest: {why}"))?;
        let state = self.controller.now();
        Ok(Day {
            trace: self.trace,
            acked: self.judge.acked(),
            shown: self.judge.shown_end(),
            faults: self.faults,
            leader_epochs: state.leader_epoch.0,
            cuts: self.cuts,
            heals: self.heals,
        })
    }

    fn view(&self) -> View<'_> {
        let Self { nodes, controller, clients, deleted_to, .. } = self;
        View { nodes, controller, clients, deleted_to: *deleted_to }
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.now.0 += 1 + self.random.below(4);
        let known = self.controller.states.len();
        while let Some(letter) = self.network.receive(self.now) {
            self.deliver(letter)?;
        }
        for at in 0..self.nodes.len() {
            self.watch(at);
            if self.hears_of_metadata(at) {
                let newest = self.controller.states.len() - 1;
                self.act(at, |node, around| node.learn(newest, around))?;
            }
            self.act(at, Node::tick)?;
        }
        for at in 0..self.clients.len() {
            self.client(at);
        }
        if self.is_told {
            self.controller.states[known..].iter().for_each(|state| println!("{} {state:?}", self.now.0));
        }
        Ok(())
    }

    /// Whether a node learns what is new now.
    fn hears_of_metadata(&mut self, at: usize) -> bool {
        let node = &self.nodes[at];
        let is_behind =
            node.running.as_ref().is_some_and(|running| running.seen + 1 < self.controller.states.len());
        let is_cut = self.network.is_cut(Place::Controller, Place::Node(node.id));
        is_behind && !is_cut && self.random.one_in(8)
    }

    /// The controller sees who lives.
    fn watch(&mut self, at: usize) {
        let node = &self.nodes[at];
        let id = node.id;
        let is_cut = self.network.is_cut(Place::Node(id), Place::Controller);
        let is_heard = node.running.is_some() && !is_cut;
        let is_fenced = self.controller.now().registered(id).is_none();
        if is_heard && is_fenced && self.random.one_in(15) {
            self.controller.unfence(id);
        } else if !is_heard && !is_fenced && self.random.one_in(30) {
            self.controller.fence(id);
        }
    }

    /// In a new life, whose registration is the first that it knows of the cluster.
    fn start(&mut self, at: usize) -> Result<(), Violation> {
        let node = &mut self.nodes[at];
        let life = self.controller.register(node.id, !node.is_hollow);
        node.is_hollow = false;
        let newest = self.controller.states.len() - 1;
        node.start(life, newest);
        self.judge.restarted(node.id);
        self.act(at, |node, around| node.learn(newest, around))
    }

    /// Lets a node act, sends what it has to say, and judges.
    fn act(&mut self, at: usize, act: impl FnOnce(&mut Node, &mut Around<'_>)) -> Result<(), Violation> {
        let (mut out, mut events) = (Vec::new(), Vec::new());
        let Self { random, controller, nodes, now, .. } = self;
        let mut around = Around {
            now: *now,
            random,
            out: &mut out,
            events: &mut events,
            states: &controller.states,
            min_in_sync: controller.min_in_sync,
        };
        act(&mut nodes[at], &mut around);
        let id = nodes[at].id;
        for letter in out {
            self.network.send(&mut self.random, self.now, letter);
        }
        if self.is_told {
            self.tell(at, &events);
        }
        for event in &events {
            self.note(id, event);
            let Self { nodes, controller, clients, deleted_to, .. } = self;
            let view = View { nodes, controller, clients, deleted_to: *deleted_to };
            self.judge.happened(id, event, &view)?;
        }
        Ok(())
    }

    fn tell(&self, at: usize, events: &[Event]) {
        let Some(running) = &self.nodes[at].running else { return };
        for event in events {
            let (id, partition) = (self.nodes[at].id, &running.partition);
            println!(
                "{} node {id} life {} epoch {} [{}..{}..{}] {event:?}",
                self.now.0,
                running.life,
                partition.leader_epoch(),
                partition.high_watermark(),
                partition.durable_end(),
                partition.log_end(),
            );
        }
    }

    fn note(&mut self, id: BrokerId, event: &Event) {
        let (kind, value) = match event {
            Event::Acked { base, .. } => (1, base.0),
            Event::HighWatermark(to) => (2, to.0),
            Event::Truncated { to, .. } => {
                self.cuts += 1;
                (3, to.0)
            }
            Event::Leads => (4, 0),
            Event::Healed { to } => {
                self.heals += 1;
                (5, to.0)
            }
        };
        self.trace.note(self.now.0);
        self.trace.note(id.0 as u64 * 8 + kind);
        self.trace.note(value as u64);
    }

    fn deliver(&mut self, letter: Letter) -> Result<(), Violation> {
        self.trace.note(self.now.0);
        if self.is_told {
            println!("{} {:?} -> {:?} {:?}", self.now.0, letter.from, letter.to, letter.message);
        }
        match (letter.to, letter.message) {
            (Place::Node(id), message) => {
                let at = self.nodes.iter().position(|node| node.id == id);
                let letter = Letter { message, ..letter };
                at.map_or(Ok(()), |at| self.act(at, |node, around| node.receive(letter, around)))
            }
            (Place::Controller, Message::AlterIsr { life, change }) => {
                let Place::Node(id) = letter.from else { return Ok(()) };
                let answer = self.controller.alter(id, life, &change);
                let message = Message::IsrAltered { number: change.number, answer };
                let reply = Letter { from: Place::Controller, to: letter.from, message };
                self.network.send(&mut self.random, self.now, reply);
                Ok(())
            }
            (Place::Client(at), Message::Produced { attempt, answer }) => {
                self.clients[at].answered(attempt, answer);
                Ok(())
            }
            (Place::Client(at), Message::Records { batches, end }) => {
                self.judge.read(&batches, end)?;
                self.clients[at].reads_from = batches.last().map_or(Offset::ZERO, super::Batch::end);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn client(&mut self, at: usize) {
        let anybody = BrokerId(1 + self.random.below(self.nodes.len() as u64) as i32);
        let leader = self.controller.now().leader.filter(|_| !self.random.one_in(6)).unwrap_or(anybody);
        let client = &mut self.clients[at];
        client.produce(&mut self.random);
        let batches = client.due(self.now);
        let from = Place::Client(at);
        if !batches.is_empty() {
            let letter = Letter { from, to: Place::Node(leader), message: Message::Produce { batches } };
            self.network.send(&mut self.random, self.now, letter);
        }
        if self.random.one_in(6) {
            let message = Message::Read { from: self.clients[at].reads_from };
            self.network.send(&mut self.random, self.now, Letter { from, to: Place::Node(anybody), message });
        }
    }

    fn nemesis(&mut self) -> Result<(), Violation> {
        self.end_interregnum();
        if !self.random.one_in(9) {
            return Ok(());
        }
        self.faults += 1;
        let at = self.random.below(self.nodes.len() as u64) as usize;
        let id = self.nodes[at].id;
        let fault = self.random.below(20);
        if self.is_told {
            println!("{} fault {fault} at {id}", self.now.0);
        }
        match fault {
            0 | 1 => self.nodes[at].crash(&mut self.random),
            2..=5 => {
                if self.nodes[at].running.is_none() {
                    self.start(at)?;
                }
            }
            6 => {
                // The process alone: it is back at once, before anybody has noticed.
                self.nodes[at].crash(&mut self.random);
                self.start(at)?;
            }
            7 if self.may_lose_disk(id) => {
                // Back at once: while nobody knows what is lost, others may be let go because of this one.
                self.nodes[at].lose_disk();
                self.start(at)?;
            }
            8 => self.controller.fence(id),
            9 => self.controller.move_leader(id),
            10 | 11 => self.cut(id),
            12 | 13 => self.network.heal(),
            14 => self.delete_records(at)?,
            // Twice: a leader that does not compare epochs (`SkipsTheEpochCheck`) mostly does no harm, as divergence is found by the epochs of
            // batches. A fetch must be of another term of the same leader, which then counts on what has been cut off since.
            15 | 16 => self.begin_interregnum(id),
            17 | 18 => {
                // One copy at a time: of two that are eligible to lead each waits for the other one to be in sync, for good.
                if !self.nodes.iter().any(|node| node.id != id && node.is_damaged()) {
                    self.nodes[at].find_damage(&mut self.random);
                }
            }
            _ => {
                // An old word again.
                let old = self.random.below(self.controller.states.len() as u64) as usize;
                self.act(at, |node, around| {
                    if node.running.as_ref().is_some_and(|running| old <= running.seen) {
                        node.learn(old, around);
                    }
                })?;
            }
        }
        Ok(())
    }

    fn begin_interregnum(&mut self, other: BrokerId) {
        let state = self.controller.now();
        let Some(leader) = state.leader.filter(|&leader| leader != other) else { return };
        if self.interregnum.is_some() || !state.in_sync.contains(&other) {
            return;
        }
        self.network.cut(Place::Controller, Place::Node(leader));
        self.controller.move_leader(other);
        let until = MonotonicMs(self.now.0 + 30 + self.random.below(120));
        self.interregnum = Some((until, other, leader));
    }

    fn end_interregnum(&mut self) {
        let Some((_, other, leader)) = self.interregnum.take_if(|(until, ..)| *until <= self.now) else {
            return;
        };
        if self.random.one_in(2) {
            self.controller.fence(other);
        }
        self.controller.move_leader(leader);
        self.network.heal();
    }

    fn cut(&mut self, id: BrokerId) {
        let other = BrokerId(1 + self.random.below(self.nodes.len() as u64) as i32);
        let other = if self.random.one_in(3) { Place::Controller } else { Place::Node(other) };
        let (one, other) =
            if self.random.one_in(2) { (Place::Node(id), other) } else { (other, Place::Node(id)) };
        self.network.cut(one, other);
        if self.random.one_in(2) {
            self.network.cut(other, one);
        }
    }

    /// Whether somebody is left who has everything that was acknowledged.
    fn may_lose_disk(&self, id: BrokerId) -> bool {
        let state = self.controller.now();
        if self.controller.is_reckless {
            return true;
        }
        let counts = |node: &&Node| state.in_sync.contains(&node.id) || state.eligible.contains(&node.id);
        self.nodes.iter().filter(counts).any(|node| node.id != id && !node.is_hollow)
    }

    /// A client deletes what is old; what producers may send again stays.
    fn delete_records(&mut self, at: usize) -> Result<(), Violation> {
        let settled = self.clients.iter().map(|client| client.settled).min().unwrap_or_default();
        let mut deleted = Ok(Offset::ZERO);
        self.act(at, |node, around| {
            let Some(running) = &mut node.running else { return };
            let to = settled.min(running.partition.high_watermark());
            let mut effects = Vec::new();
            deleted =
                running.partition.delete_records(Some(to), &mut effects).map_err(|refusal| refusal.code());
            node.carry_out(effects, around);
        })?;
        let known: Result<Offset, ErrorCode> = deleted;
        self.deleted_to = known.map_or(self.deleted_to, |deleted| deleted.max(self.deleted_to));
        Ok(())
    }
}
