//! Keys that sign tokens, and the tokens.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{self as lc, EcdsaKeyPair, KeyPair as _, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A private key with the id under which its public half is published.
#[derive(Debug)]
pub struct SigningKey {
    pub id: String,
    /// As in `alg`.
    pub algorithm: &'static str,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair, &'static str),
}

impl SigningKey {
    /// For RS256 and its like, PS256, ES256.
    pub fn generate(id: &str, algorithm: &'static str) -> Self {
        let ec = |signing, curve| Pair::Ec(EcdsaKeyPair::generate(signing).expect("a key"), curve);
        let pair = match algorithm {
            "ES256" => ec(&lc::ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
            "ES384" => ec(&lc::ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
            "ES512" => ec(&lc::ECDSA_P521_SHA512_FIXED_SIGNING, "P-521"),
            _ => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).expect("a key")),
        };
        Self { id: id.to_owned(), algorithm, pair }
    }

    /// The same key for another algorithm of its type.
    pub fn with(self, algorithm: &'static str) -> Self {
        Self { algorithm, ..self }
    }

    /// As it is published.
    pub fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.pair {
            Pair::Rsa(pair) => {
                let key = pair.public_key();
                let modulus = text(key.modulus().big_endian_without_leading_zero());
                let exponent = text(key.exponent().big_endian_without_leading_zero());
                json!({"kty": "RSA", "kid": self.id, "use": "sig", "n": modulus, "e": exponent})
            }
            Pair::Ec(pair, curve) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "kid": self.id, "crv": curve, "x": text(x), "y": text(y)})
            }
        }
    }

    /// A token with the key's id and algorithm.
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm, "kid": self.id, "typ": "JWT"});
        let unsigned = token(&header, claims, b"");
        let signed = unsigned.trim_end_matches('.');
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes())))
    }

    /// The private key, in PKCS#8.
    pub fn pem(&self) -> String {
        let der = match &self.pair {
            Pair::Rsa(pair) => AsDer::<Pkcs8V1Der<'_>>::as_der(pair).expect("a form").as_ref().to_vec(),
            Pair::Ec(pair, _) => pair.to_pkcs8v1().expect("a form").as_ref().to_vec(),
        };
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    /// For a key of ES256.
    pub fn is_right(&self, message: &[u8], signature: &[u8]) -> bool {
        let Pair::Ec(pair, _) = &self.pair else { return false };
        let key = lc::UnparsedPublicKey::new(&lc::ECDSA_P256_SHA256_FIXED, pair.public_key().as_ref());
        key.verify(message, signature).is_ok()
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ec(pair, _) => pair.sign(&random, message).expect("signs").as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let padding: &'static dyn lc::RsaEncoding = match self.algorithm {
                    "RS256" => &lc::RSA_PKCS1_SHA256,
                    "RS384" => &lc::RSA_PKCS1_SHA384,
                    "RS512" => &lc::RSA_PKCS1_SHA512,
                    "PS256" => &lc::RSA_PSS_SHA256,
                    "PS384" => &lc::RSA_PSS_SHA384,
                    _ => &lc::RSA_PSS_SHA512,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, message, &mut signature).expect("signs");
                signature
            }
        }
    }
}

/// A token of any header, claims and signature.
pub fn token(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let (header, claims) = (header.to_string(), claims.to_string());
    format!("{}.{}.{}", part(header.as_bytes()), part(claims.as_bytes()), part(signature))
}
