//! SCRAM-SHA-256 and SCRAM-SHA-512: the password is proved without being sent.
//!
//! | file | answers |
//! |---|---|
//! | `mechanism` | names, codes, bounds, and the arithmetic of RFC 5802 §3 |
//! | `message` | the four messages, parsed as Kafka's regular expressions do |
//! | `credential` | what the metadata log keeps of a password, and the fake for unknown users |
//! | `token` | the secrets and credentials of delegation tokens |
//! | `server`, `client` | the two sides; each step consumes the state before it |
//!
//! As in Kafka there is no channel binding and no SASLprep: names and passwords are UTF-8 as they come
//! (`ScramFormatter.normalize`), and a name is ASCII on the wire.
//!
//! # Source
//! RFC 5802, RFC 7677; Kafka 4 `ScramSaslServer`, `ScramSaslClient`, `ScramMessages`, `ScramFormatter`.

mod client;
mod credential;
mod mechanism;
mod message;
mod server;
#[cfg(test)]
mod tests;
mod token;

pub use client::{Client, ClientChallenged, ClientFault};
pub use credential::{CredentialError, Decoy, ScramCredential, digest, fresh_salt};
pub use mechanism::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism};
pub use server::{Challenged, Identity, Received};
pub use token::{Fingerprint, TokenKey};
