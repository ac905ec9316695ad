//! A link's login: SaslHandshake and SaslAuthenticate over a connection that is otherwise idle.
//!
//! core/sasl decides; here its tokens are framed, written and read. The key derivation of SCRAM runs on a thread for
//! blocking work: the link's runtime may be a worker's.
//!
//! Source: Kafka 4 `SaslClientAuthenticator`.

use super::header;
use crate::stream::{ReadHalf, WriteHalf};
use crate::{FrameReader, FrameWriter};
use barnabas_base::Map;
use barnabas_sasl::client::{ClientExchange, ClientLogin, Token};
use barnabas_sasl::scram::fresh_salt;
use barnabas_wire::messages::{SaslAuthenticateRequest, SaslHandshakeRequest};
use barnabas_wire::{ApiKey, RequestBody, ResponseBody, Str, VersionRange, decode_response, frame_request};
use bytes::Bytes;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The version whose tokens are in SaslAuthenticate.
const HANDSHAKE: i16 = 1;
/// Rounds of a mechanism: SCRAM has two, GSSAPI three.
const ROUNDS_MAX: usize = 4;
/// Random bytes of a nonce.
const NONCE_BYTES: usize = 24;

/// What links log in with. It may change while they run: the next login uses it.
#[derive(Debug, Clone)]
pub struct LinkLogin(Arc<Mutex<LoginWith>>);

/// A credential that stays, or a source of such that do not.
#[derive(Debug, Clone)]
pub enum LoginWith {
    Fixed(ClientLogin),
    Source(Arc<dyn LoginSource>),
}

/// Where a login comes from whose credential ends: a token of an issuer, a ticket of a KDC.
pub trait LoginSource: std::fmt::Debug + Send + Sync {
    /// For the peer on this host. Called on a thread that may wait.
    ///
    /// # Errors
    /// There is none, and why.
    fn login(&self, host: &str) -> Result<ClientLogin, String>;
}

impl LinkLogin {
    pub fn new(login: LoginWith) -> Self {
        Self(Arc::new(Mutex::new(login)))
    }

    pub fn set(&self, login: LoginWith) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = login;
    }

    async fn get(&self, host: &str) -> io::Result<ClientLogin> {
        let with = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match with {
            LoginWith::Fixed(login) => Ok(login),
            LoginWith::Source(source) => {
                let host = host.to_owned();
                let work = tokio::task::spawn_blocking(move || source.login(&host));
                work.await.map_err(|error| denied(error.to_string()))?.map_err(denied)
            }
        }
    }
}

/// A fresh nonce for SCRAM: printable, without commas.
pub fn nonce() -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes).expect("invariant: Linux always has random bytes for a running process");
    bytes.iter().map(|byte| char::from(DIGITS[usize::from(byte % 64)])).collect()
}

/// A fresh salt for SCRAM.
pub fn salt() -> Vec<u8> {
    let mut random = [0; 17];
    getrandom::fill(&mut random).expect("invariant: Linux always has random bytes for a running process");
    fresh_salt(random)
}

/// A connection on which nothing is under way.
pub(super) struct Idle<'a, 'b> {
    pub reader: &'a mut FrameReader,
    pub read: &'a mut ReadHalf<'b>,
    pub write: &'a WriteHalf<'b>,
    pub client_id: &'a Str,
    pub correlation_id: &'a mut i32,
}

/// Logs in. Returns how long the session lasts; `None`: as long as the connection.
pub(super) async fn log_in(
    mut connection: Idle<'_, '_>,
    versions: &Map<i16, VersionRange>,
    (host, login): (&str, &LinkLogin),
) -> io::Result<Option<Duration>> {
    let login = login.get(host).await?;
    let theirs = |api: ApiKey| versions.get(&api.number());
    let newest = |api: ApiKey| theirs(api).map(|range| range.max.min(api.stable_versions().max));
    let Some(version) = newest(ApiKey::SaslAuthenticate) else {
        return Err(denied("the peer does not speak SaslAuthenticate"));
    };
    let request = SaslHandshakeRequest { mechanism: login.mechanism().into(), ..Default::default() };
    let ResponseBody::SaslHandshake(answer) = connection.ask(request.into(), HANDSHAKE).await? else {
        return Err(denied("another answer than SaslHandshake's"));
    };
    if answer.error_code != 0 {
        let known: Vec<&str> = answer.mechanisms.iter().map(Str::as_str).collect();
        return Err(denied(format!(
            "the peer does not take SASL mechanism {} but {}",
            login.mechanism(),
            known.join(", ")
        )));
    }
    let (mut token, mut exchange) = ClientExchange::begin(&login, &nonce());
    for _ in 0..ROUNDS_MAX {
        let auth_bytes = Bytes::copy_from_slice(&token);
        let request = SaslAuthenticateRequest { auth_bytes, ..Default::default() };
        let ResponseBody::SaslAuthenticate(answer) = connection.ask(request.into(), version).await? else {
            return Err(denied("another answer than SaslAuthenticate's"));
        };
        if answer.error_code != 0 {
            let why = answer.error_message.as_deref().unwrap_or("no reason given");
            return Err(denied(format!("the peer refused the login by {}: {why}", login.mechanism())));
        }
        match challenged(exchange, answer.auth_bytes).await? {
            Some((next, rest)) => (token, exchange) = (next, rest),
            None => {
                let lifetime = u64::try_from(answer.session_lifetime_ms).ok().filter(|&ms| ms > 0);
                return Ok(lifetime.map(Duration::from_millis));
            }
        }
    }
    Err(denied("the peer asks for ever more SASL tokens"))
}

async fn challenged(
    exchange: ClientExchange,
    challenge: Bytes,
) -> io::Result<Option<(Token, ClientExchange)>> {
    let work = tokio::task::spawn_blocking(move || exchange.challenged(&challenge));
    let next = work.await.map_err(|error| denied(error.to_string()))?;
    next.map_err(|error| denied(error.to_string()))
}

impl Idle<'_, '_> {
    async fn ask(&mut self, body: RequestBody, version: i16) -> io::Result<ResponseBody> {
        let api = body.key();
        *self.correlation_id = self.correlation_id.wrapping_add(1);
        let header = header(api, version, *self.correlation_id, Some(self.client_id.clone()));
        let frame = frame_request(&header, &body).map_err(|error| denied(error.to_string()))?;
        let mut writer = FrameWriter::default();
        writer.queue(frame.segments);
        writer.flush(self.write).await?;
        let frame = match self.reader.next(self.read).await {
            Ok(Some((frame, _claim))) => frame,
            Ok(None) => return Err(denied(format!("the peer closed the connection at {api}"))),
            Err(error) => return Err(denied(error.to_string())),
        };
        let decoded = decode_response(frame, api, version).map_err(|error| denied(error.to_string()))?;
        Ok(decoded.1)
    }
}

fn denied(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, what.into())
}

#[cfg(test)]
mod tests {
    use super::nonce;

    #[test]
    fn nonces_are_printable_and_differ() {
        let (one, other) = (nonce(), nonce());
        assert!(one.len() == super::NONCE_BYTES && one != other);
        assert!(one.bytes().all(|byte| byte.is_ascii_graphic() && byte != b','), "{one}");
    }
}
