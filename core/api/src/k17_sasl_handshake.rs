//! # SaslHandshake, key 17, versions 0–1
//!
//! Chooses the SASL mechanism. Before a client has authenticated, core/sasl's exchange answers it; on a connection that
//! may authenticate again it starts that. Everywhere else the answer is ILLEGAL_SASL_STATE.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the mechanism; the tokens follow without a header (KIP-43) |
//! | 1 | the tokens follow in SaslAuthenticate (KIP-152) |
//!
//! Source: Kafka 4.4 `KafkaApis.handleSaslHandshakeRequest`.

use barnabas_base::ErrorCode;
use barnabas_wire::messages::SaslHandshakeResponse;

/// The answer outside of an exchange.
pub fn out_of_place() -> SaslHandshakeResponse {
    SaslHandshakeResponse { error_code: ErrorCode::IllegalSaslState.code(), ..Default::default() }
}
