//! Loading: the partition's records, from its start. Of each transactional id the last one counts, so what is held
//! while loading is no more than what is held afterwards.
//!
//! # Source
//! Kafka 4.4 `TransactionStateManager.loadTransactionMetadata`, `loadTransactionsForTxnTopicPartition`.

use barnabas_base::{DurationMs, Offset, Text};
use bytes::Bytes;

use super::{TimerKey, TransactionShard};
use crate::framework::{Committed, LoadError, Loaded, Now, each_loaded};
use crate::transactions::{TransactionEffect, TransactionState};

impl TransactionShard {
    /// Takes in whole batches as the log holds them, while loading. Gives the offset after the last one; `from` is
    /// where the piece begins.
    ///
    /// # Errors
    /// What cannot be read; stop loading and report it.
    pub fn replay_batches(&mut self, from: Offset, bytes: Bytes) -> Result<Offset, LoadError> {
        each_loaded(from, bytes, |loaded| match loaded {
            Loaded::Record { offset, key, value, .. } => self.replay(offset, &key, value.as_ref()),
            // The coordinator writes no control batches; an emptied one takes offsets and no more.
            Loaded::Control(_) => Ok(()),
        })
    }

    /// Takes in one record while loading.
    ///
    /// # Errors
    /// The record cannot be read; stop loading and report it.
    pub fn replay(&mut self, offset: Offset, key: &Bytes, value: Option<&Bytes>) -> Result<(), LoadError> {
        match crate::transactions::record::read(offset.0, key, value)? {
            None => {}
            Some((id, None)) => self.transaction_changes(&id, |known| *known = Committed::default()),
            Some((id, Some(transaction))) => {
                self.entries.entry(id.clone()).or_default();
                self.transaction_changes(&id, |known| *known = Committed::loaded(transaction));
            }
        }
        Ok(())
    }

    /// Everything was replayed: answers from now on. What was decided and not ended gets its markers.
    pub fn activate(&mut self, now: Now) -> Vec<TransactionEffect> {
        self.now = now;
        self.is_active = true;
        let mut ids: Vec<Text> = self.entries.keys().cloned().collect();
        ids.sort();
        for id in ids {
            match self.known(&id).map(|known| known.state) {
                Some(TransactionState::Ongoing) => self.watch(&id, DurationMs(0)),
                Some(state) if state.is_prepared() => self.order_markers(&id),
                _ => {}
            }
        }
        self.set_timer(TimerKey::Expiry, self.config.id_expiration_check_interval.max(DurationMs(1)));
        self.take_effects()
    }
}
