//! A thousand random lives of a partition beside a slow model that only remembers what was appended.
//!
//! What is compared: offsets are given out once and without gaps; a retry gets the first copy's offset; every ticket is
//! answered once, and with success only when what it waits for has happened.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use barnabas_base::{
    BrokerEpoch, BrokerId, LeaderEpoch, LeaderEpochs, MonotonicMs, Offset, ProducerEpoch, ProducerId,
    Sequence, TimestampMs,
};
use barnabas_partition::*;

/// xorshift64*: the same seed, the same life.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    }
}

/// What the model knows of one batch: where it lies, whose it is.
#[derive(Clone)]
struct Copy {
    base: i64,
    end: i64,
    batch: BatchInfo,
}

struct Life {
    random: Random,
    partition: Partition,
    effects: Vec<Effect>,
    epoch: i32,
    in_sync: usize,
    written: i64,
    durable: i64,
    /// What each follower has.
    follower_ends: [i64; 2],
    batches: Vec<Copy>,
    /// Ticket → acks and where its batch lies.
    waiting: BTreeMap<u64, (Acks, i64, i64)>,
    tickets: u64,
    answered: usize,
    retried: usize,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut life = Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            partition: Partition::new(),
            effects: Vec::new(),
            epoch: 0,
            in_sync: 3,
            written: 0,
            durable: 0,
            follower_ends: [-1; 2],
            batches: Vec::new(),
            waiting: BTreeMap::new(),
            tickets: 0,
            answered: 0,
            retried: 0,
        };
        life.lead();
        life
    }

    fn log_end(&self) -> i64 {
        self.batches.last().map_or(0, |copy| copy.end)
    }

    /// Up to where all in-sync replicas have everything.
    fn safe_end(&self) -> i64 {
        self.follower_ends[..self.in_sync - 1].iter().copied().fold(self.durable, i64::min)
    }

    fn lead(&mut self) {
        let follower = |index: usize| FollowerState {
            broker: BrokerId(index as i32 + 2),
            in_sync: index + 1 < self.in_sync,
            registered: None,
        };
        let followers = [follower(0), follower(1)];
        let epoch = LeaderEpoch(self.epoch);
        let leadership = Leadership { epoch, followers: &followers, ..Leadership::default() };
        assert!(self.partition.become_leader(&leadership, &mut self.effects));
    }

    fn produce(&mut self) {
        let producer = self.random.below(3) as i64;
        let mine = || self.batches.iter().filter(|copy| copy.batch.producer_id.get() == producer);
        let count = mine().count();
        // Now and then again what was sent before, among the five that must be remembered.
        if count > 0 && self.random.below(4) == 0 {
            let back = self.random.below(count.min(5) as u64) as usize;
            let first = self.batches.iter().filter(|copy| copy.batch.producer_id.get() == producer);
            let first = first.rev().nth(back).unwrap().clone();
            return self.append(first.batch, Some(first.base));
        }
        let next = mine()
            .next_back()
            .map_or(Sequence(i32::MAX - 20), |copy| copy.batch.base_sequence.plus(copy.batch.offsets));
        let batch = BatchInfo {
            offsets: 1 + self.random.below(9) as i32,
            max_timestamp: TimestampMs(0),
            producer_id: ProducerId(producer),
            producer_epoch: ProducerEpoch(0),
            base_sequence: next,
            is_transactional: false,
            kind: BatchKind::Data,
        };
        self.append(batch, None);
    }

    fn append(&mut self, batch: BatchInfo, first: Option<i64>) {
        self.tickets += 1;
        let acks = [Acks::None, Acks::Leader, Acks::All][self.random.below(3) as usize];
        let how = Append {
            origin: Origin::Client,
            acks,
            ticket: Ticket(self.tickets),
            deadline: MonotonicMs(self.random.below(1000)),
            leader_epoch: None,
            verified: false,
            follows_refused: false,
        };
        let expected = first.unwrap_or(self.log_end());
        let end = expected + i64::from(batch.offsets);
        if acks != Acks::None {
            self.waiting.insert(self.tickets, (acks, expected, end));
        }
        match self.partition.append(&batch, &how, &mut self.effects).unwrap() {
            Placed::Write { base, .. } => {
                assert_eq!((base.get(), first), (expected, None));
                self.batches.push(Copy { base: expected, end, batch });
            }
            Placed::Duplicate { base } => {
                assert_eq!(Some(base.get()), first);
                self.retried += 1;
            }
        }
    }

    fn step(&mut self) {
        let effects = &mut self.effects;
        match self.random.below(9) {
            0..=3 => self.produce(),
            4 => {
                self.written += self.random.below((self.log_end() - self.written) as u64 + 1) as i64;
                self.partition.written(Offset(self.written), &mut self.effects);
            }
            5 => {
                self.durable += self.random.below((self.written - self.durable) as u64 + 1) as i64;
                self.partition.durable(Offset(self.durable), effects);
            }
            6 => {
                let which = self.random.below(2) as usize;
                let end = self.random.below(self.log_end() as u64 + 1) as i64;
                let end = end.max(self.follower_ends[which]);
                self.follower_ends[which] = end;
                let broker = BrokerId(which as i32 + 2);
                let fetch = FollowerFetch {
                    broker,
                    broker_epoch: BrokerEpoch::NONE,
                    registered: None,
                    leader_epoch: None,
                    offset: Offset(end),
                    last_epoch: None,
                    log_start: Offset::ZERO,
                    now: MonotonicMs(0),
                };
                self.partition.follower_fetch(&fetch, &LeaderEpochs::default(), &mut self.effects).unwrap();
            }
            7 => {
                self.in_sync = 1 + self.random.below(3) as usize;
                if self.random.below(3) == 0 {
                    // A new epoch knows nothing of its followers.
                    self.epoch += 1;
                    self.follower_ends = [-1; 2];
                }
                self.lead();
            }
            _ => {
                let now = MonotonicMs(self.random.below(300));
                self.partition.expire(now, effects);
            }
        }
        self.judge();
    }

    fn judge(&mut self) {
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::Answer { ticket, answer } => {
                    let known = self.waiting.remove(&ticket.0);
                    let (acks, base, end) = known.unwrap_or_else(|| panic!("{ticket:?} answered twice"));
                    self.answered += 1;
                    match answer {
                        Ok(acked) if acks == Acks::Leader => {
                            assert!(acked.base.get() == base && end <= self.written);
                        }
                        Ok(acked) => {
                            assert!(acked.base.get() == base && end <= self.partition.high_watermark().get());
                        }
                        Err(refusal) => assert_eq!((refusal, acks), (Refusal::TimedOut, Acks::All)),
                    }
                }
                // Everyone who counts has everything below, or had when it moved.
                Effect::HighWatermark(to) => assert!(to.get() <= self.safe_end()),
                // Replicas are in sync here that never had what is safe.
                Effect::LastStable(_) | Effect::AlterIsr => {}
                other => panic!("an answer without a question: {other:?}"),
            }
        }
        assert_eq!(self.partition.log_end().get(), self.log_end());
        assert_eq!(self.partition.waiting(), self.waiting.len());
    }

    /// In the end everything is safe, and nobody is left waiting.
    fn end(mut self) -> (usize, usize) {
        self.in_sync = 1;
        self.lead();
        self.partition.written(Offset(self.log_end()), &mut self.effects);
        self.written = self.log_end();
        self.durable = self.log_end();
        self.partition.durable(Offset(self.durable), &mut self.effects);
        self.judge();
        assert!(self.waiting.is_empty());
        (self.answered, self.retried)
    }
}

#[test]
fn a_partition_agrees_with_the_slow_model() {
    let (mut answered, mut retried) = (0, 0);
    for seed in 0..1000 {
        let mut life = Life::new(seed);
        for _ in 0..200 {
            life.step();
        }
        let (more_answered, more_retried) = life.end();
        answered += more_answered;
        retried += more_retried;
    }
    assert!(answered > 50_000 && retried > 10_000, "{answered} answered, {retried} of them retries");
}
