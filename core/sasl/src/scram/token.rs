//! Delegation tokens: what follows from a token's id and the cluster's key. Neither is stored with the token.
//!
//! A token's secret is HMAC-SHA-512 of its id under `delegation.token.secret.key`; its password is the base64 text of
//! that. The credential of each mechanism is derived from the password, with a salt that depends on the key and the id
//! alone: all brokers with one key send the same challenge, and nothing of it is kept. Kafka draws a salt on each
//! broker.
//!
//! Source: KIP-48; Kafka `DelegationTokenManager.createHmac`, `prepareScramCredentials`.

use super::credential::{ScramCredential, kafka_salt};
use super::mechanism::{ITERATIONS_MIN, Mechanism};
use super::message::to_base64;
use crate::Secret;

/// `delegation.token.secret.key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenKey(Secret);

impl TokenKey {
    /// `None`: an empty key, with which Kafka has no delegation tokens.
    pub fn new(key: &str) -> Option<Self> {
        (!key.is_empty()).then(|| Self(Secret::from(key)))
    }

    /// The token's secret: 64 bytes.
    pub fn hmac(&self, id: &str) -> Secret {
        Mechanism::Sha512.hmac(&self.0, id.as_bytes())
    }

    /// The token as a SCRAM credential. Costs [`ITERATIONS_MIN`] iterations: to be kept.
    pub fn credential(&self, mechanism: Mechanism, id: &str) -> ScramCredential {
        let password = Secret::from(to_base64(self.hmac(id).bytes()));
        let purpose = format!("salt\0{}\0{id}", mechanism.name());
        let salt = kafka_salt(mechanism.hmac(&self.0, purpose.as_bytes()).bytes());
        ScramCredential::from_password(mechanism, &password, salt, ITERATIONS_MIN.into())
            .expect("a salt in base 36 and the least iterations make a credential")
    }
}

/// By this a token is found for the secret that a client shows. The secret cannot be computed from it, and the time of
/// a search says nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// `hmac`: as [`TokenKey::hmac`] gives it, or whatever a client shows.
    pub fn of(hmac: &[u8]) -> Self {
        let mut digest = [0; 32];
        digest.copy_from_slice(Mechanism::Sha256.hash(hmac).bytes());
        Self(digest)
    }
}
