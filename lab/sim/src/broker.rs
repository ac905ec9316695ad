//! One broker: its disk, and its process with a replica of each partition that the metadata gives it.
//!
//! What shell/broker does with several threads is done here in one: learn ([`learn`]), serve ([`serve`]), fetch
//! ([`fetch`]), coordinate ([`coordinators`]), look after transactions ([`transactional`]), mend what is damaged
//! ([`damage`]), and what time brings. The replicas and their log directory are in [`crate::host`].

mod admin;
mod aside;
mod asked;
pub(crate) mod coordinators;
mod damage;
mod event;
mod fetch;
mod learn;
mod serve;
mod slips;
mod transactional;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_api::k01_fetch::FetchSessions;
use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, ErrorCode, MonotonicMs, Offset};
use barnabas_coordinator::TransactionVersion;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_partition::{Acks, Cut, FetcherId, Fetchers, IsrRequests, Origin, ReplicaKey};
use barnabas_replica::{Replica, TxnVerification, registered};
use barnabas_storage::MemoryDisk;

use crate::batch::Batch;
use crate::counts::Faults;
use crate::host::{Corrupted, Handing, HostTime, News, ReplicaHost, Waiter};
use crate::mistake::Mistake;
use crate::network::{Letter, Message, Place, Reply};
use crate::random::Random;
use coordinators::Coordinators;
pub(crate) use event::Event;
use slips::Slips;
use waiting::Waiting;

/// `replica.lag.time.max.ms`, in a world that lives faster.
pub(crate) const LAG_MAX: DurationMs = DurationMs(150);
/// How long an answer is waited for.
const PATIENCE: DurationMs = DurationMs(50);
/// How long an append waits to be safe.
const APPEND_PATIENCE: DurationMs = DurationMs(100);

/// What a broker has called durable of one log: all of it is found again after whatever stop.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurableLog {
    pub log: Vec<Batch>,
    pub start: Offset,
}

impl DurableLog {
    /// What lies below was deleted.
    fn start_at(&mut self, start: Offset) {
        self.start = self.start.max(start);
        self.log.retain(|batch| batch.end() > start);
    }

    /// It had more of a log that is compacted since.
    fn remember(&mut self, known: Self) {
        let mut all: BTreeMap<Offset, Batch> = self.log.drain(..).map(|batch| (batch.base, batch)).collect();
        let known = known.log.into_iter().filter(|batch| batch.end() > self.start);
        all.extend(known.map(|batch| (batch.base, batch)));
        self.log = all.into_values().collect();
    }

    /// Whether it was given the record at `offset`, which compaction elsewhere may have taken before.
    pub fn had(&self, offset: Offset) -> bool {
        let at = self.log.partition_point(|batch| batch.end() <= offset);
        let delta = |batch: &Batch| offset.since(batch.base);
        self.log.get(at).is_some_and(|batch| batch.left.iter().any(|left| i64::from(*left) == delta(batch)))
    }

    fn has(&self, batch: &Batch) -> bool {
        let at = self.log.partition_point(|other| other.base < batch.base);
        self.log.get(at) == Some(batch) || batch.end() <= self.start
    }

    fn truncate(&mut self, cut: Cut) {
        match cut {
            Cut::Nothing => {}
            Cut::To(end) => self.log.retain(|batch| batch.end() <= end),
            Cut::StartAt(start) => *self = Self { log: Vec::new(), start },
        }
    }
}

