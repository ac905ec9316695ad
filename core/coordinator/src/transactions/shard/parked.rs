//! Requests that came while their transactional id was busy with the end of its last transaction.
//!
//! A client of `transaction.version` 2 goes on with the next transaction as soon as the last one is decided, and meets its markers
//! under way, which takes as long as a disk or two need. Were it told CONCURRENT_TRANSACTIONS it would come back after
//! `retry.backoff.ms`, a hundred times that. So its request waits here, as if it were still on its way, until the id is
//! free or patience ends.
//!
//! # Source
//! Kafka 4.4 keeps asking from the broker's side: `AddPartitionsToTxnManager`, `add.partitions.to.txn.retry.backoff.ms`.

use std::collections::VecDeque;

use barnabas_base::{Map, MonotonicMs, Text};

use super::{TimerKey, TransactionShard, Waiting};
use crate::transactions::TransactionRequest;

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
        id_of(request).is_some_and(|id| self.is_busy(id))
            && until > self.now.mono
            && self.parked.len() < self.config.parked_max
    }

    pub(super) fn park(&mut self, waiting: Waiting) {
        let Some(id) = id_of(&waiting.request).map(Text::from) else { return };
        let key = TimerKey::Parked(id.clone());
        if !self.timers.is_set(&key) {
            self.timers.set(key, waiting.since.plus(self.config.busy_patience));
        }
        self.parked.push(id, waiting);
    }

    /// The id is free, or somebody has waited for long enough: everybody asks again. Who may wait no longer, and still finds it
    /// busy, is told so.
    pub(super) fn unpark(&mut self, id: &Text) {
        self.timers.cancel(&TimerKey::Parked(id.clone()));
        for waiting in self.parked.take(id) {
            self.take(waiting);
        }
    }

    /// A change of the id is decided.
    pub(super) fn unpark_if_free(&mut self, id: &Text) {
        if self.parked.len() > 0 && !self.is_busy(id) {
            self.unpark(id);
        }
    }
}

/// The transactional id that the request is to change.
fn id_of(request: &TransactionRequest) -> Option<&str> {
    match request {
        TransactionRequest::InitProducerId(init) => init.transactional_id.as_deref(),
        TransactionRequest::AddPartitions(add) => (!add.verify_only).then_some(&*add.transactional_id),
        TransactionRequest::AddOffsets(add) => Some(&*add.transactional_id),
        TransactionRequest::EndTxn(end) => Some(&*end.transactional_id),
        TransactionRequest::Describe(_) | TransactionRequest::List(_) => None,
    }
}
