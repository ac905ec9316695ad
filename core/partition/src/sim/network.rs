//! Messages on their way: late, lost, doubled, cut off one way. Not doubled is what a leader asks the controller, and neither it nor its
//! answer comes once the leader asks again: brokers reset a connection to a controller that they give up. Kafka's protocol has nothing against such
//! copies: one of a question that was refused may be granted later, when the leader counts on the refusal.

use std::collections::BTreeMap;

use barnabas_base::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionEpoch};

use super::{Batch, Place, Random};
use crate::{BatchInfo, FetchPosition, IsrChange};

#[derive(Debug, Clone)]
pub(super) enum Message {
    Fetch {
        life: BrokerEpoch,
        position: FetchPosition,
    },
    Fetched {
        position: FetchPosition,
        answer: Fetched,
    },
    /// Where does your log start and end?
    ListOffsets {
        position: FetchPosition,
    },
    Offsets {
        position: FetchPosition,
        start: Offset,
        end: Offset,
    },
    AlterIsr {
        life: BrokerEpoch,
        change: IsrChange,
    },
    IsrAltered {
        number: u32,
        answer: Result<Altered, ErrorCode>,
    },
    /// All that is not answered, oldest first.
    Produce {
        batches: Vec<BatchInfo>,
    },
    Produced {
        attempt: u64,
        answer: Result<Offset, ErrorCode>,
    },
    Read {
        from: Offset,
    },
    Records {
        batches: Vec<Batch>,
        end: Offset,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Fetched {
    Records { batches: Vec<Batch>, high_watermark: Offset, log_start: Offset },
    Diverging { epoch: LeaderEpoch, end: Offset },
    Refused(ErrorCode),
}

#[derive(Debug, Clone)]
pub(super) struct Altered {
    pub leader_epoch: LeaderEpoch,
    pub partition_epoch: PartitionEpoch,
    pub in_sync: Vec<BrokerId>,
}

#[derive(Debug, Clone)]
pub(super) struct Letter {
    pub from: Place,
    pub to: Place,
    pub message: Message,
}

#[derive(Debug, Default)]
pub(super) struct Network {
    on_its_way: BTreeMap<(MonotonicMs, u64), Letter>,
    sent: u64,
    /// Nothing goes from the first to the second.
    cuts: Vec<(Place, Place)>,
    pub is_calm: bool,
}

/// The longest that a message is on its way.
pub(super) const LATE_MS: u64 = 300;

impl Network {
    pub fn send(&mut self, random: &mut Random, now: MonotonicMs, letter: Letter) {
        if matches!(letter.message, Message::AlterIsr { .. }) {
            self.reset(letter.from);
        }
        if !self.is_calm && random.one_in(25) {
            return;
        }
        let is_question = matches!(letter.message, Message::AlterIsr { .. });
        let copies = if !self.is_calm && random.one_in(20) && !is_question { 2 } else { 1 };
        for _ in 0..copies {
            let late =
                if !self.is_calm && random.one_in(15) { random.below(LATE_MS) } else { random.below(8) };
            self.sent += 1;
            let at = MonotonicMs(now.0 + 1 + late);
            self.on_its_way.insert((at, self.sent), letter.clone());
        }
    }

    fn reset(&mut self, from: Place) {
        let is_given_up = |letter: &Letter| match letter.message {
            Message::AlterIsr { .. } => letter.from == from,
            Message::IsrAltered { .. } => letter.to == from,
            _ => false,
        };
        self.on_its_way.retain(|_, letter| !is_given_up(letter));
    }

    /// What arrives by `now`, but for what is cut off.
    pub fn receive(&mut self, now: MonotonicMs) -> Option<Letter> {
        loop {
            let first = self.on_its_way.first_entry().filter(|entry| entry.key().0 <= now)?;
            let letter = first.remove();
            if !self.is_cut(letter.from, letter.to) {
                return Some(letter);
            }
        }
    }

    pub fn is_cut(&self, from: Place, to: Place) -> bool {
        self.cuts.contains(&(from, to))
    }

    pub fn cut(&mut self, from: Place, to: Place) {
        self.cuts.push((from, to));
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
    }
}
