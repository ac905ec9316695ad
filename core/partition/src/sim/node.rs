//! One broker with one replica: a [`Partition`], a log of which only the synced part outlives a crash, and a view of the metadata.
//!
//! What the partition worker will do, in small: takes letters and metadata, writes, syncs, fetches, cuts.

use std::collections::VecDeque;

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, EpochEntry, ErrorCode, LeaderEpochs, MonotonicMs, Offset,
};

use super::controller::State;
use super::network::{Fetched, Letter, Message};
use super::{Batch, Place, Random};
use crate::planted::{self, Mistake};
use crate::{
    Acks, Append, BatchInfo, Cut, Effect, FetchPosition, Follow, FollowerFetch, FollowerRead, FollowerState,
    Isolation, IsrAnswer, IsrNext, Leadership, LogEnds, Origin, Partition, Placed, Ticket,
};

pub(super) const LAG_MAX: DurationMs = DurationMs(150);
const PATIENCE_MS: i64 = 60;
/// Nothing is on its way for longer. Who is not in sync when it asks again waits for so long before it cuts, as a broker does for
/// `replica.lag.time.max.ms`: a fetch that was sent before, and comes late, has the leader count on what is cut off meanwhile.
const HEAL_PATIENCE_MS: i64 = super::network::LATE_MS as i64 + 20;
const BATCHES_PER_ANSWER: usize = 4;

/// What outlives the process.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub log: Vec<Batch>,
    pub log_start: Offset,
    /// Where it ends.
    pub end: Offset,
    pub high_watermark: Offset,
}

impl Disk {
    fn ends(&self) -> LogEnds {
        let Self { log_start, high_watermark, end, .. } = *self;
        LogEnds { log_start, log_end: end, high_watermark }
    }
}

/// A process.
#[derive(Debug)]
pub(super) struct Running {
    pub partition: Partition,
    pub log: Vec<Batch>,
    pub epochs: LeaderEpochs,
    pub life: BrokerEpoch,
    /// The state of the metadata that it knows, by number.
    pub seen: usize,
    /// What a sync that is under way will have made durable, and when.
    syncing: Option<(MonotonicMs, Offset)>,
    /// The last fetch, and when.
    asked: Option<(FetchPosition, MonotonicMs)>,
    /// The last question to the controller, and when.
    isr_asked: Option<(u32, MonotonicMs)>,
    lag_checked: MonotonicMs,
    tickets: VecDeque<(Ticket, Place, u64)>,
    next_ticket: u64,
    /// Where the log is damaged. A new life finds it again when it looks: here it never does.
    damaged_from: Option<Offset>,
    asks_again_since: Option<(MonotonicMs, bool)>,
    /// The newest state of the metadata when the leader had seen it behind: who heals waits until it knows it.
    seen_behind_at: Option<usize>,
}

/// What happened that invariants must hear of.
#[derive(Debug)]
pub(super) enum Event {
    /// A leader said so to a producer.
    Acked {
        batch: BatchInfo,
        base: Offset,
    },
    HighWatermark(Offset),
    Truncated {
        to: Offset,
        high_watermark: Offset,
    },
    /// What it cut off was damaged.
    Healed {
        to: Offset,
    },
    Leads,
}

#[derive(Debug)]
pub(super) struct Node {
    pub id: BrokerId,
    pub disk: Disk,
    pub running: Option<Running>,
    /// Its disk was lost, and the controller has not counted on it since.
    pub is_hollow: bool,
    /// It may have had more than it has.
    pub has_lost_disk: bool,
}

/// What a node may touch while it acts.
pub(super) struct Around<'a> {
    pub now: MonotonicMs,
    pub random: &'a mut Random,
    pub out: &'a mut Vec<Letter>,
    pub events: &'a mut Vec<Event>,
    pub states: &'a [State],
    pub min_in_sync: u16,
}

impl Node {
    pub fn new(id: BrokerId) -> Self {
        Self { id, disk: Disk::default(), running: None, is_hollow: false, has_lost_disk: false }
    }

    pub fn log(&self) -> &[Batch] {
        self.running.as_ref().map_or(&self.disk.log, |running| &running.log)
    }

    /// Whether a batch is on its disk.
    pub fn has_durable(&self, batch: &Batch) -> bool {
        let at = self.disk.log.partition_point(|other| other.base < batch.base);
        self.disk.log.get(at) == Some(batch) || batch.end() <= self.disk.log_start
    }

