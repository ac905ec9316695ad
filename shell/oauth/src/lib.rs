//! OAUTHBEARER's outside: an issuer's keys for the server, tokens for the client, and the signatures of both.
//!
//! | file | answers |
//! |---|---|
//! | `validator` | is this token good, by the keys of now |
//! | `issuer_keys` | which keys does the issuer publish now; a thread fetches them |
//! | `tokens` | which token does this node, or a tool, log in with |
//! | `signatures` | is this signature right |
//! | `http` | one request, one answer, over HTTP/1.1 with or without TLS |
//!
//! core/sasl decides; here are sockets, files, a thread for each set of keys, and the cryptography.
//!
//! Always true:
//! 1. no call that a worker makes waits for the network: [`check_token`] and [`IssuerKeys`] answer from what is here
//! 2. whatever strangers send, an issuer is asked early once in ten seconds
//! 3. each answer is bounded in bytes and in time; redirects are not followed

pub mod http;
mod issuer_keys;
mod signatures;
mod tokens;
mod validator;

pub use issuer_keys::IssuerKeys;
pub use signatures::AwsSignatures;
pub use tokens::{TokenSource, read_tokens};
pub use validator::{check_stores, check_token};
