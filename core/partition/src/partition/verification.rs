//! Whether a batch may begin a transaction on this partition: only if the transaction coordinator said so, and no
//! marker has come since it was asked that ended that very transaction.
//!
//! A marker of `transaction.version` 2 bears the next transaction's epoch: late records of the one that it ended are
//! refused for their epoch, and the next one may have been asked about before the marker came. Older markers bear the
//! epoch of both.
//!
//! Nothing is kept for those who ask: a [`Guard`] is a place in the log, and is compared with the place of the
//! producer's last marker. Kafka keeps an entry for each producer that asks.
//!
//! It lasts as long as this [`Partition`] does. Code that opens the partition again (after a failed write) must drop
//! the guards of the one before: shell/broker numbers its replicas for that.
//!
//! # Source
//! KIP-890; Kafka 4 `UnifiedLog.maybeStartTransactionVerification`, `ProducerAppendInfo.checkSequence`.

use barnabas_base::{ProducerEpoch, ProducerId, Sequence};

use super::Partition;
use crate::{BatchInfo, Guard, Refusal};

impl Partition {
    /// `None`: the producer's transaction is open here already, so no verification is needed. `starts_at_zero`: the
    /// producer counts from 0 in each transaction.
    ///
    /// # Errors
    /// As [`Self::check_leader`].
    pub fn guard(
        &self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        starts_at_zero: bool,
    ) -> Result<Option<Guard>, Refusal> {
        self.check_leader(None)?;
        let producers = self.producers.as_deref();
        if producers.is_some_and(|producers| producers.is_ongoing(producer_id, epoch)) {
            return Ok(None);
        }
        Ok(Some(Guard { leader_epoch: self.leader_epoch, at: self.log_end, starts_at_zero }))
    }

    /// Whether the coordinator's word, asked for under `guard`, still lets `batch` begin a transaction: what
    /// [`crate::Append::verified`] is.
    ///
    /// # Errors
    /// - [`Refusal::NotLeader`]: it was asked for under another leadership of this broker's: the producer comes again,
    ///   and the coordinator is asked again.
    /// - [`Refusal::SequenceGap`]: the transaction would begin here in its middle, as nothing is known of the producer
    ///   that could tell; an earlier batch of it was refused or is on its way.
    pub fn is_verified(&self, batch: &BatchInfo, guard: &Guard) -> Result<bool, Refusal> {
        if guard.leader_epoch != self.leader_epoch {
            return Err(Refusal::NotLeader);
        }
        let (producers, producer_id) = (self.producers.as_deref(), batch.producer_id);
        let is_known = self.remembers(producer_id);
        let sequence = batch.base_sequence;
        if guard.starts_at_zero && !is_known && sequence != Sequence::NONE && sequence != Sequence(0) {
            return Err(Refusal::SequenceGap { producer_id, sequence, last: Sequence::NONE });
        }
        let last_marker = producers.map(|producers| producers.last_marker(producer_id));
        let has_ended = last_marker.is_some_and(|marker| marker >= guard.at);
        Ok(!has_ended)
    }
}
