//! # SaslAuthenticate, key 36, versions 0–2
//!
//! Carries a token of the mechanism that SaslHandshake has chosen. Before a client has authenticated, core/sasl's
//! exchange answers it. Everywhere else the answer is ILLEGAL_SASL_STATE.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the token (KIP-152) |
//! | 1 | how long the session lasts, in the answer (KIP-368) |
//! | 2 | flexible (KIP-482) |
//!
//! Source: Kafka 4.4 `KafkaApis.handleSaslAuthenticateRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::SaslAuthenticateResponse;

/// The answer outside of an exchange.
pub fn out_of_place() -> SaslAuthenticateResponse {
    SaslAuthenticateResponse {
        error_code: ErrorCode::IllegalSaslState.code(),
        error_message: Some("SaslAuthenticate request received after successful authentication".into()),
        ..Default::default()
    }
}
