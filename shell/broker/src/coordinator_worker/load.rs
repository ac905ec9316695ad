//! Loading a shard: every record of its partition, from the start to the end of the log, a piece at a time.
//!
//! Nothing is read before the partition's owner leads it in the epoch in which the shard is to be: a replica that still follows may get more, or
//! lose what it has. And a shard speaks only once all that it has read is on every replica in sync: what it says, or orders, on the word of a record
//! must not be taken back with the record when this broker dies. Kafka's transaction coordinator does not wait for that.

use super::host::Hosted;
use crate::mailbox::PartitionKey;
use crate::partition_worker::{LedRange, PartitionWorker};
use barnabas_base::{ErrorCode, LeaderEpoch, Offset};
use std::time::Duration;

/// Why a shard is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotLoaded {
    /// For those who wait.
    pub code: ErrorCode,
    /// It may be there another time: its log could not be opened or read now.
    pub is_passing: bool,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// There is more to be read, now.
    More,
    /// The partition is not ready.
    Waits,
    Done,
}

/// Read at once: some two thousand offsets.
const PIECE_BYTES: usize = 256 << 10;
/// How long pieces are read before the worker turns to everything else.
pub(super) const LOAD_TURN: Duration = Duration::from_millis(2);

/// A shard that is not loaded yet.
#[derive(Debug)]
pub(super) struct Loading<S: Hosted> {
    pub shard: S,
    /// Under which the partition is led. [`LeaderEpoch::NONE`]: it is not, and everybody will be told so.
    pub leader_epoch: LeaderEpoch,
    /// `None`: the partition has not been opened yet.
    next: Option<Offset>,
    pub waiting: Vec<S::Command>,
    /// It is to be looked at again a little later.
    pub waits_for_partition: bool,
}

impl<S: Hosted> Loading<S> {
    pub fn new(shard: S, leader_epoch: LeaderEpoch) -> Self {
        Self { shard, leader_epoch, next: None, waiting: Vec::new(), waits_for_partition: false }
    }

    /// A piece of it has been read.
    pub fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// Tells everybody who waits that this shard will not come.
    pub fn refuse(self, error: ErrorCode) {
        for command in self.waiting {
            S::refuse(command, error);
        }
    }

    /// Replays one piece.
    pub fn read_piece(
        &mut self,
        key: PartitionKey,
        partitions: &mut PartitionWorker,
    ) -> Result<Progress, NotLoaded> {
        let unavailable = |is_passing| NotLoaded { code: ErrorCode::CoordinatorNotAvailable, is_passing };
        let elsewhere = NotLoaded { code: ErrorCode::NotCoordinator, is_passing: false };
        if self.leader_epoch == LeaderEpoch::NONE {
            return Err(elsewhere);
        }
        let range =
            partitions.led_range(key, self.leader_epoch).map_err(|declined| match declined.code() {
                ErrorCode::KafkaStorageError => unavailable(true),
                _ => elsewhere,
            })?;
        let Some(LedRange { start, end, committed }) = range else { return Ok(Progress::Waits) };
        let from = self.next.unwrap_or(start);
        if from >= end {
            return Ok(if committed >= end { Progress::Done } else { Progress::Waits });
        }
        let piece = partitions.read_log(key, from, PIECE_BYTES).map_err(|_| unavailable(true))?;
        if piece.is_empty() {
            // What stood between here and the end was compacted away.
            self.next = Some(end);
            return Ok(Progress::More);
        }
        let next = self.shard.replay(from, piece).map_err(|error| {
            let topic = S::TOPIC;
            tracing::error!(partition = %key.partition, %error, "{topic} cannot be read; what it coordinates cannot be served");
            unavailable(false)
        })?;
        self.next = Some(next.max(from.plus(1)));
        Ok(Progress::More)
    }
}
