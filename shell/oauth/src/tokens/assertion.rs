//! An assertion: a token of the client's own making, which tells the issuer who the client is.
//!
//! Source: Kafka 4.4 `JwtBearerJwtRetriever`, `DefaultAssertionCreator`, `LayeredAssertionJwtTemplate`; RFC 7523.

use super::read_file;
use crate::OAuthError;
use crate::settings::{Allowed, Values};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use barnabas_clock::Clock;
use barnabas_sasl::Secret;
use barnabas_sasl::oauth::TOKEN_BYTES_MAX;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use zeroize::Zeroizing;

const FILE: &str = "sasl.oauthbearer.assertion.file";
const KEY_FILE: &str = "sasl.oauthbearer.assertion.private.key.file";
const TEMPLATE_FILE: &str = "sasl.oauthbearer.assertion.template.file";
/// Bytes of a key or a template.
const FILE_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Assertion {
    /// Another program writes it.
    File(PathBuf),
    Made(Box<Made>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Made {
    is_ecdsa: bool,
    key_file: PathBuf,
    passphrase: Option<Secret>,
    template_file: Option<PathBuf>,
    /// `aud`, `iss`, `sub`, where they are set.
    claims: Vec<(&'static str, String)>,
    exp_s: i64,
    nbf_s: i64,
    has_jti: bool,
}

impl Assertion {
    /// `None`: the keys name neither a file nor a private key.
    pub fn read(values: &Values<'_>, allowed: &Allowed) -> Result<Option<Self>, OAuthError> {
        let file = |key: &str| -> Result<Option<PathBuf>, OAuthError> {
            let Some(path) = values.text(key) else { return Ok(None) };
            allowed.check_file(key, &path)?;
            Ok(Some(PathBuf::from(path)))
        };
        if let Some(path) = file(FILE)? {
            return Ok(Some(Self::File(path)));
        }
        let Some(key_file) = file(KEY_FILE)? else { return Ok(None) };
        const ALGORITHM: &str = "sasl.oauthbearer.assertion.algorithm";
        let is_ecdsa = match values.text(ALGORITHM).as_deref().map(str::to_ascii_uppercase).as_deref() {
            None | Some("RS256") => false,
            Some("ES256") => true,
            Some(other) => {
                return Err(OAuthError::new(
                    ALGORITHM,
                    format!("'{other}' is neither RS256 nor ES256"),
                    "RS256",
                ));
            }
        };
        let claims = [("aud", "aud"), ("iss", "iss"), ("sub", "sub")];
        let claims = claims.into_iter().filter_map(|(claim, key)| {
            Some((claim, values.text(&format!("sasl.oauthbearer.assertion.claim.{key}"))?))
        });
        let made = Made {
            is_ecdsa,
            key_file,
            passphrase: values.text("sasl.oauthbearer.assertion.private.key.passphrase").map(Secret::from),
            template_file: file(TEMPLATE_FILE)?,
            claims: claims.collect(),
            exp_s: values.number("sasl.oauthbearer.assertion.claim.exp.seconds", 300)?.min(86_400) as i64,
            nbf_s: values.number("sasl.oauthbearer.assertion.claim.nbf.seconds", 60)?.min(3_600) as i64,
            has_jti: values.flag("sasl.oauthbearer.assertion.claim.jti.include"),
        };
        Ok(Some(Self::Made(Box::new(made))))
    }

    /// A fresh one. The files are read again each time.
    pub fn token(&self) -> Result<Zeroizing<String>, String> {
        match self {
            Self::File(path) => {
                read_file(path, TOKEN_BYTES_MAX + 2).map(|text| Zeroizing::new(text.trim().to_owned()))
            }
            Self::Made(made) => made.token(Clock::start().wall().0 / 1000),
        }
    }
}

impl Made {
    fn token(&self, now_s: i64) -> Result<Zeroizing<String>, String> {
        let [mut header, mut claims] = self.template()?;
        header.insert("alg".to_owned(), if self.is_ecdsa { "ES256" } else { "RS256" }.into());
        header.entry("typ").or_insert_with(|| "JWT".into());
        for (name, value) in &self.claims {
            claims.insert((*name).to_owned(), value.as_str().into());
        }
        claims.insert("iat".to_owned(), now_s.into());
        claims.insert("exp".to_owned(), (now_s + self.exp_s).into());
        claims.insert("nbf".to_owned(), (now_s - self.nbf_s).into());
        if self.has_jti {
            let mut id = [0; 16];
            aws_lc_rs::rand::fill(&mut id).map_err(|_| "no random bytes for jti")?;
            claims.insert("jti".to_owned(), URL_SAFE_NO_PAD.encode(id).into());
        }
        let part = |object: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(object).to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.sign(signed.as_bytes())?;
        Ok(Zeroizing::new(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }

    /// `{"header":{…},"payload":{…}}`
    fn template(&self) -> Result<[Map<String, Value>; 2], String> {
        let Some(path) = &self.template_file else { return Ok(Default::default()) };
        let text = read_file(path, FILE_BYTES_MAX)?;
        let template: Value = serde_json::from_str(&text).unwrap_or_default();
        let part = |name: &str| match template.get(name) {
            None => Some(Map::new()),
            Some(Value::Object(object)) => Some(object.clone()),
            Some(_) => None,
        };
        match (template.is_object(), part("header"), part("payload")) {
            (true, Some(header), Some(claims)) => Ok([header, claims]),
            _ => {
                let example = json!({"header": {"kid": "1"}, "payload": {"iss": "client"}});
                Err(format!("{}: no template of JSON. Example: {example}", path.display()))
            }
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let wrong = |what: &str| format!("{}: {what}", self.key_file.display());
        let text = read_file(&self.key_file, FILE_BYTES_MAX)?;
        let passphrase = self.passphrase.as_ref().and_then(Secret::text);
        let key = barnabas_certificates::private_key(&text, passphrase).map_err(|why| wrong(&why))?;
        let unfit = |_| {
            wrong(
                "its key does not fit sasl.oauthbearer.assertion.algorithm: RS256 takes RSA, ES256 takes P-256",
            )
        };
        let random = SystemRandom::new();
        let failed = |_| wrong("its key does not sign");
        if self.is_ecdsa {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key).map_err(unfit)?;
            return key.sign(&random, message).map(|signature| signature.as_ref().to_vec()).map_err(failed);
        }
        let key = RsaKeyPair::from_pkcs8(&key).map_err(unfit)?;
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
        Ok(signature)
    }
}
