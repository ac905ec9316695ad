//! The struct, its parts, and what becomes of the partition's decisions. Each part has a file with its rules; what
//! concerns several of them (appends, reads, roles, moves) stands beside this folder.
//!
//! Always true: between rounds, `log.end() == partition.log_end()`.

pub(crate) mod effects;
pub(crate) mod producer_snapshot;
pub(crate) mod readers;
pub(crate) mod repair;
pub(crate) mod round;
pub(crate) mod sync;
pub(crate) mod truncation;

use std::sync::Arc;

use barnabas_base::{BrokerId, LeaderEpoch, MonotonicMs, Offset, TimestampMs};
use barnabas_partition::{Effect as Decision, Partition, ReplicaKey};
use barnabas_storage::Log;
use barnabas_storage::journal::JournalPartition;
use barnabas_wire::records::ReadyBatch;

use crate::{Effect, Flush, Outbox, Readers, Repair, Round, SyncState, Truncation};
use producer_snapshot::aborted_entry;

/// An open partition. See the crate's header.
#[derive(Debug)]
pub struct Replica {
    pub key: ReplicaKey,
    /// Which of those that its caller has opened: a replica that is opened again has another number.
    pub number: u64,
    /// The log directory, by its place in the broker's list.
    pub directory: usize,
    /// As the directory's journal names the partition.
    pub name: Arc<JournalPartition>,
    pub log: Log,
    pub partition: Partition,
    /// The leader that it follows, and in which epoch.
    pub following: Option<(BrokerId, LeaderEpoch)>,
    pub history: LeaderHistory,
    /// Where its leader's log starts, by the leader's newest answer.
    pub leader_start: Offset,
    /// What is about to be truncated. Until it is, nothing else happens to the replica.
    pub truncation: Option<Truncation>,
    /// The log was truncated since a move to another directory began: the copy is of something else.
    pub was_truncated: bool,
    pub repair: Repair,
    pub round: Round,
    pub sync: SyncState,
    pub flush: Flush,
    pub journal: JournalState,
    pub readers: Readers,
    pub upkeep: Upkeep,
}

/// Whether this process has led the partition.
#[derive(Debug, Default)]
pub struct LeaderHistory {
    pub(crate) has_led: bool,
    /// When another broker was elected in this one's place.
    pub(crate) ceased_at: Option<MonotonicMs>,
}

/// What the replica owes its directory's journal, and the journal the replica.
#[derive(Debug, Default)]
pub struct JournalState {
    /// The journal's order to write back: answered once the segments are synced up to there.
    pub write_back: Option<(Arc<JournalPartition>, Offset)>,
    /// Large appends are on their way into the segment: up to here `Range` entries were handed in.
    pub direct_from: Option<Offset>,
}

/// What housekeeping has to do.
#[derive(Debug)]
pub struct Upkeep {
    /// Where the newest producer snapshot stands.
    pub snapshot_at: Offset,
    /// Appended to, or configured otherwise, since the last checkpoint.
    pub is_changed: bool,
    /// Retention waits until a producer snapshot is safe.
    pub retention_waits: bool,
}

impl Replica {
    /// Does what the partition's decisions mean here, and pushes what is left for the caller.
    pub fn absorb(&mut self, outbox: &mut Outbox) {
        let Outbox { decisions, effects } = outbox;
        for decision in decisions.drain(..) {
            match decision {
                Decision::Answer { ticket, answer } => {
                    effects.push(Effect::Answer { ticket, answer: answer.map_err(Into::into) });
                }
                Decision::HighWatermark(_) | Decision::LastStable(_) => self.announce(effects),
                Decision::AlterIsr => effects.push(Effect::AlterIsr),
                Decision::LogStart(start) => {
                    self.log.advance_start(start);
                    self.upkeep.is_changed = true;
                }
                Decision::Aborted(aborted) => self.round.aborted.push(aborted_entry(aborted)),
            }
        }
    }

    /// Whether this batch, after what the round holds already, begins a new segment.
    pub(crate) fn rolls_with(&self, batch: &ReadyBatch, now: TimestampMs) -> bool {
        let header = batch.header();
        let last_offset = self.partition.log_end().plus(i64::from(header.last_offset_delta));
        self.rolls_at(batch.size_bytes(), last_offset, header.max_timestamp, now)
    }

    /// As [`Replica::rolls_with`], for a batch of that size that ends at `last_offset`.
    pub(crate) fn rolls_at(
        &self,
        bytes: usize,
        last_offset: Offset,
        max_timestamp: TimestampMs,
        now: TimestampMs,
    ) -> bool {
        let before = self.round.bytes as u64 + self.log.staged_bytes();
        let bytes = u32::try_from(before + bytes as u64).unwrap_or(u32::MAX);
        self.log.is_on_disk() && self.log.roll_is_due(bytes, last_offset, max_timestamp, now)
    }
}
