//! Days of one share-partition: its leaders (core/replica over core/partition), an old one beside the new one that it
//! has not heard of;
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

mod leader;
mod log;
mod members;
mod mistake;

pub use mistake::ShareMistake;

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{DurationMs, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex, Text, Uuid};
use barnabas_coordinator::{
    BatchId, Record, SharePartitionKey, ShareStateConfig, ShareStateEffect, ShareStateRequest,
    ShareStateResponse, ShareStateShard, Ticket as ShardTicket,
};
use barnabas_metadata::{Delta, Image};
use barnabas_partition::{AckType, AcquireMode, Isolation, PartitionKey};
use barnabas_replica::ShareKey;
use barnabas_wire::messages::{MetadataRecord, PartitionRecord, TopicRecord};

use crate::broker::coordinators::now;
use crate::random::Random;
use leader::Leader;
use log::PlayedLog;

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
    /// Runs of records that were copied as they were given up.
    pub letters: usize,
}

impl ShareDay {
    pub fn add(&mut self, day: &Self) {
        self.delivered += day.delivered;
        self.settled += day.settled;
        self.leaders += day.leaders;
        self.moves += day.moves;
        self.letters += day.letters;
    }
}

/// What is on its way.
#[derive(Debug, Clone)]
enum Mail {
    Ask { leader: usize, number: u64, request: ShareStateRequest },
    Told { leader: usize, number: u64, response: ShareStateResponse },
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
    state_log: Vec<Record>,
    pruned: usize,
    pending: BTreeMap<BatchId, Vec<Record>>,
    waiting: BTreeMap<ShardTicket, (usize, u64)>,
    leaders: Vec<Leader>,
    mail: Vec<Mail>,
    numbers: u64,
    log: PlayedLog,
    /// Records that are given up are copied first.
    has_letters: bool,
    given: BTreeSet<i64>,
    /// Somebody was told so.
    settled: BTreeSet<i64>,
    day: ShareDay,
    is_calm: bool,
    /// All of it is printed.
    is_printed: bool,
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
        let isolation =
            if seed.is_multiple_of(2) { Isolation::ReadUncommitted } else { Isolation::ReadCommitted };
        let mut world = Self {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5ade),
            now: 1,
            mistake: None,
            key: SharePartitionKey { group: Text::from("g"), topic, partition: PartitionIndex(0) },
            shard: shard(&image),
            image,
            state_log: Vec::new(),
            pruned: 0,
            pending: BTreeMap::new(),
            waiting: BTreeMap::new(),
            leaders: Vec::new(),
            mail: Vec::new(),
            numbers: 0,
            log: PlayedLog::new(isolation),
            has_letters: seed % 4 < 2,
            given: BTreeSet::new(),
            settled: BTreeSet::new(),
            day: ShareDay { trace: 0xcbf2_9ce4_8422_2325, ..ShareDay::default() },
            is_calm: false,
            is_printed: false,
        };
        let effects = world.shard.activate(now(MonotonicMs(1)));
        world.carry_out(effects);
        let key = world.key.clone();
        let initialize = ShareStateRequest::Initialize { key, state_epoch: 1, start_offset: Offset::ZERO };
        let effects = world.shard.handle(initialize, ShardTicket(0), now(MonotonicMs(1)));
        world.carry_out(effects);
        world.settle_all();
        world.elect().expect("invariant: there was no leader before");
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
            0..10 => self.log.append(&mut self.random),
            10..40 => self.deliver()?,
            40..55 => self.settle(),
            55..75 => {
                let leader = self.random.below(self.leaders.len());
                self.fetch(leader)?;
            }
            75..88 => {
                let leader = self.random.below(self.leaders.len());
                self.acknowledge(leader)?;
            }
            88 | 89 if self.random.one_in(3) => {
                let leader = self.random.below(self.leaders.len());
                self.leave(leader)?;
            }
            90..94 => self.now += self.random.below(LOCK_MS as usize) as u64,
            94 | 95 if self.random.one_in(3) => self.elect()?,
            96 if self.random.one_in(2) => self.move_coordinator(),
            97 if self.random.one_in(4) => self.log.delete_some(&mut self.random),
            98 if self.random.one_in(4) => {
                let settings = self.settings();
                self.leaders.iter_mut().for_each(|leader| leader.shares.set_settings(|_| settings));
            }
            _ => {}
        }
        self.tick()
    }

    /// A new leader comes; the last one goes on for a while.
    fn elect(&mut self) -> Result<(), String> {
        let epoch = LeaderEpoch(self.leaders.len() as i32 + 1);
        self.day.leaders += 1;
        self.leaders.push(Leader::new(epoch));
        let Some(old) = self.leaders.len().checked_sub(3) else { return Ok(()) };
        // It hears so, or stops.
        let stops = self.random.one_in(2);
        self.shares_step(old, |shares, effects, _| match stops {
            true => shares.discard_all(effects),
            false => shares.keep_led(|_| None, effects),
        })?;
        if let leader @ Leader { is_fenced: false, .. } = &mut self.leaders[old] {
            leader.is_fenced = true;
            if !leader.shares.is_empty() || leader.shares.in_flight() != (0, 0) {
                return Err(format!("leader {old} leads no more, and keeps {:?}", leader.shares));
            }
        }
        Ok(())
    }

    fn move_coordinator(&mut self) {
        self.day.moves += 1;
        // What was on its way is in the log or not.
        for records in std::mem::take(&mut self.pending).into_values() {
            if !self.random.one_in(2) {
                break;
            }
            self.state_log.extend(records);
        }
        let mut fresh = shard(&self.image);
        let forgets = usize::from(self.mistake == Some(ShareMistake::ForgetsTheLast));
        let upto = self.state_log.len().saturating_sub(forgets).max(self.pruned);
        for (offset, record) in self.state_log.iter().enumerate().take(upto).skip(self.pruned) {
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
                    self.pruned = self.pruned.max(before.get() as usize).min(self.state_log.len());
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
            let base = Offset(self.state_log.len() as i64);
            self.state_log.extend(records);
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

    /// What time brings to the coordinator and to leaders.
    fn tick(&mut self) -> Result<(), String> {
        let effects = self.shard.tick(now(MonotonicMs(self.now)));
        self.carry_out(effects);
        self.tick_leaders()
    }

    fn share_key(&self) -> ShareKey {
        let SharePartitionKey { group, topic, partition } = self.key.clone();
        ShareKey { group, partition: PartitionKey { topic, partition } }
    }

    /// The world of which everything is printed as it happens.
    #[must_use]
    pub fn told_of(self) -> Self {
        Self { is_printed: true, ..self }
    }

    /// The last leader gives everything to one member, which accepts it.
    fn finish(&mut self) -> Result<(), String> {
        self.is_calm = true;
        let at = self.leaders.len() - 1;
        let member = Text::from("z");
        for _ in 0..20_000 {
            let (key, end) = (self.share_key(), Offset(self.log.end()));
            let shares = &mut self.leaders[at].shares;
            let is_done = shares.can_acquire_before(&key, end) == Some(false) && shares.in_flight() == (0, 0);
            let is_idle = self.leaders[at].commands.is_empty() && self.leaders[at].todo.is_empty();
            if is_done && is_idle && self.pending.is_empty() && self.mail.is_empty() {
                return self.at_rest();
            }
            self.now += 7;
            self.deliver()?;
            self.settle();
            let given = std::mem::take(&mut self.leaders[at].given);
            for (_, of, until) in given.into_iter().filter(|(owner, ..)| *owner == member) {
                self.acknowledge_as(at, &member, (&of, until), AckType::Accept)?;
            }
            self.fetch_for(at, &member, 6, AcquireMode::RecordLimit)?;
            self.tick()?;
        }
        Err(format!("the share-partition does not come to its end: {:?}", self.leaders[at]))
    }

    fn at_rest(&mut self) -> Result<(), String> {
        let is_lost = |offset: &i64| self.log.is_owed(*offset) && !self.given.contains(offset);
        if let Some(lost) = (0..self.log.end()).find(is_lost) {
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