#[derive(Debug)]
pub(crate) struct Broker {
    pub id: BrokerId,
    pub disk: MemoryDisk,
    pub durable: BTreeMap<ReplicaKey, DurableLog>,
    /// Up to here DeleteRecords was answered: no start brings that back.
    pub deleted: BTreeMap<ReplicaKey, Offset>,
    pub process: Option<Process>,
    /// In which of its log directories each replica lies, as the controller knows.
    pub assigned: BTreeMap<ReplicaKey, usize>,
    /// Its disk was lost, and it has not said so yet.
    pub is_hollow: bool,
    /// It may have had more than it has.
    pub has_lost_disk: bool,
    /// What it held until it was told to hold it no longer, or gave up as it was damaged: it may have had more of that
    /// than it has, too.
    pub given_up: BTreeSet<ReplicaKey>,
    /// Logs of which bytes were changed on the disk, and not given up since.
    pub damaged: BTreeSet<ReplicaKey>,
    /// What was changed of them.
    pub corrupted: BTreeMap<ReplicaKey, Corrupted>,
    /// What was durable of damaged logs before a truncation that a crash may still undo.
    before_cut: BTreeMap<ReplicaKey, Vec<Batch>>,
    /// What was durable of damaged logs and was deleted since: the newest start may not survive a crash.
    before_start: BTreeMap<ReplicaKey, Vec<Batch>>,
    /// It does not start on its disk any more, and waits for another one.
    pub wants_disk: bool,
    /// A file of its journal was changed: its directory may be refused.
    pub has_rotten_journal: bool,
    /// Its logs are compacted.
    pub compacts: bool,
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
    former: Arc<Image>,
    pub seen: usize,
    /// That is all that was committed by then.
    pub known_by: MonotonicMs,
    config: Arc<BrokerConfig>,
    pub host: ReplicaHost,
    /// The journal is read: partitions may be opened.
    has_begun: bool,
    /// Replicas that met a full disk.
    to_reopen: BTreeSet<ReplicaKey>,
    /// Replicas with damage that is known: others shall lead.
    pub hindered: BTreeSet<ReplicaKey>,
    pub coordinators: Coordinators,
    /// Damaged places that are fetched aside, or were: until when nothing more is asked.
    asides: BTreeMap<ReplicaKey, MonotonicMs>,
    waiting: Waiting,
    fetchers: Fetchers,
    fetches: BTreeMap<FetcherId, Open>,
    sessions: FetchSessions,
    questions: IsrRequests,
    /// The request to the controller, and the numbers of its questions.
    question: Option<(Open, Vec<(ReplicaKey, u32)>)>,
    requests: u64,
    lag_checked: MonotonicMs,
    /// For mistakes that are planted.
    slips: Slips,
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

    fn time(&mut self) -> HostTime<'_> {
        HostTime { now: self.now, random: self.random, faults: self.faults, mistake: self.mistake }
    }
}

impl Broker {
    pub fn new(id: BrokerId) -> Self {
        Self {
            id,
            disk: MemoryDisk::new(),
            durable: BTreeMap::new(),
            deleted: BTreeMap::new(),
            process: None,
            assigned: BTreeMap::new(),
            is_hollow: false,
            has_lost_disk: false,
            given_up: BTreeSet::new(),
            damaged: BTreeSet::new(),
            corrupted: BTreeMap::new(),
            before_cut: BTreeMap::new(),
            before_start: BTreeMap::new(),
            wants_disk: false,
            has_rotten_journal: false,
            compacts: false,
        }
    }

    /// Whether a batch is on its disk.
    pub fn has(&self, key: ReplicaKey, batch: &Batch) -> bool {
        self.durable.get(&key).is_some_and(|durable| durable.has(batch))
    }

    pub fn replica(&self, key: ReplicaKey) -> Option<&Replica> {
        self.process.as_ref()?.host.replica(key)
    }

    pub fn start(&mut self, mut host: ReplicaHost, life: BrokerEpoch, config: Arc<BrokerConfig>) {
        host.assigned.clone_from(&self.assigned);
        self.is_hollow = false;
        self.process = Some(Process {
            id: self.id,
            life,
            image: Arc::default(),
            former: Arc::default(),
            seen: 0,
            known_by: MonotonicMs(0),
            config,
            host,
            has_begun: false,
            to_reopen: BTreeSet::new(),
            hindered: BTreeSet::new(),
            coordinators: Coordinators::default(),
            asides: BTreeMap::new(),
            waiting: Waiting::default(),
            fetchers: Fetchers::new(learn::SETTINGS, 2),
            fetches: BTreeMap::new(),
            sessions: FetchSessions::new(4, 0, 1),
            questions: IsrRequests::new(DurationMs(10)),
            question: None,
            // Answers to requests of the broker's former process are dropped.
            requests: (life.get() as u64) << 20,
            lag_checked: MonotonicMs(0),
            slips: Slips::default(),
        });
    }

