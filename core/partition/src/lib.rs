//! One partition: which offset comes next, what is safe, who may be told.
//!
//! It knows neither storage nor wire: the partition worker turns a batch's header into a [`BatchInfo`], hands it to
//! [`Partition::append`] and writes the batch where [`Placed`] says.
//!
//! | file | answers |
//! |---|---|
//! | `partition` | the state machine: offsets, ends, roles, answers |
//! | `partition/leader` | what followers' fetches and the controller's answers change |
//! | `partition/follower` | where to go on, what to cut, what to take over from the leader |
//! | `producers` | is this batch a retry, a gap, a zombie's; which transactions are open |
//! | `producers/refused` | which of a producer's batches is still to come again, where the log does not know it |
//! | `partition/verification` | may this batch begin a transaction here, by the coordinator's word |
//! | `leading` | how far have the in-sync replicas come; who is in sync |
//! | `divergence` | where two logs part |
//! | `fetchers/fetcher` | what is asked of one leader broker next, for many partitions |
//! | `fetchers` | which fetcher a partition belongs to |
//! | `isr_requests` | what the controller is asked next, for many partitions |
//! | `key` | a partition's name, and which worker owns it |
//! | `throttle` | how many bytes replication may take |
//! | `share` | which record a share group's member gets next, and what became of it |
//! | `waits` | who waits for what, until when |
//! | `types`, `replication` | the words that go in and out |
//!
//! It does not know who is a replica or who leads: that is the controller's word (core/quorum), which the worker passes
//! on.

mod divergence;
mod fetchers;
mod isr_requests;
mod key;
mod leading;
mod partition;
mod producers;
mod replication;
mod share;
mod throttle;
mod types;
mod waits;

pub use divergence::{diverging, truncation};
pub use fetchers::fetcher::{FetchPlan, Fetcher, FetcherSettings, SessionRequest, Todo};
pub use fetchers::{FetcherId, Fetchers};
pub use isr_requests::IsrRequests;
pub use key::{PartitionKey, ReplicaKey};
pub use partition::{Partition, level};
pub use producers::refused::{BatchSequence, RefusedBatches};
pub use replication::{
    Cut, FetchPosition, Follow, FollowerFetch, FollowerRead, FollowerState, IsrAnswer, IsrChange, IsrNext,
    Leadership, PartitionAnswer,
};
pub use share::{
    AckBatch, AckType, Acquire, AcquireMode, Acquired, BadState, DeadLetterCause, FetchedBatch, RecordState,
    ShareEffect, SharePartition, ShareRefusal, ShareSettings, StateBatch, StateEpoch, StateWrite, WriteId,
    WrittenState,
};
pub use throttle::{Throttle, ThrottledReplicas};
pub use types::{
    AbortedTxn, Acked, Acks, Append, BatchInfo, BatchKind, Bounds, Effect, Guard, Isolation, LastBatch,
    LogEnds, Marker, Origin, Outcome, Placed, ProducerState, Refusal, Ticket,
};
