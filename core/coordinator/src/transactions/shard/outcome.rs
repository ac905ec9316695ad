//! What a batch's fate means: on disk, or lost.

use barnabas_base::{DurationMs, ErrorCode, Text};

use super::{TimerKey, TransactionShard};
use crate::framework::append_refusal;
use crate::framework::{BatchId, Now};
use crate::transactions::{TransactionEffect, TransactionState};

impl TransactionShard {
    /// All batches up to `through` are as safe as they are to be (but for those that were said to have failed).
    pub fn durable(&mut self, through: BatchId, now: Now) -> Vec<TransactionEffect> {
        self.now = now;
        // What this leads to is not on disk yet, however far the word reaches.
        let through = self.pending.newest().map_or(through, |newest| newest.min(through));
        while let Some(closed) = self.pending.pop_durable(through) {
            for (ticket, response) in closed.answers {
                self.answer(ticket, response);
            }
            for id in closed.then.into_iter().flatten() {
                self.settled(closed.id, &id);
                self.unpark_if_free(&id);
            }
        }
        self.take_effects()
    }

    /// `batch` was not appended and never will be; other batches are not concerned. Kafka's error code says why.
    /// Nothing has changed then: unlike in Kafka no epoch is kept bumped in memory only, so that no failed fencing need
    /// be remembered (KAFKA-9666).
    pub fn failed(&mut self, batch: BatchId, error: ErrorCode, now: Now) -> Vec<TransactionEffect> {
        self.now = now;
        if let Some(closed) = self.pending.take_failed(batch) {
            self.refuse_all(closed.answers, append_refusal(error));
            for id in closed.then.into_iter().flatten() {
                self.lost(batch, &id);
                self.unpark_if_free(&id);
            }
        }
        self.take_effects()
    }

    fn settled(&mut self, batch: BatchId, id: &Text) {
        self.transaction_changes(id, |transaction| transaction.commit(batch));
        let Some(entry) = self.entries.get_mut(id) else { return };
        let Some(known) = entry.transaction.committed() else { return };
        let state = known.state;
        match state {
            TransactionState::Ongoing => {
                // The record of the end before may have been lost: this one says that it came.
                if entry.markers.take().is_some() {
                    self.timers.cancel(&TimerKey::Retry(id.clone()));
                }
                self.watch(id, DurationMs(0));
            }
            TransactionState::PrepareCommit | TransactionState::PrepareAbort => self.order_markers(id),
            _ => {
                entry.markers = None;
                self.timers.cancel(&TimerKey::Timeout(id.clone()));
                self.timers.cancel(&TimerKey::Retry(id.clone()));
            }
        }
    }

    fn lost(&mut self, batch: BatchId, id: &Text) {
        let backoff = self.config.retry_backoff;
        self.transaction_changes(id, |transaction| transaction.revert(batch));
        let Some(entry) = self.entries.get(id) else { return };
        match entry.transaction.committed().map(|known| known.state) {
            // It was to be decided; who asked for that asks again, or the timeout does.
            Some(TransactionState::Ongoing) => self.watch(id, backoff),
            Some(state) if state.is_prepared() => self.set_timer(TimerKey::Retry(id.clone()), backoff),
            _ => {}
        }
    }

    /// Sets the timer that ends the transaction, not before `least`. A wall clock that jumps makes it neither longer
    /// than the timeout nor negative.
    pub(super) fn watch(&mut self, id: &Text, least: DurationMs) {
        let Some(known) = self.known(id) else { return };
        let key = TimerKey::Timeout(id.clone());
        if known.is_two_phase() || self.timers.is_set(&key) {
            return;
        }
        let timeout = i64::from(known.timeout_ms).max(0);
        let left = known.start.0.saturating_add(timeout).saturating_sub(self.now.wall.0);
        // One more, as a transaction may be open for just as long as it says.
        let left = DurationMs(left.clamp(0, timeout) + 1);
        self.set_timer(key, left.max(least));
    }
}
