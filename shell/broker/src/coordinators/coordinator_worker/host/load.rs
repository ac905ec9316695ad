//! Loading a shard: every record of its partition, from the start to the end of the log, a piece at a time.
//!
//! Nothing is read before the partition's owner leads it in the epoch in which the shard is to be: a replica that still
//! follows may get more, or lose what it has. And a shard speaks only once all that it has read is on every replica in
//! sync: what it says, or orders, on the word of a record must not be taken back with the record when this broker dies.
//! Kafka's transaction coordinator does not wait for that.
//!
//! Compressed batches are inflated off the worker (node/workers/unpacking.rs) and come back in pieces of the usual
//! size: a batch of a kilobyte may hold
//! 64 MiB, and clients with the id `__admin_client` may write to these topics, as in Kafka.

use super::Hosted;
use crate::mailbox::PartitionKey;
use crate::node::Node;
use crate::worker::partition_worker::{LedRange, PartitionWorker};
use barnabas_base::{ErrorCode, LeaderEpoch, Offset};
use barnabas_wire::records::{BatchError, batches, inflated_run};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

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
    unpacked: Unpacked,
}

type Inflated = Result<Vec<Bytes>, (Offset, BatchError)>;

/// A piece of the log whose batches are compressed.
#[derive(Debug, Default)]
enum Unpacked {
    #[default]
    Nothing,
    Begun {
        from: Offset,
        inflated: oneshot::Receiver<Option<Inflated>>,
    },
    Ready {
        from: Offset,
        pieces: VecDeque<Bytes>,
    },
}

impl<S: Hosted> Loading<S> {
    pub fn new(shard: S, leader_epoch: LeaderEpoch) -> Self {
        Self {
            shard,
            leader_epoch,
            next: None,
            waiting: Vec::new(),
            waits_for_partition: false,
            unpacked: Unpacked::Nothing,
        }
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
        node: &Arc<Node>,
    ) -> Result<Progress, NotLoaded> {
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
        if let Some(progress) = self.replay_unpacked(key) {
            return progress;
        }
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
        if batches(piece.clone()).flatten().any(|batch| batch.header().attributes.is_compressed()) {
            self.unpack(from, piece, node);
            return Ok(Progress::Waits);
        }
        self.replay(key, from, piece)
    }

    fn replay(&mut self, key: PartitionKey, from: Offset, piece: Bytes) -> Result<Progress, NotLoaded> {
        let next = self.shard.replay(from, piece).map_err(|error| unreadable::<S>(key, &error))?;
        self.next = Some(next.max(from.plus(1)));
        Ok(Progress::More)
    }

    fn unpack(&mut self, from: Offset, piece: Bytes, node: &Arc<Node>) {
        let (reply, inflated) = oneshot::channel();
        let node = node.clone();
        tokio::task::spawn_local(async move {
            let work = move || inflated_run(piece, PIECE_BYTES);
            let _ = reply.send(node.workers.unpacking.run(None, work).await);
        });
        self.unpacked = Unpacked::Begun { from, inflated };
    }

    /// Replays what was inflated. `None`: there is no such piece.
    fn replay_unpacked(&mut self, key: PartitionKey) -> Option<Result<Progress, NotLoaded>> {
        match std::mem::take(&mut self.unpacked) {
            Unpacked::Nothing => None,
            Unpacked::Begun { from, mut inflated } => match inflated.try_recv() {
                Ok(Some(Ok(pieces))) => {
                    self.unpacked = Unpacked::Ready { from, pieces: pieces.into() };
                    Some(Ok(Progress::More))
                }
                Ok(Some(Err((offset, error)))) => {
                    Some(Err(unreadable::<S>(key, &format_args!("offset {offset}: {error}"))))
                }
                Err(oneshot::error::TryRecvError::Empty) => {
                    self.unpacked = Unpacked::Begun { from, inflated };
                    Some(Ok(Progress::Waits))
                }
                Ok(None) | Err(oneshot::error::TryRecvError::Closed) => Some(Err(unavailable(true))),
            },
            Unpacked::Ready { from, mut pieces } => {
                let piece = pieces.pop_front()?;
                let replayed = self.replay(key, from, piece);
                if !pieces.is_empty() {
                    self.unpacked = Unpacked::Ready { from, pieces };
                }
                Some(replayed)
            }
        }
    }
}

fn unavailable(is_passing: bool) -> NotLoaded {
    NotLoaded { code: ErrorCode::CoordinatorNotAvailable, is_passing }
}

fn unreadable<S: Hosted>(key: PartitionKey, error: &dyn Display) -> NotLoaded {
    let topic = S::TOPIC;
    tracing::error!(partition = %key.partition, %error, "{topic} cannot be read; its groups or \
        transactions are unavailable");
    unavailable(false)
}
