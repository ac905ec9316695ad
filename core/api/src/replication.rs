//! What this broker asks of others, rather than what is asked of it: as a follower of other brokers' partitions
//! ([`fetch`]), and as a leader, of the controller ([`alter_partition`]).
//!
//! Words only: who is asked for what, and what an answer changes, is decided in core/partition (`fetcher`,
//! `isr_requests`).
//!
//! Source: Kafka `MetadataVersion`; `RemoteLeaderEndPoint`, `DefaultAlterPartitionManager`.

pub mod alter_partition;
pub mod fetch;
pub mod list_offsets;

#[cfg(test)]
mod tests;
