//! What the models of consumer and streams groups share: clients of one group, and what happens to them and to the
//! broker, in an order that chance decides. The sequence follows from the seed.

use std::collections::BTreeMap;
use std::fmt::Debug;

use barnabas_base::{DurationMs, ErrorCode};
use barnabas_coordinator::{BatchId, Effect, GroupConfig, Request, Response, Ticket};
use barnabas_metadata::Image;

use crate::rig::{Logged, Rig};

/// A client that runs sends a request at least this often.
const HEARD_OF_MS: u64 = 15_000;

/// What is wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A client says that it has given up what it has not.
    SaysItIsGone,
    /// The worker calls batches safe that get lost when it stops.
    CallsItSafe,
}

/// SplitMix64.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        (barnabas_base::split_mix_64(&mut self.0) % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// One seed's world.
pub trait Model {
    fn new(seed: u64, bug: Bug) -> Self;
    fn step(&mut self);
    /// What must hold after every step.
    fn check(&self) -> Result<(), String>;
    /// Nothing goes wrong any more.
    fn come_to_rest(&mut self) -> Result<(), String>;
}

fn run<M: Model>(seed: u64, bug: Bug) -> Result<(), String> {
    let mut world = M::new(seed, bug);
    for _ in 0..200 {
        world.step();
        world.check()?;
    }
    if bug == Bug::None { world.come_to_rest() } else { Ok(()) }
}

/// Every world comes to rest: 300 of them, or as many as the variable says.
pub fn check_seeds<M: Model>(variable: &str) {
    let seeds = std::env::var(variable).ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
    for seed in 0..seeds {
        match std::panic::catch_unwind(|| run::<M>(seed, Bug::None)) {
            Ok(Ok(())) => {}
            Ok(Err(what)) => panic!("seed {seed}: {what}"),
            Err(_) => panic!("seed {seed} panics"),
        }
    }
}

/// Whether one of so many worlds with the bug shows it.
pub fn is_found<M: Model>(bug: Bug, seeds: u64) -> bool {
    (0..seeds).any(|seed| run::<M>(seed, bug).is_err())
}

/// Whether a client runs, and what it waits for.
#[derive(Debug, Clone, Default)]
pub struct Life {
    pub is_alive: bool,
    /// The request that it waits for.
    pub asked: Option<Ticket>,
    pub asked_at: u64,
}

pub trait Client: Debug + Sized {
    fn life(&self) -> &Life;
    fn life_mut(&mut self) -> &mut Life;

    /// Its next request, in a version.
    fn speak(&mut self, bug: Bug) -> (i16, Request);

    fn hear(&mut self, response: Response, image: &Image, bug: Bug);

    /// Its answer did not arrive.
    fn hear_nothing(&mut self);

    /// Whether its answers may get lost.
    fn may_miss(&self) -> bool {
        true
    }

    /// An answer has left the broker.
    fn seen(_: &mut World<Self>, _: &Response) {}
}

pub struct World<C> {
    pub rig: Rig,
    pub random: Random,
    pub bug: Bug,
    pub clients: Vec<C>,
    /// Whose request it is, and whether the answer gets lost.
    asked: BTreeMap<Ticket, (usize, bool)>,
    pub next_topic: u8,
    /// What the worker called safe and has not written.
    unwritten: Vec<Vec<Logged>>,
}

impl<C: Client> World<C> {
    pub fn of(config: GroupConfig, clients: impl Iterator<Item = C>, random: Random, bug: Bug) -> Self {
        let mut world = Self {
            rig: Rig::new(config),
            clients: clients.collect(),
            random,
            bug,
            asked: BTreeMap::new(),
            next_topic: 1,
            unwritten: Vec::new(),
        };
        world.rig.disk_is_quick = false;
        world.rig.jobs_are_quick = false;
        world
    }

    pub fn any(&mut self) -> usize {
        self.random.below(self.clients.len())
    }

    pub fn is_deserted(&self) -> bool {
        !self.clients.iter().any(|client| client.life().is_alive)
    }

    /// A client that waits does not speak.
    pub fn let_speak(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if !client.life().is_alive || client.life().asked.is_some() {
            return;
        }
        let (version, request) = client.speak(self.bug);
        let is_lost = client.may_miss() && self.random.chance(10);
        self.send(at, version, request, is_lost);
    }

    pub fn send(&mut self, at: usize, version: i16, request: Request, is_lost: bool) {
        let (ticket, effects) = self.rig.send(&format!("c{at}"), version, request);
        let life = self.clients[at].life_mut();
        if life.is_alive {
            life.asked = Some(ticket);
            life.asked_at = self.rig.elapsed_ms;
        }
        self.asked.insert(ticket, (at, is_lost));
        self.hear(effects);
    }

    pub fn hear(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Effect::Answer { ticket, response } = effect else { continue };
            let Some((at, is_lost)) = self.asked.remove(&ticket) else { continue };
            C::seen(self, &response);
            let client = &mut self.clients[at];
            if client.life().asked != Some(ticket) {
                continue;
            }
            client.life_mut().asked = None;
            if is_lost {
                client.hear_nothing();
            } else {
                client.hear(response, &self.rig.image, self.bug);
            }
        }
    }

    /// Batches become safe, or get lost.
    pub fn settle_some(&mut self) {
        let Some(first) = self.rig.pending.keys().next().copied() else { return };
        let effects = if self.random.chance(15) {
            let pending: Vec<BatchId> = self.rig.pending.keys().copied().collect();
            let lost = pending[self.random.below(pending.len())];
            self.rig.fail(lost, ErrorCode::NotEnoughReplicas)
        } else {
            let through = BatchId(first.0 + self.random.below(4) as u64);
            if self.bug == Bug::CallsItSafe {
                let safe = self.rig.pending.range(..=through).map(|(_, records)| records.clone());
                self.unwritten.extend(safe);
            }
            self.rig.durable(through)
        };
        self.hear(effects);
    }

    pub fn run_jobs(&mut self) {
        let effects = self.rig.run_jobs();
        self.hear(effects);
    }

    pub fn pass_time(&mut self) {
        let now = self.rig.elapsed_ms;
        for at in 0..self.clients.len() {
            if self.clients[at].life().asked_at + HEARD_OF_MS < now {
                self.let_speak(at);
            }
        }
        // At times the disk takes so long that clients are told to come back.
        if self.random.chance(80) {
            self.all_durable();
        }
        let time = DurationMs(1 + self.random.below(4_000) as i64);
        self.wait(time);
    }

    fn all_durable(&mut self) {
        if let Some(newest) = self.rig.pending.keys().next_back().copied() {
            let effects = self.rig.durable(newest);
            self.hear(effects);
        }
    }

    pub fn wait(&mut self, time: DurationMs) {
        let mut all = Vec::new();
        self.rig.wait(time, |_, effects| all.extend(effects));
        self.hear(all);
    }

    pub fn restart(&mut self) {
        if self.bug == Bug::CallsItSafe {
            let lost: usize = self.unwritten.drain(..).map(|records| records.len()).sum();
            let kept = self.rig.log.len().saturating_sub(lost);
            self.rig.log.truncate(kept);
        }
        let effects = self.rig.restart();
        self.hear(effects);
    }

    /// From now on nothing is late, and nothing gets lost.
    pub fn calm_down(&mut self) {
        self.rig.disk_is_quick = true;
        self.rig.jobs_are_quick = true;
        self.all_durable();
        self.run_jobs();
    }
}
