//! Makes an assertion: its files, random bytes and signature.
//!
//! core/sasl/src/oauth/tokens/assertion.rs says what is in it.

use super::read_file;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use barnabas_clock::Clock;
use barnabas_sasl::Secret;
use barnabas_sasl::oauth::TOKEN_BYTES_MAX;
use barnabas_sasl::oauth::tokens::{Assertion, Made};
use zeroize::Zeroizing;

/// Bytes of a key or a template.
const FILE_BYTES_MAX: usize = 64 << 10;

/// A fresh one. The files are read again each time.
pub fn token(assertion: &Assertion) -> Result<Zeroizing<String>, String> {
    match assertion {
        Assertion::File(path) => {
            let text = Zeroizing::new(read_file(path, TOKEN_BYTES_MAX + 2)?.trim().to_owned());
            // Nothing but a token goes to the issuer, whatever file the path names.
            let is_token = Made::is_token(&text);
            let wrong =
                || format!("{}: no token: expected three parts with points between them", path.display());
            is_token.then_some(text).ok_or_else(wrong)
        }
        Assertion::Made(made) => make(made, Clock::start().wall().0 / 1000),
    }
}

fn make(made: &Made, now_s: i64) -> Result<Zeroizing<String>, String> {
    let template = match &made.template_file {
        Some(path) => Some(read_file(path, FILE_BYTES_MAX)?),
        None => None,
    };
    let mut id = [0; 16];
    if made.has_jti {
        aws_lc_rs::rand::fill(&mut id).map_err(|_| "no random bytes for jti")?;
    }
    let template = template.as_ref().map(|text| text.as_str());
    let unsigned = made.unsigned(template, now_s, made.has_jti.then_some(id))?;
    let signature = sign(made, unsigned.as_bytes())?;
    Ok(Made::signed(&unsigned, &signature))
}

fn sign(made: &Made, message: &[u8]) -> Result<Vec<u8>, String> {
    let wrong = |what: &str| format!("{}: {what}", made.key_file.display());
    let text = read_file(&made.key_file, FILE_BYTES_MAX)?;
    let passphrase = (Made::PASSPHRASE, made.passphrase.as_ref().and_then(Secret::text));
    let key = barnabas_certificates::private_key(&text, passphrase).map_err(|why| wrong(&why))?;
    let unfit = |_| {
        wrong("its key does not fit sasl.oauthbearer.assertion.algorithm: RS256 takes RSA, ES256 takes P-256")
    };
    let random = SystemRandom::new();
    let failed = |_| wrong("its key does not sign");
    if made.is_ecdsa {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key).map_err(unfit)?;
        return key.sign(&random, message).map(|signature| signature.as_ref().to_vec()).map_err(failed);
    }
    let key = RsaKeyPair::from_pkcs8(&key).map_err(unfit)?;
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
    Ok(signature)
}
