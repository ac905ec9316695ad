//! The world: time, what goes wrong in it, and whom it concerns.

use std::sync::Arc;

use barnabas_base::{BrokerId, ErrorCode, MonotonicMs, Offset, PartitionIndex, ProducerId, Text, name};
use barnabas_coordinator::TransactionVersion;
use barnabas_metadata::config::BrokerConfig;
use barnabas_partition::ReplicaKey;
use barnabas_wire::messages::alter_partition_reassignments_request::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use barnabas_wire::messages::elect_leaders_request::{ElectLeadersRequest, TopicPartitions};
use barnabas_wire::{ResponseBody, Str};

use crate::broker::{Around, Broker, Event};
use crate::clients::Client;
use crate::controller::{Host, config};
use crate::counts::{Checks, Fault, Faults};
use crate::invariants::{Judge, View, Violation};
use crate::mistake::Mistake;
use crate::network::{Answer, Letter, Message, Network, Place, Question};
use crate::random::Random;
use crate::transactional::{TxnClient, attempt_asking};

const TOPICS: &[&str] = &["a", "b"];
/// The first is written to.
const TOPICS_OF_TRANSACTIONS: &[&str] = &["a", name::TRANSACTION_STATE, name::CONSUMER_OFFSETS];
const PARTITIONS: i32 = 2;
/// Whose transactional ids: two clients fence each other.
const WRITERS: [&str; 4] = ["one", "two", "three", "one"];
const BAD_STEPS: usize = 600;
/// Transactions take longer, and need several partitions at once: their days are longer, and less goes wrong at a time.
const BAD_STEPS_OF_TRANSACTIONS: usize = 1500;
const CALM_STEPS: usize = 3000;
/// After so long without a word a broker is taken for dead.
const SILENCE_MS: u64 = 80;

/// What one day came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Day {
    /// FNV-1a over everything that happened.
    pub trace: u64,
    pub acked: usize,
    /// Parts of transactions that were committed, and aborted.
    pub committed: usize,
    pub aborted: usize,
    pub faults: Faults,
    pub checks: Checks,
    pub metadata_changes: usize,
    pub cuts: usize,
    pub simulated_ms: u64,
}

#[allow(missing_debug_implementations, reason = "the controller in it has none")]
pub struct World {
    random: Random,
    now: MonotonicMs,
    brokers: Vec<Broker>,
    /// When each was last heard of.
    heard: Vec<MonotonicMs>,
    host: Host,
    config: Arc<BrokerConfig>,
    clients: Vec<Client>,
    writers: Vec<TxnClient>,
    topics: &'static [&'static str],
    version: TransactionVersion,
    network: Network,
    judge: Judge,
    day: Day,
    judged: usize,
    mistake: Option<Mistake>,
}

impl World {
    /// The world in which a mistake is planted.
    #[must_use]
    pub fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// A world of idempotent producers.
    pub fn new(seed: u64) -> Self {
        let mut world = Self::of_topics(seed, TOPICS);
        let image = Arc::clone(world.host.image());
        for topic in image.topics.by_ids() {
            for partition in (0..PARTITIONS).map(PartitionIndex) {
                let key = ReplicaKey { topic: topic.id, partition };
                world.clients.push(Client::new(world.clients.len(), key));
            }
        }
        world
    }

    /// A world of transactions.
    pub fn of_transactions(seed: u64, version: TransactionVersion) -> Self {
        let mut world = Self::of_topics(seed, TOPICS_OF_TRANSACTIONS);
        let topic = world.host.image().topics.by_name(TOPICS_OF_TRANSACTIONS[0]);
        let topic = topic.map(|topic| topic.id).expect("invariant: it was made");
        let name = Text::from(TOPICS_OF_TRANSACTIONS[0]);
        let writer = |(number, id): (usize, &&str)| {
            TxnClient::new(number, Text::from(*id), (topic, name.clone(), PARTITIONS), version)
        };
        world.writers = WRITERS.iter().enumerate().map(writer).collect();
        world.version = version;
        // Before version 2 what comes twice may get into the next transaction.
        world.network.repeats = version.bumps_epoch();
        world
    }

