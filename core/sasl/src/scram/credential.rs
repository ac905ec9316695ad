//! What the metadata log keeps of a password (UserScramCredentialRecord), and its stand-in for unknown users.

use std::collections::BTreeMap;
use std::sync::Arc;

use subtle::Choice;

use super::mechanism::{ITERATIONS_MAX, ITERATIONS_MIN, Mechanism};
use crate::Secret;

/// A user's SCRAM credential for one mechanism. It does not contain the password. With the stored key and one
/// recorded exchange an attacker can log in as the user; with the server key an attacker can impersonate the
/// server (RFC 5802 §9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramCredential {
    mechanism: Mechanism,
    salt: Vec<u8>,
    stored_key: Secret,
    server_key: Secret,
    iterations: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error(
        "a credential of {mechanism} has {iterations} iterations: expected {ITERATIONS_MIN} to {ITERATIONS_MAX}, \
         for example iterations=8192"
    )]
    Iterations { mechanism: &'static str, iterations: i64 },
    #[error("the {which} of a {mechanism} credential has {given} bytes: expected {expected}")]
    KeyLength { mechanism: &'static str, which: &'static str, given: usize, expected: usize },
    #[error("a credential of {mechanism} has no salt: expected at least one byte of base64")]
    NoSalt { mechanism: &'static str },
}

impl ScramCredential {
    /// A credential as a record carries it.
    ///
    /// # Errors
    /// Iterations outside of Kafka's bounds, a key of the wrong length, no salt.
    pub fn new(
        mechanism: Mechanism,
        salt: Vec<u8>,
        stored_key: Secret,
        server_key: Secret,
        iterations: i64,
    ) -> Result<Self, CredentialError> {
        let iterations = check_iterations(mechanism, iterations)?;
        check_salt(mechanism, &salt)?;
        check_key(mechanism, "stored key", &stored_key)?;
        check_key(mechanism, "server key", &server_key)?;
        Ok(Self { mechanism, salt, stored_key, server_key, iterations })
    }

    /// From the salted password, which AlterUserScramCredentials carries.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_salted_password(
        mechanism: Mechanism,
        salted: &Secret,
        salt: Vec<u8>,
        iterations: i64,
    ) -> Result<Self, CredentialError> {
        check_key(mechanism, "salted password", salted)?;
        let stored_key = mechanism.hash(mechanism.client_key(salted).bytes());
        Self::new(mechanism, salt, stored_key, mechanism.server_key(salted), iterations)
    }

    /// From the password itself: `storage format --add-scram`, delegation tokens.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_password(
        mechanism: Mechanism,
        password: &Secret,
        salt: Vec<u8>,
        iterations: i64,
    ) -> Result<Self, CredentialError> {
        let rounds = check_iterations(mechanism, iterations)?;
        check_salt(mechanism, &salt)?;
        let salted = mechanism.salted_password(password, &salt, rounds);
        Self::from_salted_password(mechanism, &salted, salt, iterations)
    }

    pub fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    pub fn stored_key(&self) -> &Secret {
        &self.stored_key
    }

    pub fn server_key(&self) -> &Secret {
        &self.server_key
    }

    pub fn iterations(&self) -> u32 {
        self.iterations
    }
}

/// Makes credentials for unknown users, so that their exchange fails at the same step as a wrong password.
///
/// The same name gives the same salt each time, on every broker with the same secret. Kafka refuses an
/// unknown user at the first message, which reveals which users exist.
#[derive(Debug, Clone)]
pub struct Decoy {
    secret: Secret,
    iterations: u32,
    /// How many real credentials have which count, by the mechanism's code.
    counts: Arc<BTreeMap<(i8, u32), u64>>,
}

impl Decoy {
    /// `secret`: at least 32 random bytes, equal on all brokers. `iterations`: for a mechanism of which no real
    /// credential is known; a value outside of Kafka's bounds is moved into them.
    pub fn new(secret: Secret, iterations: u32) -> Self {
        let iterations = iterations.clamp(ITERATIONS_MIN, ITERATIONS_MAX);
        Self { secret, iterations, counts: Arc::default() }
    }

    /// With the iterations of the real credentials. A decoy has one of their counts, each as often as real users have
    /// it: with one count for all decoys, a user of another count would be recognised.
    pub fn with_counts(self, real: impl IntoIterator<Item = (Mechanism, u32)>) -> Self {
        let mut counts = BTreeMap::new();
        for (mechanism, iterations) in real {
            *counts.entry((mechanism.code(), iterations)).or_default() += 1;
        }
        Self { counts: Arc::new(counts), ..self }
    }

