//! The tokens that this node, or a tool, logs in with: asked of an issuer, read from a file, or made unsigned.
//!
//! A token is kept until most of its life is over (`sasl.login.refresh.window.factor`). The next login after that gets
//! another; while no other can be had, the old one serves until its end. Blocking: for threads that may wait.
//!
//! | file | answers |
//! |---|---|
//! | `assertion` | the token by which a client proves to the issuer who it is, instead of a secret |
//!
//! Source: Kafka 4.4 `OAuthBearerLoginCallbackHandler`, `DefaultJwtRetriever`, `HttpJwtRetriever`,
//! `ExpiringCredentialRefreshingLogin`; KIP-768, KIP-1139, KIP-1258.

mod assertion;
mod read;

use crate::http::{self, Limits, Method};
use crate::url::HttpUrl;
use assertion::Assertion;
use barnabas_base::TimestampMs;
use barnabas_clock::Clock;
use barnabas_sasl::Secret;
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::oauth::{TOKEN_BYTES_MAX, end_of};
use barnabas_tls::{ClientTls, TlsSettings};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// Bytes of an issuer's answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Characters of an issuer's words that an error repeats.
const SHOWN_CHARS: usize = 200;

/// What tokens are had with. Equal settings may share a source.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenSettings {
    way: Way,
    extensions: Vec<(String, String)>,
    refresh: Window,
}

#[derive(Debug, Clone, PartialEq)]
enum Way {
    File(PathBuf),
    Issuer(Box<Issuer>),
    /// Claims besides `exp` and `iat`, and how many seconds such a token lasts.
    Unsecured {
        claims: Map<String, Value>,
        life_s: i64,
    },
}

#[derive(Debug, Clone, PartialEq)]
struct Issuer {
    url: HttpUrl,
    tls: Option<TlsSettings>,
    grant: Grant,
    scope: Option<String>,
    /// `sasl.oauthbearer.header.urlencode`
    is_header_encoded: bool,
    limits: Limits,
    retry_ms: u64,
    retry_max_ms: u64,
}

/// How a client proves to the issuer who it is.
#[derive(Debug, Clone, PartialEq)]
enum Grant {
    Secret {
        id: String,
        secret: Secret,
    },
    /// client_credentials with an assertion instead of the secret.
    ClientAssertion {
        id: Option<String>,
        assertion: Assertion,
    },
    /// urn:ietf:params:oauth:grant-type:jwt-bearer
    JwtBearer(Assertion),
}

/// `sasl.login.refresh.*`
#[derive(Debug, Clone, Copy, PartialEq)]
struct Window {
    factor: f64,
    jitter: f64,
    min_period_ms: i64,
    buffer_ms: i64,
}

impl Window {
    /// When a token is to be replaced that was had at `now`; `drawn`: from 0 to 1.
    fn end(self, now: TimestampMs, expires: TimestampMs, drawn: f64) -> TimestampMs {
        let life_ms = expires.0.saturating_sub(now.0).max(0);
        let share = (self.factor + self.jitter * drawn).min(1.0);
        let by_share = now.0.saturating_add((life_ms as f64 * share) as i64);
        let by_buffer = expires.0.saturating_sub(self.buffer_ms);
        // Where both periods do not fit into the life, the share alone counts, as in Kafka.
        if life_ms <= self.min_period_ms.saturating_add(self.buffer_ms) {
            return TimestampMs(by_share);
        }
        TimestampMs(by_share.min(by_buffer).max(now.0.saturating_add(self.min_period_ms)))
    }
}

/// See the file's header.
#[derive(Debug)]
pub struct TokenSource {
    settings: TokenSettings,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    tls: Option<ClientTls>,
    token: Option<(Secret, TimestampMs)>,
    replace_at: TimestampMs,
}

impl TokenSource {
    pub fn new(settings: TokenSettings) -> Self {
        Self { settings, held: Mutex::default() }
    }

    pub fn settings(&self) -> &TokenSettings {
        &self.settings
    }

    /// A login with a token that has not ended. May wait for the issuer, at most some 40 s; logins at the same time
    /// wait for one answer.
    ///
    /// # Errors
    /// There is no token, and why. Holds no secret.
    pub fn login(&self) -> Result<ClientLogin, String> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Clock::start().wall();
        if now >= held.replace_at || held.token.is_none() {
            match self.settings.way.token(&mut held.tls) {
                Ok(token) => {
                    let expires =
                        end_of(&token).map_err(|fault| format!("the token to log in with: {fault}"))?;
                    held.replace_at = self.settings.refresh.end(now, expires, drawn());
                    held.token = Some((Secret::from(token.as_bytes()), expires));
                }
                Err(why) => match &held.token {
                    Some((_, expires)) if *expires > now => {
                        tracing::warn!(
                            why,
                            "no new token to log in with; the one before serves until its end"
                        );
                    }
                    _ => return Err(format!("there is no token to log in with: {why}")),
                },
            }
        }
        let (token, _) = held.token.as_ref().ok_or("there is no token")?;
        Ok(ClientLogin::Bearer { token: token.clone(), extensions: self.settings.extensions.clone() })
    }
}