    fn of_topics(seed: u64, topics: &'static [&'static str]) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x00c1_a57e);
        let count = 3 + random.below(3);
        let mut host = Host::new(random.draw());
        let now = MonotonicMs(1000);
        let ids: Vec<BrokerId> = (1..=count as i32).map(BrokerId).collect();
        let config = Arc::new(config());
        let mut brokers: Vec<Broker> = ids.iter().map(|&id| Broker::new(id)).collect();
        for broker in &mut brokers {
            let life =
                host.register(broker.id, true, now).expect("invariant: nobody is there before the first");
            broker.start(life, Arc::clone(&config));
            host.heartbeat(broker.id, life, Offset(i64::MAX), false, now);
        }
        for name in topics {
            let replicas = |first: i32| (0..3).map(|step| 1 + (first + step) % count as i32).collect();
            let assignment: Vec<Vec<i32>> = (0..PARTITIONS).map(replicas).collect();
            host.create(name, &assignment, 2, now);
        }
        let trace = 0xcbf2_9ce4_8422_2325;
        let day = Day {
            trace,
            acked: 0,
            committed: 0,
            aborted: 0,
            faults: Faults::default(),
            checks: Checks::default(),
            metadata_changes: 0,
            cuts: 0,
            simulated_ms: 0,
        };
        Self {
            random,
            now,
            heard: vec![now; brokers.len()],
            brokers,
            host,
            config,
            clients: Vec::new(),
            writers: Vec::new(),
            topics,
            version: TransactionVersion::V0,
            network: Network::default(),
            judge: Judge::default(),
            day,
            judged: 0,
            mistake: None,
        }
    }

    /// A bad day, then a calm one.
    ///
    /// # Errors
    /// The first invariant that did not hold.
    pub fn run(mut self) -> Result<Day, String> {
        let steps = if self.writers.is_empty() { BAD_STEPS } else { BAD_STEPS_OF_TRANSACTIONS };
        for _ in 0..steps {
            self.nemesis();
            self.step()?;
        }
        self.network.heal();
        self.network.is_calm = true;
        self.clients.iter_mut().for_each(|client| client.is_done = true);
        self.writers.iter_mut().for_each(|client| client.is_done = true);
        let mut rests = Err("the calm has not begun".to_owned());
        for step in 0..CALM_STEPS {
            (0..self.brokers.len()).for_each(|at| self.start(at));
            self.step()?;
            if step % 50 == 49 {
                rests = self.judge.at_rest(&self.view());
                if rests.is_ok() {
                    break;
                }
            }
        }
        rests.map_err(|why| format!("no rest: {why}"))?;
        self.day.acked = self.judge.acked();
        (self.day.committed, self.day.aborted) = self.judge.decided();
        self.day.faults.add(&self.network.faults);
        self.day.checks = self.judge.checks();
        self.day.metadata_changes = self.host.images.len();
        self.day.simulated_ms = self.now.0;
        Ok(self.day)
    }

    fn view(&self) -> View<'_> {
        let Self { brokers, clients, writers, host, .. } = self;
        View { brokers, clients, writers, image: host.image() }
    }

    fn note(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.day.trace = (self.day.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.now.0 += 1 + self.random.below(4) as u64;
        while let Some(letter) = self.network.receive(self.now) {
            self.deliver(letter)?;
        }
        for at in 0..self.brokers.len() {
            self.watch(at);
            self.learn(at)?;
            self.act(at, Broker::tick)?;
        }
        for at in 0..self.clients.len() {
            self.client(at);
        }
        for at in 0..self.writers.len() {
            self.writer(at);
        }
        if self.now.0.is_multiple_of(16) {
            self.look_into_coordinators()?;
        }
        if self.judged < self.host.images.len() {
            self.judged = self.host.images.len();
            self.note(self.judged as u64);
            self.judge.learned(&self.view())?;
        }
        Ok(())
    }

    /// Heartbeats, and what the controller makes of silence.
    fn watch(&mut self, at: usize) {
        let broker = &self.brokers[at];
        let id = broker.id;
        let is_cut = self.network.is_cut(Place::Broker(id), Place::Controller);
        let known = self.host.image().cluster.broker(id).map(|known| (known.epoch, known.fenced));
        if let Some(process) = broker.process.as_ref().filter(|_| !is_cut) {
            self.heard[at] = self.now;
            let (life, seen) = (process.life, process.image.provenance.end);
            if self.random.one_in(8) {
                self.host.heartbeat(id, life, seen, false, self.now);
            }
        } else if let Some((life, false)) = known
            && self.now.0 - self.heard[at].0 > SILENCE_MS
        {
            self.host.heartbeat(id, life, Offset::NONE, true, self.now);
        }
    }

    fn learn(&mut self, at: usize) -> Result<(), Violation> {
        let id = self.brokers[at].id;
        let newest = self.host.images.len() - 1;
        let is_behind = self.brokers[at].process.as_ref().is_some_and(|process| process.seen < newest);
        if !is_behind || self.network.is_cut(Place::Controller, Place::Broker(id)) || !self.random.one_in(6) {
            return Ok(());
        }
        let image = Arc::clone(self.host.image());
        self.act(at, |broker, around| broker.learn(newest, &image, around))
    }

    /// In a new life, if the controller lets it: its metadata begins with its registration.
    fn start(&mut self, at: usize) {
        if self.brokers[at].process.is_some() {
            return;
        }
        let (id, knows) = (self.brokers[at].id, !self.brokers[at].is_hollow);
        let knows = knows || self.mistake == Some(Mistake::ClaimsToKnow);
        if let Some(life) = self.host.register(id, knows, self.now) {
            self.brokers[at].start(life, Arc::clone(&self.config));
            self.judge.restarted(id);
        }
    }

    /// Lets a broker act, sends what it has to say, and judges.
    fn act(&mut self, at: usize, act: impl FnOnce(&mut Broker, &mut Around<'_>)) -> Result<(), Violation> {
        let (mut out, mut events) = (Vec::new(), Vec::new());
        let Self { random, brokers, now, mistake, version, day, .. } = self;
        let (now, mistake, version, faults) = (*now, *mistake, *version, &mut day.faults);
        let mut around = Around { now, random, out: &mut out, events: &mut events, faults, mistake, version };
        act(&mut brokers[at], &mut around);
        for letter in out {
            self.network.send(&mut self.random, self.now, letter);
        }
        let id = self.brokers[at].id;
        for event in &events {
            self.trace(id, event);
            let Self { brokers, clients, writers, host, judge, .. } = self;
            judge.happened(id, event, &View { brokers, clients, writers, image: host.image() })?;
        }
        Ok(())
    }

    fn trace(&mut self, id: BrokerId, event: &Event) {
        let (kind, value) = match event {
            Event::Acked { batch, .. } => (1, batch.base),
            Event::HighWatermark { to, .. } => (2, *to),
            Event::Cut { to, .. } => {
                self.day.cuts += 1;
                (3, *to)
            }
            Event::Leads { .. } => (4, Offset::ZERO),
            Event::LastStable { to, .. } => (5, *to),
        };
        self.note(self.now.0 * 64 + id.get() as u64 * 8 + kind);
        self.note(value.get() as u64);
    }

    fn deliver(&mut self, letter: Letter) -> Result<(), Violation> {
        self.note(self.now.0);
        match (letter.to, letter.message) {
            (Place::Broker(_), Message::Ask { number, ref question })
                if self.is_late(letter.from, number, question) =>
            {
                Ok(())
            }
            (Place::Broker(id), message) => {
                let at = self.brokers.iter().position(|broker| broker.id == id);
                let letter = Letter { message, ..letter };
                at.map_or(Ok(()), |at| self.act(at, |broker, around| broker.receive(letter, around)))
            }
            (Place::Controller, Message::AlterPartition { number, request }) => {
                if let ResponseBody::AlterPartition(response) = self.host.ask(request, 3, self.now) {
                    let message = Message::PartitionAltered { number, response: *response };
                    let reply = Letter { from: Place::Controller, to: letter.from, message };
                    self.network.send(&mut self.random, self.now, reply);
                }
                Ok(())
            }
            (Place::Controller, Message::Ask { number, question: Question::ProducerIds(request) }) => {
                let ids = match self.host.ask(request, 0, self.now) {
                    ResponseBody::AllocateProducerIds(response) if response.error_code == 0 => {
                        Ok(ProducerId(response.producer_id_start))
                    }
                    _ => Err(ErrorCode::CoordinatorLoadInProgress),
                };
                let message = Message::Told { number, answer: Answer::ProducerIds(ids) };
                let reply = Letter { from: Place::Controller, to: letter.from, message };
                self.network.send(&mut self.random, self.now, reply);
                Ok(())
            }
            (Place::Client(at), Message::Told { number, answer }) => self.told(at, number, &answer),
            (Place::Client(at), Message::Produced { sequence, answer }) => {
                self.clients[at].answered(sequence, answer);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Before version 2 a question of a transaction that is over could get into the next one (KIP-890). The transaction's coordinator sees
    /// to that itself, as the question comes over an older connection. What partitions and groups are told so late is not heard.
    fn is_late(&self, from: Place, number: u64, question: &Question) -> bool {
        let Place::Client(at) = from else { return false };
        if matches!(question, Question::Transaction { .. }) {
            return false;
        }
        let asks = |client: &TxnClient| attempt_asking(number) == client.attempts.len();
        !self.version.bumps_epoch() && !self.writers.get(at).is_some_and(asks)
    }

    fn told(&mut self, at: usize, number: u64, answer: &Answer) -> Result<(), Violation> {
        self.judge.told(at, number, answer, &self.view())?;
        let attempts = self.writers[at].attempts.len();
        if let Some(value) = self.writers[at].told(number, answer, self.now) {
            self.note(value);
            self.judge.offset_told(value)?;
        }
        if self.writers[at].attempts.len() > attempts && !self.version.bumps_epoch() {
            for process in self.brokers.iter_mut().filter_map(|broker| broker.process.as_mut()) {
                process.coordinators.forget(Place::Client(at));
            }
        }
        Ok(())
    }

    fn look_into_coordinators(&self) -> Result<(), Violation> {
        let processes = self.brokers.iter().filter_map(|broker| broker.process.as_ref());
        let shards = processes.flat_map(|process| process.coordinators.shards.values());
        let mut violations = shards.flat_map(|shard| shard.machine.violations());
        violations.next().map_or(Ok(()), Err)
    }

    fn writer(&mut self, at: usize) {
        let image = Arc::clone(self.host.image());
        for asks in self.writers[at].act(self.now, &image, &mut self.random) {
            let leader = self.leader(asks.key);
            let message = Message::Ask { number: asks.number, question: asks.question };
            let letter = Letter { from: Place::Client(at), to: Place::Broker(leader), message };
            self.network.send(&mut self.random, self.now, letter);
        }
    }

    /// Who leads a partition, or somebody else now and then.
    fn leader(&mut self, key: ReplicaKey) -> BrokerId {
        let anybody = self.brokers[self.random.below(self.brokers.len())].id;
        let is_lost = self.random.one_in(8);
        let topic = self.host.image().topics.by_id(key.topic);
        let leader = topic.and_then(|topic| topic.partition(key.partition)).map(|state| state.leader);
        leader.filter(|leader| leader.get() >= 0 && !is_lost).unwrap_or(anybody)
    }

    fn client(&mut self, at: usize) {
        let client = &mut self.clients[at];
        client.produce(&mut self.random);
        let batches = client.due(self.now);
        if batches.is_empty() {
            return;
        }
        let key = client.key;
        let leader = self.leader(key);
        let message = Message::Produce { key, batches };
        let letter = Letter { from: Place::Client(at), to: Place::Broker(leader), message };
        self.network.send(&mut self.random, self.now, letter);
    }

    fn nemesis(&mut self) {
        let pause = if self.writers.is_empty() { 9 } else { 36 };
        if !self.random.one_in(pause) {
            return;
        }
        // Whoever has what was acknowledged is let alone until it is known who has not.
        let mut hollow = self.brokers.iter().filter(|broker| broker.is_hollow).peekable();
        let is_hollow = hollow.peek().is_some();
        let is_spared = hollow.any(|broker| !self.may_lose_disk(broker.id));
        if !self.writers.is_empty() && !is_spared && self.random.one_in(3) {
            return self.depose();
        }
        let at = self.random.below(self.brokers.len());
        let id = self.brokers[at].id;
        match self.random.below(16) {
            0 | 1 | 8..=10 if is_spared => {}
            // Nobody loses two disks, or lets two go who have what was acknowledged.
            7 | 13 | 14 if is_hollow => {}
            0 | 1 => {
                self.day.faults.note(Fault::Crash);
                self.brokers[at].crash(&mut self.random);
            }
            2..=6 => self.start(at),
            7 if self.may_lose_disk(id) => {
                self.day.faults.note(Fault::LostDisk);
                self.brokers[at].lose_disk();
            }
            8 => self.fence(id),
            9 | 10 => self.cut(id),
            11 | 12 => self.network.heal(),
            13 => self.move_replicas(),
            14 => self.call_off(),
            _ => self.elect(),
        }
    }

    fn fence(&mut self, id: BrokerId) {
        self.day.faults.note(Fault::FencedAlive);
        let known = self.host.image().cluster.broker(id).map(|known| known.epoch);
        if let Some(life) = known {
            self.host.heartbeat(id, life, Offset::NONE, true, self.now);
        }
    }

    /// Somebody else leads a partition from now on. Who led it has yet to hear of that.
    fn depose(&mut self) {
        let (name, partition) = self.a_partition();
        let topic = self.host.image().topics.by_name(name);
        let leader =
            topic.and_then(|topic| topic.partition(PartitionIndex(partition))).map(|state| state.leader);
        if let Some(leader) = leader {
            self.fence(leader);
        }
    }

    fn cut(&mut self, id: BrokerId) {
        self.day.faults.note(Fault::CutLine);
        let other = Place::Broker(self.brokers[self.random.below(self.brokers.len())].id);
        let other = if self.random.one_in(3) { Place::Controller } else { other };
        self.network.cut(Place::Broker(id), other);
        if self.random.one_in(2) {
            self.network.cut(other, Place::Broker(id));
        }
    }

    /// Whether of every partition two are left who have everything that was acknowledged, and are there: one may be let go before the
    /// loss is known.
    fn may_lose_disk(&self, id: BrokerId) -> bool {
        let is_there = |other: BrokerId| {
            let is_cut = self.network.is_cut(Place::Broker(other), Place::Controller);
            let broker = self.brokers.iter().find(|broker| broker.id == other);
            !is_cut && broker.is_some_and(|broker| broker.process.is_some())
        };
        let is_left = |state: &barnabas_metadata::Partition| {
            let others = state.isr().iter().filter(|&&other| other != id && is_there(other)).count();
            !state.has_replica(id) || others >= 2
        };
        self.host.image().topics.by_ids().all(|topic| topic.partitions().all(|(_, state)| is_left(state)))
    }

    fn a_partition(&mut self) -> (&'static str, i32) {
        (self.topics[self.random.below(self.topics.len())], self.random.below(PARTITIONS as usize) as i32)
    }

    fn reassign(&mut self, replicas: Option<Vec<i32>>) {
        let (name, partition_index) = self.a_partition();
        let partition =
            ReassignablePartition { partition_index, replicas, ..ReassignablePartition::default() };
        let topic = ReassignableTopic {
            name: Str::from(name),
            partitions: vec![partition],
            ..ReassignableTopic::default()
        };
        let request = AlterPartitionReassignmentsRequest {
            allow_replication_factor_change: true,
            topics: vec![topic],
            ..AlterPartitionReassignmentsRequest::default()
        };
        self.host.ask(request, 1, self.now);
    }

    /// Two to four replicas, wherever.
    fn move_replicas(&mut self) {
        self.day.faults.note(Fault::MovedReplicas);
        let mut all: Vec<i32> = self.brokers.iter().map(|broker| broker.id.get()).collect();
        let count = (2 + self.random.below(3)).min(all.len());
        let target = (0..count).map(|_| all.remove(self.random.below(all.len()))).collect();
        self.reassign(Some(target));
    }

    fn call_off(&mut self) {
        self.day.faults.note(Fault::CalledOffMove);
        self.reassign(None);
    }

    fn elect(&mut self) {
        self.day.faults.note(Fault::Election);
        let (name, partition) = self.a_partition();
        let topic = TopicPartitions {
            topic: Str::from(name),
            partitions: vec![partition],
            ..TopicPartitions::default()
        };
        let request =
            ElectLeadersRequest { topic_partitions: Some(vec![topic]), ..ElectLeadersRequest::default() };
        self.host.ask(request, 2, self.now);
    }
}
