//! Days of one share-partition: its leaders (core/partition), an old one beside the new one that it has not heard of;
//! the share coordinator that keeps its state (core/coordinator), which moves and is loaded anew; members that take
//! records, settle, release or forget them. What leaders and coordinator say to each other comes late, twice, in
//! another order, or not at all.
//!
//! Held throughout:
//! - whoever leads by the coordinator's last word gives nobody a record of which somebody was told that it is settled
//! - nothing is given more often than the group allows
//!
//! And in the end: every record was given to somebody and is done, and a coordinator that is loaded says what the one
//! says that lived through the day. Each record for itself, with planted mistakes:
//! core/partition/src/share/tests/model.rs.

mod mistake;

pub use mistake::ShareMistake;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use barnabas_base::{
    DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex, ProducerId, Text, Uuid,
};
use barnabas_coordinator as coordinator;
use barnabas_coordinator::{
    BatchId, Record, SharePartitionKey, ShareState, ShareStateConfig, ShareStateEffect, ShareStateRequest,
    ShareStateResponse, ShareStateShard, Ticket as ShardTicket,
};
use barnabas_metadata::{Delta, Image};
use barnabas_partition::{
    AckBatch, AckType, Acquire, AcquireMode, Acquired, FetchedBatch, RecordState, ShareEffect,
    SharePartition, ShareSettings, StateBatch, StateEpoch, StateWrite, Ticket, WriteId, WrittenState,
};
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, TopicRecord};

use crate::broker::coordinators::now;
use crate::random::Random;

const STEPS: usize = 900;
const DELIVERIES_MAX: u16 = 4;
const LOCK_MS: u64 = 400;
const PATIENCE_MS: u64 = 150;

/// What one day came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShareDay {
    pub trace: u64,
    pub delivered: usize,
    pub settled: usize,
    pub leaders: usize,
    pub moves: usize,
}

/// What is on its way.
#[derive(Debug, Clone)]
enum Mail {
    Ask { leader: usize, number: u64, request: ShareStateRequest },
    Told { leader: usize, number: u64, response: ShareStateResponse },
}

/// One after the other, oldest first.
#[derive(Debug)]
struct Leader {
    epoch: LeaderEpoch,
    /// `None`: its state is not read yet.
    partition: Option<SharePartition>,
    is_fenced: bool,
    writes: VecDeque<(WriteId, StateWrite)>,
    /// What it waits for, until when.
    asked: Option<(u64, u64)>,
    /// Which records an acknowledgement settles.
    tickets: BTreeMap<Ticket, Vec<i64>>,
    given: Vec<(Text, Acquired)>,
}

#[allow(missing_debug_implementations, reason = "nobody looks at it")]
pub struct ShareWorld {
    random: Random,
    now: u64,
    mistake: Option<ShareMistake>,
    key: SharePartitionKey,
    image: Image,
    shard: ShareStateShard,
    /// What is on the coordinator's disk, and on its way there.
    log: Vec<Record>,
    pruned: usize,
    pending: BTreeMap<BatchId, Vec<Record>>,
    waiting: BTreeMap<ShardTicket, (usize, u64)>,
    leaders: Vec<Leader>,
    mail: Vec<Mail>,
    numbers: u64,
    log_end: i64,
    given: BTreeSet<i64>,
    /// Somebody was told so.
    settled: BTreeSet<i64>,
    day: ShareDay,
    is_calm: bool,
}

fn image(topic: Uuid) -> Image {
    let mut delta = Delta::new(Image::default());
    let topic_record = TopicRecord { name: "t".into(), topic_id: topic, ..TopicRecord::default() };
    let partition = PartitionRecord {
        partition_id: 0,
        topic_id: topic,
        replicas: vec![1],
        isr: vec![1],
        leader: 1,
        ..PartitionRecord::default()
    };
    for record in [MetadataRecord::Topic(topic_record), MetadataRecord::Partition(partition)] {
        delta.replay(&record).expect("invariant: a good record");
    }
    delta.apply().0
}

