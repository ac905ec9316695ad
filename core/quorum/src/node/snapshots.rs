//! When a snapshot is made, and what may be deleted once it is there.
//!
//! By bytes (`metadata.log.max.record.bytes.between.snapshots`) or by time (`metadata.log.max.snapshot.interval.ms`),
//! whichever comes first, and never for NoOpRecords alone: an idle node makes none. Two snapshots are kept, and the log
//! from the older one on, so that a reader who is in the middle of one finds what follows it. Kafka keeps more, bounded
//! by `metadata.max.retention.bytes` and `.ms`, of which nothing depends.
//!
//! Sources: KIP-630; Kafka `SnapshotGenerator`, `KafkaRaftLog.maybeClean`.

use std::collections::BTreeSet;

use barnabas_base::{MonotonicMs, Offset};

use super::{Effect, Node, Now, Settings};
use crate::snapshot::{SnapshotTask, SnapshotVoters};
use crate::snapshot_id::SnapshotId;

/// Snapshots that are kept.
const KEPT: usize = 2;

/// What a NoOpRecord takes in the log: so much growth is no news.
const NO_OP_BATCH_BYTES: usize = 80;

#[derive(Debug)]
pub(super) struct Snapshots {
    ids: BTreeSet<SnapshotId>,
    /// Bytes of batches since the newest snapshot, those of an idle node not counted.
    bytes: u64,
    last: MonotonicMs,
    writing: Option<SnapshotId>,
}

impl Snapshots {
    pub(super) fn new(ids: BTreeSet<SnapshotId>, bytes: u64, now: Now) -> Self {
        Self { ids, bytes, last: now.monotonic, writing: None }
    }

    pub(super) fn appended(&mut self, bytes: usize) {
        if bytes > NO_OP_BATCH_BYTES {
            self.bytes = self.bytes.saturating_add(bytes as u64);
        }
    }

    /// One came from the leader.
    pub(super) fn stored(&mut self, id: SnapshotId, now: Now) {
        self.ids.insert(id);
        self.bytes = 0;
        self.last = now.monotonic;
    }

    pub(super) fn due_at(&self, settings: &Settings) -> Option<MonotonicMs> {
        let timed = settings.snapshot_interval.0 > 0 && self.bytes > 0 && self.writing.is_none();
        timed.then(|| self.last.plus(settings.snapshot_interval))
    }

    fn due(&self, settings: &Settings, now: Now) -> bool {
        let by_bytes = self.bytes >= settings.snapshot_bytes.max(1);
        let by_time = self.due_at(settings).is_some_and(|at| at <= now.monotonic);
        self.writing.is_none() && (by_bytes || by_time)
    }
}

impl Node {
    pub(super) fn maybe_snapshot(&mut self, now: Now) {
        if self.snapshots.due(&self.settings, now) {
            self.snapshot(now);
        }
    }

    /// Makes a snapshot of what is committed, unless there is one or one is being made. Returns whether it does.
    pub fn snapshot(&mut self, now: Now) -> bool {
        let provenance = self.committed.provenance;
        let id = SnapshotId { end: provenance.end, epoch: provenance.last_epoch };
        let whole = provenance.end > Offset::ZERO
            && self.committed.features.metadata_version().is_some()
            && self.loading.is_none()
            // A member that has just started knows more than it knows to be committed.
            && provenance.end <= self.raft.high_watermark();
        if self.snapshots.writing.is_some() || self.snapshots.ids.contains(&id) || !whole {
            return false;
        }
        // Those of the snapshot's end, not those that are only written yet.
        let history = self.raft.history();
        let kraft_version = history.level_before(id.end);
        let voters = || SnapshotVoters { kraft_version, voters: history.voters_before(id.end).cloned() };
        let task = SnapshotTask {
            id,
            image: (*self.committed).clone(),
            voters: (kraft_version >= 1).then(voters),
            now: now.wall,
        };
        self.snapshots.writing = Some(id);
        self.snapshots.bytes = 0;
        self.snapshots.last = now.monotonic;
        self.effects.push(Effect::WriteSnapshot(Box::new(task)));
        true
    }

    /// The snapshot is on disk under its name, so many bytes of it; or (`None`) it could not be written, and will be
    /// tried again when the next is due.
    pub fn snapshot_written(&mut self, id: SnapshotId, size: Option<u64>) {
        if self.snapshots.writing == Some(id) {
            self.snapshots.writing = None;
        }
        let Some(size) = size else { return };
        self.snapshots.ids.insert(id);
        self.raft.snapshot_written(id, size);
        self.forget_old_snapshots();
    }

    pub(super) fn forget_old_snapshots(&mut self) {
        if self.snapshots.ids.len() <= KEPT {
            return;
        }
        let oldest_kept = self.snapshots.ids.iter().rev().nth(KEPT - 1).copied();
        let Some(oldest_kept) = oldest_kept else { return };
        let kept = self.snapshots.ids.split_off(&oldest_kept);
        let gone = std::mem::replace(&mut self.snapshots.ids, kept);
        self.log_start = self.log_start.max(oldest_kept.end);
        let snapshots: Vec<SnapshotId> = gone.into_iter().collect();
        self.raft.log_started(self.log_start, &snapshots);
        self.effects.push(Effect::DeleteBefore { log_start: self.log_start, snapshots });
    }
}
