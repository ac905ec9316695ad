//! The world: time, what goes wrong in it, and whom it concerns.

mod climate;
pub mod hunt;
mod nemesis;
mod rot;
mod trace;

use std::sync::Arc;

use barnabas_base::{BrokerId, ErrorCode, MonotonicMs, Offset, PartitionIndex, ProducerId, Text, name};
use barnabas_coordinator::TransactionVersion;
use barnabas_metadata::config::BrokerConfig;
use barnabas_partition::ReplicaKey;
use barnabas_storage::Faults as DiskFaults;
use barnabas_wire::ResponseBody;

pub use climate::Climate;

use crate::broker::{Around, Broker, Event};
use crate::clients::Client;
use crate::clients::transactional::{TxnClient, attempt_asking};
use crate::controller::{Host, config};
use crate::counts::{Checks, Faults};
use crate::host::{Compacting, Failure, ReplicaHost, Ways};
use crate::invariants::{Judge, View, Violation};
use crate::mistake::Mistake;
use crate::network::{Answer, Letter, Message, Network, Place, Question};
use crate::random::Random;

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
/// In the calm: until then a replica that cannot be spared has looked for its damage again.
const SPARED_AFTER: usize = 2400;
/// Of a disk that is not full.
const ROOM: u64 = 1 << 40;

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
    /// Damaged segments that were given up, and logs that were mended.
    pub repairs: usize,
    /// Segments gave way to compacted ones.
    pub compactions: usize,
    pub simulated_ms: u64,
}

#[allow(missing_debug_implementations, reason = "the controller in it has none")]
pub struct World {
    climate: Climate,
    random: Random,
    now: MonotonicMs,
    brokers: Vec<Broker>,
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
    /// Disks are full now and then. Where they are not, damage reaches beyond what checkpoint files vouch for.
    disks_fill: bool,
    compacts: Option<Compacting>,
    ways: Ways,
    /// All of it is printed.
    is_printed: bool,
}

impl World {
    /// The world in which a mistake is planted.
    #[must_use]
    pub fn with(mut self, mistake: Mistake) -> Self {
        (self.mistake, self.host.mistake) = (Some(mistake), Some(mistake));
        self
    }

    /// The world of which everything is printed as it happens.
    #[must_use]
    pub fn told_of(self) -> Self {
        Self { is_printed: true, ..self }
    }

    /// A world of idempotent producers.
    pub fn new(seed: u64) -> Self {
        Self::in_climate(seed, Climate::of(seed))
    }

    /// As [`World::new`], with another climate than the seed's.
    pub fn in_climate(seed: u64, climate: Climate) -> Self {
        if climate == Climate::Compaction {
            return Self::compacted(seed);
        }
        Self::of_producers(seed, climate, None)
    }

    fn of_producers(seed: u64, climate: Climate, compacts: Option<Compacting>) -> Self {
        let mut world = Self::of_topics(seed, TOPICS, climate);
        world.compact(compacts);
        let image = Arc::clone(world.host.image());
        for topic in image.topics.by_ids() {
            for partition in (0..PARTITIONS).map(PartitionIndex) {
                let key = ReplicaKey { topic: topic.id, partition };
                world.clients.push(Client::new(world.clients.len(), key, compacts.is_some()));
            }
        }
        world
    }

