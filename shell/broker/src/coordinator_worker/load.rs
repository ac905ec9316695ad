//! Loading a shard: every record of its partition, from the start to the end of the log, a piece at a time.

use super::host::Hosted;
use crate::mailbox::PartitionKey;
use crate::partition_worker::PartitionWorker;
use barnabas_base::{ErrorCode, LeaderEpoch, Offset};

/// Why a shard is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotLoaded {
    /// For those who wait.
    pub code: ErrorCode,
    /// It may be there another time: its log could not be opened or read now.
    pub is_passing: bool,
}

/// Read at once, between rounds.
const PIECE_BYTES: usize = 4 << 20;

/// A shard that is not loaded yet.
#[derive(Debug)]
pub(super) struct Loading<S: Hosted> {
    pub shard: S,
    /// Under which the partition is led. [`LeaderEpoch::NONE`]: it is not, and everybody will be told so.
    pub leader_epoch: LeaderEpoch,
    /// `None`: the partition has not been opened yet.
    next: Option<Offset>,
    pub waiting: Vec<S::Command>,
}

impl<S: Hosted> Loading<S> {
    pub fn new(shard: S, led_under: Option<LeaderEpoch>) -> Self {
        let leader_epoch = led_under.unwrap_or(LeaderEpoch::NONE);
        Self { shard, leader_epoch, next: None, waiting: Vec::new() }
    }

    /// Tells everybody who waits that this shard will not come.
    pub fn refuse(self, error: ErrorCode) {
        for command in self.waiting {
            S::refuse(command, error);
        }
    }

    /// Replays one piece. Returns whether that was the last one.
    pub fn read_piece(
        &mut self,
        key: PartitionKey,
        partitions: &mut PartitionWorker,
    ) -> Result<bool, NotLoaded> {
        let unavailable = |is_passing| NotLoaded { code: ErrorCode::CoordinatorNotAvailable, is_passing };
        let (start, end) = partitions.log_range(key).map_err(|declined| match declined.code() {
            ErrorCode::KafkaStorageError => unavailable(true),
            _ => NotLoaded { code: ErrorCode::NotCoordinator, is_passing: false },
        })?;
        let from = self.next.unwrap_or(start);
        if from >= end {
            return Ok(true);
        }
        let piece = partitions.read_log(key, from, PIECE_BYTES).map_err(|_| unavailable(true))?;
        if piece.is_empty() {
            // What stood between here and the end was compacted away.
            return Ok(true);
        }
        let next = self.shard.replay(from, piece).map_err(|error| {
            let topic = S::TOPIC;
            tracing::error!(partition = %key.partition, %error, "{topic} cannot be read; what it coordinates cannot be served");
            unavailable(false)
        })?;
        let next = next.max(from.plus(1));
        self.next = Some(next);
        Ok(next >= end)
    }
}
