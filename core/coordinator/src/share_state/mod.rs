//! The share coordinator (KIP-932): the stored state of each share-partition, from which the partition's next leader
//! continues.
//!
//! One [`ShareStateShard`] answers for one partition of `__share_group_state`. It is built as every coordinator of this
//! crate: a request comes to records and an answer, the answer leaves once the records are on disk, loading replays
//! them.
//!
//! ```text
//!  initialize ─▶ snapshot          the share-partition begins here, nothing is delivered
//!  write      ─▶ update            what changed; after so many of them a whole snapshot again
//!  read       ─▶ (update)          a new leader says its epoch, which fences the last one
//!  delete     ─▶ tombstone
//! ```
//!
//! Everything before the oldest snapshot that still counts is redundant: the shard asks its worker from time to time
//! to delete it ([`ShareStateEffect::Prune`]). It rewrites idle share-partitions now and then, so that their
//! snapshots do not hold the rest back.
//!
//! - `state`: one share-partition's state, and how changes are merged into it
//! - `entry`: the same, with what is on its way to disk
//! - `record`: Kafka's records
//! - `messages`: Kafka's messages between brokers about one share-partition
//! - `retry`: how long a broker goes on asking
//! - `shard`: requests, their checks in Kafka's order, timers, loading
//!
//! Not here: which records are acquired by whom (core/partition/src/share), who is in the group (share_group/).
//!
//! # Source
//! KIP-932, KIP-1226; Kafka 4.4 `ShareCoordinatorShard`, `ShareCoordinatorService`, `PersisterStateBatchCombiner`.

mod config;
mod entry;
pub mod messages;
mod record;
mod request;
mod retry;
mod shard;
mod state;

pub use config::ShareStateConfig;
pub use request::{
    SharePartitionKey, ShareStateEffect, ShareStateRefusal, ShareStateRequest, ShareStateResponse,
    ShareStateSummary,
};
pub use retry::ShareStateRetry;
pub use shard::{ShareStateShard, ShareStateStats};
pub use state::{ShareState, StateBatch};
