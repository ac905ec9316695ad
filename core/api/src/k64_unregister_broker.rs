//! # UnregisterBroker, key 64, version 0
//!
//! Forgets a broker that will not come back: what it led and held goes to others, and its id is free.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-631) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/brokers.rs`.
//!
//! Source: Kafka 4.4 `ControllerApis.handleUnregisterBroker`.

use barnabas_wire::messages::UnregisterBrokerResponse;

use crate::Refusal;

/// The answer to the client, from the controller's or from the reason why there is none.
pub fn respond(outcome: Result<UnregisterBrokerResponse, Refusal>) -> UnregisterBrokerResponse {
    outcome.unwrap_or_else(|refusal| UnregisterBrokerResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..UnregisterBrokerResponse::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::carried;
    use barnabas_base::ErrorCode;

    #[test]
    fn a_refusal_says_why() {
        let refusal = Refusal::new(ErrorCode::RequestTimedOut, "no active controller");
        let response = carried(respond(Err(refusal)), 0);
        assert_eq!(response.error_code, ErrorCode::RequestTimedOut.code());
        assert_eq!(response.error_message.as_deref(), Some("no active controller"));
    }
}
