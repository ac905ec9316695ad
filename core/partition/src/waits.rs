//! Appends whose producers are not answered yet.
//!
//! Always true: a queue is ordered by the offset that each wait needs, so what moves an end forward answers from the front.

use std::collections::VecDeque;

use barnabas_base::{MonotonicMs, Offset, TimestampMs};

use crate::{Acked, Effect, Refusal, Ticket};

/// One append that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// The offset after the batch: where an end must stand for it to be answered.
    pub end: Offset,
    pub base: Offset,
    pub ticket: Ticket,
    pub deadline: MonotonicMs,
    pub duplicate_timestamp: Option<TimestampMs>,
}

impl Wait {
    pub fn ack(&self, log_start: Offset) -> Effect {
        let Self { base, duplicate_timestamp, .. } = *self;
        Effect::Answer { ticket: self.ticket, answer: Ok(Acked { base, log_start, duplicate_timestamp }) }
    }

    fn refuse(&self, refusal: Refusal) -> Effect {
        Effect::Answer { ticket: self.ticket, answer: Err(refusal) }
    }
}

/// Waits for one kind of end: what is written, or the high watermark.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitQueue {
    waits: VecDeque<Wait>,
    /// No wait ends before this moment. May be too early, never too late.
    earliest: Option<MonotonicMs>,
}

impl WaitQueue {
    pub fn push(&mut self, wait: Wait) {
        self.earliest = Some(self.earliest.map_or(wait.deadline, |earliest| earliest.min(wait.deadline)));
        // New batches end last; a retry's first copy may end earlier.
        let at = self.waits.partition_point(|other| other.end <= wait.end);
        self.waits.insert(at, wait);
    }

    /// Answers everything that needs `end` or less.
    pub fn answer(&mut self, end: Offset, log_start: Offset, effects: &mut Vec<Effect>) {
        while let Some(wait) = self.waits.pop_front_if(|wait| wait.end <= end) {
            effects.push(wait.ack(log_start));
        }
        if self.waits.is_empty() {
            self.earliest = None;
        }
    }

    /// Refuses everything whose deadline has come.
    pub fn expire(&mut self, now: MonotonicMs, effects: &mut Vec<Effect>) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        self.waits.retain(|wait| {
            let waits_on = wait.deadline > now;
            if !waits_on {
                effects.push(wait.refuse(Refusal::TimedOut));
            }
            waits_on
        });
        self.earliest = self.waits.iter().map(|wait| wait.deadline).min();
    }

    pub fn refuse_all(&mut self, refusal: Refusal, effects: &mut Vec<Effect>) {
        effects.extend(self.waits.drain(..).map(|wait| wait.refuse(refusal)));
        self.earliest = None;
    }

    pub fn earliest(&self) -> Option<MonotonicMs> {
        self.earliest
    }

    pub fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waits.len()
    }

    /// The least that any wait needs.
    pub fn first_end(&self) -> Option<Offset> {
        self.waits.front().map(|wait| wait.end)
    }

    /// The most that any wait needs.
    pub fn last_end(&self) -> Option<Offset> {
        self.waits.back().map(|wait| wait.end)
    }
}

/// Everything that waits on one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waits {
    /// `acks=1`: for the leader's write.
    pub written: WaitQueue,
    /// `acks=all`: for the high watermark.
    pub safe: WaitQueue,
}
