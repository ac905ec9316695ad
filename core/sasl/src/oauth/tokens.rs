//! The tokens that this node, or a tool, logs in with: what the settings say of them, what an issuer is asked, and how
//! long a token is used.
//!
//! A token is kept until most of its life is over (`sasl.login.refresh.window.factor`). The next login after that gets
//! another; while no other can be had, the old one serves until its end.
//!
//! | file | answers |
//! |---|---|
//! | `read` | a client's keys of `sasl.oauthbearer.*` and `sasl.login.*` |
//! | `assertion` | the token by which a client proves to the issuer who it is, instead of a secret |
//! | `request` | what an issuer is asked, and what its answer says |
//! | `held` | when a token is replaced, and how long an issuer is asked for one |
//!
//! shell/oauth/src/tokens.rs sends, reads files and signs.
//!
//! Source: Kafka 4.4 `OAuthBearerLoginCallbackHandler`, `DefaultJwtRetriever`, `HttpJwtRetriever`,
//! `ExpiringCredentialRefreshingLogin`; KIP-768, KIP-1139, KIP-1258.

mod assertion;
mod held;
mod read;
mod request;
#[cfg(test)]
mod tests;

pub use assertion::{Assertion, Made};
pub use held::{HeldToken, Retries, Window};
pub use request::{Refused, outcome};

use super::settings::HttpUrl;
use crate::Secret;
use barnabas_certificates::TlsSettings;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// What tokens are had with. Equal settings may share a source.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenSettings {
    pub way: Way,
    pub extensions: Vec<(String, String)>,
    pub refresh: Window,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    File(PathBuf),
    Issuer(Box<Issuer>),
    Unsecured(UnsecuredToken),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Issuer {
    pub url: HttpUrl,
    pub tls: Option<TlsSettings>,
    pub grant: Grant,
    scope: Option<String>,
    /// `sasl.oauthbearer.header.urlencode`
    is_header_encoded: bool,
    pub connect: Duration,
    pub read: Duration,
    pub retry_ms: u64,
    pub retry_max_ms: u64,
}

/// How a client proves to the issuer who it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Grant {
    Secret {
        id: String,
        secret: Secret,
    },
    /// client_credentials with an assertion instead of the secret.
    ClientAssertion {
        id: Option<String>,
        assertion: Assertion,
    },
    /// urn:ietf:params:oauth:grant-type:jwt-bearer
    JwtBearer(Assertion),
}

/// A token without a signature, for tests.
#[derive(Debug, Clone, PartialEq)]
pub struct UnsecuredToken {
    /// Claims besides `exp` and `iat`.
    claims: Map<String, Value>,
    life_s: i64,
}

impl UnsecuredToken {
    /// `now_s`: seconds since 1970.
    pub fn token(&self, now_s: i64) -> String {
        let mut claims = self.claims.clone();
        claims.insert("iat".to_owned(), now_s.into());
        claims.insert("exp".to_owned(), now_s.saturating_add(self.life_s).into());
        let part = |text: String| URL_SAFE_NO_PAD.encode(text);
        let claims = part(Value::Object(claims).to_string());
        format!("{}.{claims}.", part(r#"{"alg":"none"}"#.to_owned()))
    }
}
