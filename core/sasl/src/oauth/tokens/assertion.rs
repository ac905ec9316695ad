//! An assertion: a token of the client's own making, which tells the issuer who the client is.
//!
//! Its claims come from three places. Those of the template replace those of `sasl.oauthbearer.assertion.claim.*`, and
//! the times and `jti` replace both.
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
const ISSUER: &str = "sasl.oauthbearer.assertion.claim.iss";
pub(super) const KEY_FILE: &str = "sasl.oauthbearer.assertion.private.key.file";
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
    /// Whether a client with these keys proves by an assertion who it is, and not by its secret.
    pub(super) fn is_meant(values: &Values<'_>) -> bool {
        values.text(FILE).is_some() || values.text(ISSUER).is_some() || values.is_blank(ISSUER)
    }

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
        let key_of = |claim: &str| format!("sasl.oauthbearer.assertion.claim.{claim}");
        if let Some(claim) = ["iss", "sub"].into_iter().find(|claim| values.is_blank(&key_of(claim))) {
            return Err(OAuthError::new(&key_of(claim), "is blank", "kafka-client"));
        }
        let claims = ["aud", "iss", "sub"].into_iter();
        let claims = claims.filter_map(|claim| Some((claim, values.text(&key_of(claim))?)));
        let made = Made {
            is_ecdsa,
            key_file,
            passphrase: values.text(Made::PASSPHRASE).map(Secret::from),
            template_file: file(TEMPLATE_FILE)?,
            claims: claims.collect(),
            exp_s: values.number_up_to("sasl.oauthbearer.assertion.claim.exp.seconds", 300, 86_400)? as i64,
            nbf_s: values.number_up_to("sasl.oauthbearer.assertion.claim.nbf.seconds", 60, 3_600)? as i64,
            has_jti: values.flag("sasl.oauthbearer.assertion.claim.jti.include")?,
        };
        Ok(Some(Self::Made(Box::new(made))))
    }
}

impl Made {
    pub const PASSPHRASE: &str = "sasl.oauthbearer.assertion.private.key.passphrase";

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
        let [mut header, of_template] = self.template(template)?;
        header.insert("alg".to_owned(), if self.is_ecdsa { "ES256" } else { "RS256" }.into());
        header.insert("typ".to_owned(), "JWT".into());
        let of_settings = self.claims.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into()));
        let mut claims: Map<String, Value> = of_settings.chain(of_template).collect();
        claims.insert("iat".to_owned(), now_s.into());
        claims.insert("exp".to_owned(), (now_s + self.exp_s).into());
        claims.insert("nbf".to_owned(), (now_s - self.nbf_s).into());
        if let Some(id) = jti {
            claims.insert("jti".to_owned(), URL_SAFE_NO_PAD.encode(id).into());
        }
        let part = |object: Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(object).to_string());
        Ok(format!("{}.{}", part(header), part(claims)))
    }

    /// Whether a file that another program writes holds an assertion: three parts, with points between them.
    pub fn is_token(text: &str) -> bool {
        let parts: Vec<&str> = text.split('.').collect();
        parts.len() == 3 && parts.iter().all(|part| !part.trim().is_empty())
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
            None | Some(Value::Null) => Some(Map::new()),
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
