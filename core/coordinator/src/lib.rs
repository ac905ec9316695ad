//! The coordinators: who belongs to a group, what was committed, how a transaction ends, in records of Kafka's internal
//! topics.
//!
//! One [`GroupShard`] answers for one partition of `__consumer_offsets`, one [`TransactionShard`] for one of
//! `__transaction_state`. The coordinator worker hands it one thing at a time (a
//! request, "this batch is on disk", "time has passed") and carries out the [`Effect`]s that come back. No clock, no
//! randomness, no I/O: time and random bytes are arguments, timers are a deadline that the worker asks for.
//!
//! One framework for them and for every coordinator to come (KIP-848, share and streams groups):
//! - [`Pending`]: the record batches that were handed out and are not on disk yet, the answers that wait for them, and
//!   what is to happen then. `durable` and `failed` are the only ways out.
//! - [`Timers`]: deadlines by key.
//! - [`Committed`]: a value of which an uncommitted change never shows.
//! - [`Effect`]: append these records, answer this ticket.
//!
//! What it does not know: partitions, storage, sockets, who may do what (core/api asks the ACLs first), which topics
//! exist (core/api turns topic ids into names).
//!
//! Group path: shell/broker/src/requests/connection.rs → core/api/src/k11_join_group.rs →
//! shell/broker/src/coordinators/coordinator_worker.rs
//! → [`GroupShard::handle`] → the worker appends what [`Effect::Append`] holds → [`GroupShard::durable`] → answers.
//!
//! Transaction path: core/api/src/k26_end_txn.rs → shell/broker/src/requests/transactions.rs →
//! [`TransactionShard::handle`] → the decision is appended → durable: the answer, and
//! [`TransactionEffect::WriteMarkers`] → shell/broker/src/coordinators/markers.rs, each partition's leader →
//! [`TransactionShard::markers_answered`] → the end is appended.

mod assignment;
mod config;
mod framework;
mod groups;
mod offsets;
mod outbox;
mod records;
mod request;
mod settings;
mod shard;
mod share_state;
mod transactions;

pub use assignment::{Describable, Done, Job};
pub use config::{
    ConsumerConfig, GroupConfig, GroupTimes, MigrationPolicy, PerGroup, ShareConfig, StreamsConfig,
    StreamsSettings,
};
pub use framework::{
    BatchId, Caller, Closed, Committed, Contents, EndTransaction, Gathered, Held, LoadError, Now, PART_BYTES,
    Part, Pending, Producer, Record, Room, Ticket, Timers, Together, append_error, marker_batch,
};
pub use outbox::{Effect, GroupCounts, ShareStateDone, ShareStateOrder, ShareStateWork};
pub use records::GroupKind;
pub use request::{Request, Response, StreamsHeartbeat};
pub use settings::{ChangedTopics, changed_topics, group_config, share_state_config, transaction_config};
pub use shard::lag;
pub use shard::{CommittedOffset, GroupLook, GroupShard, GroupStats};
pub use share_state::messages as share_state_messages;
pub use share_state::{
    SharePartitionKey, ShareState, ShareStateConfig, ShareStateEffect, ShareStateRefusal, ShareStateRequest,
    ShareStateResponse, ShareStateRetry, ShareStateShard, ShareStateStats, ShareStateSummary, StateBatch,
};
pub use transactions::{
    AddOffsets, AddPartitions, MarkerOrder, MarkerOutcome, MarkerTicket, TransactionCaller,
    TransactionConfig, TransactionEffect, TransactionRequest, TransactionResponse, TransactionShard,
    TransactionState, TransactionStats, TransactionVersion,
};