    /// For unknown tokens: every token's credential has the least iterations.
    pub fn of_tokens(self) -> Self {
        Self { iterations: ITERATIONS_MIN, counts: Arc::default(), ..self }
    }

    /// The credential that the exchange goes on with, and whether it is real. The decoy is made in either case, so that
    /// both take the same time.
    pub(super) fn choose(
        &self,
        mechanism: Mechanism,
        user: &str,
        found: Option<&ScramCredential>,
    ) -> (ScramCredential, Choice) {
        let decoy = self.credential(mechanism, user);
        let real = found.filter(|credential| credential.mechanism == mechanism);
        let is_real = Choice::from(u8::from(real.is_some()));
        (real.unwrap_or(&decoy).clone(), is_real)
    }

    fn credential(&self, mechanism: Mechanism, user: &str) -> ScramCredential {
        let derive = |purpose: &str| {
            mechanism.hmac(&self.secret, format!("{purpose}\0{}\0{user}", mechanism.name()).as_bytes())
        };
        let (stored_key, server_key) = (derive("stored key"), derive("server key"));
        let salt = kafka_salt(derive("salt").bytes());
        let iterations = self.iterations_of(mechanism, derive("iterations").bytes());
        ScramCredential { mechanism, salt, stored_key, server_key, iterations }
    }

    /// A user more or less changes the count of few names.
    fn iterations_of(&self, mechanism: Mechanism, random: &[u8]) -> u32 {
        let of_mechanism = (mechanism.code(), 0)..=(mechanism.code(), u32::MAX);
        let total: u64 = self.counts.range(of_mechanism.clone()).map(|(_, users)| users).sum();
        let drawn = u32::from_be_bytes([random[0], random[1], random[2], random[3]]);
        let mut place = (u128::from(total) * u128::from(drawn)) >> u32::BITS;
        for (&(_, iterations), &users) in self.counts.range(of_mechanism) {
            match place.checked_sub(users.into()) {
                Some(left) => place = left,
                None => return iterations,
            }
        }
        self.iterations
    }
}

/// SHA-256: for choosing the secret of a cluster's decoys, and where a long name needs a short one.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    digest.copy_from_slice(Mechanism::Sha256.hash(bytes).bytes());
    digest
}

/// A fresh salt of the form that decoys and kafka-configs have, from random bytes. Salts of another form would tell
/// real users from decoys.
pub fn fresh_salt(random: [u8; 17]) -> Vec<u8> {
    kafka_salt(&random)
}

/// A salt that looks like those of kafka-configs: 130 random bits as a number in base 36, its text taken as bytes
/// (`ScramFormatter.secureRandomBytes`). Other bytes would give the decoy away.
pub(super) fn kafka_salt(random: &[u8]) -> Vec<u8> {
    let mut number = random[..17].to_vec();
    number[0] &= 0b11;
    let mut digits = Vec::with_capacity(26);
    while number.iter().any(|&byte| byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 36) as u8;
            rest = value % 36;
        }
        digits.push(char::from_digit(rest, 36).map_or(b'0', |digit| digit as u8));
    }
    digits.reverse();
    if digits.is_empty() { vec![b'0'] } else { digits }
}

fn check_iterations(mechanism: Mechanism, iterations: i64) -> Result<u32, CredentialError> {
    u32::try_from(iterations)
        .ok()
        .filter(|count| (ITERATIONS_MIN..=ITERATIONS_MAX).contains(count))
        .ok_or(CredentialError::Iterations { mechanism: mechanism.name(), iterations })
}

fn check_salt(mechanism: Mechanism, salt: &[u8]) -> Result<(), CredentialError> {
    if salt.is_empty() { Err(CredentialError::NoSalt { mechanism: mechanism.name() }) } else { Ok(()) }
}

fn check_key(mechanism: Mechanism, which: &'static str, key: &Secret) -> Result<(), CredentialError> {
    let (given, expected) = (key.bytes().len(), mechanism.key_len());
    if given == expected {
        Ok(())
    } else {
        Err(CredentialError::KeyLength { mechanism: mechanism.name(), which, given, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::kafka_salt;

    #[test]
    fn decoy_salts_are_numbers_in_base_36() {
        assert_eq!(kafka_salt(&[0; 32]), b"0");
        let mut bytes = [0; 32];
        bytes[16] = 35;
        assert_eq!(kafka_salt(&bytes), b"z");
        bytes[15] = 1;
        assert_eq!(kafka_salt(&bytes), b"83", "256 + 35 = 8 × 36 + 3");
        // 2^130 − 1
        assert_eq!(kafka_salt(&[0xff; 32]).len(), 26);
    }
}
