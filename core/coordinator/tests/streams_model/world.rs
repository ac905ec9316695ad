//! The world: one step at a time, whatever chance says.

use std::collections::BTreeSet;

use barnabas_base::DurationMs;
use barnabas_coordinator::{GroupConfig, GroupShard, Request, Response};
use barnabas_wire::messages::StreamsGroupDescribeRequest;
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::streams_group_describe_response::DescribedGroup;

use super::client::{Client, Tasks};
use super::group_model::{Bug, Client as _, Model, Random, World};

impl Model for World<Client> {
    fn new(seed: u64, bug: Bug) -> Self {
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
        let mut world = Self::of(config, clients, random, bug);
        world.widen("t", 2);
        world
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=54 => {
                let at = self.any();
                self.let_speak(at);
            }
            55..=69 => self.settle_some(),
            70..=74 => self.run_jobs(),
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

    /// No active task is run twice, and no process runs a task twice.
    fn check(&self) -> Result<(), String> {
        let mut active: BTreeSet<&(String, i32)> = BTreeSet::new();
        let mut by_process: BTreeSet<(&str, &(String, i32))> = BTreeSet::new();
        for client in self.clients.iter().filter(|client| client.life.is_alive) {
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

    fn come_to_rest(&mut self) -> Result<(), String> {
        self.calm_down();
        if self.is_deserted() {
            self.clients[0].start();
        }
        let width = self.width("t");
        ["r", "c"].into_iter().for_each(|topic| self.widen(topic, width));
        for _ in 0..40 {
            for at in 0..self.clients.len() {
                let client = &mut self.clients[at];
                if client.life.is_alive && client.life.asked.is_none() {
                    let (version, request) = client.speak(Bug::None);
                    self.send(at, version, request, false);
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
}

impl World<Client> {
    /// The broker makes what it is asked for.
    pub fn create(&mut self, topics: &[CreatableTopic]) {
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

    fn change_life(&mut self) {
        let at = self.any();
        let client = &mut self.clients[at];
        if !client.life.is_alive {
            client.start();
            client.life.asked_at = self.rig.elapsed_ms;
            self.let_speak(at);
            return;
        }
        if self.random.chance(30) {
            client.die();
            return;
        }
        let for_a_moment = client.instance.is_some() && self.random.chance(70);
        let (version, request) = client.leave(for_a_moment);
        self.send(at, version, request, false);
    }

    /// Every task once, and as many copies as there are other processes.
    fn all_is_run(&self, width: i32) -> Result<(), String> {
        let alive = || self.clients.iter().filter(|client| client.life.is_alive);
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
