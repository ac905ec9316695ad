//! One broker: its disk, and its process with a replica of each partition that the metadata gives it.
//!
//! What shell/broker does with several threads is done here in one: learn ([`learn`]), serve ([`serve`]), fetch ([`fetch`]), coordinate
//! ([`coordinators`]), look after transactions ([`transactional`]), and what time brings.

pub(crate) mod coordinators;
mod fetch;
mod learn;
mod serve;
mod transactional;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_api::k01_fetch::FetchSessions;
use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_coordinator::TransactionVersion;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_partition::{
    Acked, Acks, Effect, FetcherId, Fetchers, IsrRequests, Origin, Refusal, ReplicaKey,
};

use crate::batch::{Batch, Contents};
use crate::counts::{Fault, Faults};
use crate::mistake::Mistake;
use crate::network::{Answer, Letter, Message, Place, Reply};
use crate::random::Random;
use crate::replica::{Bends, DiskLog, Handing, Replica, Waiter};
use coordinators::Coordinators;

/// `replica.lag.time.max.ms`, in a world that lives faster.
pub(crate) const LAG_MAX: DurationMs = DurationMs(150);
/// How long an answer is waited for.
const PATIENCE: DurationMs = DurationMs(50);
/// How long an append waits to be safe.
const APPEND_PATIENCE: DurationMs = DurationMs(100);

/// What happened that invariants must hear of.
#[derive(Debug)]
pub(crate) enum Event {
    Acked { key: ReplicaKey, batch: Batch },
    HighWatermark { key: ReplicaKey, to: Offset },
    LastStable { key: ReplicaKey, to: Offset },
    Cut { key: ReplicaKey, to: Offset, high_watermark: Offset },
    Leads { key: ReplicaKey },
}

#[derive(Debug)]
pub(crate) struct Broker {
    pub id: BrokerId,
    pub disk: BTreeMap<ReplicaKey, DiskLog>,
    pub process: Option<Process>,
    /// Its disk was lost, and it has not said so yet.
    pub is_hollow: bool,
    /// It may have had more than it has.
    pub has_lost_disk: bool,
    /// What it held until it was told to hold it no longer: it may have had more of that than it has, too.
    pub given_up: BTreeSet<ReplicaKey>,
}

/// A request that is not answered.
#[derive(Debug, Clone, Copy)]
struct Open {
    number: u64,
    until: MonotonicMs,
}

#[derive(Debug)]
pub(crate) struct Process {
    id: BrokerId,
    pub life: BrokerEpoch,
    /// The metadata that it knows, and its number.
    pub image: Arc<Image>,
    pub seen: usize,
    config: Arc<BrokerConfig>,
    pub replicas: BTreeMap<ReplicaKey, Replica>,
    pub coordinators: Coordinators,
    fetchers: Fetchers,
    fetches: BTreeMap<FetcherId, Open>,
    sessions: FetchSessions,
    questions: IsrRequests,
    /// The request to the controller, and the numbers of its questions.
    question: Option<(Open, Vec<(ReplicaKey, u32)>)>,
    requests: u64,
    /// What one round of the journal will have made durable, and when.
    round: Option<(MonotonicMs, Vec<(ReplicaKey, Offset)>)>,
    lag_checked: MonotonicMs,
}

/// What a broker may touch while it acts.
pub(crate) struct Around<'a> {
    pub now: MonotonicMs,
    pub random: &'a mut Random,
    pub out: &'a mut Vec<Letter>,
    pub events: &'a mut Vec<Event>,
    pub faults: &'a mut Faults,
    /// What is planted.
    pub mistake: Option<Mistake>,
    /// The cluster's `transaction.version`.
    pub version: TransactionVersion,
}

impl Around<'_> {
    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}

impl Broker {
    pub fn new(id: BrokerId) -> Self {
        Self {
            id,
            disk: BTreeMap::new(),
            process: None,
            is_hollow: false,
            has_lost_disk: false,
            given_up: BTreeSet::new(),
        }
    }

    /// Whether a batch is on its disk.
    pub fn has(&self, key: ReplicaKey, batch: &Batch) -> bool {
        self.disk.get(&key).is_some_and(|disk| disk.has(batch))
    }

