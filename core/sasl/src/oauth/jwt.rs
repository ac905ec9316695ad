//! A JSON web token in its compact form: `header.claims.signature`, each in base64url without padding.
//!
//! Says what is written there, not whether it is true: see `rules`.
//!
//! # Source
//! RFC 7515, RFC 7518, RFC 7519.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::fault::{Fault, TOKEN_BYTES_MAX};

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

impl Algorithm {
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::Es512,
    ];

    /// As in `alg`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Es512 => "ES512",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}

/// The parts of a token.
#[derive(Debug)]
pub struct Jwt<'a> {
    /// `alg`, as written.
    pub algorithm: String,
    /// `kid`
    pub key_id: Option<String>,
    pub claims: Claims,
    /// What the signature is over: header and claims as they came.
    pub signed: &'a str,
    pub signature: Vec<u8>,
}

impl<'a> Jwt<'a> {
    /// # Errors
    /// It is none, or has parts that must be understood and are not here (`crit`, a token within the token).
    pub fn parse(token: &'a str) -> Result<Self, Fault> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Fault::TooLong(token.len()));
        }
        let malformed = |what: &'static str| Fault::Malformed(what);
        let (signed, signature) = token.rsplit_once('.').ok_or(malformed("it has no three parts"))?;
        let (header, claims) = signed.split_once('.').ok_or(malformed("it has no three parts"))?;
        if claims.contains('.') {
            return Err(malformed("it has more than three parts"));
        }
        let header = object(header).ok_or(malformed("its header is no JSON object in base64url"))?;
        let claims = object(claims).ok_or(malformed("its claims are no JSON object in base64url"))?;
        let signature =
            URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed("its signature is no base64url"))?;
        if header.contains_key("crit") {
            return Err(malformed("its header has crit: extensions that must be understood"));
        }
        if header.get("cty").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("JWT")) {
            return Err(malformed("it holds another token"));
        }
        let text = |key: &str| header.get(key).and_then(Value::as_str).map(str::to_owned);
        let algorithm = text("alg").ok_or(malformed("its header has no alg"))?;
        Ok(Self { algorithm, key_id: text("kid"), claims: Claims(claims), signed, signature })
    }
}

fn object(part: &str) -> Option<Map<String, Value>> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
    match serde_json::from_slice(&bytes).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// What a token says.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims(Map<String, Value>);

impl Claims {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text. `None`: there is none.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Fault::WrongType { claim: name.to_owned(), expected: "a text" }),
        }
    }

    /// A text or a list of texts. `None`: there is neither.
    ///
    /// # Errors
    /// It is something else.
    pub fn texts(&self, name: &str) -> Result<Option<Vec<&str>>, Fault> {
        let wrong = || Fault::WrongType { claim: name.to_owned(), expected: "a text or a list of texts" };
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(vec![text])),
            Some(Value::Array(values)) => values
                .iter()
                .map(|value| value.as_str().ok_or_else(wrong))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(_) => Err(wrong()),
        }
    }

    /// Seconds since 1970, in milliseconds. `None`: there is none.
    ///
    /// # Errors
    /// It is no number, or one that no clock will show.
    pub fn time_ms(&self, name: &str) -> Result<Option<i64>, Fault> {
        let wrong = || Fault::WrongType { claim: name.to_owned(), expected: "a number of seconds" };
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => {
                let seconds = match number.as_i64() {
                    Some(seconds) => seconds,
                    // Fractions are cut off, as Kafka's library does.
                    None => number.as_f64().filter(|seconds| seconds.abs() < 1e15).ok_or_else(wrong)? as i64,
                };
                seconds.checked_mul(1000).map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }
}
