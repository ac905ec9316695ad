//! Inputs and outputs of a journal.

use std::sync::Arc;

use barnabas_base::{LeaderEpoch, Offset, TopicId, TopicPartition};

use crate::disk::block_buffer::BlockBuffer;
use crate::segment::batch::AppendBytes;

/// A clock that only goes forward, in microseconds: a round takes less than a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Micros(pub u64);

impl Micros {
    /// This moment and `micros` more.
    #[must_use]
    pub const fn plus(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// The bounds of a journal. All of them are values: nothing here reads a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalConfig {
    /// Files in the ring; at least 3, as one is always kept back.
    pub files: usize,
    /// Bytes of each file: a multiple of [`super::BLOCK_BYTES`], at most 2 GiB.
    pub file_bytes: u32,
    /// A round holds at most this much, header and padding included.
    pub round_bytes_max: u32,
    /// A round that holds this much is written without waiting for `linger_us`.
    pub round_bytes_enough: u32,
    /// Rounds follow each other at this distance at least, unless one holds enough. An idle journal never waits. 0:
    /// never.
    pub linger_us: u64,
    /// Appends of more than this go straight into the segment ([`super::Journal::takes`]).
    pub append_bytes_max: u32,
    /// A partition that has this much in the journal is written back without being pressed.
    pub write_back_bytes: u64,
    /// One [`WriteBack`] holds no more than this, or one entry.
    pub write_back_bytes_max: u64,
    /// Record bytes held in memory until they are written back. At half of it everything is written back, at all of
    /// it submitting is refused.
    pub staged_bytes_max: u64,
}

impl Default for JournalConfig {
    /// 8 files of 32 MiB; rounds up to 4 MiB; never waits.
    fn default() -> Self {
        Self {
            files: 8,
            file_bytes: 32 << 20,
            round_bytes_max: 4 << 20,
            round_bytes_enough: 256 << 10,
            linger_us: 0,
            append_bytes_max: 512 << 10,
            write_back_bytes: 1 << 20,
            write_back_bytes_max: 8 << 20,
            staged_bytes_max: 192 << 20,
        }
    }
}

/// A partition as a journal names it: enough to make its directory when nothing of it is on disk yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JournalPartition {
    pub topic_id: TopicId,
    pub topic_partition: TopicPartition,
}

/// One thing that happened to one partition, to be made durable in order.
#[derive(Debug, Clone)]
pub struct Entry {
    pub partition: Arc<JournalPartition>,
    pub leader_epoch: LeaderEpoch,
    pub kind: EntryKind,
}

#[derive(Debug, Clone)]
pub enum EntryKind {
    /// Whole batches, validated and numbered. The log ended at `from` before them and ends at `end` after them.
    Records { from: Offset, end: Offset, records: AppendBytes },
    /// A large append went straight into the segment. All of the partition's bytes below `end` are written back
    /// **and synced**. The append is acknowledged when this is durable, not before.
    Range { from: Offset, end: Offset },
    /// The log was cut and now ends at `end`.
    Truncate { end: Offset },
    /// All of the log was given up; it goes on at `at`.
    Restart { at: Offset },
    /// The partition left this directory.
    Remove,
}

/// Why an entry was not taken. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The round that is being filled has no room left: submit again once the one under way is durable.
    #[error("the round is full")]
    RoundFull,
    /// Every file is held by data that is not written back: write back what [`super::Journal::next_write_back`] names.
    #[error("the journal is full")]
    RingFull,
    /// Too many bytes wait in memory to be written back.
    #[error("too much is not written back yet")]
    StagedFull,
    /// Does not fit into any round: belongs straight into the segment.
    #[error("the append is too large for the journal")]
    TooLarge,
    /// A write failed before, and that is final; or the journal is closing.
    #[error("the journal takes nothing more")]
    Closed,
}

/// A place in the journal: `life` counts the files begun since the journal was made, so places only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub life: u64,
    pub position: u32,
}

/// What to do next about writing.
#[derive(Debug)]
pub enum Take {
    /// Write this, wait until it is durable, hand it to [`super::Journal::round_durable`].
    Write(Round),
    /// Nothing before this moment, unless more is submitted.
    Wait(Micros),
    /// Nothing: no entries, or a round is on its way, or no room.
    Nothing,
}

/// A round on its way to the disk.
#[derive(Debug)]
pub struct Round {
    pub number: u64,
    /// Which file of the ring, from 0.
    pub slot: usize,
    /// Where in that file; a multiple of [`super::BLOCK_BYTES`].
    pub position: u64,
    pub(super) place: Place,
    pub(super) replay_from: Place,
    pub(super) checksum: u32,
    pub(super) ends: Vec<DurableEnd>,
    pub(super) buffer: BlockBuffer,
}

impl Round {
    /// What to write: its address in memory and its length are multiples of [`super::BLOCK_BYTES`].
    pub fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }
}

/// All that was submitted for `partition` in this round is durable; its log ends there, as far as the journal was told
/// ([`Offset::NONE`]: it left the directory).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableEnd {
    pub partition: Arc<JournalPartition>,
    pub end: Offset,
}

/// What a durable round means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundDone {
    pub number: u64,
    /// Each partition of the round, once.
    pub ends: Vec<DurableEnd>,
}

/// One step of bringing a partition's segments up to the journal.
#[derive(Debug, Clone)]
pub enum WriteBackOp {
    /// Append; the log ends at `from` before and at `end` after.
    Append { from: Offset, end: Offset, leader_epoch: LeaderEpoch, records: AppendBytes },
    /// Cut the log so that it ends here.
    Truncate { end: Offset },
    /// Give up the whole log and go on here.
    Restart { at: Offset },
    /// The partition's directory must be gone, durably.
    Remove,
}

/// What to write back into one partition's segments, in order. To be synced there before
/// [`super::Journal::written_back`].
#[derive(Debug)]
pub struct WriteBack {
    pub partition: Arc<JournalPartition>,
    pub ops: Vec<WriteBackOp>,
    /// Record bytes in `ops`.
    pub bytes: u64,
    pub ticket: WriteBackTicket,
}

impl WriteBack {
    /// Where the log ends when all of it is done.
    pub fn end(&self) -> Offset {
        match self.ops.last() {
            Some(WriteBackOp::Append { end, .. } | WriteBackOp::Truncate { end }) => *end,
            Some(WriteBackOp::Restart { at }) => *at,
            Some(WriteBackOp::Remove) | None => Offset::ZERO,
        }
    }
}

/// Names what was handed out to be written back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteBackTicket {
    pub(super) partition: Arc<JournalPartition>,
    pub(super) entries: usize,
}

/// For metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    pub rounds: u64,
    pub entries: u64,
    /// Written to the journal, padding included.
    pub bytes: u64,
    pub padding_bytes: u64,
    pub record_bytes: u64,
    /// In memory, not handed out to be written back.
    pub staged_bytes: u64,
    pub files_free: usize,
    /// Partitions with something not written back and synced.
    pub partitions: usize,
}
