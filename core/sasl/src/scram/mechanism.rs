//! The two mechanisms, and RFC 5802's functions over their hash.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256, Sha512};

use crate::Secret;

/// The least iterations that Kafka accepts, RFC 7677's minimum.
pub const ITERATIONS_MIN: u32 = 4096;
/// The most iterations that Kafka accepts. Bounds the work that a server can ask of a client.
pub const ITERATIONS_MAX: u32 = 16384;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    Sha256,
    Sha512,
}

impl Mechanism {
    /// The name in SaslHandshake and `sasl.enabled.mechanisms`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// The number in UserScramCredentialRecord and AlterUserScramCredentials.
    pub const fn code(self) -> i8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    pub fn from_code(code: i8) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|mechanism| mechanism.code() == code)
    }

    /// Bytes of every key, proof and signature.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// RFC 5802's `H`.
    pub(crate) fn hash(self, bytes: &[u8]) -> Secret {
        match self {
            Self::Sha256 => Secret::from(Sha256::digest(bytes).as_slice()),
            Self::Sha512 => Secret::from(Sha512::digest(bytes).as_slice()),
        }
    }

    /// RFC 5802's `HMAC`.
    pub(crate) fn hmac(self, key: &Secret, bytes: &[u8]) -> Secret {
        match self {
            Self::Sha256 => hmac_sha256(key.bytes(), bytes),
            Self::Sha512 => hmac_sha512(key.bytes(), bytes),
        }
    }

    /// RFC 5802's `Hi`: the salted password. Costs about `iterations` × two hashes; the client's work, never
    /// the server's.
    pub fn salted_password(self, password: &Secret, salt: &[u8], iterations: u32) -> Secret {
        let mut salted = zeroize::Zeroizing::new(vec![0; self.key_len()]);
        match self {
            Self::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password.bytes(), salt, iterations, &mut salted),
            Self::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(password.bytes(), salt, iterations, &mut salted),
        }
        Secret::from(salted.as_slice())
    }

    pub(crate) fn client_key(self, salted_password: &Secret) -> Secret {
        self.hmac(salted_password, b"Client Key")
    }

    pub(crate) fn server_key(self, salted_password: &Secret) -> Secret {
        self.hmac(salted_password, b"Server Key")
    }
}

fn hmac_sha256(key: &[u8], bytes: &[u8]) -> Secret {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(bytes);
    Secret::from(mac.finalize().into_bytes().as_slice())
}

fn hmac_sha512(key: &[u8], bytes: &[u8]) -> Secret {
    let mut mac = Hmac::<Sha512>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(bytes);
    Secret::from(mac.finalize().into_bytes().as_slice())
}

/// `left XOR right`, of equal length.
pub(crate) fn xor(left: &Secret, right: &[u8]) -> Secret {
    assert_eq!(left.bytes().len(), right.len(), "keys of one mechanism have one length");
    Secret::from(left.bytes().iter().zip(right).map(|(a, b)| a ^ b).collect::<Vec<u8>>())
}
