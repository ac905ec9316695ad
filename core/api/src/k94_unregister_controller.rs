//! # UnregisterController, key 94, version 0
//!
//! Forgets the registration of a controller that will not come back, so that it is no longer in the way of new feature
//! levels. Who votes is another matter: [`crate::k81_remove_raft_voter`].
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-1312) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/controllers.rs`.
//!
//! Source: KIP-1312; Kafka 4.4 `ControllerApis.handleUnregisterController`.

use barnabas_wire::messages::UnregisterControllerResponse;

use crate::Refusal;

/// The answer to the client, from the controller's or from the reason why there is none.
pub fn respond(outcome: Result<UnregisterControllerResponse, Refusal>) -> UnregisterControllerResponse {
    outcome.unwrap_or_else(|refusal| UnregisterControllerResponse {
        error_code: refusal.code.code(),
        error_message: refusal.text(),
        ..UnregisterControllerResponse::default()
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
