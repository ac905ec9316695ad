//! What a broker does that invariants judge.

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch, Offset};
use barnabas_partition::{Cut, FetchPosition, ReplicaKey};

use crate::batch::Batch;
use crate::host::{Failure, Lookup, Readable};

/// What happened that invariants must hear of.
#[derive(Debug)]
pub(crate) enum Event {
    /// `None`: what was acknowledged is not in the log.
    Acked {
        key: ReplicaKey,
        base: Offset,
        batch: Option<Batch>,
    },
    HighWatermark {
        key: ReplicaKey,
        to: Offset,
        leads: bool,
        read: Readable,
    },
    /// What a reader of committed records was sent, and whether it passes over it.
    LastStable {
        key: ReplicaKey,
        to: Offset,
        read: Vec<(Batch, bool)>,
        loaded: Vec<Batch>,
    },
    Cut {
        key: ReplicaKey,
        to: Offset,
        high_watermark: Offset,
    },
    Leads {
        key: ReplicaKey,
        log: Readable,
    },
    Opened {
        key: ReplicaKey,
        start: Offset,
        log: Readable,
    },
    /// Segments gave way to compacted ones. Nothing at or past `bound` was to be touched.
    Compacted {
        key: ReplicaKey,
        before: Readable,
        after: Readable,
        bound: Offset,
        /// What a reader of committed records is sent, and whether it passes over it.
        read: Option<Vec<(Batch, bool)>>,
    },
    /// What lies below was deleted: by retention, or as the leader did so.
    Started {
        key: ReplicaKey,
        start: Offset,
    },
    /// The controller learns in which log directory the replica lies.
    Assigned {
        key: ReplicaKey,
        directory: usize,
    },
    /// The replica has moved to another log directory.
    Moved {
        key: ReplicaKey,
        before: Readable,
        after: Readable,
    },
    /// DeleteRecords was answered.
    Deleted {
        key: ReplicaKey,
        start: Offset,
    },
    /// A leader of `epoch` has answered a follower that follows a leader of `asked`.
    Served {
        key: ReplicaKey,
        asked: Option<LeaderEpoch>,
        epoch: LeaderEpoch,
    },
    /// A follower that fetches from `position` has taken an answer to a fetch from `asked`.
    Took {
        key: ReplicaKey,
        asked: FetchPosition,
        position: Option<FetchPosition>,
    },
    /// A leader wants these lives of brokers in sync, and knows those.
    AsksFor {
        key: ReplicaKey,
        in_sync: Vec<(BrokerId, BrokerEpoch)>,
        known: Vec<(BrokerId, Option<BrokerEpoch>)>,
    },
    Durable {
        key: ReplicaKey,
        batches: Vec<Batch>,
    },
    WillCut {
        key: ReplicaKey,
        cut: Cut,
    },
    /// Damaged batches were overwritten with the leader's.
    Mended {
        key: ReplicaKey,
    },
    GaveUp {
        key: ReplicaKey,
        to: Offset,
    },
    /// `is_gone`: its files are, too.
    Left {
        key: ReplicaKey,
        is_gone: bool,
    },
    LookedUp {
        key: ReplicaKey,
        lookup: Lookup,
    },
    /// It cannot be opened.
    Offline {
        key: ReplicaKey,
        why: String,
    },
    Failed(Failure),
}