impl ShareWorld {
    pub fn new(seed: u64) -> Self {
        let topic = Uuid([7; 16]);
        let image = image(topic);
        let mut world = Self {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5ade),
            now: 1,
            mistake: None,
            key: SharePartitionKey { group: Text::from("g"), topic, partition: PartitionIndex(0) },
            shard: shard(&image),
            image,
            log: Vec::new(),
            pruned: 0,
            pending: BTreeMap::new(),
            waiting: BTreeMap::new(),
            leaders: Vec::new(),
            mail: Vec::new(),
            numbers: 0,
            log_end: 0,
            given: BTreeSet::new(),
            settled: BTreeSet::new(),
            day: ShareDay { trace: 0xcbf2_9ce4_8422_2325, ..ShareDay::default() },
            is_calm: false,
        };
        let effects = world.shard.activate(now(MonotonicMs(1)));
        world.carry_out(effects);
        let key = world.key.clone();
        let initialize = ShareStateRequest::Initialize { key, state_epoch: 1, start_offset: Offset::ZERO };
        let effects = world.shard.handle(initialize, ShardTicket(0), now(MonotonicMs(1)));
        world.carry_out(effects);
        world.settle_all();
        world.elect();
        world
    }

    /// The world in which a mistake is planted.
    #[must_use]
    pub fn with(self, mistake: ShareMistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// # Errors
    /// What did not hold.
    pub fn run(mut self) -> Result<ShareDay, String> {
        for _ in 0..STEPS {
            self.step()?;
        }
        self.finish()?;
        self.day.settled = self.settled.len();
        Ok(self.day)
    }

    fn note(&mut self, value: u64) {
        self.day.trace = (self.day.trace ^ value).wrapping_mul(0x0100_0000_01b3);
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += self.random.below(12) as u64;
        match self.random.below(100) {
            0..10 => self.log_end += 1 + self.random.below(5) as i64,
            10..40 => self.deliver()?,
            40..55 => self.settle(),
            55..75 => {
                let leader = self.random.below(self.leaders.len());
                self.fetch(leader)?;
            }
            75..90 => {
                let leader = self.random.below(self.leaders.len());
                self.acknowledge(leader)?;
            }
            90..94 => self.now += self.random.below(LOCK_MS as usize) as u64,
            94 | 95 if self.random.one_in(3) => self.elect(),
            96 if self.random.one_in(2) => self.move_coordinator(),
            _ => {}
        }
        self.tick()
    }

    /// A new leader comes; the last one goes on for a while.
    fn elect(&mut self) {
        let epoch = LeaderEpoch(self.leaders.len() as i32 + 1);
        self.day.leaders += 1;
        self.leaders.push(Leader {
            epoch,
            partition: None,
            is_fenced: false,
            writes: VecDeque::new(),
            asked: None,
            tickets: BTreeMap::new(),
            given: Vec::new(),
        });
        if let Some(old) = self.leaders.len().checked_sub(3) {
            self.leaders[old].is_fenced = true;
        }
    }

    fn move_coordinator(&mut self) {
        self.day.moves += 1;
        // What was on its way is in the log or not.
        for records in std::mem::take(&mut self.pending).into_values() {
            if !self.random.one_in(2) {
                break;
            }
            self.log.extend(records);
        }
        let mut fresh = shard(&self.image);
        let forgets = usize::from(self.mistake == Some(ShareMistake::ForgetsTheLast));
        let upto = self.log.len().saturating_sub(forgets).max(self.pruned);
        for (offset, record) in self.log.iter().enumerate().take(upto).skip(self.pruned) {
            fresh
                .replay(Offset(offset as i64), &record.key, record.value.as_ref())
                .expect("invariant: a coordinator reads what it wrote");
        }
        let old = std::mem::replace(&mut self.shard, fresh);
        let mut effects = old.unload();
        effects.extend(self.shard.activate(now(MonotonicMs(self.now))));
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<ShareStateEffect>) {
        for effect in effects {
            match effect {
                ShareStateEffect::Append { batch, records } => {
                    self.pending.insert(batch, records);
                }
                ShareStateEffect::Answer { ticket, response } => {
                    if let Some((leader, number)) = self.waiting.remove(&ticket) {
                        self.mail.push(Mail::Told { leader, number, response });
                    }
                }
                ShareStateEffect::Prune { before } => {
                    self.pruned = self.pruned.max(before.get() as usize).min(self.log.len());
                }
            }
        }
    }

    /// The oldest batch gets to disk, or does not.
    fn settle(&mut self) {
        let Some((batch, records)) = self.pending.pop_first() else { return };
        let effects = if !self.is_calm && self.random.one_in(12) {
            self.shard.failed(batch, ErrorCode::NotEnoughReplicas, now(MonotonicMs(self.now)))
        } else {
            let base = Offset(self.log.len() as i64);
            self.log.extend(records);
            self.shard.durable(batch, base, now(MonotonicMs(self.now)))
        };
        self.carry_out(effects);
    }

    fn settle_all(&mut self) {
        let calm = std::mem::replace(&mut self.is_calm, true);
        while !self.pending.is_empty() {
            self.settle();
        }
        self.is_calm = calm;
    }

    fn deliver(&mut self) -> Result<(), String> {
        if self.mail.is_empty() {
            return Ok(());
        }
        let at = self.random.below(self.mail.len());
        let repeats = !self.is_calm && self.random.one_in(10);
        let mail = if repeats { self.mail[at].clone() } else { self.mail.swap_remove(at) };
        if !self.is_calm && self.random.one_in(20) {
            return Ok(());
        }
        match mail {
            Mail::Ask { leader, number, request } => {
                self.ask(leader, number, request);
                Ok(())
            }
            Mail::Told { leader, number, response } => self.told(leader, number, response),
        }
    }

    fn ask(&mut self, leader: usize, number: u64, mut request: ShareStateRequest) {
        self.numbers += 1;
        let ticket = ShardTicket(self.numbers);
        let newest = LeaderEpoch(self.leaders.len() as i32);
        if let (ShareStateRequest::Write { leader_epoch, .. }, Some(ShareMistake::TakesAnyLeader)) =
            (&mut request, self.mistake)
        {
            *leader_epoch = newest;
        }
        self.waiting.insert(ticket, (leader, number));
        let is_write = matches!(request, ShareStateRequest::Write { .. });
        let effects = self.shard.handle(request, ticket, now(MonotonicMs(self.now)));
        let appends = effects.iter().any(|effect| matches!(effect, ShareStateEffect::Append { .. }));
        if self.mistake == Some(ShareMistake::AnswersEarly) && is_write && appends {
            self.waiting.remove(&ticket);
            self.mail.push(Mail::Told { leader, number, response: ShareStateResponse::Done(Ok(())) });
        }
        self.carry_out(effects);
    }

    fn told(&mut self, at: usize, number: u64, response: ShareStateResponse) -> Result<(), String> {
        let leader = &mut self.leaders[at];
        if leader.is_fenced || leader.asked.is_none_or(|(asked, _)| asked != number) {
            return Ok(());
        }
        leader.asked = None;
        match response {
            ShareStateResponse::Read(Ok(state)) if leader.partition.is_none() => self.load(at, &state),
            ShareStateResponse::Read(Err(refusal)) if refusal.code == ErrorCode::FencedLeaderEpoch => {
                self.leaders[at].is_fenced = true;
                Ok(())
            }
            ShareStateResponse::Done(result) => {
                self.written(at, result.map_err(|refusal| refusal.code), true)
            }
            _ => Ok(()),
        }
    }

    fn load(&mut self, at: usize, state: &Arc<ShareState>) -> Result<(), String> {
        let batch = |batch: &coordinator::StateBatch| StateBatch {
            first: batch.first,
            last: batch.last,
            state: RecordState::from_code(batch.delivery_state).unwrap_or(RecordState::Available),
            delivery_count: batch.delivery_count as u16,
        };
        let forgets = self.mistake == Some(ShareMistake::ForgetsBatches);
        let written = WrittenState {
            state_epoch: StateEpoch(state.state_epoch),
            start: state.start_offset,
            batches: if forgets { Vec::new() } else { state.batches.iter().map(batch).collect() },
        };
        let settings = ShareSettings {
            lock: DurationMs(LOCK_MS as i64),
            deliveries_max: DELIVERIES_MAX,
            in_flight_max: 40,
            ..ShareSettings::default()
        };
        let mut effects = Vec::new();
        let epoch = self.leaders[at].epoch;
        let partition = SharePartition::load(&written, epoch, settings, &mut effects);
        let partition = partition.map_err(|bad| format!("{bad} in {written:?}"))?;
        self.leaders[at].partition = Some(partition);
        self.take(at, effects)
    }

    /// The oldest write is done, or is not: nobody may know.
    fn written(&mut self, at: usize, result: Result<(), ErrorCode>, tells: bool) -> Result<(), String> {
        let leader = &mut self.leaders[at];
        let Some((id, _)) = leader.writes.pop_front() else { return Ok(()) };
        if let (Err(ErrorCode::FencedLeaderEpoch | ErrorCode::FencedStateEpoch), true) = (result, tells) {
            leader.is_fenced = true;
            return Ok(());
        }
        let Some(partition) = &mut leader.partition else { return Ok(()) };
        let mut effects = Vec::new();
        partition.written(id, result, MonotonicMs(self.now), &mut effects);
        self.take(at, effects)
    }

    fn take(&mut self, at: usize, effects: Vec<ShareEffect>) -> Result<(), String> {
        for effect in effects {
            match effect {
                ShareEffect::Write(id, write) => self.leaders[at].writes.push_back((id, write)),
                ShareEffect::Answer(ticket, answer) => {
                    let settles = self.leaders[at].tickets.remove(&ticket).unwrap_or_default();
                    if answer.is_ok() {
                        self.note(ticket.0);
                        self.settled.extend(settles);
                    }
                }
                ShareEffect::DeadLetter { .. } => return Err("there are no dead letters".to_owned()),
                ShareEffect::Fetchable => {}
            }
        }
        Ok(())
    }

    /// What time brings to leaders: locks that end, what is to be asked, answers that do not come.
    fn tick(&mut self) -> Result<(), String> {
        let effects = self.shard.tick(now(MonotonicMs(self.now)));
        self.carry_out(effects);
        for at in 0..self.leaders.len() {
            let time = self.now;
            let leader = &mut self.leaders[at];
            if leader.is_fenced {
                continue;
            }
            if let Some(partition) = &mut leader.partition {
                let mut effects = Vec::new();
                partition.expire(MonotonicMs(time), &mut effects);
                self.take(at, effects)?;
            }
            let leader = &mut self.leaders[at];
            if leader.asked.is_some_and(|(_, until)| until <= time) {
                leader.asked = None;
                if leader.partition.is_some() {
                    self.written(at, Err(ErrorCode::CoordinatorNotAvailable), false)?;
                }
            }
            self.ask_coordinator(at);
        }
        Ok(())
    }

    fn ask_coordinator(&mut self, at: usize) {
        let key = self.key.clone();
        let leader = &mut self.leaders[at];
        if leader.asked.is_some() {
            return;
        }
        let leader_epoch = leader.epoch;
        let request = match (&leader.partition, leader.writes.front()) {
            (None, _) => ShareStateRequest::Read { key, leader_epoch },
            (Some(_), Some((_, write))) => ShareStateRequest::Write {
                key,
                state_epoch: write.state_epoch.0,
                leader_epoch: write.leader_epoch,
                start_offset: write.start,
                delivery_complete_count: write.delivery_complete,
                batches: write.batches.iter().map(kept).collect(),
            },
            (Some(_), None) => return,
        };
        self.numbers += 1;
        let number = self.numbers;
        self.leaders[at].asked = Some((number, self.now + PATIENCE_MS));
        self.mail.push(Mail::Ask { leader: at, number, request });
    }

    fn fetch(&mut self, at: usize) -> Result<(), String> {
        let member = Text::from(["a", "b", "c"][self.random.below(3)]);
        let records_max = 1 + self.random.below(6) as i64;
        self.fetch_for(at, &member, records_max)
    }

    fn fetch_for(&mut self, at: usize, member: &Text, records_max: i64) -> Result<(), String> {
        let (log_end, time) = (self.log_end, self.now);
        let leader = &mut self.leaders[at];
        let Some(partition) = leader.partition.as_mut().filter(|_| !leader.is_fenced) else { return Ok(()) };
        if !partition.can_acquire() {
            return Ok(());
        }
        let from = partition.next_fetch_offset();
        let last = Offset((from.get() + 9).min(log_end - 1));
        if last < from {
            return Ok(());
        }
        let producer_id = ProducerId::NONE;
        let fetched =
            FetchedBatch { base: from, last, producer_id, is_transactional: false, is_abort: false };
        let mode = AcquireMode::RecordLimit;
        let ask = Acquire { member, mode, records_max, batch_size: 3, from };
        let acquired = partition.acquire(&ask, &[fetched], &[], MonotonicMs(time));
        for of in acquired {
            self.check_given(at, &of)?;
            self.leaders[at].given.push((member.clone(), of));
        }
        Ok(())
    }

    fn check_given(&mut self, at: usize, of: &Acquired) -> Result<(), String> {
        if of.delivery_count > DELIVERIES_MAX {
            return Err(format!("{of:?} is given too often"));
        }
        let newest = self.leaders.iter().rposition(|leader| leader.partition.is_some());
        for offset in of.first.get()..=of.last.get() {
            self.day.delivered += 1;
            self.given.insert(offset);
            self.note(offset as u64);
            // An older leader may not know that it is none.
            if newest == Some(at) && self.settled.contains(&offset) {
                return Err(format!("{offset} is settled, and given by leader {at}"));
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, at: usize) -> Result<(), String> {
        let count = self.leaders[at].given.len();
        if count == 0 || self.leaders[at].is_fenced {
            return Ok(());
        }
        let which = self.random.below(count);
        let (member, of) = self.leaders[at].given.swap_remove(which);
        let said = match self.random.below(10) {
            0..6 => AckType::Accept,
            6 => AckType::Reject,
            7 | 8 => AckType::Release,
            // It is forgotten, and its lock ends.
            _ => return Ok(()),
        };
        self.acknowledge_as(at, &member, &of, said)
    }

    fn acknowledge_as(
        &mut self,
        at: usize,
        member: &Text,
        of: &Acquired,
        said: AckType,
    ) -> Result<(), String> {
        self.numbers += 1;
        let (ticket, time) = (Ticket(self.numbers), self.now);
        let leader = &mut self.leaders[at];
        let Some(partition) = &mut leader.partition else { return Ok(()) };
        // What is said of records below the start is taken, and changes nothing.
        let settles = matches!(said, AckType::Accept | AckType::Reject);
        let first = of.first.max(partition.start());
        let offsets: Vec<i64> = if settles { (first.get()..=of.last.get()).collect() } else { Vec::new() };
        let batch = AckBatch { first: of.first, last: of.last, types: vec![said] };
        let mut effects = Vec::new();
        leader.tickets.insert(ticket, offsets);
        partition.acknowledge(member, &[batch], ticket, MonotonicMs(time), &mut effects);
        let is_taken = !effects.iter().any(|effect| matches!(effect, ShareEffect::Answer(_, Err(_))));
        if self.mistake == Some(ShareMistake::TellsEarly)
            && is_taken
            && let Some(settles) = self.leaders[at].tickets.get(&ticket)
        {
            self.settled.extend(settles.clone());
        }
        self.take(at, effects)
    }

    /// The last leader gives everything to one member, which accepts it.
    fn finish(&mut self) -> Result<(), String> {
        self.is_calm = true;
        let at = self.leaders.len() - 1;
        let member = Text::from("z");
        for _ in 0..20_000 {
            let is_done = self.leaders[at]
                .partition
                .as_ref()
                .is_some_and(|partition| partition.start().get() >= self.log_end && partition.pending() == 0);
            if is_done && self.pending.is_empty() && self.mail.is_empty() {
                return self.at_rest();
            }
            self.now += 7;
            self.deliver()?;
            self.settle();
            let given = std::mem::take(&mut self.leaders[at].given);
            for (_, of) in given.into_iter().filter(|(owner, _)| *owner == member) {
                self.acknowledge_as(at, &member, &of, AckType::Accept)?;
            }
            self.fetch_for(at, &member, 6)?;
            self.tick()?;
        }
        Err(format!("the share-partition does not come to its end: {:?}", self.leaders[at]))
    }

    fn at_rest(&mut self) -> Result<(), String> {
        if let Some(lost) = (0..self.log_end).find(|offset| !self.given.contains(offset)) {
            return Err(format!("{lost} was given to nobody"));
        }
        self.mistake = None;
        let before = self.shard.committed(&self.key).cloned();
        self.move_coordinator();
        let after = self.shard.committed(&self.key).cloned();
        if before != after {
            return Err(format!("{before:?} is read back as {after:?}"));
        }
        Ok(())
    }
}

fn shard(image: &Image) -> ShareStateShard {
    let config = ShareStateConfig {
        updates_per_snapshot: 5,
        write_timeout: DurationMs(200),
        prune_interval: DurationMs(100),
        cold_snapshot_interval: DurationMs(1_000),
        ..ShareStateConfig::default()
    };
    let mut shard = ShareStateShard::new(config);
    shard.image_changed(image);
    shard
}

fn kept(batch: &StateBatch) -> coordinator::StateBatch {
    coordinator::StateBatch {
        first: batch.first,
        last: batch.last,
        delivery_state: batch.state.code(),
        delivery_count: batch.delivery_count as i16,
    }
}