    pub fn start(&mut self, life: BrokerEpoch, seen: usize) {
        let mut partition = Partition::new();
        self.disk.log.iter().for_each(|batch| {
            partition.replay(batch.base, &batch.info);
        });
        partition.open(self.disk.ends());
        self.running = Some(Running {
            partition,
            epochs: epochs_of(&self.disk.log),
            log: self.disk.log.clone(),
            life,
            seen,
            syncing: None,
            asked: None,
            isr_asked: None,
            lag_checked: MonotonicMs(0),
            tickets: VecDeque::new(),
            next_ticket: 0,
            damaged_from: None,
            asks_again_since: None,
            seen_behind_at: None,
        });
    }

    /// Of what was not synced, a part may be found again.
    pub fn crash(&mut self, random: &mut Random) {
        let Some(running) = self.running.take() else { return };
        let unsynced = running.log.len() - self.disk.log.len();
        let kept = random.below(unsynced as u64 + 1) as usize;
        let from = self.disk.log.len();
        self.disk.log.extend_from_slice(&running.log[from..from + kept]);
        self.disk.end = self.disk.log.last().map_or(self.disk.end, |last| last.end().max(self.disk.end));
    }

    pub fn lose_disk(&mut self) {
        self.running = None;
        self.disk = Disk::default();
        self.is_hollow = true;
        self.has_lost_disk = true;
    }

    /// Damage is found somewhere in its log.
    pub fn find_damage(&mut self, random: &mut Random) {
        let Some(running) = &mut self.running else { return };
        let some = random.below(running.log.len().max(1) as u64) as usize;
        if let Some(batch) = running.log.get(some) {
            running.damaged_from = Some(running.damaged_from.map_or(batch.base, |from| from.min(batch.base)));
        }
    }

