//! OAUTHBEARER: the client's first message. What its token must be: `jwt`, against keys of `jwks`.
//!
//! # Source
//! RFC 7628; Kafka 4 `OAuthBearerClientInitialResponse`, `OAuthBearerSaslServer`.

mod message;

pub use message::{FirstMessage, client_message};

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
