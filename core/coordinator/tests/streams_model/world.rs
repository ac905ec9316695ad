//! The world: one step at a time, whatever chance says.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{DurationMs, ErrorCode};
use barnabas_coordinator::{BatchId, Effect, GroupConfig, GroupShard, Request, Response, Ticket};
use barnabas_wire::messages::StreamsGroupDescribeRequest;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::streams_group_describe_response::DescribedGroup;

use super::client::{Client, Tasks};
use super::rig::{Logged, Rig};
use super::{Bug, Random};

/// A client that lives is heard of at least this often.
const HEARD_OF_MS: u64 = 15_000;

pub struct World {
    pub rig: Rig,
    random: Random,
    bug: Bug,
    clients: Vec<Client>,
    /// Whose request it is, and whether the answer gets lost.
    asked: BTreeMap<Ticket, (usize, bool)>,
    next_topic: u8,
    /// What the worker called safe and has not written.
    unwritten: Vec<Vec<Logged>>,
}

impl World {
    pub fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Random(seed);
        let mut config = GroupConfig::default();
        let settings = &mut config.streams.settings.standard;
        settings.times.assignment_interval = DurationMs(if random.chance(50) { 0 } else { 1_000 });
        settings.initial_rebalance_delay = DurationMs(if random.chance(50) { 0 } else { 3_000 });
        settings.standby_replicas = random.below(3);
        config.consumer.assign_at_once_max = if random.chance(50) { 0 } else { 5_000 };
        // Small: a transition takes several batches.
        config.batch_bytes_max = if random.chance(30) { 400 } else { 1_000_000 };
        let clients = (0..6).map(|number| {
            let instance = (number < 2).then(|| format!("i{number}"));
            Client::new(number, format!("p{}", number % 3), instance)
        });
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
        world.widen("t", 2);
        world
    }

    pub fn step(&mut self) {
        match self.random.below(100) {
            0..=54 => {
                let at = self.random.below(self.clients.len());
                self.let_speak(at);
            }
            55..=69 => self.settle_some(),
            70..=74 => {
                let effects = self.rig.run_jobs();
                self.hear(effects);
            }
            75..=84 => self.pass_time(),
            85..=91 => self.change_life(),
            92..=94 => {
                let width = self.width("t");
                self.widen("t", (width + 1).min(6));
            }
            95..=97 => {
                self.rig.config.streams.settings.standard.standby_replicas = self.random.below(3);
                self.rig.shard.set_config(self.rig.config.clone());
            }
            _ => self.restart(),
        }
    }

    /// Whoever waits does not speak.
    fn let_speak(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if !client.is_alive || client.asked.is_some() {
            return;
        }
        let request = client.speak(self.bug);
        let is_lost = self.random.chance(10);
        self.send(at, request, is_lost);
    }

    fn send(&mut self, at: usize, request: Request, is_lost: bool) {
        let (ticket, effects) = self.rig.send("c", 1, request);
        let client = &mut self.clients[at];
        if client.is_alive {
            client.asked = Some(ticket);
            client.asked_at = self.rig.elapsed_ms;
        }
        self.asked.insert(ticket, (at, is_lost));
        self.hear(effects);
    }

    fn hear(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let Effect::Answer { ticket, response: Response::StreamsGroupHeartbeat(answer) } = effect else {
                continue;
            };
            let Some((at, is_lost)) = self.asked.remove(&ticket) else { continue };
            if answer.response.error_code == 0 && self.random.chance(60) {
                self.create(&answer.create);
            }
            let client = &mut self.clients[at];
            if client.asked != Some(ticket) {
                continue;
            }
            client.asked = None;
            if is_lost {
                client.hear_nothing();
            } else {
                client.hear(&answer, self.bug);
            }
        }
    }

    /// The broker makes what it is asked for.
    fn create(&mut self, topics: &[CreatableTopic]) {
        for topic in topics {
            if self.width(&topic.name) == 0 {
                self.widen(&topic.name, topic.num_partitions);
            }
        }
    }

    fn width(&self, topic: &str) -> i32 {
        self.rig.image.topics.by_name(topic).map_or(0, |topic| topic.partition_count() as i32)
    }

    fn widen(&mut self, topic: &str, partitions: i32) {
        let known = self.rig.image.topics.by_name(topic).map(|topic| topic.id.0[15]);
        let id = known.unwrap_or(self.next_topic);
        self.next_topic += u8::from(known.is_none());
        self.rig.topic(topic, id, partitions);
    }

    /// Batches become safe, or get lost.
    fn settle_some(&mut self) {
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

    fn pass_time(&mut self) {
        let now = self.rig.elapsed_ms;
        for at in 0..self.clients.len() {
            if self.clients[at].asked_at + HEARD_OF_MS < now {
                self.let_speak(at);
            }
        }
        // At times the disk takes so long that clients are told to come back.
        let newest = self.rig.pending.keys().next_back().copied();
        if let Some(newest) = newest.filter(|_| self.random.chance(80)) {
            let effects = self.rig.durable(newest);
            self.hear(effects);
        }
        let time = DurationMs(1 + self.random.below(4_000) as i64);
        self.wait(time);
    }

    fn wait(&mut self, time: DurationMs) {
        let mut all = Vec::new();
        self.rig.wait(time, |_, effects| all.extend(effects));
        self.hear(all);
    }

    fn change_life(&mut self) {
        let at = self.random.below(self.clients.len());
        let client = &mut self.clients[at];
        if !client.is_alive {
            client.start();
            client.asked_at = self.rig.elapsed_ms;
            self.let_speak(at);
            return;
        }
        if self.random.chance(30) {
            client.die();
            return;
        }
        let for_a_moment = client.instance.is_some() && self.random.chance(70);
        let request = client.leave(for_a_moment);
        self.send(at, request, false);
    }

    fn restart(&mut self) {
        if self.bug == Bug::CallsItSafe {
            let lost: Vec<Logged> = self.unwritten.drain(..).flatten().collect();
            let kept = self.rig.log.len() - lost.len().min(self.rig.log.len());
            if self.rig.log.ends_with(&lost) {
                self.rig.log.truncate(kept);
            }
        }
        let effects = self.rig.restart();
        self.hear(effects);
    }

    /// No active task is run twice, and no process runs a task twice.
    pub fn check(&self) -> Result<(), String> {
        let mut active: BTreeSet<&(String, i32)> = BTreeSet::new();
        let mut by_process: BTreeSet<(&str, &(String, i32))> = BTreeSet::new();
        for client in self.clients.iter().filter(|client| client.is_alive) {
            for task in &client.runs.active {
                if !active.insert(task) {
                    return Err(format!("{task:?} is run twice: {:?}", self.clients));
                }
            }
            let all: Tasks = [&client.runs.active, &client.runs.standby, &client.runs.warmup]
                .into_iter()
                .flatten()
                .cloned()
                .collect();
            let count = client.runs.active.len() + client.runs.standby.len() + client.runs.warmup.len();
            if all.len() != count {
                return Err(format!("{} has a task in two roles: {:?}", client.member, client.runs));
            }
            for task in [&client.runs.active, &client.runs.standby, &client.runs.warmup].into_iter().flatten()
            {
                if !by_process.insert((&client.process, task)) {
                    return Err(format!("{} runs {task:?} twice: {:?}", client.process, self.clients));
                }
            }
        }
        Ok(())
    }

    /// Nothing goes wrong any more.
    pub fn come_to_rest(&mut self) -> Result<(), String> {
        self.rig.disk_is_quick = true;
        self.rig.jobs_are_quick = true;
        if let Some(newest) = self.rig.pending.keys().next_back().copied() {
            let effects = self.rig.durable(newest);
            self.hear(effects);
        }
        let effects = self.rig.run_jobs();
        self.hear(effects);
        if !self.clients.iter().any(|client| client.is_alive) {
            self.clients[0].start();
        }
        let width = self.width("t");
        ["r", "c"].into_iter().for_each(|topic| self.widen(topic, width));
        for _ in 0..40 {
            for at in 0..self.clients.len() {
                let client = &mut self.clients[at];
                if client.is_alive && client.asked.is_none() {
                    let request = client.speak(Bug::None);
                    self.send(at, request, false);
                    self.check()?;
                }
            }
            self.wait(DurationMs(3_000));
        }
        self.check()?;
        let described = self.describe_group();
        if described.group_state != *"Stable" {
            return Err(format!("{} in the end: {described:?} {:?}", described.group_state, self.clients));
        }
        self.all_is_run(width)?;
        let fresh = self.rig.reloaded();
        let old = std::mem::replace(&mut self.rig.shard, fresh);
        let now = self.rig.now();
        let effects = self.rig.shard.activate(now);
        self.rig.carry_out(effects);
        let again = self.describe_group();
        let same = again.members == described.members
            && (again.group_epoch, again.assignment_epoch)
                == (described.group_epoch, described.assignment_epoch);
        drop::<GroupShard>(old);
        if same { Ok(()) } else { Err(format!("{described:?} and after a load {again:?}")) }
    }

    /// Every task once, and as many copies as there are other processes.
    fn all_is_run(&self, width: i32) -> Result<(), String> {
        let alive = || self.clients.iter().filter(|client| client.is_alive);
        let active: usize = alive().map(|client| client.runs.active.len()).sum();
        let copies: usize = alive().map(|client| client.runs.standby.len()).sum();
        let processes: BTreeSet<&str> = alive().map(|client| client.process.as_str()).collect();
        let standbys = self.rig.config.streams.settings.standard.standby_replicas.min(processes.len() - 1);
        let wanted = (2 * width as usize, standbys * width as usize);
        if (active, copies) == wanted {
            Ok(())
        } else {
            Err(format!("{active} tasks and {copies} copies are run, not {wanted:?}: {:?}", self.clients))
        }
    }

    fn describe_group(&mut self) -> DescribedGroup {
        let request = StreamsGroupDescribeRequest { group_ids: vec!["g".into()], ..Default::default() };
        let Response::StreamsGroupDescribe(response) =
            self.rig.ask(1, Request::StreamsGroupDescribe(request))
        else {
            panic!("another response")
        };
        response.groups.into_iter().next().expect("a group")
    }
}