    pub fn is_damaged(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.damaged_from.is_some())
    }

    /// Asks again for what is damaged, where enough others would be in sync, and cuts it off when nobody counts on it.
    fn heal(&mut self, around: &mut Around<'_>) {
        let Some(running) = &mut self.running else { return };
        let Some(from) = running.damaged_from else { return };
        if from < running.partition.log_start() || from >= running.partition.log_end() {
            running.damaged_from = None;
            return;
        }
        let state = &around.states[running.seen];
        let is_in_sync = state.in_sync.contains(&self.id);
        let counts = is_in_sync || state.eligible.contains(&self.id);
        let others = state.in_sync.len() - usize::from(is_in_sync);
        let follows = state.leader.is_some_and(|leader| leader != self.id)
            && running.partition.leader_epoch() == state.leader_epoch;
        if !follows || is_in_sync && others < usize::from(around.min_in_sync) {
            return;
        }
        if running.partition.asks_again_from().is_none() {
            (running.seen_behind_at, running.asks_again_since) = (None, None);
        }
        running.partition.ask_again(from);
        let (since, was_in_sync) = *running.asks_again_since.get_or_insert((around.now, is_in_sync));
        let counts = counts || !was_in_sync && around.now.since(since).0 < HEAL_PATIENCE_MS;
        let counts = counts || running.seen_behind_at.is_none_or(|at| running.seen < at);
        let is_settled = running.partition.fetch_position(&running.epochs).is_some();
        let cut = running.partition.heal(counts);
        if is_settled && cut != Cut::Nothing {
            // Between batches, as a broker gives up whole segments: the leader may start inside of one.
            let (start, end) = (running.partition.log_start(), running.partition.log_end());
            let from = running.partition.asks_again_from().unwrap_or(end);
            let to = running.log.iter().find(|batch| batch.end() > from).map_or(from, |batch| batch.base);
            running.damaged_from = None;
            self.cut(if to > start { Cut::To(to) } else { Cut::StartAt(start) }, around);
            if let Some(Event::Truncated { to, .. }) = around.events.pop() {
                around.events.push(Event::Healed { to });
            }
        }
    }

    /// Learns of a state of the metadata.
    pub fn learn(&mut self, number: usize, around: &mut Around<'_>) {
        let Some(running) = &mut self.running else { return };
        let state = &around.states[number];
        running.seen = running.seen.max(number);
        let mut effects = Vec::new();
        if state.leader == Some(self.id) {
            let followers: Vec<FollowerState> = state
                .replicas
                .iter()
                .filter(|&&replica| replica != self.id)
                .map(|&broker| FollowerState {
                    broker,
                    in_sync: state.in_sync.contains(&broker),
                    registered: state.registered(broker),
                })
                .collect();
            let was = running.partition.leader_epoch();
            let leadership = Leadership {
                epoch: state.leader_epoch,
                partition_epoch: state.partition_epoch,
                followers: &followers,
                min_in_sync: around.min_in_sync,
                lag_max: LAG_MAX,
                now: around.now,
            };
            let leads = running.partition.become_leader(&leadership, &mut effects);
            if leads && was != state.leader_epoch {
                running.epochs.assign(state.leader_epoch, running.partition.log_end());
                around.events.push(Event::Leads);
            }
            for follower in &followers {
                running.partition.set_registered(follower.broker, follower.registered, &mut effects);
            }
        } else if running.partition.leader_epoch() != state.leader_epoch || running.partition.is_leader() {
            running.asked = None;
            let follows = running.partition.become_follower(state.leader_epoch, &mut effects);
            if follows && planted::is(Mistake::TruncatesToHighWatermark) {
                let to = running.partition.high_watermark();
                self.cut(Cut::To(to), around);
            }
        }
        self.carry_out(effects, around);
    }

    pub fn receive(&mut self, letter: Letter, around: &mut Around<'_>) {
        let Some(running) = &mut self.running else { return };
        let (me, from) = (Place::Node(self.id), letter.from);
        let mut effects = Vec::new();
        let mut reply = |message| around.out.push(Letter { from: me, to: from, message });
        match letter.message {
            Message::Fetch { life, position } => {
                let Place::Node(broker) = from else { return };
                let registered = around.states[running.seen].registered(broker);
                let who = (broker, life, registered);
                let answer = running.answer_fetch(who, &position, around.now, &mut effects);
                reply(Message::Fetched { position, answer });
            }
            Message::Fetched { position, answer } => {
                if running.asked.is_some_and(|(asked, _)| asked == position) {
                    running.asked = None;
                }
                self.fetched(&position, answer, around);
                return;
            }
            Message::ListOffsets { position } => {
                if running.partition.check_leader(Some(position.leader_epoch)).is_ok() {
                    let (start, end) = (running.partition.log_start(), running.partition.log_end());
                    reply(Message::Offsets { position, start, end });
                }
            }
            Message::Offsets { position, start, end } => {
                if running.partition.may_take(&position, &running.epochs) {
                    let cut = running.partition.out_of_range(start, end);
                    if running.damaged_from.is_some() {
                        running.damaged_from = running.partition.asks_again_from();
                    }
                    self.cut(cut, around);
                }
                return;
            }
            Message::IsrAltered { number, answer } => {
                let answer = match &answer {
                    Ok(altered) => IsrAnswer::Changed {
                        leader_epoch: altered.leader_epoch,
                        partition_epoch: altered.partition_epoch,
                        in_sync: &altered.in_sync,
                    },
                    Err(code) => IsrAnswer::Refused(*code),
                };
                let next = running.partition.isr_answered(number, &answer, around.now, &mut effects);
                if next == IsrNext::Ask {
                    running.isr_asked = None;
                }
            }
            Message::Produce { batches } => {
                for batch in &batches {
                    running.produce(from, batch, around.now, &mut effects, &mut reply);
                }
            }
            Message::Read { from } => {
                // From whichever replica, as with KIP-392.
                let bounds = running.partition.replica_bounds(Isolation::ReadUncommitted, None);
                let Ok(bounds) = bounds else { return };
                let is_seen = |batch: &&Batch| batch.base >= from && batch.end() <= bounds.end;
                let batches = running.log.iter().filter(is_seen).take(5).copied().collect();
                reply(Message::Records { batches, end: bounds.end });
            }
            Message::AlterIsr { .. } | Message::Produced { .. } | Message::Records { .. } => {}
        }
        self.carry_out(effects, around);
    }

    fn fetched(&mut self, position: &FetchPosition, answer: Fetched, around: &mut Around<'_>) {
        let Some(running) = &mut self.running else { return };
        if !running.partition.may_take(position, &running.epochs) {
            return;
        }
        let mut effects = Vec::new();
        let asks_again = running.partition.asks_again_from().is_some();
        match answer {
            Fetched::Records { batches, .. } if asks_again && !batches.is_empty() => {
                running.partition.seen_behind();
                running.seen_behind_at.get_or_insert(around.states.len() - 1);
            }
            Fetched::Records { batches, high_watermark, log_start } => {
                for batch in batches {
                    match running.partition.judge(batch.base, batch.info.offsets, batch.epoch) {
                        Ok(Follow::Skip) => continue,
                        Ok(Follow::Stop) | Err(_) => break,
                        Ok(Follow::Append | Follow::AppendFromBelow) => {}
                    }
                    running.partition.follow(batch.base, &batch.info, &mut effects);
                    running.epochs.assign(batch.epoch, batch.base);
                    running.log.push(batch);
                }
                running.partition.written(running.partition.log_end(), &mut effects);
                running.partition.follow_marks(high_watermark, log_start, &mut effects);
            }
            Fetched::Diverging { epoch, end } => {
                let cut = running.partition.diverged(epoch, end, &running.epochs);
                self.cut(cut, around);
            }
            Fetched::Refused(ErrorCode::OffsetOutOfRange) => {
                let leader = around.states[running.seen].leader;
                if let Some(leader) = leader {
                    let message = Message::ListOffsets { position: *position };
                    around.out.push(Letter { from: Place::Node(self.id), to: Place::Node(leader), message });
                }
            }
            Fetched::Refused(_) => {}
        }
        self.carry_out(effects, around);
    }

    /// Cuts the log; what is left is synced, as storage does.
    fn cut(&mut self, cut: Cut, around: &mut Around<'_>) {
        let Some(running) = &mut self.running else { return };
        let high_watermark = running.partition.high_watermark();
        match cut {
            Cut::Nothing => return,
            Cut::To(end) => {
                running.log.retain(|batch| batch.end() <= end);
                running.epochs.truncate_from_end(end);
                running.partition.truncate(end);
                around.events.push(Event::Truncated { to: end, high_watermark });
            }
            Cut::StartAt(start) => {
                running.log.clear();
                running.epochs.clear();
                self.disk.log_start = start;
                around.events.push(Event::Truncated { to: start, high_watermark });
            }
        }
        running.syncing = None;
        self.disk.log.clone_from(&running.log);
        self.disk.end = match cut {
            Cut::StartAt(start) => start,
            _ => running.partition.log_end(),
        };
        self.disk.high_watermark = running.partition.high_watermark();
        let mut partition = Partition::new();
        running.log.iter().for_each(|batch| {
            partition.replay(batch.base, &batch.info);
        });
        partition.open(self.disk.ends());
        let epoch = running.partition.leader_epoch();
        partition.become_follower(epoch, &mut Vec::new());
        running.partition = partition;
    }

    /// What time brings.
    pub fn tick(&mut self, around: &mut Around<'_>) {
        self.heal(around);
        let (id, now) = (self.id, around.now);
        let Some(running) = &mut self.running else { return };
        let mut effects = Vec::new();
        if let Some((at, end)) = running.syncing
            && at <= now
        {
            running.syncing = None;
            let from = self.disk.log.len();
            let synced = running.log[from..].iter().take_while(|batch| batch.end() <= end);
            self.disk.log.extend(synced.copied());
            self.disk.end = end;
            running.partition.synced(end, &mut effects);
        }
        let has_more = running.partition.durable_end() < running.partition.log_end();
        if running.syncing.is_none() && has_more {
            let late =
                if around.random.one_in(20) { around.random.below(80) } else { around.random.below(6) };
            running.syncing = Some((MonotonicMs(now.0 + 1 + late), running.partition.log_end()));
        }
        running.partition.expire(now, &mut effects);
        if running.partition.is_leader() {
            if now.since(running.lag_checked).0 > LAG_MAX.0 / 2 {
                running.lag_checked = now;
                running.partition.check_lag(now, &mut effects);
            }
            running.ask_controller(id, around, &mut effects);
        } else {
            running.ask_leader(id, around);
        }
        if around.random.one_in(50) {
            self.disk.high_watermark = running.partition.high_watermark();
        }
        self.carry_out(effects, around);
    }

    pub fn carry_out(&mut self, effects: Vec<Effect>, around: &mut Around<'_>) {
        let Some(running) = &mut self.running else { return };
        for effect in effects {
            match effect {
                Effect::Answer { ticket, answer } => {
                    let at = running.tickets.iter().position(|(waits, ..)| *waits == ticket);
                    let Some((_, client, attempt)) = at.and_then(|at| running.tickets.remove(at)) else {
                        continue;
                    };
                    if let Ok(acked) = answer {
                        let batch = running.log.iter().find(|batch| batch.base == acked.base);
                        let info = batch.map(|batch| batch.info);
                        around.events.extend(info.map(|batch| Event::Acked { batch, base: acked.base }));
                    }
                    let answer = answer.map(|acked| acked.base).map_err(|refusal| refusal.code());
                    let message = Message::Produced { attempt, answer };
                    around.out.push(Letter { from: Place::Node(self.id), to: client, message });
                }
                Effect::HighWatermark(to) => {
                    around.events.push(Event::HighWatermark(to));
                }
                Effect::LogStart(start) => {
                    // Synced at once, with what it drops: retention notes it first.
                    self.disk.log_start = start;
                    running.log.retain(|batch| batch.end() > start);
                    self.disk.log.retain(|batch| batch.end() > start);
                    running.epochs.truncate_from_start(start);
                }
                Effect::LastStable(_) | Effect::Aborted(_) | Effect::AlterIsr => {}
            }
        }
    }
}

