//! Appends, reads and small questions: what requests ask of partitions.

use super::{Declined, PartitionKey, Read, Search, Standing, Verified, Waiter};
use barnabas_base::{
    BrokerEpoch, BrokerId, LeaderEpoch, MonotonicMs, Offset, ProducerEpoch, ProducerId, Text, TimestampMs,
};
use barnabas_metrics::{AppendTimes, Stamp};
use barnabas_partition::{Acked, Acks, Bounds, Isolation, Origin};
use barnabas_replica::ListBounds;
use barnabas_storage::{FoundTimestamp, ProducerEntry, TimedBatch};
use barnabas_wire::records::ReadyBatch;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Batches for partitions of one worker, from one request.
#[derive(Debug)]
pub struct AppendCommand {
    pub acks: Acks,
    pub deadline: MonotonicMs,
    pub items: Vec<AppendItem>,
    /// `None` for `acks=0`.
    pub reply: Option<oneshot::Sender<Vec<AppendOutcome>>>,
}

/// One validated batch.
#[derive(Debug)]
pub struct AppendItem {
    /// The caller's number for it.
    pub slot: u32,
    pub partition: PartitionKey,
    pub origin: Origin,
    pub standing: Standing,
    pub batch: ReadyBatch,
}

#[derive(Debug)]
pub struct AppendOutcome {
    pub slot: u32,
    pub result: Result<Acked, Declined>,
    pub times: AppendTimes,
}

/// Records wanted from partitions of one worker, by one request.
#[derive(Debug)]
pub struct ReadCommand {
    pub isolation: Isolation,
    /// A replica that follows may answer.
    pub from_any: bool,
    /// The leader names a replica in this rack.
    pub rack: Option<Text>,
    pub items: Vec<ReadItem>,
    /// For all of this command's items together; the first that has records may exceed it by one batch.
    pub max_bytes: usize,
    /// Whether the first item that has records gives a batch even if it is larger than the bounds.
    pub at_least_one: bool,
    /// A consumer that is a broker: it repairs its replicas.
    pub repairs_for: Option<BrokerId>,
    /// Who asks, where that is another replica: its items say how far it has come.
    pub follower: Option<FollowerLife>,
    /// Registered with every item if the items have fewer bytes than it wants.
    pub waiter: Option<Arc<Waiter>>,
    /// It has waited for an election of which this broker had not heard.
    pub was_early: bool,
    pub reply: oneshot::Sender<Vec<ReadOutcome>>,
}

/// A broker that follows, and in which of its lives.
#[derive(Debug, Clone, Copy)]
pub struct FollowerLife {
    pub broker: BrokerId,
    pub epoch: BrokerEpoch,
    /// As [`barnabas_partition::FollowerFetch::registered`].
    pub registered: Option<BrokerEpoch>,
}

#[derive(Debug, Clone, Copy)]
pub struct ReadItem {
    pub slot: u32,
    pub partition: PartitionKey,
    pub from: Offset,
    pub max_bytes: usize,
    pub leader_epoch: Option<LeaderEpoch>,
    pub last_fetched_epoch: Option<LeaderEpoch>,
    /// Where a follower's log begins.
    pub log_start: Offset,
}

#[derive(Debug)]
pub struct ReadOutcome {
    pub slot: u32,
    pub result: Result<Read, Declined>,
    /// The partition's bounds, where it is led here, also beside a refusal.
    pub bounds: Option<Bounds>,
    /// A replica that is nearer to the reader.
    pub nearer: Option<BrokerId>,
    /// When its owner took the request up.
    pub taken: Stamp,
}

/// Small questions about partitions of one worker.
#[derive(Debug)]
pub struct AskCommand {
    pub items: Vec<AskItem>,
    pub reply: oneshot::Sender<Vec<AskOutcome>>,
}

#[derive(Debug, Clone, Copy)]
pub struct AskItem {
    pub slot: u32,
    pub partition: PartitionKey,
    pub leader_epoch: Option<LeaderEpoch>,
    pub question: Question,
}

#[derive(Debug, Clone, Copy)]
pub enum Question {
    /// Where the log stands, and what a search finds.
    List {
        isolation: Isolation,
        search: Search,
        /// A follower answers too (Kafka's DEBUGGING_REPLICA_ID).
        from_any: bool,
    },
    /// The next batch that may hold what is searched.
    TimedBatch(Search),
    /// Where an epoch ends (KIP-101).
    EpochEnd(LeaderEpoch),
    /// `None`: up to the high watermark.
    DeleteRecords(Option<Offset>),
    /// Below what records are deleted on every replica whose broker is there.
    LowWatermark,
    /// The producers; where there are more than `max`, only how many.
    Producers { max: usize },
    /// Where the log ends for readers, as this replica knows it.
    Ends,
    /// When the record at this offset, or the next one that is there, was written.
    TimeAt(Offset),
    /// What the coordinator's word about this producer's transaction would rest on.
    Guard { producer_id: ProducerId, epoch: ProducerEpoch, starts_at_zero: bool },
}

/// What a search of [`Question::List`] came to.
#[derive(Debug, Clone, Copy)]
pub enum Searched {
    Nothing,
    Found(FoundTimestamp),
    /// The batches that may hold it take longer to read than a worker may: [`Question::TimedBatch`] gives them, one by
    /// one.
    Later,
}

#[derive(Debug)]
pub struct AskOutcome {
    pub slot: u32,
    pub result: Result<Said, Declined>,
}

#[derive(Debug)]
pub enum Said {
    Listed {
        bounds: ListBounds,
        found: Searched,
    },
    TimedBatch(Option<TimedBatch>),
    EpochEnd {
        leader_epoch: LeaderEpoch,
        end: Offset,
    },
    LogStart(Offset),
    LowWatermark(Offset),
    Producers(Vec<ProducerEntry>),
    /// More producers than were asked for.
    ManyProducers(usize),
    Ends {
        high_watermark: Offset,
        last_stable: Offset,
        log_start: Offset,
    },
    /// Of the batch's first record. `None`: it has no time, or there is no such record.
    TimeAt(Option<TimestampMs>),
    /// `None`: the transaction is open, and the coordinator need not be asked.
    Guard(Option<Verified>),
}
