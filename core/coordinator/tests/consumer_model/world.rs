//! The world: one step at a time, whatever chance says.

use std::collections::BTreeMap;

use barnabas_base::{DurationMs, Uuid};
use barnabas_coordinator::{Effect, GroupConfig, GroupShard, Request, Response, Ticket};
use barnabas_wire::messages::consumer_group_describe_response::DescribedGroup;
use barnabas_wire::messages::{ConsumerGroupDescribeRequest, DescribeGroupsRequest};

use super::client::{Client, Partitions};
use super::group_model::{Bug, Client as _, Model, Random, World};

const TOPICS: [&str; 2] = ["t", "u"];

impl Model for World<Client> {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Random(seed);
        let mut config = GroupConfig { initial_rebalance_delay: DurationMs(0), ..GroupConfig::default() };
        config.consumer.times.standard.assignment_interval =
            DurationMs(if random.chance(50) { 0 } else { 1_000 });
        config.consumer.assign_at_once_max = if random.chance(50) { 0 } else { 5_000 };
        // Small: a transition takes several batches. A classic group of six still goes into one, as it must.
        config.batch_bytes_max = if random.chance(30) { 1_500 } else { 1_000_000 };
        let clients = (0..6).map(|number| {
            let instance = (number < 2).then(|| format!("i{number}"));
            Client::new(number, false, instance)
        });
        let mut world = Self::of(config, clients, random, bug);
        world.grow("t");
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
            92..=94 => self.change_topics(),
            95..=97 => {
                let at = self.any();
                let both = self.random.chance(50);
                let client = &mut self.clients[at];
                client.topics = if both { TOPICS.to_vec() } else { vec![TOPICS[at % 2]] };
                client.is_full = true;
            }
            _ => self.restart(),
        }
    }

    /// Nobody reads what another reads.
    fn check(&self) -> Result<(), String> {
        let mut readers: BTreeMap<(Uuid, i32), usize> = BTreeMap::new();
        for client in &self.clients {
            for partition in &client.reads {
                if let Some(other) = readers.insert(*partition, client.number) {
                    let (topic, partition) = (partition.0.0[15], partition.1);
                    return Err(format!("{other} and {} both read {topic}-{partition}", client.number));
                }
            }
        }
        Ok(())
    }

    fn come_to_rest(&mut self) -> Result<(), String> {
        self.calm_down();
        let mut said = String::new();
        // Longer than a member that is gone can be waited for: a session, and the rebalance that it holds up.
        for _ in 0..400 {
            for at in 0..self.clients.len() {
                if self.clients[at].life.is_alive && self.clients[at].life.asked.is_none() {
                    let (version, request) = self.clients[at].speak(self.bug);
                    self.send(at, version, request, false);
                }
            }
            self.wait(DurationMs(1_000));
            self.check()?;
            said = match self.unrest() {
                None => return self.reloaded_says_the_same(),
                Some(said) => said,
            };
        }
        Err(format!("no rest: {said}"))
    }
}

impl World<Client> {
    fn change_life(&mut self) {
        let at = self.any();
        let client = &mut self.clients[at];
        if !client.life.is_alive {
            let is_classic = client.instance.is_none() && self.random.chance(40);
            self.clients[at].start(is_classic);
            self.clients[at].life.asked_at = self.rig.elapsed_ms;
            self.let_speak(at);
            return;
        }
        if self.random.chance(30) || client.member.is_empty() {
            client.die();
            return;
        }
        let for_a_moment = client.instance.is_some() && self.random.chance(70);
        let (version, request) = client.leave(for_a_moment);
        self.send(at, version, request, false);
    }

    fn change_topics(&mut self) {
        let topic = TOPICS[self.random.below(2)];
        if self.rig.image.topics.by_name(topic).is_some() && self.random.chance(30) {
            self.rig.delete_topic(topic);
        } else {
            self.grow(topic);
        }
    }

    fn grow(&mut self, topic: &'static str) {
        let known = self.rig.image.topics.by_name(topic);
        let (id, partitions) = match known {
            Some(known) => (known.id.0[15], known.partition_count() as i32),
            None => (self.next_topic, 0),
        };
        self.next_topic += u8::from(known.is_none());
        if partitions < 8 {
            self.rig.topic(topic, id, partitions + 1 + self.random.below(3) as i32);
        }
    }

    /// What is not as it is to be in the end.
    fn unrest(&mut self) -> Option<String> {
        if self.is_deserted() {
            return None;
        }
        // A classic group's leader looks for topics that have grown; the one here does not.
        if self.described().is_none() {
            let state = self.classic_state();
            return (state != "Stable").then(|| format!("the classic group is {state}"));
        }
        let alive: Vec<&Client> = self.clients.iter().filter(|client| client.life.is_alive).collect();
        let mut wanted = Partitions::new();
        for topic in self.rig.image.topics.iter() {
            if alive.iter().any(|client| client.topics.contains(&topic.name.as_str())) {
                wanted.extend((0..topic.partition_count() as i32).map(|each| (topic.id, each)));
            }
        }
        let reads: Partitions = alive.iter().flat_map(|client| client.reads.iter().copied()).collect();
        if reads != wanted {
            return Some(format!("{reads:?} are read, not {wanted:?}: {:#?}", self.clients));
        }
        let state = self.described().map_or_else(String::new, |group| group.group_state.to_string());
        (state != "Stable").then(|| format!("the group is {state}"))
    }

    fn described(&mut self) -> Option<DescribedGroup> {
        described(self.rig.ask(1, describe_consumer()))
    }

    fn classic_state(&mut self) -> String {
        let describe = DescribeGroupsRequest { groups: vec!["g".into()], ..Default::default() };
        match self.rig.ask(5, Request::DescribeGroups(describe)) {
            Response::DescribeGroups(told) => told.groups[0].group_state.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn reloaded_says_the_same(&mut self) -> Result<(), String> {
        // Where nobody lives, nobody has had a target made for topics that have grown.
        if self.is_deserted() {
            return Ok(());
        }
        let Some(lived) = self.described() else { return Ok(()) };
        let mut reloaded: GroupShard = self.rig.reloaded();
        let now = self.rig.now();
        let effects = reloaded.activate(now);
        if !effects.is_empty() {
            return Err(format!("what is loaded has something to put right: {effects:?}"));
        }
        let caller = barnabas_coordinator::Caller {
            client_id: "r",
            client_host: "/127.0.0.1",
            version: 1,
            ..barnabas_coordinator::Caller::default()
        };
        let effects = reloaded.handle(&caller, describe_consumer(), Ticket(u64::MAX), now);
        let loaded = effects.into_iter().find_map(|effect| match effect {
            Effect::Answer { response, .. } => described(response),
            _ => None,
        });
        if loaded.as_ref() == Some(&lived) { Ok(()) } else { Err(format!("{lived:?}\nloaded: {loaded:?}")) }
    }
}

fn describe_consumer() -> Request {
    let group_ids = vec!["g".into()];
    Request::ConsumerGroupDescribe(ConsumerGroupDescribeRequest { group_ids, ..Default::default() })
}

/// `None`: there is no such consumer group.
fn described(response: Response) -> Option<DescribedGroup> {
    let Response::ConsumerGroupDescribe(mut told) = response else { panic!("no description") };
    told.groups.pop().filter(|group| group.error_code == 0)
}