impl Running {
    /// A fetch of a broker, in a life of its own, that is registered like that.
    fn answer_fetch(
        &mut self,
        (broker, broker_epoch, registered): (BrokerId, BrokerEpoch, Option<BrokerEpoch>),
        position: &FetchPosition,
        now: MonotonicMs,
        effects: &mut Vec<Effect>,
    ) -> Fetched {
        let fetch = FollowerFetch {
            broker,
            broker_epoch,
            registered,
            leader_epoch: Some(position.leader_epoch),
            offset: position.offset,
            last_epoch: position.last_epoch,
            log_start: position.log_start,
            now,
        };
        match self.partition.follower_fetch(&fetch, &self.epochs, effects) {
            Ok(FollowerRead::Records(bounds)) => {
                let at = self.log.partition_point(|batch| batch.end() <= fetch.offset);
                let within = self.log[at..].iter().take_while(|batch| batch.base < bounds.end);
                let batches = within.take(BATCHES_PER_ANSWER).copied().collect();
                let (high_watermark, log_start) = (bounds.high_watermark, bounds.log_start);
                Fetched::Records { batches, high_watermark, log_start }
            }
            Ok(FollowerRead::Diverging { epoch, end }) => Fetched::Diverging { epoch, end },
            Err(refusal) => Fetched::Refused(refusal.code()),
        }
    }