fn drawn() -> f64 {
    let mut byte = [0];
    // Without it all clients of one second ask in one second; no more depends on it.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}

impl Way {
    fn token(&self, tls: &mut Option<ClientTls>) -> Result<Zeroizing<String>, String> {
        match self {
            Self::File(path) => {
                read_file(path, TOKEN_BYTES_MAX + 2).map(|text| Zeroizing::new(text.trim().to_owned()))
            }
            Self::Issuer(issuer) => issuer.token(tls),
            Self::Unsecured { claims, life_s } => {
                let now_s = Clock::start().wall().0 / 1000;
                let mut claims = claims.clone();
                claims.insert("iat".to_owned(), now_s.into());
                claims.insert("exp".to_owned(), now_s.saturating_add(*life_s).into());
                let part = |text: String| URL_SAFE_NO_PAD.encode(text);
                let claims = part(Value::Object(claims).to_string());
                Ok(Zeroizing::new(format!("{}.{claims}.", part(r#"{"alg":"none"}"#.to_owned()))))
            }
        }
    }
}

fn read_file(path: &std::path::Path, bytes_max: usize) -> Result<Zeroizing<String>, String> {
    let wrong = |what: String| format!("{}: {what}", path.display());
    let mut text = Zeroizing::new(String::new());
    let file = std::fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    let read = file.take(bytes_max as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| wrong(error.to_string()))?;
    if text.len() > bytes_max { Err(wrong(format!("it has more than {bytes_max} bytes"))) } else { Ok(text) }
}

/// Why there is no token, and whether it is worth to ask again.
struct Refused {
    why: String,
    is_final: bool,
}

impl Issuer {
    fn token(&self, tls: &mut Option<ClientTls>) -> Result<Zeroizing<String>, String> {
        if let (None, Some(settings)) = (&tls, &self.tls) {
            *tls = Some(ClientTls::load(settings.clone()).map_err(|error| error.to_string())?);
        }
        let (begun, mut pause_ms) = (barnabas_clock::now(), self.retry_ms.max(1));
        loop {
            let refused = match self.ask(tls.as_ref()) {
                Ok(token) => return Ok(token),
                Err(refused) => refused,
            };
            let pause = Duration::from_millis(pause_ms);
            let spent = barnabas_clock::since(begun) + pause;
            if refused.is_final || spent > Duration::from_millis(self.retry_max_ms) {
                return Err(refused.why);
            }
            std::thread::sleep(pause);
            pause_ms = pause_ms.saturating_mul(2).min(self.retry_max_ms.max(1));
        }
    }

    fn ask(&self, tls: Option<&ClientTls>) -> Result<Zeroizing<String>, Refused> {
        let body = self.form().map_err(|why| Refused { why, is_final: true })?;
        let header = self.header();
        let headers: Vec<(&str, &str)> =
            header.iter().map(|value| ("Authorization", value.as_str())).collect();
        let answer = http::send(&self.url, tls, (&Method::Post(&body), &headers), self.limits);
        let host = &self.url.host;
        let answer = answer.map_err(|error| Refused { why: format!("{host}: {error}"), is_final: false })?;
        if answer.status != 200 && answer.status != 201 {
            let why = format!("{host} answers with status {}{}", answer.status, reason(&answer.body));
            // 408 and 429 ask to come again, 5xx may pass.
            let is_final = answer.status < 500 && !matches!(answer.status, 408 | 429);
            return Err(Refused { why, is_final });
        }
        access_token(&answer.body).ok_or_else(|| {
            let why = format!("{host} answers without access_token or id_token");
            Refused { why, is_final: true }
        })
    }

    fn form(&self) -> Result<Zeroizing<String>, String> {
        let mut form = Zeroizing::new(String::new());
        let mut add = |key: &str, value: &str| {
            if !form.is_empty() {
                form.push('&');
            }
            form.push_str(key);
            form.push('=');
            form.push_str(&encoded(value));
        };
        match &self.grant {
            Grant::Secret { .. } => add("grant_type", "client_credentials"),
            Grant::ClientAssertion { id, assertion } => {
                add("grant_type", "client_credentials");
                add("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                add("client_assertion", &assertion.token()?);
                if let Some(id) = id {
                    add("client_id", id);
                }
            }
            Grant::JwtBearer(assertion) => {
                add("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                add("assertion", &assertion.token()?);
            }
        }
        if let Some(scope) = &self.scope {
            add("scope", scope);
        }
        Ok(form)
    }

    fn header(&self) -> Option<Zeroizing<String>> {
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

#[cfg(test)]
mod tests;
