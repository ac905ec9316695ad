//! What is sent to a worker: the commands, their answers, and the bounded queue they travel through.
//!
//! Data only. Connections, the committers, the quorum worker and housekeeping send; the worker that owns the partition
//! receives (partition_worker.rs, coordinator_worker.rs). Answers come back through the `oneshot` in the command: a worker
//! never waits for another one, so full queues cannot wait for each other in a circle.

use crate::cleaner::CleanCommand;
use crate::committer::Synced;
use crate::connection::NewConnection;
use crate::fetch_wait::Waiter;
use crate::journal_thread::LayOrder;
use crate::moves::MoveCommand;
use crate::partition_worker::ShareCommand;
use crate::publisher::ImageChange;
use crate::replica::Word;
use barnabas_api::k02_list_offsets;
use barnabas_base::{
    BrokerEpoch, BrokerId, ConnectionNumber, ErrorCode, LeaderEpoch, MonotonicMs, Offset, PartitionIndex,
    ProducerEpoch, ProducerId, Text, TimestampMs, TopicId, TopicPartition,
};
use barnabas_coordinator::{MarkerOutcome, MarkerTicket};
use barnabas_metrics::{AppendTimes, RoundTimes, Stamp};
use barnabas_partition::{Acked, Acks, Bounds, Isolation, Origin};
pub use barnabas_replica::{Read, RequestError as Declined, TxnVerification as Standing, Verified};
use barnabas_storage::{FoundTimestamp, ProducerEntry, TimedBatch};
use barnabas_wire::records::ReadyBatch;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc, oneshot};

/// How many commands wait for one worker before their senders do.
const COMMANDS_MAX: usize = 1024;
/// So many partitions of each topic, the first ones, belong to two workers.
const PARTITIONS_OF_TWO: usize = 16;

/// A partition by its topic's identity: one made again under the same name is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey {
    pub topic: TopicId,
    pub partition: PartitionIndex,
}

impl PartitionKey {
    /// Which of `workers` owns it. Neighbours in a topic go to different workers. But the first few partitions of each topic are shared
    /// by two workers: a request that has something for each of them then wakes two threads and not all (figures:
    /// lab/bench/JOURNAL.md), and what a small topic gets is less than two workers can do.
    pub fn owner(&self, workers: usize) -> usize {
        let spread =
            self.topic.0.iter().fold(0usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let partition = self.partition.get() as usize;
        let step = if partition < PARTITIONS_OF_TWO { partition % 2 } else { partition };
        spread.wrapping_add(step) % workers
    }
}

/// What a worker is asked to do.
#[derive(Debug)]
pub enum Command {
    Connection(NewConnection),
    Append(AppendCommand),
    Read(ReadCommand),
    Ask(AskCommand),
    Group(GroupCommand),
    /// Somebody has asked for a group: load what there is of groups.
    HostGroups,
    /// The metrics ask for groups.
    GroupAsk(GroupAsk),
    /// What came of a job that this shard of groups handed out.
    GroupJobDone(PartitionKey, Box<barnabas_coordinator::Done>),
    /// What came of what this shard of groups had asked of the share coordinator.
    GroupShareStateDone(PartitionKey, barnabas_coordinator::ShareStateDone),
    Transaction(TransactionCommand),
    ShareState(ShareStateCommand),
    /// Of share groups, for partitions of this worker.
    Share(Box<ShareCommand>),
    ImageChanged(Arc<ImageChange>),
    /// The journals are read: partitions may be opened.
    Begin,
    Move(MoveCommand),
    /// Retention, expiry and checkpoints of the partitions that are open.
    Housekeep {
        retain: bool,
        reply: oneshot::Sender<Vec<Checkpointed>>,
    },
    /// Open partitions forget producers that have been silent for `producer.id.expiration.ms`.
    ExpireProducers,
    /// Compaction asks.
    Clean(CleanCommand),
    /// Retention of partitions that may not be open.
    Retain(Vec<PartitionKey>),
    /// Others have the replicas of this partition, which lies here.
    Stray(PartitionKey),
    /// Damage was found in this partition's log, from that offset on: what it reads is checked again, and it heals itself where it can.
    Damaged(PartitionKey, Offset),
    /// Close every log for good; answered when nothing is dirty any more.
    Close(oneshot::Sender<Vec<Checkpointed>>),
    /// Sizes of the open logs, with what is in memory alone.
    Sizes(oneshot::Sender<Vec<LogSize>>),
    /// The worker's thread ends.
    End,
}

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
    Producers,
    /// Where the log ends for readers, as this replica knows it.
    Ends,
    /// When the record at this offset, or the next one that is there, was written.
    TimeAt(Offset),
    /// What the coordinator's word about this producer's transaction would rest on.
    Guard {
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        starts_at_zero: bool,
    },
}

/// What is looked for in a log.
#[derive(Debug, Clone, Copy)]
pub enum Search {
    Nothing,
    /// The first record at or after this time, at or past this offset.
    ByTime(TimestampMs, Offset),
    /// The record with the largest time.
    MaxTime,
}

