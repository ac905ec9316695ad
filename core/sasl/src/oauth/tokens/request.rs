//! What an issuer is asked for a token, and what its answer says (RFC 6749, RFC 7523).

use super::{Grant, Issuer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeroize::Zeroizing;

/// Characters of an issuer's words that an error repeats.
const SHOWN_CHARS: usize = 200;

/// Why there is no token, and whether it is worth to ask again.
#[derive(Debug)]
pub struct Refused {
    pub why: String,
    pub is_final: bool,
}

impl Issuer {
    /// The body of the request. `assertion`: a fresh one, where [`Self::assertion`] has one.
    pub fn form(&self, assertion: Option<&str>) -> Zeroizing<String> {
        let mut form = Zeroizing::new(String::new());
        let mut add = |key: &str, value: &str| {
            if !form.is_empty() {
                form.push('&');
            }
            form.push_str(key);
            form.push('=');
            form.push_str(&encoded(value));
        };
        let assertion = assertion.unwrap_or_default();
        match &self.grant {
            Grant::Secret { .. } => add("grant_type", "client_credentials"),
            Grant::ClientAssertion { id, .. } => {
                add("grant_type", "client_credentials");
                add("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                add("client_assertion", assertion);
                if let Some(id) = id {
                    add("client_id", id);
                }
            }
            Grant::JwtBearer(_) => {
                add("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                add("assertion", assertion);
            }
        }
        if let Some(scope) = &self.scope {
            add("scope", scope);
        }
        form
    }

    pub fn assertion(&self) -> Option<&super::Assertion> {
        match &self.grant {
            Grant::ClientAssertion { assertion, .. } | Grant::JwtBearer(assertion) => Some(assertion),
            Grant::Secret { .. } => None,
        }
    }

    /// The value of `Authorization`.
    pub fn header(&self) -> Option<Zeroizing<String>> {
        let Grant::Secret { id, secret } = &self.grant else { return None };
        let secret = Zeroizing::new(String::from_utf8_lossy(secret.bytes()).into_owned());
        let pair = Zeroizing::new(if self.is_header_encoded {
            format!("{}:{}", *encoded(id), *encoded(&secret))
        } else {
            format!("{id}:{}", *secret)
        });
        Some(Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))))
    }
}

/// What the answer of `host` comes to.
///
/// # Errors
/// There is no token in it.
pub fn outcome(host: &str, status: u16, body: &[u8]) -> Result<Zeroizing<String>, Refused> {
    if status != 200 && status != 201 {
        let why = format!("{host} answers with status {status}{}", reason(body));
        return Err(Refused { why, is_final: is_final(status) });
    }
    if body.is_empty() {
        return Err(Refused { why: format!("{host} answers with nothing"), is_final: false });
    }
    access_token(body).ok_or_else(|| {
        let why = format!("{host} answers without access_token or id_token");
        Refused { why, is_final: true }
    })
}

/// Whether Kafka's client gives up (`HttpJwtRetriever`). A redirect is final too: it may lead anywhere.
fn is_final(status: u16) -> bool {
    matches!(status, 300..=407 | 409..=415 | 501 | 505)
}

fn access_token(body: &[u8]) -> Option<Zeroizing<String>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let text =
        |name: &str| value.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    text("access_token").or_else(|| text("id_token")).map(|token| Zeroizing::new(token.to_owned()))
}

/// `error` and `error_description` of an issuer's refusal (RFC 6749, 5.2).
fn reason(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let texts = ["error", "error_description"].map(|name| value.get(name).and_then(Value::as_str));
    let texts: Vec<String> =
        texts.into_iter().flatten().map(|text| text.chars().take(SHOWN_CHARS).collect()).collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join(": ").escape_debug()) }
}

/// As a form of HTML writes it.
fn encoded(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(text.len() * 3));
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