    fn produce(
        &mut self,
        from: Place,
        batch: &BatchInfo,
        now: MonotonicMs,
        effects: &mut Vec<Effect>,
        reply: &mut impl FnMut(Message),
    ) {
        let attempt = batch.base_sequence.0 as u64;
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        let how = Append {
            origin: Origin::Client,
            acks: Acks::All,
            ticket,
            deadline: MonotonicMs(now.0 + 100),
            leader_epoch: None,
            verified: false,
        };
        self.tickets.push_back((ticket, from, attempt));
        match self.partition.append(batch, &how, effects) {
            Ok(Placed::Write { base, leader_epoch }) => {
                self.log.push(Batch { base, epoch: leader_epoch, info: *batch });
                self.partition.written(self.partition.log_end(), effects);
            }
            Ok(Placed::Duplicate { .. }) => {}
            Err(refusal) => {
                self.tickets.pop_back();
                reply(Message::Produced { attempt, answer: Err(refusal.code()) });
            }
        }
    }

    fn ask_controller(&mut self, id: BrokerId, around: &mut Around<'_>, effects: &mut Vec<Effect>) {
        let Some(change) = self.partition.isr_change() else { return };
        if let Some((number, at)) = self.isr_asked
            && number == change.number
        {
            if around.now.since(at).0 <= PATIENCE_MS {
                return;
            }
            // Nobody answers: the question may have been heard all the same.
            let answer = IsrAnswer::Refused(ErrorCode::RequestTimedOut);
            if self.partition.isr_answered(number, &answer, around.now, effects) != IsrNext::Ask {
                return;
            }
        }
        let Some(change) = self.partition.isr_change().cloned() else { return };
        self.isr_asked = Some((change.number, around.now));
        let message = Message::AlterIsr { life: self.life, change };
        around.out.push(Letter { from: Place::Node(id), to: Place::Controller, message });
    }

    fn ask_leader(&mut self, id: BrokerId, around: &mut Around<'_>) {
        let state = &around.states[self.seen];
        let Some(leader) = state.leader.filter(|&leader| leader != id) else { return };
        if self.asked.is_some_and(|(_, at)| around.now.since(at).0 <= PATIENCE_MS) {
            return;
        }
        let Some(position) = self.partition.fetch_position(&self.epochs) else { return };
        self.asked = Some((position, around.now));
        let message = Message::Fetch { life: self.life, position };
        around.out.push(Letter { from: Place::Node(id), to: Place::Node(leader), message });
    }
}

fn epochs_of(log: &[Batch]) -> LeaderEpochs {
    let mut entries: Vec<EpochEntry> = Vec::new();
    for batch in log {
        if entries.last().is_none_or(|last| last.epoch < batch.epoch) {
            entries.push(EpochEntry { epoch: batch.epoch, start: batch.base });
        }
    }
    LeaderEpochs::from_entries(entries).expect("invariant: epochs rise in a log")
}
