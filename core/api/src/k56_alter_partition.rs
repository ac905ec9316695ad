//! # AlterPartition, key 56, versions 0–3
//!
//! The leader of a partition says who is in sync with it. On the controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-497) |
//! | 1 | whether the leader still recovers from an unclean election (KIP-704) |
//! | 2 | topics by their ids (KIP-841) |
//! | 3 | the broker epochs of those in sync (KIP-903) |
//!
//! ## Left out
//! - Nothing.
//! - Topics by their names (versions 0 and 1): answered with UNKNOWN_TOPIC_ID. No broker since Kafka 3.3 asks so.
//!
//! What is decided: core/quorum's `controller/replicas/alter_partition.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAlterPartitionRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::AlterPartitionResponse;

/// The answer of a controller that decides nothing.
pub fn refuse(code: ErrorCode) -> AlterPartitionResponse {
    AlterPartitionResponse { error_code: code.code(), ..AlterPartitionResponse::default() }
}
