//! Appends whose producers are not answered yet.
//!
//! Always true: a queue is ordered by the offset that each wait needs, so what moves an end forward answers from the
//! front.

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
    /// The first wait. Where thousands of partitions are written to, each has one at a time, and needs no list for it.
    first: Option<Wait>,
    /// Empty where there is no first.
    others: VecDeque<Wait>,
    /// No wait ends before this moment. May be too early, never too late.
    earliest: Option<MonotonicMs>,
}

impl WaitQueue {
    pub fn push(&mut self, wait: Wait) {
        self.earliest = Some(self.earliest.map_or(wait.deadline, |earliest| earliest.min(wait.deadline)));
        // New batches end last; a retry's first copy may end earlier.
        match &mut self.first {
            None => self.first = Some(wait),
            Some(first) if wait.end < first.end => self.others.push_front(std::mem::replace(first, wait)),
            Some(_) => {
                let at = self.others.partition_point(|other| other.end <= wait.end);
                self.others.insert(at, wait);
            }
        }
    }

    /// Answers everything that needs `end` or less.
    pub fn answer(&mut self, end: Offset, log_start: Offset, effects: &mut Vec<Effect>) {
        while let Some(wait) = self.first.take_if(|wait| wait.end <= end) {
            effects.push(wait.ack(log_start));
            self.first = self.others.pop_front();
        }
        if self.first.is_none() {
            self.earliest = None;
        }
    }

    /// Refuses everything whose deadline has come.
    pub fn expire(&mut self, now: MonotonicMs, effects: &mut Vec<Effect>) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        let mut waits_on = |wait: &Wait| {
            let waits_on = wait.deadline > now;
            if !waits_on {
                effects.push(wait.refuse(Refusal::TimedOut));
            }
            waits_on
        };
        self.first = self.first.take().filter(&mut waits_on);
        self.others.retain(waits_on);
        if self.first.is_none() {
            self.first = self.others.pop_front();
        }
        self.earliest = self.iter().map(|wait| wait.deadline).min();
    }

    pub fn refuse_all(&mut self, refusal: Refusal, effects: &mut Vec<Effect>) {
        effects.extend(self.iter().map(|wait| wait.refuse(refusal)));
        *self = Self::default();
    }

    fn iter(&self) -> impl Iterator<Item = &Wait> {
        self.first.iter().chain(&self.others)
    }

    pub fn earliest(&self) -> Option<MonotonicMs> {
        self.earliest
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    /// The least that any wait needs.
    pub fn first_end(&self) -> Option<Offset> {
        self.first.map(|wait| wait.end)
    }

    /// The most that any wait needs.
    pub fn last_end(&self) -> Option<Offset> {
        self.others.back().or(self.first.as_ref()).map(|wait| wait.end)
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