/// What a search of [`Question::List`] came to.
#[derive(Debug, Clone, Copy)]
pub enum Searched {
    Nothing,
    Found(FoundTimestamp),
    /// The batches that may hold it take longer to read than a worker may: [`Question::TimedBatch`] gives them, one by one.
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
        bounds: k02_list_offsets::Bounds,
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

/// A request for one shard of the group coordinator.
#[derive(Debug)]
pub struct GroupCommand {
    /// The shard's partition of `__consumer_offsets`.
    pub shard: PartitionKey,
    pub request: barnabas_coordinator::Request,
    pub version: i16,
    pub client_id: Text,
    /// As Java prints an address: `/127.0.0.1`.
    pub client_host: Text,
    /// `None`: no client asks.
    pub connection: Option<ConnectionNumber>,
    /// Of the records of a TxnOffsetCommit.
    pub standing: Standing,
    pub reply: oneshot::Sender<barnabas_coordinator::Response>,
}

/// What the metrics ask of the group coordinator's shards on one worker.
#[derive(Debug)]
pub enum GroupAsk {
    /// The groups of each shard that is loaded; the others begin to load.
    Names(oneshot::Sender<Vec<(PartitionKey, Vec<Text>)>>),
    /// Some of them, until they have so many positions; and how many names that was. Not answered if the shard is gone.
    Look {
        shard: PartitionKey,
        names: Vec<Text>,
        positions_max: usize,
        reply: oneshot::Sender<(Vec<barnabas_coordinator::GroupLook>, usize)>,
    },
}

/// For one shard of the transaction coordinator.
#[derive(Debug)]
pub struct TransactionCommand {
    /// The shard's partition of `__transaction_state`.
    pub shard: PartitionKey,
    pub what: ToTransactionShard,
}

#[derive(Debug)]
pub enum ToTransactionShard {
    Request(TransactionAsk),
    /// What became of markers that it had ordered.
    Markers {
        ticket: MarkerTicket,
        transactional_id: Text,
        outcomes: Vec<(TopicPartition, MarkerOutcome)>,
    },
    /// The producer ids that it had asked for.
    ProducerIds(Result<Vec<ProducerId>, ErrorCode>),
}

/// A request of a client, or of a partition's leader.
#[derive(Debug)]
pub struct TransactionAsk {
    pub request: barnabas_coordinator::TransactionRequest,
    pub caller: barnabas_coordinator::TransactionCaller,
    pub reply: oneshot::Sender<barnabas_coordinator::TransactionResponse>,
}

/// For one shard of the share coordinator.
#[derive(Debug)]
pub struct ShareStateCommand {
    /// The shard's partition of `__share_group_state`.
    pub shard: PartitionKey,
    pub ask: ShareStateAsk,
}

/// What is asked of one share-partition's state.
#[derive(Debug)]
pub struct ShareStateAsk {
    pub request: barnabas_coordinator::ShareStateRequest,
    pub reply: oneshot::Sender<barnabas_coordinator::ShareStateResponse>,
}

/// How far one partition may be called safe in its directory's checkpoint files.
#[derive(Debug, Clone)]
pub struct Checkpointed {
    pub directory: usize,
    pub topic: TopicId,
    pub partition: barnabas_base::TopicPartition,
    pub recovery_point: Offset,
    pub log_start: Option<Offset>,
    pub high_watermark: Offset,
}

/// An open log's bytes, wherever they are.
#[derive(Debug)]
pub struct LogSize {
    pub directory: usize,
    pub partition: barnabas_base::TopicPartition,
    pub bytes: u64,
}

/// What the storage threads of a directory tell a worker. Not a command: it comes through while the queue of commands is full, as
/// it is what makes room there.
#[derive(Debug)]
pub enum Report {
    /// Files that the committer has synced.
    Synced(Synced),
    /// How far partitions are durable, by a round of the journal, and when that was.
    Durable(Vec<(PartitionKey, Offset)>, RoundTimes),
    /// What is to be brought into segments.
    Lay(Vec<LayOrder>),
    /// The journal takes appends again.
    Room,
    /// A directory is offline for good.
    DirectoryFailed(usize),
    /// What a leader or the controller has answered: one for each question.
    Replication(Word),
}

/// Reports that a worker has not taken yet. Bounded by what the worker itself has handed in: each report answers that.
#[derive(Debug, Default)]
pub struct Reports {
    list: Mutex<Vec<Report>>,
    arrived: Notify,
}

/// Where commands for one worker go. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Mailbox {
    sender: mpsc::Sender<Command>,
    reports: Arc<Reports>,
}

/// The worker's end.
#[derive(Debug)]
pub struct Inbox {
    pub commands: mpsc::Receiver<Command>,
    pub reports: Arc<Reports>,
}

impl Reports {
    /// Waits until there are reports.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// What was reported since this was last asked, in its order. `into` is empty and is filled.
    pub fn take(&self, into: &mut Vec<Report>) {
        std::mem::swap(&mut *self.list.lock().unwrap_or_else(PoisonError::into_inner), into);
    }
}

impl Mailbox {
    pub fn new() -> (Self, Inbox) {
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        let reports = Arc::<Reports>::default();
        (Self { sender, reports: reports.clone() }, Inbox { commands, reports })
    }

    /// Tells the worker; never blocks.
    pub fn report(&self, report: Report) {
        let mut list = self.reports.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(report);
        let is_first = list.len() == 1;
        drop(list);
        if is_first {
            self.reports.arrived.notify_one();
        }
    }

    /// Waits while the queue is full. A worker that has ended takes nothing: the command, and with it its `reply`, is
    /// dropped, which its sender notices.
    pub async fn send(&self, command: Command) {
        match self.sender.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let _ = self.sender.send(command).await;
            }
        }
    }

    /// Without waiting; gives the command back where the queue is full. A worker that has ended takes nothing, as in
    /// [`Mailbox::send`].
    pub fn offer(&self, command: Command) -> Result<(), Box<Command>> {
        match self.sender.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(command)) => Err(Box::new(command)),
        }
    }

    /// Commands that wait.
    pub fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Without waiting; `false` where the queue is full.
    pub fn try_send(&self, command: Command) -> bool {
        self.sender.try_send(command).is_ok()
    }

    /// As [`Mailbox::send`], for a thread without a runtime.
    pub fn send_blocking(&self, command: Command) {
        let _ = self.sender.blocking_send(command);
    }
}
