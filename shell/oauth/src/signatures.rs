//! Signatures of tokens, by the cryptography that TLS uses.
//!
//! RSA keys have 2048 to 8192 bits. An ECDSA signature is `r s`, each as long as the curve (RFC 7518, 3.4): the form of
//! certificates (DER) is refused.

use aws_lc_rs::signature::{self as lc, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use barnabas_sasl::oauth::{Algorithm, Material, PublicKey, Signatures};

/// See the file's header.
#[derive(Debug, Clone, Copy)]
pub struct AwsSignatures;

impl Signatures for AwsSignatures {
    fn is_right(&self, algorithm: Algorithm, key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
        match &key.material {
            Material::Rsa { modulus, exponent } => {
                let Some(parameters) = rsa(algorithm) else { return false };
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, message, signature).is_ok()
            }
            Material::Ec { point, .. } => match ecdsa(algorithm) {
                Some(algorithm) => {
                    UnparsedPublicKey::new(algorithm, point).verify(message, signature).is_ok()
                }
                None => false,
            },
        }
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static lc::RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&lc::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&lc::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&lc::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&lc::RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&lc::RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&lc::RSA_PSS_2048_8192_SHA512),
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::Es512 => None,
    }
}

fn ecdsa(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    match algorithm {
        Algorithm::Es256 => Some(&lc::ECDSA_P256_SHA256_FIXED),
        Algorithm::Es384 => Some(&lc::ECDSA_P384_SHA384_FIXED),
        Algorithm::Es512 => Some(&lc::ECDSA_P521_SHA512_FIXED),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
