//! The keys of an issuer (`{"keys":[…]}`), and which of them a token names.
//!
//! Keys that cannot check a token's signature are left out: symmetric ones, those for encryption, unknown types and
//! curves. A symmetric key in a published set would let each reader of the set sign.
//!
//! # Source
//! RFC 7517, RFC 7518; jose4j `VerificationJwkSelector`, which Kafka uses.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::jwt::{Algorithm, Jwt};

/// Most keys of a set.
pub const KEYS_MAX: usize = 256;

/// `P-256` and its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "P-256" => Some(Self::P256),
            "P-384" => Some(Self::P384),
            "P-521" => Some(Self::P521),
            _ => None,
        }
    }

    /// Of a coordinate, and of each half of a signature.
    pub const fn bytes(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Material {
    /// Both numbers with the first byte first, without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    /// `04 x y`, the uncompressed form.
    Ec { curve: Curve, point: Vec<u8> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// `kid`
    pub id: Option<String>,
    /// `alg`: the only algorithm that the key is for.
    pub algorithm: Option<String>,
    pub material: Material,
}

/// See the file's header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jwks {
    keys: Vec<PublicKey>,
}

/// Why there are no keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwksFault {
    #[error(
        "it is no JSON object with a list of keys. Example: {{\"keys\":[{{\"kty\":\"RSA\",\"kid\":\"1\",\"n\":\"…\",\"e\":\"AQAB\"}}]}}"
    )]
    Malformed,
    #[error("it has more than {KEYS_MAX} keys")]
    TooMany,
    #[error("none of its {0} keys can check a signature: expected kty RSA, or EC with P-256, P-384 or P-521")]
    NoneUsable(usize),
}

impl Jwks {
    /// # Errors
    /// It is none, or has no key that is of use.
    pub fn parse(bytes: &[u8]) -> Result<Self, JwksFault> {
        let value: Value = serde_json::from_slice(bytes).map_err(|_| JwksFault::Malformed)?;
        let listed = value.get("keys").and_then(Value::as_array).ok_or(JwksFault::Malformed)?;
        if listed.len() > KEYS_MAX {
            return Err(JwksFault::TooMany);
        }
        let keys: Vec<PublicKey> = listed.iter().filter_map(public_key).collect();
        if keys.is_empty() { Err(JwksFault::NoneUsable(listed.len())) } else { Ok(Self { keys }) }
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The first key that the token may be signed with: of its `kid` where it has one, and of its algorithm.
    pub fn select(&self, token: &Jwt<'_>, algorithm: Algorithm) -> Option<&PublicKey> {
        self.keys.iter().find(|key| {
            (token.key_id.is_none() || key.id == token.key_id)
                && key.algorithm.as_deref().is_none_or(|only| only == algorithm.name())
                && fits(algorithm, &key.material)
        })
    }
}

fn fits(algorithm: Algorithm, material: &Material) -> bool {
    match (algorithm, material) {
        (Algorithm::Es256, Material::Ec { curve, .. }) => *curve == Curve::P256,
        (Algorithm::Es384, Material::Ec { curve, .. }) => *curve == Curve::P384,
        (Algorithm::Es512, Material::Ec { curve, .. }) => *curve == Curve::P521,
        (_, Material::Ec { .. }) => false,
        (Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512, Material::Rsa { .. }) => false,
        (_, Material::Rsa { .. }) => true,
    }
}

fn public_key(value: &Value) -> Option<PublicKey> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    if text("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
    let material = match text("kty")? {
        "RSA" => {
            let (modulus, exponent) = (without_zeros(bytes("n")?), without_zeros(bytes("e")?));
            if modulus.is_empty() || exponent.is_empty() {
                return None;
            }
            Material::Rsa { modulus, exponent }
        }
        "EC" => {
            let curve = Curve::from_name(text("crv")?)?;
            let (x, y) = (bytes("x")?, bytes("y")?);
            if x.len() != curve.bytes() || y.len() != curve.bytes() {
                return None;
            }
            Material::Ec { curve, point: [&[4], &x[..], &y[..]].concat() }
        }
        _ => return None,
    };
    Some(PublicKey {
        id: text("kid").map(str::to_owned),
        algorithm: text("alg").map(str::to_owned),
        material,
    })
}

fn without_zeros(bytes: Vec<u8>) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    bytes[zeros..].to_vec()
}