    /// The power goes: what was not synced is kept, lost or torn.
    pub fn crash(&mut self, random: &mut Random) {
        self.process = None;
        self.disk.crash(random.draw());
    }

    /// The process is killed, and the machine goes on.
    pub fn kill(&mut self) {
        self.process = None;
        self.disk.kill();
    }

    /// The disk is replaced by an empty one.
    pub fn lose_disk(&mut self) {
        self.process = None;
        self.disk = MemoryDisk::new();
        self.durable.clear();
        self.deleted.clear();
        self.assigned.clear();
        self.damaged.clear();
        self.corrupted.clear();
        self.before_cut.clear();
        self.before_start.clear();
        (self.is_hollow, self.has_lost_disk, self.wants_disk) = (true, true, false);
        self.has_rotten_journal = false;
    }

    /// What cannot be read of a damaged log is what was durable there.
    pub fn fill_gaps(&self, event: &mut Event) {
        if let Event::Acked { key, base, batch: batch @ None } = event
            && self.damaged.contains(key)
            && let Some(durable) = self.durable.get(key)
        {
            *batch = durable.log.iter().find(|batch| batch.base == *base).cloned();
        }
        let (key, read) = match event {
            Event::HighWatermark { key, read, .. } => (*key, read),
            Event::Leads { key, log } | Event::Opened { key, log, .. } => (*key, log),
            _ => return,
        };
        if read.is_whole || !self.damaged.contains(&key) {
            return;
        }
        let durable = self.durable.get(&key).map_or(&[][..], |durable| &durable.log);
        let before = [&self.before_start, &self.before_cut].into_iter().filter_map(|before| before.get(&key));
        let before = before.flatten().filter(|batch| batch.end() <= read.end && batch.end() > read.start);
        let mut all: BTreeMap<Offset, Batch> =
            before.chain(durable).map(|batch| (batch.base, batch.clone())).collect();
        all.extend(read.batches.drain(..).map(|batch| (batch.base, batch)));
        (read.batches, read.is_whole) = (all.into_values().collect(), true);
    }

