//! Which tokens a listener takes, and as whom.
//!
//! The signature itself is checked by [`Signatures`]: this crate links no cryptography for it. Claims are judged
//! first, so that a stranger's token costs a signature check only where it would be good.
//!
//! Always true:
//! 1. a token is taken only with an end, before that end, for the expected audience and from the expected issuer
//! 2. `alg` chooses among the algorithms of the key's own type; `none` and symmetric ones are refused
//! 3. a token without a signature is taken by [`UnsecuredRules`] alone, which an operator asks for by name
//!
//! # Source
//! Kafka 4.4 `BrokerJwtValidator`, `ClaimValidationUtils`, `OAuthBearerUnsecuredValidatorCallbackHandler`; jose4j's
//! `NumericDateValidator`, `AudValidator`, `IssValidator`.

use barnabas_base::TimestampMs;

use super::Bearer;
use super::fault::Fault;
use super::jwks::{Jwks, PublicKey};
use super::jwt::{Algorithm, Claims, Jwt};

/// Characters of a value that an error repeats.
const SHOWN_CHARS: usize = 80;

/// Checks a signature.
pub trait Signatures {
    /// Whether `signature` is the key's over `message`. An ECDSA signature is `r s`, each as long as the curve.
    fn is_right(&self, algorithm: Algorithm, key: &PublicKey, message: &[u8], signature: &[u8]) -> bool;
}

/// The keys of `sasl.oauthbearer.*` about claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// `expected.audience`; empty: any.
    pub audiences: Vec<String>,
    /// `expected.issuer`; `None`: any.
    pub issuer: Option<String>,
    pub scope_claim: String,
    pub sub_claim: String,
    pub clock_skew_ms: i64,
}

impl Rules {
    /// # Errors
    /// What is wrong with the token. [`Fault::UnknownKey`]: nothing but that its key is not among `keys`.
    pub fn check(
        &self,
        token: &str,
        now: TimestampMs,
        keys: &Jwks,
        signatures: &dyn Signatures,
    ) -> Result<Bearer, Fault> {
        let jwt = Jwt::parse(token)?;
        let algorithm = match Algorithm::from_name(&jwt.algorithm) {
            Some(algorithm) => algorithm,
            None if jwt.algorithm.eq_ignore_ascii_case("none") => return Err(Fault::Unsigned),
            None => return Err(Fault::Algorithm(shown(&jwt.algorithm))),
        };
        let bearer = self.judge(&jwt.claims, now)?;
        if keys.is_empty() {
            return Err(Fault::NoKeys);
        }
        let key_id = || jwt.key_id.as_deref().map_or_else(|| "(none)".to_owned(), shown);
        let Some(key) = keys.select(&jwt, algorithm) else {
            return Err(Fault::UnknownKey { algorithm: algorithm.name(), key_id: key_id() });
        };
        if !signatures.is_right(algorithm, key, jwt.signed.as_bytes(), &jwt.signature) {
            return Err(Fault::Signature { algorithm: algorithm.name(), key_id: key_id() });
        }
        Ok(bearer)
    }

    fn judge(&self, claims: &Claims, now: TimestampMs) -> Result<Bearer, Fault> {
        let (skew, now_ms) = (self.clock_skew_ms, now.0);
        let expires_ms = claims.time_ms("exp")?.ok_or_else(|| Fault::Missing("exp".to_owned()))?;
        if now_ms.saturating_sub(skew) >= expires_ms {
            return Err(Fault::Expired { expires_ms, now_ms });
        }
        if claims.time_ms("iat")?.is_none() {
            return Err(Fault::Missing("iat".to_owned()));
        }
        if let Some(begins_ms) = claims.time_ms("nbf")?.filter(|&begins| now_ms.saturating_add(skew) < begins)
        {
            return Err(Fault::NotYet { begins_ms, now_ms });
        }
        self.judge_audience(claims)?;
        if let Some(expected) = &self.issuer {
            let found = claims.text("iss")?.ok_or_else(|| Fault::Missing("iss".to_owned()))?;
            if found != expected {
                return Err(Fault::Issuer { found: shown(found), expected: expected.clone() });
            }
        }
        check_scopes(claims, &self.scope_claim)?;
        let principal = subject(claims, &self.sub_claim)?;
        Ok(Bearer { principal, expires: TimestampMs(expires_ms) })
    }