    pub fn start(&mut self, life: BrokerEpoch, config: Arc<BrokerConfig>) {
        self.is_hollow = false;
        self.process = Some(Process {
            id: self.id,
            life,
            image: Arc::default(),
            seen: 0,
            config,
            replicas: BTreeMap::new(),
            coordinators: Coordinators::default(),
            fetchers: Fetchers::new(learn::SETTINGS, 2),
            fetches: BTreeMap::new(),
            sessions: FetchSessions::new(4, 0, 1),
            questions: IsrRequests::new(DurationMs(10)),
            question: None,
            // Answers to what a former life asked are nobody's.
            requests: (life.get() as u64) << 20,
            round: None,
            lag_checked: MonotonicMs(0),
        });
    }

    /// The process dies; of what was not synced, a part may be found again.
    pub fn crash(&mut self, random: &mut Random) {
        let Some(process) = self.process.take() else { return };
        for (key, replica) in process.replicas {
            let disk = self.disk.entry(key).or_default();
            let from = disk.log.len();
            let unsynced = replica.log.len().saturating_sub(from);
            let kept = random.below(unsynced + 1);
            disk.log.extend_from_slice(&replica.log[from..from + kept]);
            disk.end = disk.log.last().map_or(disk.end, |last| last.end().max(disk.end));
        }
    }

    pub fn lose_disk(&mut self) {
        self.process = None;
        self.disk.clear();
        (self.is_hollow, self.has_lost_disk) = (true, true);
    }

    pub fn receive(&mut self, letter: Letter, around: &mut Around<'_>) {
        let Self { process, disk, .. } = self;
        let Some(process) = process else { return };
        let from = letter.from;
        match letter.message {
            Message::Fetch { number, request } => {
                let response = process.serve(request, around);
                process.send(from, Message::Fetched { number, response }, around);
            }
            Message::Fetched { number, response } => process.fetched(from, number, response, around, disk),
            Message::FindEnds { key, epoch, asked } => {
                let replica = process.replicas.get(&key);
                let partition = replica.map(|replica| &replica.partition);
                let ends = partition.ok_or(ErrorCode::NotLeaderOrFollower).and_then(|partition| {
                    partition.check_leader(Some(epoch)).map_err(|refusal| refusal.code())?;
                    Ok((partition.log_start(), partition.log_end()))
                });
                process.send(from, Message::Ends { key, asked, ends }, around);
            }
            Message::Ends { key, asked, ends } => process.found_ends(key, &asked, ends, around, disk),
            Message::PartitionAltered { number, response } => process.altered(number, response, around),
            Message::Produce { key, batches } => process.produce(from, key, &batches, around),
            Message::Ask { number, question } => {
                process.was_asked(Reply { to: from, number }, question, around);
            }
            Message::Told { number, answer } => process.was_told(number, answer, around),
            Message::AlterPartition { .. } | Message::Produced { .. } => {}
        }
    }

    pub fn tick(&mut self, around: &mut Around<'_>) {
        let Self { process, disk, .. } = self;
        let Some(process) = process else { return };
        process.sync(around, disk);
        process.expire(around);
        process.ask_leaders(around);
        process.ask_controller(around);
        process.coordinate(around);
    }
}

impl Process {
    fn send(&self, to: Place, message: Message, around: &mut Around<'_>) {
        around.out.push(Letter { from: Place::Broker(self.id), to, message });
    }

