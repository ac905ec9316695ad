//! Transactions: who holds a transactional id, which partitions its transaction touches, and how it ends.
//!
//! One [`TransactionShard`] answers for one partition of `__transaction_state`. It is built as every coordinator of
//! this crate: a request comes to records and an answer, the answer leaves once the records are on disk, loading
//! replays them. What is added: markers. A decision that is on disk makes the shard ask the worker to write its marker
//! to every partition of the transaction ([`MarkerOrder`]), and to go on asking until each has one; then the
//! transaction is complete.
//!
//! - `state`: the states and which may follow which
//! - `transaction`: one transactional id's values, and every step from one to the next, without any check
//! - `shard`: requests, their checks in Kafka's order, timers, markers, loading
//!
//! Left out: KIP-939 (two-phase commit; `Enable2Pc` and `KeepPreparedTxn` are refused as by a Kafka where
//! `transaction.two.phase.commit.enable` is false, its default).
//!
//! Not here: producer ids (the worker brings them), which topics exist and who may write to them (core/api), the
//! partitions' own record of open transactions (core/partition), offsets that wait for a marker (offsets/).
//!
//! # Source
//! KIP-98, KIP-360, KIP-447, KIP-588, KIP-664, KIP-890, KIP-994, KIP-1152; Kafka 4.4 `TransactionCoordinator`,
//! `TransactionMetadata`, `TransactionStateManager`, `TransactionLog`.

mod config;
mod effect;
mod record;
mod request;
mod shard;
mod state;
mod transaction;

pub use crate::framework::TransactionVersion;
pub use config::TransactionConfig;
pub use effect::{MarkerOrder, MarkerOutcome, MarkerTicket, TransactionEffect};
pub use request::{AddOffsets, AddPartitions, TransactionCaller, TransactionRequest, TransactionResponse};
pub use shard::{TransactionShard, TransactionStats};
pub use state::TransactionState;
