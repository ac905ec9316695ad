//! Random lives of partitions under the real controller: brokers come, go, are fenced, restart clean and unclean;
//! leaders say who is in sync; replicas are moved, and moved back. Every record is judged against the state before it.
//!
//! What is judged: a leader is alive and in sync; nobody gets in sync but by its leader's word, or as the one that was
//! eligible and leads now, or by an unclean election where one is allowed, or as whoever led last when nobody else is
//! left; a damaged replica gets in sync by its leader's word only if it was eligible; who is eligible was in sync;
//! replicas change only where a request asked for it. In the end, with all brokers back, every partition has what was
//! asked for, and who should lead does.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod world;

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{BrokerId, ErrorCode, PartitionIndex, Uuid};
use barnabas_metadata::MetadataVersion;
use barnabas_quorum::batches::{Content, read_batch};
use barnabas_quorum::controller::impaired::said::Impairments;
use barnabas_wire::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::*;
use barnabas_wire::records::batches;
use barnabas_wire::{MetadataRecord, RequestBody, ResponseBody, Str};
use world::{Event, World, draw, registration};

const BROKERS: i32 = 5;
const TOPICS: [&str; 3] = ["a", "b", "c"];
const PARTITIONS: usize = 2;
const STEPS: usize = 250;
const SEEDS: u64 = 60;

/// What the last request may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Nothing but what time and brokers bring.
    Other,
    /// A leader spoke of this partition.
    Alter(Uuid, i32),
    /// A request asked for other replicas of it, or for the old ones.
    Move(Uuid, i32),
    ElectUnclean,
}

/// A partition as its records say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    replicas: Vec<i32>,
    isr: Vec<i32>,
    elr: Vec<i32>,
    adding: Vec<i32>,
    removing: Vec<i32>,
    leader: i32,
    leader_epoch: i32,
}

