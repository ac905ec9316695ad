//! # BrokerHeartbeat, key 63, versions 0–2
//!
//! Keeps a broker's session alive; asks to unfence the broker or for a controlled shutdown. On the
//! controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-631) |
//! | 1 | log directories that have failed (KIP-858) |
//! | 2 | log directories that are to get nothing new (KIP-1066) |
//!
//! ## Left out
//! - Nothing.
//!
//! ## Beyond Kafka
//! A tagged field that Kafka knows nothing of (tag 10001) names what the broker should not lead although it is alive:
//! from which log directories, for want of room, and which partitions, for damage. Bytes: core/quorum's
//! `controller/impaired/said.rs`.
//!
//! What is decided: core/quorum's `controller/brokers.rs` and `controller/impaired.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleBrokerHeartBeatRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::BrokerHeartbeatResponse;

/// The answer of a controller that decides nothing.
pub fn refuse(code: ErrorCode) -> BrokerHeartbeatResponse {
    BrokerHeartbeatResponse { error_code: code.code(), ..BrokerHeartbeatResponse::default() }
}