    fn next_number(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    fn produce(&mut self, from: Place, key: ReplicaKey, batches: &[Batch], around: &mut Around<'_>) {
        let Place::Client(client) = from else { return };
        let acks = if around.is(Mistake::AnswersAtOnce) { Acks::Leader } else { Acks::All };
        let deadline = around.now.plus(APPEND_PATIENCE);
        let bends = Bends::default();
        let how = Handing { origin: Origin::Client, acks, verified: false, version: 0, deadline, bends };
        for batch in batches {
            let mut effects = Vec::new();
            let waiter = Waiter::Producer { client, sequence: batch.sequence };
            let refusal = match self.replicas.get_mut(&key) {
                Some(replica) => {
                    let refusal = replica.append(batch, how, waiter, &mut effects).err();
                    if around.is(Mistake::SkipsTheSync) {
                        replica.partition.synced(replica.partition.log_end(), &mut effects);
                    }
                    refusal
                }
                None => Some(ErrorCode::NotLeaderOrFollower),
            };
            if let Some(code) = refusal {
                let message = Message::Produced { sequence: batch.sequence, answer: Err(code) };
                self.send(from, message, around);
            }
            self.carry_out(key, effects, around);
        }
    }

    fn expire(&mut self, around: &mut Around<'_>) {
        let checks_lag = around.now.since(self.lag_checked).0 > LAG_MAX.0 / 2;
        if checks_lag {
            self.lag_checked = around.now;
        }
        for key in self.keys() {
            let mut effects = Vec::new();
            if let Some(replica) = self.replicas.get_mut(&key) {
                replica.partition.expire(around.now, &mut effects);
                if checks_lag {
                    replica.partition.check_lag(around.now, &mut effects);
                }
            }
            self.carry_out(key, effects, around);
        }
    }

    /// One round of the journal: everything that was appended by when it began.
    fn sync(&mut self, around: &mut Around<'_>, disk: &mut BTreeMap<ReplicaKey, DiskLog>) {
        if let Some((_, ends)) = self.round.take_if(|(at, _)| *at <= around.now) {
            for (key, end) in ends {
                let mut effects = Vec::new();
                let Some(replica) = self.replicas.get_mut(&key) else { continue };
                if end <= replica.partition.durable_end() || end > replica.partition.log_end() {
                    // It was cut, and that was synced.
                    continue;
                }
                replica.synced(end, disk.entry(key).or_default(), &mut effects);
                self.settle(key);
                self.carry_out(key, effects, around);
            }
        }
        if self.round.is_none() {
            let waits = |replica: &Replica| replica.partition.durable_end() < replica.partition.log_end();
            let ends: Vec<_> = self
                .replicas
                .iter()
                .filter(|(_, replica)| waits(replica))
                .map(|(key, replica)| (*key, replica.partition.log_end()))
                .collect();
            if !ends.is_empty() {
                let is_late = around.random.one_in(25);
                if is_late {
                    around.faults.note(Fault::SlowSync);
                }
                let late = if is_late { around.random.below(80) } else { around.random.below(4) };
                self.round = Some((MonotonicMs(around.now.0 + 1 + late as u64), ends));
            }
        }
    }

    fn keys(&self) -> Vec<ReplicaKey> {
        self.replicas.keys().copied().collect()
    }

    fn carry_out(&mut self, key: ReplicaKey, effects: Vec<Effect>, around: &mut Around<'_>) {
        for effect in effects {
            match effect {
                Effect::Answer { ticket, answer } => {
                    let Some(replica) = self.replicas.get_mut(&key) else { continue };
                    let Some(waiter) = replica.answered(ticket) else { continue };
                    if let Ok(acked) = answer {
                        // What a coordinator or a marker rests on is judged by what comes of it.
                        let is_a_clients =
                            |batch: &Batch| matches!(batch.contents, Contents::Words | Contents::Value(_));
                        let batch = replica.log.iter().find(|batch| batch.base == acked.base);
                        let batch = batch.filter(|batch| is_a_clients(batch)).cloned();
                        around.events.extend(batch.map(|batch| Event::Acked { key, batch }));
                    }
                    self.appended(key, waiter, answer, around);
                }
                Effect::HighWatermark(to) => around.events.push(Event::HighWatermark { key, to }),
                Effect::AlterIsr => {
                    let replica = self.replicas.get(&key);
                    if let Some(change) = replica.and_then(|replica| replica.partition.isr_change()) {
                        self.questions.ask(key, change.clone());
                    }
                }
                Effect::LastStable(to) => around.events.push(Event::LastStable { key, to }),
                // The replica has indexed it; nothing is deleted.
                Effect::Aborted(_) | Effect::LogStart(_) => {}
            }
        }
    }

    /// An append is safe, or is not and will not be.
    fn appended(
        &mut self,
        key: ReplicaKey,
        waiter: Waiter,
        answer: Result<Acked, Refusal>,
        around: &mut Around<'_>,
    ) {
        let answer = answer.map_err(Refusal::code);
        match waiter {
            Waiter::Producer { client, sequence } => {
                let message = Message::Produced { sequence, answer: answer.map(|acked| acked.base) };
                self.send(Place::Client(client), message, around);
            }
            Waiter::Asker(reply) => self.reply(reply, Answer::Written(answer.map(|_| ())), around),
            Waiter::Shard(epoch, batch) => self.decided(key, epoch, batch, answer.map(|_| ()), around),
        }
    }

    fn reply(&self, reply: Reply, answer: Answer, around: &mut Around<'_>) {
        self.send(reply.to, Message::Told { number: reply.number, answer }, around);
    }
}
