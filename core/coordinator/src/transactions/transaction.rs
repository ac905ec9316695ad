//! What is known of one transactional id, and each step that it can take. The steps check nothing: whether one may be
//! taken is decided in shard/.
//!
//! # Source
//! Kafka 4.4 `TransactionMetadata.prepare*`.

use std::collections::BTreeSet;

use barnabas_base::{ProducerEpoch, ProducerId, TimestampMs, TopicPartition};

use super::{TransactionState, TransactionVersion};

/// The last epoch that a client is given. One more is kept back, so that its producer can always be fenced.
pub(crate) const EPOCH_MAX: ProducerEpoch = ProducerEpoch(i16::MAX - 1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Transaction {
    pub producer_id: ProducerId,
    /// The producer id before the last step; mostly the same.
    pub previous_producer_id: ProducerId,
    /// What the client goes on with once this transaction has ended, as its epochs are used up. [`ProducerId::NONE`]
    /// but in a Prepare state.
    pub next_producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// The epoch that a client may come back with whose answer was lost (KIP-360). Not in the log.
    pub last_producer_epoch: ProducerEpoch,
    pub timeout_ms: i32,
    pub state: TransactionState,
    /// Kept in the Prepare states until the end, whatever markers are written meanwhile.
    pub partitions: BTreeSet<TopicPartition>,
    /// When the last transaction began; [`TimestampMs::NONE`] where there was none.
    pub start: TimestampMs,
    pub last_update: TimestampMs,
    /// What the client that ended or changed the transaction last followed.
    pub client_version: TransactionVersion,
}

impl Transaction {
    /// The first appearance of a transactional id.
    pub fn new(producer_id: ProducerId, timeout_ms: i32, now: TimestampMs) -> Self {
        Self {
            producer_id,
            previous_producer_id: producer_id,
            next_producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch(0),
            last_producer_epoch: ProducerEpoch::NONE,
            timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start: TimestampMs::NONE,
            last_update: now,
            client_version: TransactionVersion::V0,
        }
    }

    pub fn is_epoch_exhausted(&self) -> bool {
        self.producer_epoch >= EPOCH_MAX
    }

    /// A transaction whose outcome an external system decides has no timeout (KIP-939). None is begun here, but an
    /// Apache broker may have written one.
    pub fn is_two_phase(&self) -> bool {
        self.timeout_ms == i32::MAX
    }

    /// The producer starts again under the next epoch; a producer with the old one is fenced. `says_epoch`: it named
    /// its epoch, and may name it again if this answer is lost.
    pub fn bumped(&self, says_epoch: bool, timeout_ms: i32, now: TimestampMs) -> Self {
        let next = ProducerEpoch(self.producer_epoch.get().saturating_add(1));
        self.restarted(self.producer_id, next, says_epoch, timeout_ms, now)
    }

    /// As `bumped`, under another producer id.
    pub fn rotated(&self, id: ProducerId, says_epoch: bool, timeout_ms: i32, now: TimestampMs) -> Self {
        self.restarted(id, ProducerEpoch(0), says_epoch, timeout_ms, now)
    }

    fn restarted(
        &self,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        says_epoch: bool,
        timeout_ms: i32,
        now: TimestampMs,
    ) -> Self {
        Self {
            producer_id,
            producer_epoch,
            last_producer_epoch: if says_epoch { self.producer_epoch } else { ProducerEpoch::NONE },
            ..self.repeated(timeout_ms, now)
        }
        .after(self)
    }

    /// The answer to a restart was lost and the client asks again: nothing changes. Unlike in Kafka the previous
    /// producer id stays too, so that it may ask a third time.
    pub fn repeated(&self, timeout_ms: i32, now: TimestampMs) -> Self {
        Self {
            timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start: TimestampMs::NONE,
            last_update: now,
            ..self.clone()
        }
    }

    pub fn with_partitions(
        &self,
        added: &[TopicPartition],
        version: TransactionVersion,
        now: TimestampMs,
    ) -> Self {
        let mut next = self.clone();
        next.partitions.extend(added.iter().cloned());
        next.start = if self.state.is_idle() { now } else { self.start };
        next.last_update = now;
        next.state = TransactionState::Ongoing;
        next.client_version = version;
        next.after(self)
    }

    /// The decision. In version 2 it bumps the epoch, so that no late record of this transaction can get into the next
    /// one; `next_producer_id` is what follows if that was the last epoch. `fences`: the coordinator's own abort.
    pub fn decided(
        &self,
        commit: bool,
        version: TransactionVersion,
        next_producer_id: ProducerId,
        fences: bool,
        now: TimestampMs,
    ) -> Self {
        let mut next = self.clone();
        // Never above the maximum: a state of an older Kafka may stand there, and is to be aborted all the same.
        let bumped = ProducerEpoch(self.producer_epoch.get().saturating_add(1));
        if version.bumps_epoch() {
            next.last_producer_epoch = self.producer_epoch;
            next.producer_epoch = bumped;
        } else if fences {
            next.last_producer_epoch = ProducerEpoch::NONE;
            next.producer_epoch = bumped;
        }
        if self.state.is_idle() {
            // Nothing was begun, but there must be a start.
            next.start = now;
        }
        next.next_producer_id = next_producer_id;
        next.last_update = now;
        next.state = if commit { TransactionState::PrepareCommit } else { TransactionState::PrepareAbort };
        next.client_version = version;
        next.after(self)
    }

    /// Every marker is written.
    pub fn completed(&self, now: TimestampMs) -> Self {
        let mut next = self.clone();
        if self.client_version.bumps_epoch() && self.next_producer_id.is_some() {
            next.producer_id = self.next_producer_id;
            next.producer_epoch = ProducerEpoch(0);
        }
        next.next_producer_id = ProducerId::NONE;
        next.partitions = BTreeSet::new();
        next.last_update = now;
        next.state =
            if self.is_commit() { TransactionState::CompleteCommit } else { TransactionState::CompleteAbort };
        next.after(self)
    }

    /// Its client asks again how it ended: nothing changes.
    pub fn ended_again(&self, now: TimestampMs) -> Self {
        Self { last_update: now, ..self.clone() }
    }

    /// Whether the decision is, or was, to commit.
    pub fn is_commit(&self) -> bool {
        matches!(self.state, TransactionState::PrepareCommit | TransactionState::CompleteCommit)
    }

    fn after(mut self, previous: &Self) -> Self {
        self.previous_producer_id = previous.producer_id;
        self
    }
}
