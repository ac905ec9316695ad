//! # BrokerRegistration, key 62, versions 0–4
//!
//! A broker joins the cluster: who it is, where it is reached, what it can work with. On the controllers' listener
//! only.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-631) |
//! | 1 | whether a broker of ZooKeeper mode is on its way here (KIP-866) |
//! | 2 | its log directories (KIP-858) |
//! | 3 | the epoch in which it last shut down cleanly (KIP-966) |
//! | 4 | features whose lowest level is 0 (KIP-1022) |
//!
//! ## Left out
//! - Nothing.
//! - Brokers of ZooKeeper mode: refused, as by Kafka 4.
//!
//! What is decided: core/quorum's `controller/brokers.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleBrokerRegistration`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::BrokerRegistrationResponse;

/// The answer of a controller that decides nothing.
pub fn refuse(code: ErrorCode) -> BrokerRegistrationResponse {
    BrokerRegistrationResponse { error_code: code.code(), ..BrokerRegistrationResponse::default() }
}
