//! One share-partition with what is on its way to disk.
//!
//! Changes are kept as what they are (a snapshot, an update, an end), not only as what they come to: should one of them
//! be lost, those after it are worked out again, so that memory is always what a replay of the log would give.
//!
//! Always true:
//! 1. `committed` is what the records on disk say
//! 2. the changes under way are in the order of their batches, and each one's result rests on those before it
//! 3. `held` is what all of these states take

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::Offset;

use super::state::{ShareState, StateBatch, Update};
use crate::framework::BatchId;

/// A share-partition is charged with so many bytes from the start: what a reader of a moment's dozen batches needs is
/// there even when the node holds all that it may.
const ENTRY: usize = 2_048;
const STATE: usize = 128;
const BATCH: usize = size_of::<StateBatch>();

#[derive(Debug, Clone)]
pub(super) enum Change {
    Snapshot(Arc<ShareState>),
    Update(Update),
    End,
}

#[derive(Debug)]
struct Pending {
    batch: BatchId,
    /// Which of the batch's records it is.
    place: i64,
    change: Change,
    result: Option<Arc<ShareState>>,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    committed: Option<Arc<ShareState>>,
    pending: VecDeque<Pending>,
    /// Bytes of the states and of the changes under way.
    held: usize,
    /// Updates since the last snapshot, those under way among them.
    pub updates: u32,
    /// Where the last snapshot on disk is: what lies before is redundant for this share-partition.
    pub snapshot_at: Option<Offset>,
}

impl Entry {
    pub fn committed(&self) -> Option<&Arc<ShareState>> {
        self.committed.as_ref()
    }

    /// What will be on disk if nothing fails: what decisions are based on.
    pub fn latest(&self) -> Option<&Arc<ShareState>> {
        match self.pending.back() {
            Some(pending) => pending.result.as_ref(),
            None => self.committed.as_ref(),
        }
    }

    pub fn is_gone(&self) -> bool {
        self.committed.is_none() && self.pending.is_empty()
    }

    pub fn is_changing(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The last batch that changes it and is not decided.
    pub fn newest(&self) -> Option<BatchId> {
        self.pending.back().map(|pending| pending.batch)
    }

    /// What it takes of the node's memory, beside its key.
    pub fn bytes(&self) -> usize {
        self.held.max(ENTRY)
    }

    /// What it takes at most once an update of so many batches is on its way, too.
    pub fn bytes_with(&self, batches: usize) -> usize {
        let known = self.latest().map_or(0, |known| known.batches.len());
        (self.held + 2 * STATE + BATCH * (known + 3 * batches)).max(ENTRY)
    }

    pub fn change(&mut self, batch: BatchId, place: i64, change: Change) {
        let result = apply(self.latest(), &change);
        self.count(&change);
        let pending = Pending { batch, place, change, result };
        self.held += pending.bytes();
        self.pending.push_back(pending);
    }

    /// `batch` is on disk, its first record at `base`.
    pub fn commit(&mut self, batch: BatchId, base: Offset) {
        while let Some(at) = self.pending.iter().position(|pending| pending.batch == batch) {
            // Batches are decided in order but for those that fail, which are taken out.
            debug_assert_eq!(at, 0, "a change is on disk before an earlier one is decided");
            let Some(pending) = self.pending.remove(at) else { return };
            self.held -= pending.bytes();
            let Pending { place, change, result, .. } = pending;
            self.set_committed(result);
            self.settle(&change, base.plus(place));
        }
    }

    fn set_committed(&mut self, state: Option<Arc<ShareState>>) {
        self.held -= state_bytes(self.committed.as_ref());
        self.held += state_bytes(state.as_ref());
        self.committed = state;
    }

    /// `batch` never got to disk.
    pub fn revert(&mut self, batch: BatchId) {
        self.pending.retain(|pending| pending.batch != batch);
        let mut before = self.committed.clone();
        for pending in &mut self.pending {
            pending.result = apply(before.as_ref(), &pending.change);
            before.clone_from(&pending.result);
        }
        let pending = self.pending.iter().map(Pending::bytes).sum::<usize>();
        self.held = state_bytes(self.committed.as_ref()) + pending;
    }

    /// A record read from the log.
    pub fn load(&mut self, offset: Offset, change: &Change) {
        self.set_committed(apply(self.committed.as_ref(), change));
        self.count(change);
        self.settle(change, offset);
    }

    fn count(&mut self, change: &Change) {
        self.updates = match change {
            Change::Update(_) => self.updates.saturating_add(1),
            Change::Snapshot(_) | Change::End => 0,
        };
    }

    fn settle(&mut self, change: &Change, at: Offset) {
        match change {
            Change::Snapshot(_) => self.snapshot_at = Some(at),
            // A log without a snapshot, which only a foreign tool could leave, begins with the update.
            Change::Update(_) => self.snapshot_at = self.snapshot_at.or(Some(at)),
            Change::End => self.snapshot_at = None,
        }
    }
}

impl Pending {
    fn bytes(&self) -> usize {
        let change = match &self.change {
            Change::Update(update) => STATE + BATCH * update.batches.len(),
            // A snapshot is the result.
            Change::Snapshot(_) | Change::End => STATE,
        };
        change + state_bytes(self.result.as_ref())
    }
}

fn state_bytes(state: Option<&Arc<ShareState>>) -> usize {
    state.map_or(0, |state| STATE + BATCH * state.batches.len())
}

fn apply(before: Option<&Arc<ShareState>>, change: &Change) -> Option<Arc<ShareState>> {
    match (change, before) {
        (Change::Snapshot(state), None) => Some(Arc::clone(state)),
        (Change::Snapshot(state), Some(before)) => {
            if before.newest_leader_epoch <= state.newest_leader_epoch {
                return Some(Arc::clone(state));
            }
            let newest_leader_epoch = before.newest_leader_epoch;
            Some(Arc::new(ShareState { newest_leader_epoch, ..ShareState::clone(state) }))
        }
        (Change::Update(update), Some(before)) => Some(Arc::new(before.merged(update))),
        (Change::Update(update), None) => Some(Arc::new(alone(update))),
        (Change::End, _) => None,
    }
}

/// An update without its snapshot.
///
/// # Source
/// Kafka 4.4 `ShareGroupOffset.fromRecord(ShareUpdateValue)`.
fn alone(update: &Update) -> ShareState {
    let nothing = ShareState {
        snapshot_epoch: update.snapshot_epoch,
        state_epoch: -1,
        leader_epoch: update.leader_epoch,
        newest_leader_epoch: update.leader_epoch,
        start_offset: update.start_offset,
        delivery_complete_count: update.delivery_complete_count,
        batches: Vec::new(),
        created: barnabas_base::TimestampMs(0),
        written: barnabas_base::TimestampMs(0),
    };
    nothing.merged(update)
}
