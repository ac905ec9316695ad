//! The keys of `sasl.oauthbearer.*`, judged one by one and together. Reads no file and asks no issuer.
//!
//! | file | answers |
//! |---|---|
//! | `validator` | which tokens does a listener accept, and where are its issuer's keys |
//! | `values` | what is a key's value: text, number, class, URL; may it be named at all |
//! | `url` | where does a URL lead |
//! | `error` | which key is wrong, why, and an example |
//!
//! A client's keys: core/sasl/src/oauth/tokens.rs.

mod error;
mod url;
mod validator;
mod values;

pub use error::OAuthError;
pub use url::{HttpUrl, Url};
pub use validator::{KeySettings, Validator};
pub use values::{Allowed, of_login_module};
pub(crate) use values::{Values, tls};