    fn judge_audience(&self, claims: &Claims) -> Result<(), Fault> {
        if self.audiences.is_empty() {
            return Ok(());
        }
        let found = claims.texts("aud")?.ok_or_else(|| Fault::Missing("aud".to_owned()))?;
        if found.iter().any(|one| self.audiences.iter().any(|expected| expected == one)) {
            return Ok(());
        }
        Err(Fault::Audience { found: shown(&found.join(",")), expected: self.audiences.join(",") })
    }
}

/// The options `unsecuredValidator…` of OAuthBearerLoginModule: tokens without a signature, for tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsecuredRules {
    pub principal_claim: String,
    pub scope_claim: String,
    /// Each must be in the token.
    pub required_scopes: Vec<String>,
    pub clock_skew_ms: i64,
}

impl UnsecuredRules {
    /// # Errors
    /// What is wrong with the token. One with a signature is refused as well, as in Kafka.
    pub fn check(&self, token: &str, now: TimestampMs) -> Result<Bearer, Fault> {
        let jwt = Jwt::parse(token)?;
        if jwt.algorithm != "none" {
            return Err(Fault::Algorithm(shown(&jwt.algorithm)));
        }
        if !jwt.signature.is_empty() {
            return Err(Fault::Malformed("alg is none and there is a signature"));
        }
        let (claims, skew, now_ms) = (&jwt.claims, self.clock_skew_ms, now.0);
        let principal = subject(claims, &self.principal_claim)?;
        let made_ms = claims.time_ms("iat")?;
        if let Some(made_ms) = made_ms.filter(|&made| now_ms.saturating_add(skew) < made) {
            return Err(Fault::FromTheFuture { made_ms, now_ms });
        }
        let expires_ms = claims.time_ms("exp")?.ok_or_else(|| Fault::Missing("exp".to_owned()))?;
        if now_ms.saturating_sub(skew) >= expires_ms {
            return Err(Fault::Expired { expires_ms, now_ms });
        }
        if let Some(made_ms) = made_ms.filter(|&made| expires_ms <= made) {
            return Err(Fault::EndsBeforeItBegins { expires_ms, made_ms });
        }
        let scopes = claims.texts(&self.scope_claim)?.unwrap_or_default();
        // A text holds several, with blanks between them.
        let has = |wanted: &String| {
            scopes.iter().flat_map(|scope| scope.split_whitespace()).any(|scope| scope == wanted)
        };
        match self.required_scopes.iter().find(|wanted| !has(wanted)) {
            Some(missing) => Err(Fault::Scope(missing.clone())),
            None => Ok(Bearer { principal, expires: TimestampMs(expires_ms) }),
        }
    }
}

/// The end of a token that this node, or a tool, logs in with. Its signature is the server's to check.
///
/// # Errors
/// It is no JWT, or has no end.
pub fn end_of(token: &str) -> Result<TimestampMs, Fault> {
    let jwt = Jwt::parse(token)?;
    jwt.claims.time_ms("exp")?.map(TimestampMs).ok_or_else(|| Fault::Missing("exp".to_owned()))
}

/// The principal's name, without blanks around it.
fn subject(claims: &Claims, name: &str) -> Result<String, Fault> {
    let found = claims.text(name)?.ok_or_else(|| Fault::Missing(name.to_owned()))?.trim();
    if found.is_empty() { Err(Fault::Empty(name.to_owned())) } else { Ok(found.to_owned()) }
}

/// None empty, none twice; a scope that is neither text nor list counts as none, as in Kafka. The authorizer does not
/// know scopes.
fn check_scopes(claims: &Claims, name: &str) -> Result<(), Fault> {
    let scopes: Vec<&str> = claims.texts(name).unwrap_or_default().unwrap_or_default();
    for (place, scope) in scopes.iter().enumerate() {
        let scope = scope.trim();
        if scope.is_empty() {
            return Err(Fault::Empty(name.to_owned()));
        }
        if scopes[..place].iter().any(|other| other.trim() == scope) {
            return Err(Fault::Twice { claim: name.to_owned(), value: shown(scope) });
        }
    }
    Ok(())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect::<String>().escape_debug().to_string()
}
