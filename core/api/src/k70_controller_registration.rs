//! # ControllerRegistration, key 70, version 0
//!
//! A controller tells the active one where it is reached and what it can work with. On the controllers' listener only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-919) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/controllers.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleControllerRegistration`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::ControllerRegistrationResponse;

/// The answer of a controller that decides nothing.
pub fn refuse(code: ErrorCode) -> ControllerRegistrationResponse {
    ControllerRegistrationResponse { error_code: code.code(), ..ControllerRegistrationResponse::default() }
}
