//! Loading: the partition's records, from its start.
//!
//! # Source
//! Kafka 4.4 `ShareCoordinatorShard.replay`.

use barnabas_base::Offset;
use bytes::Bytes;
use std::sync::Arc;

use super::{ShareStateShard, TimerKey};
use crate::framework::{LoadError, Loaded, Now, each_loaded};
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
        let next = each_loaded(from, bytes, |loaded| match loaded {
            Loaded::Record { offset, key, value, .. } => self.replay(offset, &key, value.as_ref()),
            // The coordinator writes no control batches; an emptied one takes offsets and no more.
            Loaded::Control(_) => Ok(()),
        })?;
        self.end = self.end.max(next);
        Ok(next)
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
