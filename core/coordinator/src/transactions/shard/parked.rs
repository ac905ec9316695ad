//! Requests that came while their transactional id was busy with the end of its last transaction.
//!
//! A client of `transaction.version` 2 goes on with the next transaction as soon as the last one is decided, and meets
//! its markers under way, which takes as long as a disk or two need. Were it told CONCURRENT_TRANSACTIONS it would come
//! back after `retry.backoff.ms`, a hundred times that. So its request waits here, as if it were still on its way,
//! until the id is free or patience ends.
//!
//! # Source
//! Kafka 4.4 keeps asking from the broker's side: `AddPartitionsToTxnManager`,
//! `add.partitions.to.txn.retry.backoff.ms`.

use std::collections::VecDeque;

use barnabas_base::{Map, MonotonicMs, Text};

use super::{TimerKey, TransactionShard, Waiting};
use crate::transactions::{TransactionRequest, TransactionVersion};

/// By transactional id, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Parked {
    by_id: Map<Text, VecDeque<Waiting>>,
    count: usize,
}

impl Parked {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn ids(&self) -> impl Iterator<Item = &Text> {
        self.by_id.keys()
    }

    pub fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.by_id.values().flatten()
    }

    /// Whether the first of those who wait for this id adds partitions, as clients of version 2 do.
    fn wants_to_begin(&self, id: &str) -> bool {
        let first = self.by_id.get(id).and_then(VecDeque::front);
        first.is_some_and(|first| {
            matches!(first.request, TransactionRequest::AddPartitions(_))
                && TransactionVersion::of_add_partitions(first.caller.version).bumps_epoch()
        })
    }

    /// By transactional id.
    pub fn into_all(self) -> impl Iterator<Item = Waiting> {
        let mut by_id: Vec<_> = self.by_id.into_iter().collect();
        by_id.sort_by(|a, b| a.0.cmp(&b.0));
        by_id.into_iter().flat_map(|(_, waiting)| waiting)
    }

    fn push(&mut self, id: Text, waiting: Waiting) {
        self.count += 1;
        self.by_id.entry(id).or_default().push_back(waiting);
    }

    fn take(&mut self, id: &str) -> VecDeque<Waiting> {
        let taken = self.by_id.remove(id).unwrap_or_default();
        self.count -= taken.len();
        taken
    }
}

impl TransactionShard {
    /// Whether a request that came at `since` may wait for its transactional id.
    pub(super) fn may_park(&self, request: &TransactionRequest, since: MonotonicMs) -> bool {
        let until = since.plus(self.config.busy_patience);
        request.id().is_some_and(|id| self.is_busy(id))
            && until > self.now.mono
            && self.parked.len() < self.config.parked_max
    }

    pub(super) fn park(&mut self, waiting: Waiting) {
        let Some(id) = waiting.request.id().map(Text::from) else { return };
        let key = TimerKey::Parked(id.clone());
        if !self.timers.is_set(&key) {
            self.timers.set(key, waiting.since.plus(self.config.busy_patience));
        }
        self.parked.push(id, waiting);
    }

    /// The id is free, or one request has waited for long enough: all ask again. A request that may wait no longer, and
    /// still finds it busy, gets that as its answer.
    pub(super) fn unpark(&mut self, id: &Text) {
        self.timers.cancel(&TimerKey::Parked(id.clone()));
        for waiting in self.parked.take(id) {
            self.take(waiting);
        }
    }

    /// The last transaction's end is on its way to disk: who wants to begin the next one need not wait for that.
    /// Everybody else waits on, as before.
    pub(super) fn unpark_to_begin(&mut self, id: &Text) {
        if self.parked.wants_to_begin(id) {
            self.unpark(id);
        }
    }

    /// A change of the id is decided.
    pub(super) fn unpark_if_free(&mut self, id: &Text) {
        if self.parked.len() > 0 && !self.is_busy(id) {
            self.unpark(id);
        }
    }
}
