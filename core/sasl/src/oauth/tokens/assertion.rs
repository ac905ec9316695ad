//! An assertion: a token of the client's own making, which tells the issuer who the client is.
//!
//! Source: Kafka 4.4 `JwtBearerJwtRetriever`, `DefaultAssertionCreator`, `LayeredAssertionJwtTemplate`; RFC 7523.

use crate::Secret;
use crate::oauth::settings::{Allowed, OAuthError, Values};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const FILE: &str = "sasl.oauthbearer.assertion.file";
const KEY_FILE: &str = "sasl.oauthbearer.assertion.private.key.file";
const TEMPLATE_FILE: &str = "sasl.oauthbearer.assertion.template.file";

#[derive(Debug, Clone, PartialEq)]
pub enum Assertion {
    /// Another program writes it.
    File(PathBuf),
    Made(Box<Made>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub is_ecdsa: bool,
    pub key_file: PathBuf,
    pub passphrase: Option<Secret>,
    pub template_file: Option<PathBuf>,
    /// `aud`, `iss`, `sub`, where they are set.
    claims: Vec<(&'static str, String)>,
    exp_s: i64,
    nbf_s: i64,
    pub has_jti: bool,
}

impl Assertion {
    /// `None`: the keys name neither a file nor a private key.
    pub(super) fn read(values: &Values<'_>, allowed: &Allowed) -> Result<Option<Self>, OAuthError> {
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
}

impl Made {
    /// Header and claims: what is to be signed. `template`: the text of the template's file. `jti`: random bytes, where
    /// [`Self::has_jti`] asks for them.
    ///
    /// # Errors
    /// The template is none.
    pub fn unsigned(
        &self,
        template: Option<&str>,
        now_s: i64,
        jti: Option<[u8; 16]>,
    ) -> Result<String, String> {
        let [mut header, mut claims] = self.template(template)?;
        header.insert("alg".to_owned(), if self.is_ecdsa { "ES256" } else { "RS256" }.into());
        header.entry("typ").or_insert_with(|| "JWT".into());
        for (name, value) in &self.claims {
            claims.insert((*name).to_owned(), value.as_str().into());
        }
        claims.insert("iat".to_owned(), now_s.into());
        claims.insert("exp".to_owned(), (now_s + self.exp_s).into());
        claims.insert("nbf".to_owned(), (now_s - self.nbf_s).into());
        if let Some(id) = jti {
            claims.insert("jti".to_owned(), URL_SAFE_NO_PAD.encode(id).into());
        }
        let part = |object: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(object).to_string());
        Ok(format!("{}.{}", part(header), part(claims)))
    }

    /// The whole token.
    pub fn signed(unsigned: &str, signature: &[u8]) -> Zeroizing<String> {
        Zeroizing::new(format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// `{"header":{…},"payload":{…}}`
    fn template(&self, text: Option<&str>) -> Result<[Map<String, Value>; 2], String> {
        let Some(text) = text else { return Ok(Default::default()) };
        let template: Value = serde_json::from_str(text).unwrap_or_default();
        let part = |name: &str| match template.get(name) {
            None => Some(Map::new()),
            Some(Value::Object(object)) => Some(object.clone()),
            Some(_) => None,
        };
        match (template.is_object(), part("header"), part("payload")) {
            (true, Some(header), Some(claims)) => Ok([header, claims]),
            _ => {
                let example = json!({"header": {"kid": "1"}, "payload": {"iss": "client"}});
                let path = self.template_file.as_deref().unwrap_or(Path::new("")).display();
                Err(format!("{path}: no template of JSON. Example: {example}"))
            }
        }
    }
}
