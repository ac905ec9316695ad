//! Syncs of segments: each begins a moment after it was asked for, covers what was written until then, and is reported
//! later still.

use barnabas_base::{MonotonicMs, Offset};
use barnabas_partition::ReplicaKey;
use barnabas_storage::{Dirty, FileSystem, StorageError};
use std::sync::Arc;

use super::{Failure, HostTime, ReplicaHost};
use crate::mistake::Mistake;

#[derive(Debug)]
struct Sync {
    key: ReplicaKey,
    /// Which replica asked for it.
    number: u64,
    dirty: Dirty,
    whole: Option<Arc<dyn FileSystem>>,
    end: Offset,
    /// What is written now is covered.
    covers: bool,
    is_done: bool,
    due: MonotonicMs,
}

#[derive(Debug, Default)]
pub(super) struct Syncs(Vec<Sync>);

impl Syncs {
    /// The sync of `key` reaches up to `end` now, unless it has begun.
    pub fn extend(&mut self, key: ReplicaKey, end: Offset) {
        for sync in self.0.iter_mut().filter(|sync| sync.key == key && sync.covers && !sync.is_done) {
            sync.end = sync.end.max(end);
        }
    }

    /// It reaches no further than it does.
    pub fn end(&mut self, key: ReplicaKey) {
        self.0.iter_mut().filter(|sync| sync.key == key).for_each(|sync| sync.covers = false);
    }
}

impl ReplicaHost {
    /// Hands in what is unsynced, unless something of the replica is handed in already.
    pub(super) fn sync_now(&mut self, key: ReplicaKey) {
        let Some(hosted) = self.replicas.get_mut(&key) else { return };
        let Some((dirty, _)) = hosted.replica.take_sync() else { return };
        let (number, end) = (hosted.replica.number, dirty.ticket.end());
        let whole = self.files[hosted.replica.directory].file_system().cloned();
        self.syncs.0.push(Sync {
            key,
            number,
            dirty,
            whole,
            end,
            covers: true,
            is_done: false,
            due: MonotonicMs(0),
        });
    }

    pub(super) fn run_syncs(&mut self, time: &mut HostTime<'_>) {
        let mut reported = Vec::new();
        let mut failed = None;
        let disk = &self.disk;
        self.syncs.0.retain_mut(|sync| {
            if sync.due == MonotonicMs(0) {
                sync.due = MonotonicMs(time.now.0 + time.random.below(12) as u64);
            }
            if sync.due > time.now || failed.is_some() {
                return true;
            }
            if sync.is_done {
                reported.push((sync.key, sync.number, sync.dirty.ticket, sync.end));
                return false;
            }
            if time.is(Mistake::SkipsTheNames) {
                sync.dirty.dirs.clear();
            }
            if !time.is(Mistake::SkipsTheSegmentSync)
                && let Err(error) = sync.dirty.sync(disk, sync.whole.as_ref())
            {
                failed = Some(error);
            }
            sync.is_done = true;
            sync.due = MonotonicMs(time.now.0 + time.random.below(8) as u64);
            true
        });
        if let Some(error) = failed {
            return self.fail(Failure::from(StorageError::from(error)));
        }
        for (key, number, ticket, end) in reported {
            if self.replicas.get(&key).is_some_and(|hosted| hosted.replica.number == number) {
                self.step(key, time.now, |replica, around| replica.synced(ticket, end, around));
            }
        }
    }
}
