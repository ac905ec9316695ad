//! What a member knows of its log without its bytes: where it begins and ends, which epoch wrote what, which snapshots
//! there are, who votes. Answers whether a follower's log agrees with it, and where its own must be cut off.
//!
//! Always true:
//! 1. `start ≤ synced ≤ end`
//! 2. epochs rise along the log; none is below that of the snapshot it begins with
//!
//! Sources: KIP-595, KIP-630; Kafka `RaftLog.validateOffsetAndEpoch`, `KafkaRaftLog.truncateToEndOffset`.

use std::collections::BTreeMap;

use barnabas_base::{EpochEntry, LeaderEpoch, LeaderEpochs, Offset};

use super::message::OffsetAndEpoch;
use crate::batches::EncodedBatch;
use crate::raft::membership::history::History;
use crate::raft::membership::history::NO_EPOCH;
use crate::snapshot_id::SnapshotId;

/// How a follower's log stands to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// They are the same up to there.
    Valid,
    /// Of this epoch and those before, this log has no more than that.
    Diverging(OffsetAndEpoch),
    /// This log no longer reaches back so far.
    Snapshot(SnapshotId),
}

/// The log's outline.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub start: Offset,
    /// The epoch of the record before `start`: that of the snapshot which stands for it.
    pub start_epoch: LeaderEpoch,
    pub end: Offset,
    pub synced: Offset,
    pub epochs: LeaderEpochs,
    /// Finished snapshots and their sizes in bytes; not the format tool's.
    pub snapshots: BTreeMap<SnapshotId, u64>,
    pub history: History,
    /// Below this, batches have epochs out of range: no follower can take them.
    pub repaired_until: Offset,
}

impl Log {
    pub fn last_epoch(&self) -> LeaderEpoch {
        let written = self.epochs.latest().filter(|latest| latest.start < self.end);
        written.map_or(self.start_epoch, |latest| latest.epoch)
    }

    pub fn last(&self) -> OffsetAndEpoch {
        OffsetAndEpoch { offset: self.end, epoch: self.last_epoch() }
    }

    pub fn newest_snapshot(&self) -> Option<SnapshotId> {
        self.snapshots.keys().next_back().copied()
    }

    pub fn appended(&mut self, batch: &EncodedBatch, epoch: LeaderEpoch) {
        assert_eq!(batch.base, self.end, "offsets follow without a gap");
        self.epochs.assign(epoch, batch.base);
        self.end = batch.end;
    }

    /// Of the largest epoch up to `epoch`: that epoch and where it ends here.
    fn end_of(&self, epoch: LeaderEpoch) -> OffsetAndEpoch {
        let entries = self.epochs.entries();
        let next = entries.partition_point(|entry| entry.epoch <= epoch);
        let offset = entries.get(next).map_or(self.end, |entry: &EpochEntry| entry.start);
        let found = next.checked_sub(1).map_or(self.start_epoch, |at| entries[at].epoch);
        OffsetAndEpoch { offset, epoch: found }
    }

    /// Whether a log whose last record is of `last_epoch`, and that ends at `from`, is a beginning of this one.
    pub fn agreement(&self, from: Offset, last_epoch: LeaderEpoch) -> Agreement {
        let newest = self.newest_snapshot();
        if let Some(newest) = newest {
            let before = from < self.start || (from == self.start && last_epoch != self.start_epoch);
            let before = before || last_epoch < self.start_epoch;
            let is_unfit = from < self.repaired_until && self.repaired_until <= newest.end;
            // From nothing, a snapshot is the shorter way, even where the log still reaches back to 0.
            if from == Offset::ZERO || is_unfit || (self.start > Offset::ZERO && before) {
                return Agreement::Snapshot(newest);
            }
        }
        if from == Offset::ZERO && last_epoch == NO_EPOCH {
            return Agreement::Valid;
        }
        let end = self.end_of(last_epoch);
        if end.epoch == last_epoch && from <= end.offset {
            return Agreement::Valid;
        }
        Agreement::Diverging(end)
    }

    /// Where to cut this log, whose leader says that of `theirs.epoch` and before it has no more than `theirs`.
    pub fn cut_for(&self, theirs: OffsetAndEpoch) -> Offset {
        let ours = self.end_of(theirs.epoch);
        let cut = if ours.epoch == theirs.epoch { ours.offset.min(theirs.offset) } else { ours.offset };
        cut.max(self.start).min(self.end)
    }

    pub fn truncate(&mut self, end: Offset) {
        self.epochs.truncate_from_end(end);
        self.end = end;
        self.synced = self.synced.min(end);
        self.history.truncate(end);
    }

    /// Whether a snapshot holds more than this log: then the log begins after it.
    pub fn is_behind(&self, id: SnapshotId) -> bool {
        self.last() < OffsetAndEpoch { offset: id.end, epoch: id.epoch }
    }

    /// Empties the log: it begins and ends where the snapshot does.
    pub fn restart_at(&mut self, id: SnapshotId) {
        self.start = id.end;
        self.start_epoch = id.epoch;
        self.end = id.end;
        self.synced = id.end;
        self.epochs.clear();
    }

    /// Forgets what lies below `start`.
    pub fn start_at(&mut self, start: Offset) {
        if start <= self.start {
            return;
        }
        let before = Offset(start.get() - 1);
        self.start_epoch = self.epochs.epoch_at(before).unwrap_or(self.start_epoch);
        self.start = start;
        self.epochs.truncate_from_start(start);
        // An epoch that ended exactly there has no record left.
        if start == self.end {
            self.epochs.clear();
        }
        self.history.start_at(start);
    }
}
