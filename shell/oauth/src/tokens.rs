//! The tokens that this node, or a tool, logs in with: asked of an issuer, read from a file, or made unsigned.
//!
//! core/sasl/src/oauth/tokens.rs says what is asked and when a token is replaced. Blocking: for threads that may wait.
//!
//! | file | does |
//! |---|---|
//! | `assertion` | makes and signs the token by which a client proves to the issuer who it is |

mod assertion;

use crate::http::{self, Limits, Method};
use crate::validator::check_stores;
use barnabas_clock::Clock;
use barnabas_sasl::client::ClientLogin;
use barnabas_sasl::jaas::OAuthBearerLogin;
use barnabas_sasl::oauth::TOKEN_BYTES_MAX;
use barnabas_sasl::oauth::settings::{Allowed, OAuthError};
use barnabas_sasl::oauth::tokens::{HeldToken, Issuer, Refused, Retries, TokenSettings, Way, outcome};
use barnabas_tls::ClientTls;
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// Bytes of an issuer's answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Reads a client's keys (see [`TokenSettings::read`]) and the stores that they name.
///
/// # Errors
/// The first value that cannot be, or that is missing.
pub fn read_tokens(
    get: &dyn Fn(&str) -> Option<String>,
    module: &OAuthBearerLogin,
    allowed: &Allowed,
) -> Result<TokenSettings, OAuthError> {
    let settings = TokenSettings::read(get, module, allowed)?;
    if let Way::Issuer(issuer) = &settings.way {
        issuer.tls.as_ref().map_or(Ok(()), check_stores)?;
    }
    Ok(settings)
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
    token: HeldToken,
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
        if held.token.is_due(now) {
            match token(&self.settings.way, &mut held.tls) {
                Ok(token) => held
                    .token
                    .replace(&token, self.settings.refresh, now, drawn())
                    .map_err(|fault| format!("the token to log in with: {fault}"))?,
                Err(why) if held.token.serves(now) => {
                    tracing::warn!(why, "no new token to log in with; the one before serves until its end");
                }
                Err(why) => return Err(format!("there is no token to log in with: {why}")),
            }
        }
        let token = held.token.token().ok_or("there is no token")?;
        Ok(ClientLogin::Bearer { token: token.clone(), extensions: self.settings.extensions.clone() })
    }
}

fn drawn() -> f64 {
    let mut byte = [0];
    // Without it all clients of one second ask in one second; no more depends on it.
    let _ = aws_lc_rs::rand::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}

fn token(way: &Way, tls: &mut Option<ClientTls>) -> Result<Zeroizing<String>, String> {
    match way {
        Way::File(path) => {
            read_file(path, TOKEN_BYTES_MAX + 2).map(|text| Zeroizing::new(text.trim().to_owned()))
        }
        Way::Issuer(issuer) => of_issuer(issuer, tls),
        Way::Unsecured(token) => Ok(Zeroizing::new(token.token(Clock::start().wall().0 / 1000))),
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

fn of_issuer(issuer: &Issuer, tls: &mut Option<ClientTls>) -> Result<Zeroizing<String>, String> {
    if let (None, Some(settings)) = (&tls, &issuer.tls) {
        *tls = Some(ClientTls::load(settings.clone()).map_err(|error| error.to_string())?);
    }
    let begun = barnabas_clock::now();
    let mut retries = Retries::new(issuer.retry_ms, issuer.retry_max_ms);
    loop {
        let refused = match ask(issuer, tls.as_ref()) {
            Ok(token) => return Ok(token),
            Err(refused) => refused,
        };
        match retries.pause(barnabas_clock::since(begun)) {
            Some(pause) if !refused.is_final => std::thread::sleep(pause),
            _ => return Err(refused.why),
        }
    }
}

fn ask(issuer: &Issuer, tls: Option<&ClientTls>) -> Result<Zeroizing<String>, Refused> {
    let assertion = issuer.assertion().map(assertion::token).transpose();
    let assertion = assertion.map_err(|why| Refused { why, is_final: true })?;
    let body = issuer.form(assertion.as_ref().map(|token| token.as_str()));
    let header = issuer.header();
    let headers: Vec<(&str, &str)> = header.iter().map(|value| ("Authorization", value.as_str())).collect();
    let limits = Limits { connect: issuer.connect, read: issuer.read, body_bytes_max: ANSWER_BYTES_MAX };
    let answer = http::send(&issuer.url, tls, (&Method::Post(&body), &headers), limits);
    let host = &issuer.url.host;
    let answer = answer.map_err(|error| {
        let is_final = error.kind() == std::io::ErrorKind::FileTooLarge;
        Refused { why: format!("{host}: {error}"), is_final }
    })?;
    outcome(host, answer.status, &answer.body)
}

#[cfg(test)]
mod tests;