    /// A world of transactions.
    pub fn of_transactions(seed: u64, version: TransactionVersion) -> Self {
        let climate = match seed % 8 {
            1 | 6 | 7 => Climate::MovingCoordinators,
            _ => Climate::Mixed,
        };
        let mut world = Self::of_topics(seed, TOPICS_OF_TRANSACTIONS, climate);
        world.network.marks_are_late = climate == Climate::MovingCoordinators;
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

    fn of_topics(seed: u64, topics: &'static [&'static str], climate: Climate) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x00c1_a57e);
        let count = 3 + random.below(3);
        let mut host = Host::new(random.draw());
        let now = MonotonicMs(1000);
        let ids: Vec<BrokerId> = (1..=count as i32).map(BrokerId).collect();
        let config = Arc::new(config());
        let ways = climate.ways(seed);
        let mut brokers: Vec<Broker> = ids.iter().map(|&id| Broker::new(id)).collect();
        for broker in &mut brokers {
            let mut replicas = ReplicaHost::start(&broker.disk, broker.id, ways, None)
                .expect("invariant: the disk is empty");
            replicas.retains = climate == Climate::Retention || ways.retains;
            let life =
                host.register(broker.id, None, now).expect("invariant: nobody is there before the first");
            replicas.note_life(life).expect("invariant: the disk is whole");
            broker.start(replicas, life, Arc::clone(&config));
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
            repairs: 0,
            compactions: 0,
            simulated_ms: 0,
        };
        Self {
            climate,
            random,
            now,
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
            disks_fill: climate != Climate::Damage || (seed / 8).is_multiple_of(2),
            compacts: None,
            ways,
            is_printed: false,
        }
    }

    /// A bad day, then a calm one.
    ///
    /// # Errors
    /// The first invariant that did not hold.
    pub fn run(mut self) -> Result<Day, String> {
        let is_short = self.writers.is_empty() && self.compacts.is_none();
        let steps = if is_short { BAD_STEPS } else { BAD_STEPS_OF_TRANSACTIONS };
        for _ in 0..steps {
            self.nemesis()?;
            self.step()?;
        }
        self.network.heal();
        self.network.is_calm = true;
        for broker in &self.brokers {
            broker.disk.set_capacity(ROOM);
            broker.disk.set_faults(DiskFaults::default());
        }
        self.clients.iter_mut().for_each(|client| client.is_done = true);
        self.writers.iter_mut().for_each(|client| client.is_done = true);
        let mut rests = Err("the calm has not begun".to_owned());
        let calm_steps = if self.ways.fetches_aside { 2 * CALM_STEPS } else { CALM_STEPS };
        for step in 0..calm_steps {
            if step == SPARED_AFTER && self.ways.fetches_aside {
                self.spare_damaged();
            }
            (0..self.brokers.len()).try_for_each(|at| self.start(at))?;
            self.step()?;
            if step % 50 == 49 {
                self.look_at_damaged();
                rests = self.judge.at_rest(&self.view());
                if rests.is_ok() {
                    self.read_all()?;
                }
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

    /// What was damaged may have been truncated since. If a truncation met damage, the partition is offline: its disk
    /// is replaced once others have all that is on it.
    fn look_at_damaged(&mut self) {
        for at in 0..self.brokers.len() {
            let may_go = self.may_lose_disk(self.brokers[at].id);
            let broker = &mut self.brokers[at];
            let Some(process) = &mut broker.process else { continue };
            broker.damaged.retain(|key| process.host.is_offline_or_damaged(*key));
            if may_go && broker.damaged.iter().any(|key| process.host.offline.contains(key)) {
                broker.wants_disk = true;
                broker.kill();
            }
        }
    }

    /// In the end every log is what was shown.
    fn read_all(&mut self) -> Result<(), Violation> {
        for broker in &mut self.brokers {
            let Some(process) = &mut broker.process else { continue };
            // Who holds none of it any more may have yet to hear so.
            let is_a_replica = |key: &ReplicaKey| {
                let topic = self.host.image().topics.by_id(key.topic);
                let state = topic.and_then(|topic| topic.partition(key.partition));
                state.is_some_and(|state| state.has_replica(broker.id))
            };
            let keys: Vec<ReplicaKey> = process.host.replicas.keys().copied().filter(is_a_replica).collect();
            for key in keys {
                let log = process.host.log(key);
                self.judge.log_at_rest(broker.id, key, &log, (self.now, broker.durable.get(&key)))?;
                if self.compacts.is_some()
                    && let Some(read) = process.host.read_all_committed(key)
                {
                    self.judge.read_at_rest(key, &read)?;
                }
            }
        }
        Ok(())
    }

    fn view(&self) -> View<'_> {
        let Self { brokers, clients, writers, host, now, .. } = self;
        View { brokers, clients, writers, image: host.image(), now: *now }
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
        self.host.tick(self.now);
        for at in 0..self.brokers.len() {
            self.beat(at);
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
            if self.is_printed {
                for (key, state) in self.view().keys() {
                    println!("{} image {} {key:?} {state:?}", self.now.0, self.host.images.len());
                }
            }
            self.judged = self.host.images.len();
            self.note(self.judged as u64);
            self.judge.learned(&self.view())?;
        }
        Ok(())
    }

    /// Heartbeats.
    fn beat(&mut self, at: usize) {
        let broker = &self.brokers[at];
        let (here, there) = (Place::Broker(broker.id), Place::Controller);
        // The next one is not sent before the last is answered.
        let is_cut = self.network.is_cut(here, there) || self.network.is_cut(there, here);
        let Some(process) = broker.process.as_ref().filter(|_| !is_cut) else { return };
        if self.random.one_in(4) {
            let (id, life, seen) = (broker.id, process.life, process.image.provenance.end);
            self.host.heartbeat_of(id, life, (seen, false), &process.hindered, self.now);
        }
    }

    fn learn(&mut self, at: usize) -> Result<(), Violation> {
        let id = self.brokers[at].id;
        let newest = self.host.images.len() - 1;
        let Some(process) = &mut self.brokers[at].process else { return Ok(()) };
        if self.network.is_cut(Place::Controller, Place::Broker(id)) {
            return Ok(());
        }
        let is_slow = self.climate == Climate::StaleMetadata && !self.network.is_calm;
        if process.seen < newest && !self.random.one_in(if is_slow { 60 } else { 6 }) {
            return Ok(());
        }
        process.known_by = self.now;
        if process.seen == newest {
            return Ok(());
        }
        let image = Arc::clone(self.host.image());
        if self.is_printed {
            println!("{} {id} learns image {}", self.now.0, newest + 1);
        }
        self.act(at, |broker, around| broker.learn(newest, &image, around))
    }

    /// In a new life, if its disk and the controller let it: its metadata begins with its registration.
    fn start(&mut self, at: usize) -> Result<(), Violation> {
        if self.brokers[at].process.is_some() {
            return Ok(());
        }
        let id = self.brokers[at].id;
        if self.brokers[at].wants_disk {
            if !self.may_lose_disk(id) {
                return Ok(());
            }
            self.brokers[at].lose_disk();
        }
        let mut host = match ReplicaHost::start(&self.brokers[at].disk, id, self.ways, self.mistake) {
            Ok(host) => host,
            Err(Failure::Disk(_)) => {
                self.crash(at);
                return Ok(());
            }
            Err(Failure::Lost(_)) if self.brokers[at].has_rotten_journal => {
                self.brokers[at].wants_disk = true;
                return Ok(());
            }
            Err(Failure::Lost(why)) => return Err(format!("{id} cannot start: {why}")),
        };
        host.retains = self.climate == Climate::Retention || self.ways.retains;
        host.compact(self.compacts);
        let kept = match self.mistake {
            Some(Mistake::ClaimsToKnow) => self.host.image().cluster.broker(id).map(|known| known.epoch),
            _ => host.kept_life(),
        };
        if let Some(life) = self.host.register(id, kept, self.now) {
            if host.note_life(life).is_err() {
                self.crash(at);
                return Ok(());
            }
            self.brokers[at].start(host, life, Arc::clone(&self.config));
        }
        Ok(())
    }

    /// The power of a broker goes. Where acknowledgements wait for no sync, that would take what was acknowledged: its
    /// process is killed instead.
    fn crash(&mut self, at: usize) {
        match self.ways.acks_are_written {
            true => self.brokers[at].kill(),
            false => self.brokers[at].crash(&mut self.random),
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
        let mut has_failed = false;
        for event in &mut events {
            self.brokers[at].fill_gaps(event);
            let event = &*event;
            self.trace(id, event);
            if self.is_printed {
                println!("{} {id}: {event:?}", self.now.0);
            }
            let Self { brokers, clients, writers, host, judge, .. } = self;
            judge.happened(id, event, &View { brokers, clients, writers, image: host.image(), now })?;
            self.brokers[at].note(event);
            has_failed |= matches!(event, Event::Failed(_));
        }
        if has_failed && self.brokers[at].process.is_some() {
            // What a failed sync covered is not on the disk, whatever the page cache says.
            let broker = &mut self.brokers[at];
            broker.wants_disk |= broker.has_rotten_journal;
            self.crash(at);
        }
        Ok(())
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
                let before = Arc::clone(self.host.image());
                let answer = self.host.ask(request, 3, self.now);
                self.judge.altered(&before, &self.host)?;
                if let ResponseBody::AlterPartition(response) = answer {
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

    /// Before version 2 a question of a transaction that is over could get into the next one (KIP-890). Its coordinator
    /// sees to that itself, by the older connection. Partitions and groups do not hear such a question.
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
}
