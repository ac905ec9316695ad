//! What is sent to a worker: the commands, their answers, and the bounded queue they travel through.
//!
//! | file | what it holds |
//! |---|---|
//! | `mailbox/records.rs` | appends, reads, small questions |
//! | `mailbox/fetch_wait.rs` | a fetch that waits for records |
//! | `mailbox/share.rs` | the same for share groups |
//! | `mailbox/coordinators.rs` | what is asked of coordinators' shards |
//! | `mailbox/replication.rs` | the answers of other brokers to replicas here |
//! | `mailbox/storage.rs` | what the threads of log directories report, and checkpoints |
//! | `mailbox/cleaning.rs`, `mailbox/moves.rs` | compaction, and moves between directories |
//! | `mailbox/connections.rs` | a connection that a worker is to serve |
//! | `mailbox/metadata.rs` | a new image |
//! | `mailbox/key.rs` | a partition's name, and which worker owns it |
//! | `mailbox/queue.rs` | the queue |
//!
//! Data only, and nothing of the threads that send and receive it. Connections, the committers, the quorum worker and
//! housekeeping send; the worker that owns the partition receives. Answers come back through the `oneshot` in the
//! command: a worker never waits for another one, so full queues cannot wait for each other in a circle.

pub mod cleaning;
mod connections;
mod coordinators;
pub mod fetch_wait;
mod metadata;
pub mod moves;
mod queue;
mod records;
pub mod replication;
pub mod share;
mod storage;

pub use barnabas_partition::PartitionKey;
pub use barnabas_replica::{Read, RequestError as Declined, Search, TxnVerification as Standing, Verified};
pub use cleaning::CleanCommand;
pub use connections::{LoggedIn, NewConnection};
pub use coordinators::{
    GroupAsk, GroupCommand, ShareStateAsk, ShareStateCommand, ToTransactionShard, TransactionAsk,
    TransactionCommand,
};
pub use fetch_wait::Waiter;
pub use metadata::ImageChange;
pub use moves::{Copying, MoveCommand};
pub use queue::{Inbox, Mailbox};
pub use records::{
    AppendCommand, AppendItem, AppendOutcome, AskCommand, AskItem, AskOutcome, FollowerLife, Question,
    ReadCommand, ReadItem, ReadOutcome, Said, Searched,
};
pub use replication::ReplicationEvent;
pub use share::ShareCommand;
pub use storage::{Checkpointed, LogSize, Synced, WriteBackOrder, key_of};

use barnabas_base::Offset;
use barnabas_metrics::RoundTimes;
use barnabas_partition::BatchSequence;
use barnabas_storage::StorageError;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a worker is asked to do.
#[derive(Debug)]
pub enum Command {
    Connection(NewConnection),
    Append(AppendCommand),
    /// Batches that were refused before they came to this worker, which owns their partitions.
    Refused(Vec<(PartitionKey, BatchSequence)>),
    Read(ReadCommand),
    Ask(AskCommand),
    Group(GroupCommand),
    /// The first request for any group has arrived: load all shards of groups.
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
    /// Damage was found in this partition's log: it is named, what the partition reads is checked again, and it heals
    /// itself where it can.
    Damaged(PartitionKey, Box<StorageError>),
    /// Files of this partition came or went while the node was stopped: it is opened, which shows whether it can be.
    Open(PartitionKey),
    /// Close every log for good; answered when nothing is dirty any more.
    Close(oneshot::Sender<Vec<Checkpointed>>),
    /// Sizes of the open logs, with what is in memory alone.
    Sizes(oneshot::Sender<Vec<LogSize>>),
    /// The worker's thread ends.
    End,
}

/// What the storage threads of a directory tell a worker. Not a command: it comes through while the queue of commands
/// is full, as it is what makes room there.
#[derive(Debug)]
pub enum Report {
    /// Files that the committer has synced.
    Synced(Synced),
    /// How far partitions are durable, by a round of this directory's journal, and when that was.
    Durable(usize, Vec<(PartitionKey, Offset)>, RoundTimes),
    /// What is to be brought into segments.
    WriteBack(Vec<WriteBackOrder>),
    /// The journal takes appends again.
    Room,
    /// A directory is offline for good.
    DirectoryFailed(usize),
    /// What a leader or the controller has answered: one for each question.
    Replication(ReplicationEvent),
}
