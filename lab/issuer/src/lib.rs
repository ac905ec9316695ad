//! An issuer of tokens for tests: signs, publishes its keys, hands out tokens to a client that knows a secret.
//!
//! On loopback, over HTTP or over HTTPS with an authority of its own. One connection at a time; each is counted.

mod keys;
mod server;

pub use keys::{SigningKey, token};
pub use server::{CLIENT_ID, CLIENT_SECRET, Issuer, lasting};
