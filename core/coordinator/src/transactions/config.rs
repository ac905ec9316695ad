//! The settings that concern transactions, as values.

use barnabas_base::DurationMs;

use crate::framework::TransactionVersion;

/// Defaults are Kafka 4.4's; without patience, which the shell asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionConfig {
    /// The cluster's finalized `transaction.version`.
    pub version: TransactionVersion,
    /// `transaction.max.timeout.ms`.
    pub timeout_max: DurationMs,
    /// `transactional.id.expiration.ms`.
    pub id_expiration: DurationMs,
    /// `transaction.remove.expired.transaction.cleanup.interval.ms`.
    pub id_expiration_check_interval: DurationMs,
    /// `request.timeout.ms`: how long an answer waits for its records to be safe.
    pub append_timeout: DurationMs,
    /// How long before a marker that could not be written, or a record that was lost, is tried again. Not a setting in
    /// Kafka either.
    pub retry_backoff: DurationMs,
    /// How long a request waits that finds its transactional id busy with the end of its last transaction, before it is
    /// told CONCURRENT_TRANSACTIONS and comes back after a pause of its own. Kafka's brokers do so for partitions that
    /// join by being written to (`add.partitions.to.txn.retry.backoff.max.ms`); here any request that comes too early
    /// waits.
    pub busy_patience: DurationMs,
    /// Requests of one shard that may wait for that.
    pub parked_max: usize,
    /// What one batch of records may weigh: a little less than `max.message.bytes` of `__transaction_state`.
    pub batch_bytes_max: usize,
    /// Batches that may wait for the disk at the same time in one shard.
    pub pending_batches_max: usize,
    /// Requests that may wait for a producer id.
    pub waiting_for_ids_max: usize,
    /// Transactional ids of one shard; another one is refused with a retriable error. Kafka has no such bound.
    pub ids_max: usize,
    /// `groups.memory.max.bytes`: what all coordinators of the node may hold.
    pub memory_bytes_max: usize,
}

impl Default for TransactionConfig {
    fn default() -> Self {
        Self {
            version: TransactionVersion::V2,
            timeout_max: DurationMs(900_000),
            id_expiration: DurationMs(7 * 24 * 3_600_000),
            id_expiration_check_interval: DurationMs(3_600_000),
            append_timeout: DurationMs(30_000),
            retry_backoff: DurationMs(100),
            busy_patience: DurationMs(0),
            parked_max: 10_000,
            batch_bytes_max: 1_000_000,
            pending_batches_max: 10_000,
            waiting_for_ids_max: 10_000,
            ids_max: 1_000_000,
            memory_bytes_max: 256 << 20,
        }
    }
}
