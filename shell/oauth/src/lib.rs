//! OAUTHBEARER's outside: an issuer's keys for the server, tokens for the client, and the signatures of both.
//!
//! | file | answers |
//! |---|---|
//! | `validator` | is this token good: the keys of `sasl.oauthbearer.*` for a listener |
//! | `issuer_keys` | which keys does the issuer publish now; a thread fetches them |
//! | `tokens` | which token does this node, or a tool, log in with |
//! | `signatures` | is this signature right |
//! | `http` | one request, one answer, over HTTP/1.1 with or without TLS |
//! | `url` | where a URL leads, and whether it is on the list of those allowed |
//!
//! core/sasl decides; here are sockets, files, a thread for each set of keys, and the cryptography.
//!
//! Always true:
//! 1. no call that a worker makes waits for the network: [`Validator`] and [`IssuerKeys`] answer from what is here
//! 2. whatever strangers send, an issuer is asked early once in ten seconds
//! 3. each answer is bounded in bytes and in time; redirects are not followed

mod error;
mod http;
mod issuer_keys;
mod settings;
mod signatures;
mod tokens;
mod url;
mod validator;

pub use error::OAuthError;
pub use issuer_keys::{IssuerKeys, KeySettings};
pub use settings::Allowed;
pub use signatures::AwsSignatures;
pub use tokens::{TokenSettings, TokenSource};
pub use validator::Validator;