    /// What it calls durable from now on.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Opened { key, start, log } => {
                // The journal was read.
                self.has_rotten_journal = false;
                let mut opened = DurableLog { log: log.batches.clone(), start: *start };
                if self.compacts
                    && let Some(durable) = self.durable.remove(key)
                {
                    opened.remember(durable);
                }
                self.durable.insert(*key, opened);
                self.before_cut.remove(key);
                self.before_start.remove(key);
            }
            Event::Durable { key, batches } => {
                let durable = self.durable.entry(*key).or_default();
                let end = durable.log.last().map_or(durable.start, Batch::end);
                durable.log.extend(batches.iter().filter(|batch| batch.base >= end).cloned());
            }
            Event::Started { key, start } => {
                let durable = self.durable.entry(*key).or_default();
                if self.damaged.contains(key) {
                    self.before_start.entry(*key).or_default().extend(durable.log.iter().cloned());
                }
                durable.start_at(*start);
            }
            Event::Deleted { key, start } => drop(self.deleted.insert(*key, *start)),
            Event::WillCut { key, cut } => {
                if matches!(cut, Cut::StartAt(_)) {
                    self.deleted.remove(key);
                }
                let durable = self.durable.entry(*key).or_default();
                if self.damaged.contains(key) {
                    self.before_cut.insert(*key, durable.log.clone());
                }
                durable.truncate(*cut);
            }
            Event::Cut { key, .. } => drop(self.before_cut.remove(key)),
            Event::GaveUp { key, .. } => {
                self.damaged.remove(key);
                self.before_cut.remove(key);
                self.before_start.remove(key);
                self.given_up.insert(*key);
            }
            Event::Assigned { key, directory } => _ = self.assigned.insert(*key, *directory),
            Event::Mended { key } => {
                let process = self.process.as_mut();
                if process.is_some_and(|process| process.host.log(*key).is_whole) {
                    self.damaged.remove(key);
                }
            }
            Event::Left { key, is_gone } => {
                self.durable.remove(key);
                self.deleted.remove(key);
                self.before_cut.remove(key);
                self.before_start.remove(key);
                if *is_gone {
                    self.assigned.remove(key);
                    self.damaged.remove(key);
                }
                self.given_up.insert(*key);
            }
            _ => {}
        }
    }

    pub fn receive(&mut self, letter: Letter, around: &mut Around<'_>) {
        let Some(process) = &mut self.process else { return };
        let from = letter.from;
        match letter.message {
            Message::Fetch { number, request } => {
                let response = process.serve(request, around);
                process.send(from, Message::Fetched { number, response }, around);
            }
            Message::Fetched { number, response } => process.fetched(from, number, response, around),
            Message::FindEnds { key, epoch, asked } => {
                let partition = process.host.replica(key).map(|replica| &replica.partition);
                let ends = partition.ok_or(ErrorCode::NotLeaderOrFollower).and_then(|partition| {
                    partition.check_leader(Some(epoch)).map_err(|refusal| refusal.code())?;
                    Ok((partition.log_start(), partition.log_end()))
                });
                process.send(from, Message::Ends { key, asked, ends }, around);
            }
            Message::FetchAside { key, asked } => process.serve_aside(from, key, asked, around),
            Message::FetchedAside { key, asked, answer } => {
                process.fetched_aside(key, &asked, answer, around);
            }
            Message::Ends { key, asked, ends } => process.found_ends(key, &asked, ends, around),
            Message::PartitionAltered { number, response } => process.altered(number, response, around),
            Message::Produce { key, batches } => process.produce(from, key, &batches, around),
            Message::Ask { number, question } => {
                process.was_asked(Reply { to: from, number }, question, around);
            }
            Message::Told { number, answer } => process.was_told(number, answer, around),
            Message::AlterPartition { .. } | Message::Produced { .. } => {}
        }
        process.finish_turn(around);
    }

    pub fn tick(&mut self, around: &mut Around<'_>) {
        let Some(process) = &mut self.process else { return };
        process.host.tick(&mut around.time());
        process.finish_turn(around);
        process.expire(around);
        process.go_on_with_waiting(around);
        process.reopen_some(around);
        process.look_for_damage(around);
        process.repair_again(around);
        process.look_up(around);
        process.ask_leaders(around);
        process.ask_controller(around);
        process.coordinate(around);
        process.finish_turn(around);
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

    /// What the turn appended is written, and what came of it dealt with.
    fn finish_turn(&mut self, around: &mut Around<'_>) {
        self.host.finish_turn(around.now, around.mistake);
        self.hear(around);
        self.host.finish_turn(around.now, around.mistake);
    }

    fn produce(&mut self, from: Place, key: ReplicaKey, batches: &[Batch], around: &mut Around<'_>) {
        let Place::Client(client) = from else { return };
        if self.host.ways().holds_appends {
            return self.produce_in_turn(from, key, batches, around);
        }
        if self.host.is_over() {
            // The connection is not read; its client asks again.
            return;
        }
        self.append_all((client, key), batches, around);
    }

    fn append_all(&mut self, (client, key): (usize, ReplicaKey), batches: &[Batch], around: &mut Around<'_>) {
        let how = Handing {
            origin: Origin::Client,
            acks: if around.is(Mistake::AnswersAtOnce) { Acks::Leader } else { Acks::All },
            verification: TxnVerification::Open,
            deadline: around.now.plus(APPEND_PATIENCE),
        };
        for batch in batches {
            let waiter = Waiter::Producer { client, sequence: batch.sequence };
            if let Err(code) = self.host.append(key, batch, how, waiter, around.now) {
                let message = Message::Produced { sequence: batch.sequence, answer: Err(code) };
                self.send(Place::Client(client), message, around);
            }
        }
    }

    fn expire(&mut self, around: &mut Around<'_>) {
        let checks_lag = around.now.since(self.lag_checked).0 > LAG_MAX.0 / 2;
        if checks_lag {
            self.lag_checked = around.now;
        }
        let now = around.now;
        for key in self.keys() {
            self.host.step(key, now, |replica, around| {
                replica.partition.expire(now, &mut around.outbox.decisions);
                if checks_lag {
                    replica.partition.check_lag(now, &mut around.outbox.decisions);
                }
            });
        }
        self.hear(around);
    }

    /// Asks a log now and then where an offset, a time or an epoch is.
    fn look_up(&mut self, around: &mut Around<'_>) {
        if !around.now.0.is_multiple_of(7) {
            return;
        }
        for key in self.keys() {
            if let Some(lookup) = self.host.look_up(key, &around.time()) {
                around.events.push(Event::LookedUp { key, lookup });
            }
            if around.now.0.is_multiple_of(49)
                && let Some(lookup) = self.host.read_beside(key)
            {
                around.events.push(Event::LookedUp { key, lookup });
            }
        }
    }

    fn keys(&self) -> Vec<ReplicaKey> {
        self.host.replicas.keys().copied().collect()
    }

    /// Deals with what steps of replicas have brought.
    fn hear(&mut self, around: &mut Around<'_>) {
        while let Some(news) = self.host.news.pop_front() {
            match news {
                News::Answer { key, waiter, answer, batch } => {
                    self.answered(key, waiter, answer, batch, around);
                }
                News::HighWatermark { key, to, leads, read } => {
                    around.events.push(Event::HighWatermark { key, to, leads, read });
                }
                News::Opened { key, start, log } => around.events.push(Event::Opened { key, start, log }),
                News::Started { key, start } => around.events.push(Event::Started { key, start }),
                News::Durable { key, batches } => around.events.push(Event::Durable { key, batches }),
                News::Compacted { key, before, after, bound, read } => {
                    around.events.push(Event::Compacted { key, before, after, bound, read });
                }
                News::LastStable { key, to, read, loaded } => {
                    around.events.push(Event::LastStable { key, to, read, loaded });
                }
                News::Assigned { key, directory } => around.events.push(Event::Assigned { key, directory }),
                News::Moved { key, before, after } => around.events.push(Event::Moved { key, before, after }),
                News::WillCut { key, cut } => around.events.push(Event::WillCut { key, cut }),
                News::Cut { key, to, high_watermark } => {
                    around.events.push(Event::Cut { key, to, high_watermark });
                }
                News::GaveUp { key, to } => {
                    self.hindered.remove(&key);
                    around.events.push(Event::GaveUp { key, to });
                }
                News::Offline { key, why } => {
                    self.fetchers.unfollow(key);
                    self.hindered.insert(key);
                    around.events.push(Event::Offline { key, why });
                }
                News::Left { key, is_gone } => around.events.push(Event::Left { key, is_gone }),
                News::AlterIsr(key) => {
                    let replica = self.host.replica(key);
                    if let Some(change) = replica.and_then(|replica| replica.partition.isr_change()) {
                        let in_sync = change.in_sync.clone();
                        self.questions.ask(key, change.clone());
                        // In the turn in which the image changes, a partition may go by the one before.
                        let images = [&self.image, &self.former];
                        let lives = |id: BrokerId| images.map(|image| (id, registered(image, id)));
                        let known = in_sync.iter().flat_map(|(id, _)| lives(*id)).collect();
                        around.events.push(Event::AsksFor { key, in_sync, known });
                    }
                }
                News::FollowOn(key) => self.settle(key, around),
                News::Damaged(key, offset) => self.met_damage(key, offset, around),
                News::Reopen(key) => {
                    self.fetchers.unfollow(key);
                    self.to_reopen.insert(key);
                }
            }
        }
        if let Some(failure) = &self.host.failed
            && !matches!(around.events.last(), Some(Event::Failed(_)))
        {
            around.events.push(Event::Failed(failure.clone()));
        }
    }
}
