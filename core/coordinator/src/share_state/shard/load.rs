//! Loading: the partition's records, from its start.
//!
//! # Source
//! Kafka 4.4 `ShareCoordinatorShard.replay`.

use barnabas_base::Offset;
use barnabas_wire::records::{self, Batch, BatchError};
use bytes::Bytes;
use std::sync::Arc;

use super::{ShareStateShard, TimerKey};
use crate::framework::LoadError;
use crate::framework::Now;
use crate::share_state::ShareStateEffect;
use crate::share_state::entry::Change;
use crate::share_state::record::{self, Read};

impl ShareStateShard {
    /// Takes in whole batches as the log holds them, while loading. Gives the offset after the last one; `from` is
    /// where the piece begins.
    ///
    /// # Errors
    /// What cannot be read; stop loading and report it.
    pub fn replay_batches(&mut self, from: Offset, bytes: Bytes) -> Result<Offset, LoadError> {
        let mut next = from;
        for batch in records::batches(bytes) {
            let batch = batch.map_err(|source| LoadError::Batch { offset: next.0, source })?;
            // Nobody writes control batches here; an emptied one takes offsets and no more.
            if !batch.header().attributes.is_control() {
                self.replay_batch(&batch)?;
            }
            next = batch.header().next_offset();
            self.end = self.end.max(next);
        }
        Ok(next)
    }

    fn replay_batch(&mut self, batch: &Batch) -> Result<(), LoadError> {
        let offset = batch.header().base_offset.0;
        let at = |source: BatchError| LoadError::Batch { offset, source };
        let records = batch.records().map_err(at)?;
        for record in &records {
            let record = record.map_err(at)?;
            let Some(key) = record.key.map(|key| records.share(key)) else { continue };
            let value = record.value.map(|value| records.share(value));
            self.replay(record.offset, &key, value.as_ref())?;
        }
        Ok(())
    }

    /// Takes in one record while loading.
    ///
    /// # Errors
    /// The record cannot be read; stop loading and report it.
    pub fn replay(&mut self, offset: Offset, key: &Bytes, value: Option<&Bytes>) -> Result<(), LoadError> {
        self.end = self.end.max(offset.plus(1));
        let Some((key, read)) = record::read(offset.0, key, value)? else { return Ok(()) };
        let change = match read {
            Read::Snapshot(Some(state)) => Change::Snapshot(Arc::new(state)),
            Read::Snapshot(None) => Change::End,
            Read::Update(update) => Change::Update(update),
        };
        if !matches!(change, Change::End) {
            self.begin_entry(&key);
        }
        self.entry_changes(&key, |entry| entry.load(offset, &change));
        Ok(())
    }

    /// Everything was replayed: answers from now on.
    pub fn activate(&mut self, now: Now) -> Vec<ShareStateEffect> {
        self.now = now;
        self.is_active = true;
        self.set_timer(TimerKey::Prune, self.config.prune_interval);
        self.set_timer(TimerKey::Cold, self.config.cold_snapshot_interval);
        self.take_effects()
    }
}
