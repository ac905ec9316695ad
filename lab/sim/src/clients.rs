//! Idempotent producers that never give up: one for each partition.

pub(crate) mod transactional;

use std::collections::VecDeque;

use barnabas_base::{ErrorCode, MonotonicMs, Offset, ProducerEpoch, ProducerId, Sequence};
use barnabas_partition::ReplicaKey;

use crate::batch::keyed::FIRST_PRODUCER;
use crate::batch::{Batch, Contents};
use crate::random::Random;

const IN_FLIGHT_MAX: usize = 3;
/// How long an answer is waited for.
const PATIENCE_MS: i64 = 120;

#[derive(Debug)]
struct InFlight {
    batch: Batch,
    sent: Option<MonotonicMs>,
}

#[derive(Debug)]
pub(crate) struct Client {
    pub key: ReplicaKey,
    id: ProducerId,
    next: Sequence,
    in_flight: VecDeque<InFlight>,
    pub is_done: bool,
}

impl Client {
    /// `keyed`: its records have keys.
    pub fn new(number: usize, key: ReplicaKey, keyed: bool) -> Self {
        let first = if keyed { FIRST_PRODUCER } else { 1 };
        let id = ProducerId(number as i64 + first);
        Self { key, id, next: Sequence(0), in_flight: VecDeque::new(), is_done: false }
    }

    pub fn produce(&mut self, random: &mut Random) {
        if self.is_done || self.in_flight.len() == IN_FLIGHT_MAX || !random.one_in(4) {
            return;
        }
        let offsets = 1 + random.below(3) as i32;
        let batch = Batch::new(self.id, ProducerEpoch(0), Contents::Words);
        let batch = Batch { offsets, sequence: self.next, ..batch };
        self.next = self.next.plus(offsets);
        self.in_flight.push_back(InFlight { batch, sent: None });
    }

    /// All that is not answered, if any of it is due: always from the oldest on.
    pub fn due(&mut self, now: MonotonicMs) -> Vec<Batch> {
        let is_late = |one: &InFlight| one.sent.is_none_or(|sent| now.since(sent).0 > PATIENCE_MS);
        if !self.in_flight.iter().any(is_late) {
            return Vec::new();
        }
        self.in_flight.iter_mut().for_each(|one| one.sent = Some(now));
        self.in_flight.iter().map(|one| one.batch.clone()).collect()
    }

    pub fn answered(&mut self, sequence: Sequence, answer: Result<Offset, ErrorCode>) {
        let at = self.in_flight.iter().position(|one| one.batch.sequence == sequence);
        let Some(at) = at else { return };
        match answer {
            Ok(_) | Err(ErrorCode::DuplicateSequenceNumber) => {
                self.in_flight.remove(at);
            }
            Err(_) => self.in_flight[at].sent = None,
        }
    }

    /// What it sends again first.
    pub fn oldest_unanswered(&self) -> Option<&Batch> {
        self.in_flight.front().map(|one| &one.batch)
    }

    pub fn is_answered(&self) -> bool {
        self.in_flight.is_empty()
    }
}
