//! # RenewDelegationToken, key 39, versions 0–2
//!
//! Puts off the end of a delegation token, for its owner or one of its renewers.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-48) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//!
//! ## Left out
//! - Nothing.
//!
//! What is decided: core/quorum's `controller/access/tokens.rs`.
//!
//! Source: Kafka 4.4 `KafkaApis.handleRenewTokenRequest`, `ControllerApis.handleRenewDelegationTokenRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::RenewDelegationTokenResponse;

use crate::tokens::may_ask;
use crate::{Context, Refusal, Route};

/// The answer to a client that may not ask at all; `None`: the controller decides.
pub fn refuse(route: Route, ctx: &Context<'_>) -> Option<RenewDelegationTokenResponse> {
    (!may_ask(route, ctx)).then(|| RenewDelegationTokenResponse {
        error_code: ErrorCode::DelegationTokenRequestNotAllowed.code(),
        expiry_timestamp_ms: -1,
        ..RenewDelegationTokenResponse::default()
    })
}

/// The answer to the client, from the controller's or from the reason why there is none.
pub fn respond(outcome: Result<RenewDelegationTokenResponse, Refusal>) -> RenewDelegationTokenResponse {
    outcome.unwrap_or_else(|refusal| RenewDelegationTokenResponse {
        error_code: refusal.code.code(),
        ..RenewDelegationTokenResponse::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fixture, carried, versions};

    #[test]
    fn client_without_login_is_refused() {
        let mut fixture = Fixture::new();
        for version in versions::<RenewDelegationTokenResponse>() {
            let response = refuse(Route::ToBroker, &fixture.ctx()).expect("refused");
            let response = carried(response, version);
            assert_eq!((response.error_code, response.expiry_timestamp_ms), (64, -1));
        }
        assert_eq!(refuse(Route::ThroughBroker, &fixture.ctx()), None);
        fixture.client.is_authenticated = true;
        assert_eq!(refuse(Route::ToBroker, &fixture.ctx()), None);
        fixture.client.token_authenticated = true;
        assert!(refuse(Route::ThroughBroker, &fixture.ctx()).is_some());
        let response = carried(respond(Err(ErrorCode::RequestTimedOut.into())), 0);
        assert_eq!((response.error_code, response.expiry_timestamp_ms), (7, 0));
    }
}
