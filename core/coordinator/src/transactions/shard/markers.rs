//! From the decision to its end: markers are ordered until every partition has one, then the end is written down.
//!
//! A marker's error means:
//! - the partition is gone: nothing is left to be decided there
//! - INVALID_PRODUCER_EPOCH: the partition has heard of a later epoch of this producer. Only a coordinator ends the
//!   epoch before, so another one has written this transaction's marker, and the partition waits for nothing. Kafka
//!   stops here, and leaves the transaction to whichever coordinator loads it next
//! - TRANSACTION_COORDINATOR_FENCED: another coordinator has taken over; this one writes nothing more
//! - UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION: such a partition holds no records of transactions
//! - any other: tried again after a while. Kafka lets a few of them end its thread
//!
//! # Source
//! Kafka 4.4 `TransactionMarkerChannelManager`, `TransactionMarkerRequestCompletionHandler`.

use std::collections::BTreeSet;

use barnabas_base::{ErrorCode, Text, TopicPartition};

use super::{Markers, TimerKey, TransactionShard};
use crate::framework::Now;
use crate::transactions::{MarkerOrder, MarkerOutcome, MarkerTicket, TransactionEffect};

impl TransactionShard {
    /// What became of markers of one order: of some of its partitions or of all. What belongs to another order, or to
    /// nobody any more, is passed over.
    pub fn markers_answered(
        &mut self,
        ticket: MarkerTicket,
        id: &Text,
        outcomes: &[(TopicPartition, MarkerOutcome)],
        now: Now,
    ) -> Vec<TransactionEffect> {
        self.now = now;
        let Some(markers) = self.entries.get_mut(id).and_then(|entry| entry.markers.as_mut()) else {
            return Vec::new();
        };
        if markers.ticket != ticket || markers.is_fenced {
            return Vec::new();
        }
        for (partition, outcome) in outcomes {
            match outcome {
                MarkerOutcome::Written
                | MarkerOutcome::Gone
                | MarkerOutcome::Failed(
                    ErrorCode::InvalidProducerEpoch
                    | ErrorCode::UnsupportedForMessageFormat
                    | ErrorCode::UnsupportedVersion,
                ) => {
                    markers.awaited.remove(partition);
                    markers.failed.remove(partition);
                }
                MarkerOutcome::Failed(ErrorCode::TransactionCoordinatorFenced) => markers.is_fenced = true,
                MarkerOutcome::Failed(_) => {
                    if markers.awaited.contains(partition) {
                        markers.failed.insert(partition.clone());
                    }
                }
            }
        }
        let retries = !markers.failed.is_empty() && !markers.is_fenced;
        let key = TimerKey::Retry(id.clone());
        if retries && !self.timers.is_set(&key) {
            self.set_timer(key, self.config.retry_backoff);
        }
        self.complete_if_done(id);
        self.take_effects()
    }

    /// The decision is on disk, just now or when the shard was loaded.
    pub(super) fn order_markers(&mut self, id: &Text) {
        self.orders += 1;
        let ticket = MarkerTicket { coordinator_epoch: self.coordinator_epoch, number: self.orders };
        let Some(entry) = self.entries.get_mut(id) else { return };
        let Some(known) = entry.transaction.committed() else { return };
        let awaited = known.partitions.clone();
        let failed = BTreeSet::new();
        entry.markers = Some(Markers { ticket, awaited: awaited.clone(), failed, is_fenced: false });
        self.order(id, awaited.into_iter().collect());
        self.complete_if_done(id);
    }

    fn order(&mut self, id: &Text, partitions: Vec<TopicPartition>) {
        if partitions.is_empty() {
            return;
        }
        let Some(entry) = self.entries.get(id) else { return };
        let (Some(known), Some(markers)) = (entry.transaction.committed(), &entry.markers) else { return };
        self.effects.push(TransactionEffect::WriteMarkers(MarkerOrder {
            ticket: markers.ticket,
            transactional_id: id.clone(),
            producer_id: known.producer_id,
            producer_epoch: known.producer_epoch,
            commit: known.is_commit(),
            version: known.client_version,
            partitions,
        }));
    }

    /// What could not be done before: markers that failed, or the record of the end.
    pub(super) fn retry(&mut self, id: &Text) {
        let Some(markers) = self.entries.get_mut(id).and_then(|entry| entry.markers.as_mut()) else { return };
        if markers.is_fenced {
            return;
        }
        let failed = std::mem::take(&mut markers.failed);
        self.order(id, failed.into_iter().collect());
        self.complete_if_done(id);
    }

    /// The end may be written down once no marker is awaited. It is no client's request, so it may exceed the bound on
    /// batches that wait, which it does not wait for. Who waits to begin the next transaction goes on behind it.
    fn complete_if_done(&mut self, id: &Text) {
        let Some(entry) = self.entries.get(id) else { return };
        let is_done = entry.markers.as_ref().is_some_and(|markers| markers.awaited.is_empty());
        let Some(known) = entry.transaction.committed() else { return };
        if is_done && !entry.transaction.is_changing() && known.state.is_prepared() {
            let next = known.completed(self.now.wall);
            self.timers.cancel(&TimerKey::Retry(id.clone()));
            self.change(id, next, None);
            self.unpark_to_begin(id);
        }
    }
}