struct Life {
    world: World,
    seed: u64,
    states: BTreeMap<(Uuid, i32), State>,
    names: BTreeMap<Uuid, String>,
    active: BTreeSet<i32>,
    min_isr: BTreeMap<String, usize>,
    may_be_unclean: BTreeSet<String>,
    /// The copies that each broker's heartbeats call damaged.
    damaged: BTreeMap<i32, BTreeSet<(Uuid, i32)>>,
    life: u8,
    changes: usize,
    completed: usize,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.format(MetadataVersion::LATEST);
        world.start().unwrap();
        world.sync();
        world.events.clear();
        let mut life = Self {
            world,
            seed,
            states: BTreeMap::new(),
            names: BTreeMap::new(),
            active: BTreeSet::from([1]),
            min_isr: BTreeMap::new(),
            may_be_unclean: BTreeSet::new(),
            damaged: BTreeMap::new(),
            life: 1,
            changes: 0,
            completed: 0,
        };
        for id in 2..=BROKERS {
            life.register(id, true);
            life.heartbeat(id, false, false);
        }
        for name in TOPICS {
            life.create(name);
        }
        life
    }

    fn below(&mut self, end: usize) -> usize {
        (draw(&mut self.seed) % end as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One to `most` brokers, each once.
    fn some_brokers(&mut self, most: usize) -> Vec<i32> {
        let mut all: Vec<i32> = (1..=BROKERS).collect();
        let count = 1 + self.below(most);
        (0..count).map(|_| all.remove((draw(&mut self.seed) % all.len() as u64) as usize)).collect()
    }

    fn ask(&mut self, act: Act, request: impl Into<RequestBody>, version: i16) -> ResponseBody {
        let response = self.world.answer(request, version);
        self.judge_all(act);
        response
    }

    fn image(&self) -> &barnabas_metadata::Image {
        self.world.node.as_ref().unwrap().working_image()
    }

    fn epoch(&self, id: i32) -> i64 {
        self.image().cluster.broker(BrokerId(id)).map_or(-1, |broker| broker.epoch.get())
    }

    fn register(&mut self, id: i32, is_clean: bool) {
        self.life += 1;
        self.damaged.remove(&id);
        let mut request = registration(id, self.life, &[id as u8], None);
        request.previous_broker_epoch = if is_clean { self.epoch(id) } else { -1 };
        self.ask(Act::Other, request, 4);
    }

    fn heartbeat(&mut self, id: i32, want_fence: bool, want_shut_down: bool) {
        let damaged = self.damaged.get(&id).into_iter().flatten();
        let partitions = damaged.map(|&(topic, index)| (topic, PartitionIndex(index))).collect();
        let mut request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: self.epoch(id),
            current_metadata_offset: 1_000_000,
            want_fence,
            want_shut_down,
            ..BrokerHeartbeatRequest::default()
        };
        Impairments { partitions, ..Impairments::default() }.write(&mut request.unknown_tagged_fields);
        self.ask(Act::Other, request, 1);
    }

    /// Time passes; who is not fenced goes on sending heartbeats, but for one.
    fn wait(&mut self, seconds: usize, without: i32) {
        for _ in 0..seconds {
            self.world.tick(1000);
            self.world.sync();
            self.judge_all(Act::Other);
            let unfenced = self.image().cluster.brokers().filter(|broker| !broker.fenced);
            let ids: Vec<i32> = unfenced.map(|broker| broker.id.get()).collect();
            for id in ids.into_iter().filter(|&id| id != 1 && id != without) {
                self.heartbeat(id, false, false);
            }
        }
    }

    fn create(&mut self, name: &str) {
        let replica = |index: usize, step: usize| 1 + ((index + step) as i32) % BROKERS;
        let assignments = (0..PARTITIONS).map(|index| CreatableReplicaAssignment {
            partition_index: index as i32,
            broker_ids: (0..3).map(|step| replica(index, step)).collect(),
            ..CreatableReplicaAssignment::default()
        });
        let topic = CreatableTopic {
            name: Str::from(name),
            num_partitions: -1,
            replication_factor: -1,
            assignments: assignments.collect(),
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..Default::default() };
        self.min_isr.insert(name.to_owned(), 1);
        self.ask(Act::Other, request, 7);
        let min = 1 + self.below(2);
        self.set(name, "min.insync.replicas", &min.to_string());
    }

    fn set(&mut self, topic: &str, key: &str, value: &str) {
        use incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
        match key {
            "min.insync.replicas" => {
                self.min_isr.insert(topic.to_owned(), value.parse().unwrap());
            }
            _ if value == "true" => {
                self.may_be_unclean.insert(topic.to_owned());
            }
            _ => {
                self.may_be_unclean.remove(topic);
            }
        }
        let config =
            AlterableConfig { name: Str::from(key), value: Some(Str::from(value)), ..Default::default() };
        let resource = AlterConfigsResource {
            resource_type: 2,
            resource_name: Str::from(topic),
            configs: vec![config],
            ..Default::default()
        };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        self.ask(Act::Other, request, 1);
    }

    fn a_partition(&mut self) -> ((Uuid, i32), State) {
        let at = self.below(self.states.len());
        let (key, state) = self.states.iter().nth(at).unwrap();
        (*key, state.clone())
    }

    /// The leader says that these are in sync. Now and then it speaks of a state that is past.
    fn alter(&mut self, key: (Uuid, i32), state: &State, isr: &[i32]) -> ErrorCode {
        use alter_partition_request::{BrokerState, PartitionData, TopicData};
        let past = i32::from(self.one_in(12));
        // A ClearElr counts as a change of each partition that had any.
        let known = self.image().topics.by_id(key.0).unwrap().partition(PartitionIndex(key.1)).unwrap();
        let partition_epoch = known.partition_epoch.get() - past;
        let member =
            |&id: &i32| BrokerState { broker_id: id, broker_epoch: self.epoch(id), ..BrokerState::default() };
        let partition = PartitionData {
            partition_index: key.1,
            leader_epoch: state.leader_epoch,
            partition_epoch,
            new_isr_with_epochs: isr.iter().map(member).collect(),
            ..PartitionData::default()
        };
        let topic = TopicData { topic_id: key.0, partitions: vec![partition], ..TopicData::default() };
        let request = AlterPartitionRequest {
            broker_id: state.leader,
            broker_epoch: self.epoch(state.leader),
            topics: vec![topic],
            ..AlterPartitionRequest::default()
        };
        let ResponseBody::AlterPartition(response) = self.ask(Act::Alter(key.0, key.1), request, 3) else {
            panic!("another answer");
        };
        let partition = response.topics.first().and_then(|topic| topic.partitions.first());
        ErrorCode::from_code(partition.map_or(response.error_code, |partition| partition.error_code))
    }

    fn move_to(&mut self, key: (Uuid, i32), replicas: Option<Vec<i32>>) {
        use alter_partition_reassignments_request::{ReassignablePartition, ReassignableTopic};
        let partition = ReassignablePartition { partition_index: key.1, replicas, ..Default::default() };
        let name = Str::from(&self.names[&key.0]);
        let topic = ReassignableTopic { name, partitions: vec![partition], ..Default::default() };
        let request = AlterPartitionReassignmentsRequest {
            topics: vec![topic],
            allow_replication_factor_change: true,
            ..Default::default()
        };
        self.ask(Act::Move(key.0, key.1), request, 1);
    }

    fn elect(&mut self, key: (Uuid, i32), is_unclean: bool) {
        let topic = TopicPartitions {
            topic: Str::from(&self.names[&key.0]),
            partitions: vec![key.1],
            ..Default::default()
        };
        let request = ElectLeadersRequest {
            election_type: i8::from(is_unclean),
            topic_partitions: Some(vec![topic]),
            ..Default::default()
        };
        self.ask(if is_unclean { Act::ElectUnclean } else { Act::Other }, request, 2);
    }

    fn step(&mut self) {
        let id = 2 + self.below(BROKERS as usize - 1) as i32;
        let (key, state) = self.a_partition();
        let name = self.names[&key.0].clone();
        match self.below(21) {
            20 => {
                let damaged = self.damaged.entry(id).or_default();
                if !damaged.remove(&key) {
                    damaged.insert(key);
                }
                self.heartbeat(id, false, false);
            }
            0 | 1 => self.heartbeat(id, true, false),
            2..=4 => self.heartbeat(id, false, false),
            5 => self.heartbeat(id, false, true),
            6 => {
                self.wait(10, id);
                let is_clean = self.one_in(2);
                self.register(id, is_clean);
            }
            7..=13 if state.leader >= 0 => {
                let replicas = state.replicas.clone();
                let isr: Vec<i32> =
                    replicas.into_iter().filter(|&id| id == state.leader || !self.one_in(3)).collect();
                self.alter(key, &state, &isr);
            }
            14 | 15 => {
                let target = self.some_brokers(4);
                self.move_to(key, Some(target));
            }
            16 => self.move_to(key, None),
            17 => {
                let is_unclean = self.one_in(3);
                self.elect(key, is_unclean);
            }
            18 => {
                let allows = self.one_in(4);
                self.set(&name, "unclean.leader.election.enable", if allows { "true" } else { "false" });
            }
            _ => {
                let min = 1 + self.below(3);
                self.set(&name, "min.insync.replicas", &min.to_string());
            }
        }
    }

    // What is judged.

    fn judge_all(&mut self, act: Act) {
        for event in std::mem::take(&mut self.world.events) {
            let Event::Append(batch) = event else { continue };
            for read in batches(batch.bytes.clone()) {
                let Content::Records(records) = read_batch(&read.unwrap()).unwrap() else { continue };
                records.iter().for_each(|record| self.judge(act, record));
            }
        }
    }

    fn judge(&mut self, act: Act, record: &MetadataRecord) {
        match record {
            MetadataRecord::Topic(topic) => {
                self.names.insert(topic.topic_id, topic.name.to_string());
            }
            MetadataRecord::Partition(new) => {
                let state = State {
                    replicas: new.replicas.clone(),
                    isr: new.isr.clone(),
                    leader: new.leader,
                    leader_epoch: new.leader_epoch,
                    ..State::default()
                };
                self.states.insert((new.topic_id, new.partition_id), state);
            }
            MetadataRecord::RegisterBroker(broker) => {
                self.active.remove(&broker.broker_id);
            }
            MetadataRecord::BrokerRegistrationChange(change) => {
                if change.fenced > 0 || change.in_controlled_shutdown > 0 {
                    self.active.remove(&change.broker_id);
                } else if change.fenced < 0 {
                    self.active.insert(change.broker_id);
                }
            }
            MetadataRecord::ClearElr(clear) => {
                let of_all = clear.topic_name.is_empty();
                for (key, state) in &mut self.states {
                    if of_all || self.names[&key.0] == *clear.topic_name {
                        state.elr.clear();
                    }
                }
            }
            MetadataRecord::PartitionChange(change) => self.judge_change(act, change),
            _ => {}
        }
    }

    fn judge_change(&mut self, act: Act, change: &PartitionChangeRecord) {
        self.changes += 1;
        let key = (change.topic_id, change.partition_id);
        let old = self.states[&key].clone();
        let mut new = old.clone();
        let take = |list: &mut Vec<i32>, value: &Option<Vec<i32>>| {
            if let Some(value) = value {
                list.clone_from(value);
            }
        };
        take(&mut new.replicas, &change.replicas);
        take(&mut new.isr, &change.isr);
        take(&mut new.elr, &change.eligible_leader_replicas);
        take(&mut new.adding, &change.adding_replicas);
        take(&mut new.removing, &change.removing_replicas);
        if change.leader != -2 {
            (new.leader, new.leader_epoch) = (change.leader, old.leader_epoch + 1);
        }
        let why = format!("{act:?}: {change:?}\nbefore {old:?}\nafter {new:?}\nactive {:?}", self.active);
        self.judge_sets(&key, &new, &why);
        self.judge_members(act, &key, &old, &new, &why);
        self.judge_replicas(act, &key, &old, &new, &why);
        self.states.insert(key, new);
    }

    fn judge_sets(&self, key: &(Uuid, i32), new: &State, why: &str) {
        let is_set = |list: &[i32]| list.iter().collect::<BTreeSet<_>>().len() == list.len();
        let within = |list: &[i32]| is_set(list) && list.iter().all(|id| new.replicas.contains(id));
        assert!(!new.replicas.is_empty() && is_set(&new.replicas), "replicas: {why}");
        assert!(within(&new.isr) && within(&new.elr), "in sync and eligible are replicas: {why}");
        assert!(within(&new.adding) && within(&new.removing), "who comes and goes are replicas: {why}");
        assert!(new.elr.iter().all(|id| !new.isr.contains(id)), "eligible is not in sync: {why}");
        let min = self.min_isr[&self.names[&key.0]].min(new.replicas.len());
        assert!(
            new.elr.is_empty() || new.isr.len() < min,
            "no replica is eligible while enough are in sync: {why}"
        );
    }

    fn judge_members(&self, act: Act, key: &(Uuid, i32), old: &State, new: &State, why: &str) {
        if new.leader >= 0 {
            assert!(new.isr.contains(&new.leader), "a leader is in sync: {why}");
        }
        if new.leader >= 0 && new.leader != old.leader {
            assert!(self.active.contains(&new.leader), "who is elected is alive: {why}");
        }
        let was = |id: &i32| old.isr.contains(id) || old.elr.contains(id);
        assert!(new.elr.iter().all(was), "who is eligible was in sync: {why}");
        let is_new = |id: &&i32| !old.isr.contains(id);
        let is_damaged = |id: &&i32| self.damaged.get(id).is_some_and(|keys| keys.contains(key));
        let admits = act == Act::Alter(key.0, key.1);
        let mut admitted = new.isr.iter().filter(is_new).filter(|id| admits && !old.elr.contains(id));
        assert!(!admitted.any(|id| is_damaged(&id)), "a damaged replica stays out: {why}");
        let Some(&joins) = new.isr.iter().find(is_new) else { return };
        let is_alone = new.isr == [joins];
        let by_its_leader = act == Act::Alter(key.0, key.1);
        let was_eligible = is_alone && new.leader == joins && old.elr.contains(&joins);
        // No replica is left that has everything, perhaps since the last such one has just come back without its disk:
        // the last leader is the next best (KIP-966).
        let led_last = is_alone && new.leader == joins && old.isr.is_empty() && new.elr.is_empty();
        let allows = act == Act::ElectUnclean || self.may_be_unclean.contains(&self.names[&key.0]);
        let may = by_its_leader || was_eligible || led_last || is_alone && allows;
        assert!(may, "{joins} may not be in sync: {why}");
    }

    fn judge_replicas(&mut self, act: Act, key: &(Uuid, i32), old: &State, new: &State, why: &str) {
        let same = |of: fn(&State) -> &Vec<i32>| of(old) == of(new);
        if same(|of| &of.replicas) && same(|of| &of.adding) && same(|of| &of.removing) {
            return;
        }
        let asked = act == Act::Move(key.0, key.1);
        let was_moving = !old.adding.is_empty() || !old.removing.is_empty();
        let moves = !new.adding.is_empty() || !new.removing.is_empty();
        assert!(asked || was_moving && !moves, "no request asked for other replicas: {why}");
        if !asked {
            self.completed += 1;
            let is_whole = new.replicas.iter().all(|id| new.isr.contains(id));
            assert!(is_whole, "a move ends when all are in sync: {why}");
            assert!(new.replicas.iter().all(|id| !old.removing.contains(id)), "who goes is gone: {why}");
        }
        if old.replicas.iter().any(|id| !new.replicas.contains(id)) {
            assert!(new.leader_epoch > old.leader_epoch, "a former replica hears of it: {why}");
        }
    }

    /// Everybody is back, and every leader finds all its replicas in sync.
    fn end(mut self) -> (usize, usize) {
        for id in 2..=BROKERS {
            self.wait(10, id);
            self.register(id, true);
            self.heartbeat(id, false, false);
        }
        for name in TOPICS {
            self.set(name, "unclean.leader.election.enable", "true");
        }
        self.wait(301, 0);
        for key in self.states.keys().copied().collect::<Vec<_>>() {
            for _ in 0..8 {
                let state = self.states[&key].clone();
                assert!(state.leader >= 0, "{state:?}");
                self.alter(key, &state, &state.replicas);
            }
        }
        self.wait(301, 0);
        for (key, state) in &self.states {
            assert!(state.adding.is_empty() && state.removing.is_empty(), "{key:?} {state:?}");
            assert_eq!(state.isr.len(), state.replicas.len(), "{key:?} {state:?}");
            assert_eq!(state.leader, state.replicas[0], "{key:?} {state:?}");
            let known = self.image().topics.by_id(key.0).unwrap();
            let known = known.partition(PartitionIndex(key.1)).unwrap();
            assert_eq!(known.leader_epoch.get(), state.leader_epoch);
        }
        (self.changes, self.completed)
    }
}

#[test]
fn partitions_stay_sound_whatever_brokers_and_operators_do() {
    let (mut changes, mut completed) = (0, 0);
    for seed in 0..SEEDS {
        let mut life = Life::new(seed);
        for _ in 0..STEPS {
            life.step();
        }
        let (more_changes, more_completed) = life.end();
        changes += more_changes;
        completed += more_completed;
    }
    println!("{changes} changes judged, {completed} moves completed by a leader's word");
    assert!(changes > 4_000 && completed > 200, "{changes} changes, {completed} moves");
}
