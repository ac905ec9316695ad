//! OAUTHBEARER: the client's first message, and what its token must be.
//!
//! | file | answers |
//! |---|---|
//! | `message` | the client's first message, both sides |
//! | `jwt` | what a token says |
//! | `fault` | why it is refused |
//! | `jwks` | an issuer's keys, and which of them a token names |
//! | `rules` | which tokens are taken, and as whom |
//! | `refresh` | when the issuer's keys are fetched again |
//! | `settings` | a listener's keys of `sasl.oauthbearer.*` |
//! | `tokens` | the tokens that this node, or a tool, logs in with |
//!
//! # Source
//! RFC 7628; Kafka 4 `OAuthBearerClientInitialResponse`, `OAuthBearerSaslServer`.

mod fault;
mod jwks;
mod jwt;
mod message;
mod refresh;
mod rules;
pub mod settings;
#[cfg(test)]
mod tests;
pub mod tokens;

pub use fault::{Fault, TOKEN_BYTES_MAX};
pub use jwks::{Curve, Jwks, JwksFault, KEYS_MAX, Material, PublicKey};
pub use jwt::{Algorithm, Claims, Jwt};
pub use message::{FirstMessage, client_message};
pub use refresh::{EARLY_MS, Pauses, Refresh};
pub use rules::{Rules, Signatures, UnsecuredRules, end_of};

use barnabas_base::TimestampMs;

/// The server's challenge to a token that it refuses, and the text that the client reads in the end.
pub const INVALID_TOKEN: &str = r#"{"status":"invalid_token"}"#;
/// The client's answer to it.
pub const CONFIRMATION: &[u8] = &[1];

/// What a token that was accepted says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    pub principal: String,
    pub expires: TimestampMs,
}
