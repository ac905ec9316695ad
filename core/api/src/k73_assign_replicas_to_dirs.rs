//! # AssignReplicasToDirs, key 73, version 0
//!
//! A broker says in which of its directories its replicas lie. On the controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-858) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/replicas/directories.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleAssignReplicasToDirs`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::AssignReplicasToDirsResponse;

/// The answer of a controller that decides nothing.
pub fn refuse(code: ErrorCode) -> AssignReplicasToDirsResponse {
    AssignReplicasToDirsResponse { error_code: code.code(), ..AssignReplicasToDirsResponse::default() }
}
