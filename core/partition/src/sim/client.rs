//! An idempotent producer that never gives up, and what it was told.

use std::collections::VecDeque;

use barnabas_base::{ErrorCode, MonotonicMs, Offset, ProducerEpoch, ProducerId, Sequence, TimestampMs};

use super::Random;
use crate::producers::BATCHES_REMEMBERED;
use crate::{BatchInfo, BatchKind};

#[derive(Debug)]
pub(super) struct InFlight {
    pub batch: BatchInfo,
    /// When it was last sent.
    pub sent: Option<MonotonicMs>,
    /// Where it lies, if it has been answered: it stays here until those before it have been, too.
    pub base: Option<Offset>,
}

#[derive(Debug)]
pub(super) struct Client {
    id: i64,
    next: i32,
    /// From the oldest batch on that has no answer. Never more than a partition remembers of a producer, or the oldest would not be known
    /// again and be out of order for good: Kafka's clients hold back likewise (`max.in.flight.requests.per.connection`, and nothing new
    /// while something is sent again).
    pub in_flight: VecDeque<InFlight>,
    /// Where the last batch lies before which all were answered: what lies below is not sent again.
    pub settled: Offset,
    pub answered: usize,
    /// Where it reads next.
    pub reads_from: Offset,
    pub is_done: bool,
}

impl Client {
    pub fn new(id: usize) -> Self {
        Self {
            id: id as i64 + 1,
            next: 0,
            in_flight: VecDeque::new(),
            settled: Offset::ZERO,
            answered: 0,
            reads_from: Offset::ZERO,
            is_done: false,
        }
    }

    pub fn produce(&mut self, random: &mut Random) {
        if self.is_done || self.in_flight.len() == BATCHES_REMEMBERED || !random.one_in(4) {
            return;
        }
        let offsets = 1 + random.below(3) as i32;
        let batch = BatchInfo {
            offsets,
            max_timestamp: TimestampMs(0),
            producer_id: ProducerId(self.id),
            producer_epoch: ProducerEpoch(0),
            base_sequence: Sequence(self.next),
            is_transactional: false,
            kind: BatchKind::Data,
        };
        self.next += offsets;
        self.in_flight.push_back(InFlight { batch, sent: None, base: None });
    }

    /// What is to be sent: all that is not answered, if any of it was not sent yet or has waited for too long. Always from the oldest
    /// on: who does not know a producer takes any sequence of it.
    pub fn due(&mut self, now: MonotonicMs) -> Vec<BatchInfo> {
        let is_late = |sent: MonotonicMs| now.since(sent).0 > 120;
        if self.in_flight.front().is_some_and(|first| first.sent.is_some_and(is_late)) {
            self.in_flight.iter_mut().for_each(|one| one.sent = None);
        }
        let mut open = self.in_flight.iter_mut().filter(|one| one.base.is_none());
        if open.all(|one| one.sent.is_some()) {
            return Vec::new();
        }
        let open = self.in_flight.iter_mut().filter(|one| one.base.is_none());
        open.map(|one| {
            one.sent = Some(now);
            one.batch
        })
        .collect()
    }

    /// The answer to the batch that begins with sequence `attempt`.
    pub fn answered(&mut self, attempt: u64, answer: Result<Offset, ErrorCode>) {
        let is_it = |one: &InFlight| one.batch.base_sequence.0 as u64 == attempt;
        let Some(at) = self.in_flight.iter().position(is_it) else { return };
        match answer {
            Ok(base) => {
                self.in_flight[at].base = Some(base);
                while let Some(base) = self.in_flight.front().and_then(|first| first.base) {
                    self.in_flight.pop_front();
                    self.answered += 1;
                    self.settled = self.settled.max(base);
                }
            }
            // All from this one on again, in their order.
            Err(_) => self.in_flight.iter_mut().skip(at).for_each(|one| one.sent = None),
        }
    }
}
