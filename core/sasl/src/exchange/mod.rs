//! The server's exchange: from a connection's first frame until the client is authenticated, and each time it
//! authenticates again.
//!
//! Pure: frames and the time come in, answers and verdicts go out. The caller writes the answers in their order, keeps
//! the deadline, and waits before it sends a refusal. Frames are bounded by the caller
//! (`sasl.server.max.receive.size`).
//!
//! Order of a listener with SASL: ApiVersions, at most one that succeeds; SaslHandshake; tokens, raw after version 0
//! and within SaslAuthenticate after version 1. Everything else ends the exchange. Other APIs are refused by their key,
//! before their bodies are read.
//!
//! | file | answers |
//! |---|---|
//! | `tokens` | one mechanism's exchange, token by token |
//!
//! Always true:
//! 1. a verdict is the last step; a frame after it is a bug of the caller
//! 2. before SaslHandshake no credential is looked up
//! 3. re-authentication keeps the mechanism and the principal, or fails
//!
//! Left out: the answer 34 to another API among the tokens. Kafka answers in that API's format, then closes; here the
//! connection is closed.
//!
//! # Source
//! KIP-43, KIP-152, KIP-255, KIP-368; Kafka 4 `SaslServerAuthenticator`.

mod tokens;

use barnabas_base::{ErrorCode, TimestampMs};
use barnabas_wire::messages::{
    ApiVersionsRequest, ApiVersionsResponse, SaslAuthenticateResponse, SaslHandshakeResponse,
};
use barnabas_wire::{ApiKey, Frame, RequestBody, RequestStart, ResponseBody, Str, frame_response};
use bytes::{BufMut as _, Bytes, BytesMut};
use std::sync::Arc;

use crate::kerberos;
use crate::oauth::Bearer;
use crate::plain::PlainUsers;
use crate::scram::{self, Decoy, ScramCredential};
use crate::{Login, Refusal};
use tokens::{Refused, Token, Tokens};

/// Memory that a decoded request of an exchange may take.
const DECODED_BYTES_MAX: usize = 1 << 20;
/// GSSAPI's first token, which clients before KIP-43 send without a handshake.
const GSSAPI_TOKEN: u8 = 0x60;

/// A mechanism that this version speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SaslMechanism {
    Plain,
    Scram(scram::Mechanism),
    OAuthBearer,
    Gssapi,
}

impl SaslMechanism {
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::Scram(scram::Mechanism::Sha256),
        Self::Scram(scram::Mechanism::Sha512),
        Self::OAuthBearer,
        Self::Gssapi,
    ];

    /// The name in SaslHandshake and in `sasl.enabled.mechanisms`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(mechanism) => mechanism.name(),
            Self::OAuthBearer => "OAUTHBEARER",
            Self::Gssapi => "GSSAPI",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }
}

/// A mechanism that a listener takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub mechanism: SaslMechanism,
    /// `connections.max.reauth.ms`; 0: sessions end with their credentials alone.
    pub session_max_ms: i64,
}

/// A delegation token, as SCRAM's credential.
#[derive(Debug, Clone)]
pub struct TokenCredential {
    pub credential: ScramCredential,
    pub owner: String,
    pub expires: TimestampMs,
}

/// What an exchange asks of its listener and of the cluster.
pub trait Surroundings {
    /// In the order of `sasl.enabled.mechanisms`.
    fn offers(&self) -> &[Offer];
    /// The answer to ApiVersions. `None`: a version that is not served, whose answer is read as version 0.
    fn api_versions(&self, version: i16, request: Option<&ApiVersionsRequest>) -> ApiVersionsResponse;
    fn plain_users(&self) -> &PlainUsers;
    fn scram(&self, mechanism: scram::Mechanism, user: &str) -> Option<ScramCredential>;
    fn token(&self, mechanism: scram::Mechanism, id: &str) -> Option<TokenCredential>;
    fn decoy(&self) -> Decoy;
    /// # Errors
    /// What is wrong with the token, for the log.
    fn bearer(&self, token: &str, now: TimestampMs) -> Result<Bearer, String>;
    /// What GSSAPI's clients are checked with; `None`: the keytab cannot be read.
    fn kerberos(&self) -> Option<&kerberos::Acceptor>;
    /// The same, where the keytab has other keys by now: asked for a ticket that the known ones do not decrypt.
    fn kerberos_renewed(&self) -> Option<Arc<kerberos::Acceptor>>;
    /// Notes a request of Kerberos by its digest, until a time, and says whether it came before.
    fn note(&self, digest: [u8; 16], until: TimestampMs, now: TimestampMs) -> kerberos::Seen;
    /// Fresh and random.
    fn secrets(&self) -> kerberos::Secrets;
    /// Fresh, random, printable, without commas.
    fn nonce(&self) -> String;
}

/// A client that has authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    pub login: Login,
    pub mechanism: SaslMechanism,
    /// How long the session lasts from now on; `None`: as long as the connection.
    pub lifetime_ms: Option<i64>,
    /// The client has used SaslAuthenticate v1 or later, and so knows of lifetimes.
    pub may_reauthenticate: bool,
}

/// A client that is refused.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// To be sent when the delay is over; the connection is closed then.
    pub answer: Option<Reply>,
    /// For the log. Holds no secret.
    pub why: String,
    pub mechanism: Option<SaslMechanism>,
    /// The user that the client claims to be, where it has said so.
    pub user: Option<String>,
}

/// Bytes of an answer, its length included.
#[derive(Debug)]
pub struct Reply(pub Frame);

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        self.0.segments.concat() == other.0.segments.concat()
    }
}

impl Eq for Reply {}

/// What comes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The next frame is awaited.
    Answer(Reply),
    /// The answer, where there is one, goes out before anything else.
    Done(Option<Reply>, Authenticated),
    Failed(Failure),
    /// No Kafka client that knows SASL, or one that does not keep the order.
    Broken(String),
}

/// The machine. See the file's header.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    /// What must not change.
    before: Option<Authenticated>,
}

#[derive(Debug)]
enum State {
    Handshake {
        is_first: bool,
        has_versions: bool,
    },
    Tokens {
        mechanism: SaslMechanism,
        tokens: Tokens,
        is_framed: bool,
        knows_lifetimes: bool,
    },
    /// Re-authentication with another mechanism: answered as a handshake, and refused with the next frame.
    OtherMechanism(SaslMechanism),
    Ended,
}

impl Exchange {
    /// Of a new connection.
    pub fn new() -> Self {
        Self { state: State::Handshake { is_first: true, has_versions: false }, before: None }
    }

    /// Of a connection whose client is `before` and sends SaslHandshake again.
    pub fn again(before: Authenticated) -> Self {
        Self { state: State::Handshake { is_first: false, has_versions: true }, before: Some(before) }
    }

    /// The delegation token that the frame names, where it is the first of SCRAM's with `tokenauth=true`. Its
    /// credential costs thousands of hashes: the caller computes it elsewhere before it hands the frame over.
    pub fn token_named(&self, frame: &Bytes) -> Option<(scram::Mechanism, String)> {
        let State::Tokens { mechanism: SaslMechanism::Scram(mechanism), tokens, is_framed, .. } = &self.state
        else {
            return None;
        };
        if !tokens.is_first() {
            return None;
        }
        let token = match is_framed {
            false => frame.clone(),
            true => match RequestBody::decode_frame(frame.clone(), DECODED_BYTES_MAX) {
                Ok((_, RequestBody::SaslAuthenticate(request))) => request.auth_bytes,
                _ => return None,
            },
        };
        let received = scram::Received::new(*mechanism, &token).ok()?;
        match received.identity() {
            scram::Identity::Token(id) => Some((*mechanism, id.to_owned())),
            scram::Identity::User(_) => None,
        }
    }

    /// The next frame of the client, without its length.
    pub fn take(&mut self, frame: Bytes, now: TimestampMs, around: &dyn Surroundings) -> Step {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Handshake { is_first, has_versions } => {
                self.handshake(frame, (is_first, has_versions), around)
            }
            State::Tokens { mechanism, tokens, is_framed: true, knows_lifetimes } => {
                self.authenticate(frame, (mechanism, tokens, knows_lifetimes), now, around)
            }
            State::Tokens { mechanism, tokens, .. } => {
                let step = tokens.take(&frame, now, around);
                self.raw(mechanism, step, now, around)
            }
            State::OtherMechanism(asked) => {
                let was = self.before.as_ref().map_or("", |before| before.mechanism.name());
                let why = format!(
                    "SASL mechanism '{}' requested by client is not supported for re-authentication of mechanism '{was}'",
                    asked.name()
                );
                Step::Failed(Failure { answer: None, why, mechanism: Some(asked), user: None })
            }
            State::Ended => panic!("bug: a frame after the verdict"),
        }
    }

    fn handshake(
        &mut self,
        frame: Bytes,
        (is_first, has_versions): (bool, bool),
        around: &dyn Surroundings,
    ) -> Step {
        let start = match RequestStart::peek(&frame) {
            Ok(start) => start,
            Err(error) => return Step::Broken(unreadable(&frame, is_first, &error.to_string())),
        };
        let api = match ApiKey::from_number(start.api_key) {
            Some(api @ (ApiKey::ApiVersions | ApiKey::SaslHandshake)) => api,
            Some(other) => {
                return Step::Broken(format!(
                    "Unexpected Kafka request of type {other} during SASL handshake."
                ));
            }
            None => {
                let what = format!("{} is no API key", start.api_key);
                return Step::Broken(unreadable(&frame, is_first, &what));
            }
        };
        if api == ApiKey::ApiVersions && has_versions {
            return Step::Broken("a second ApiVersions request during SASL handshake".to_owned());
        }
        if !api.stable_versions().contains(start.api_version) {
            if api == ApiKey::ApiVersions {
                self.state = State::Handshake { is_first: false, has_versions: false };
                return answer(start, &around.api_versions(0, None).into(), 0);
            }
            return Step::Broken(format!("version {} of {api} is not served here", start.api_version));
        }
        match RequestBody::decode_frame(frame.clone(), DECODED_BYTES_MAX) {
            Err(error) => Step::Broken(unreadable(&frame, is_first, &error.to_string())),
            Ok((_, RequestBody::ApiVersions(request))) => {
                let response = around.api_versions(start.api_version, Some(&request));
                let has_versions = response.error_code == ErrorCode::None.code();
                self.state = State::Handshake { is_first: false, has_versions };
                answer(start, &response.into(), start.api_version)
            }
            Ok((_, RequestBody::SaslHandshake(request))) => self.begin(start, &request.mechanism, around),
            Ok((_, other)) => Step::Broken(format!("{} during SASL handshake", other.key())),
        }
    }

    fn begin(&mut self, start: RequestStart, asked: &str, around: &dyn Surroundings) -> Step {
        let found = around.offers().iter().find(|offer| offer.mechanism.name() == asked);
        let mechanisms =
            around.offers().iter().map(|offer| Str::from_static(offer.mechanism.name())).collect();
        let code = if found.is_some() { ErrorCode::None } else { ErrorCode::UnsupportedSaslMechanism };
        let response = SaslHandshakeResponse { error_code: code.code(), mechanisms, ..Default::default() };
        let step = answer(start, &response.into(), start.api_version);
        let Some(offer) = found else {
            let asked: String = asked.chars().take(64).collect();
            let why = format!("Unsupported SASL mechanism {asked:?}");
            return match step {
                Step::Answer(reply) => {
                    Step::Failed(Failure { answer: Some(reply), why, mechanism: None, user: None })
                }
                broken => broken,
            };
        };
        let mechanism = offer.mechanism;
        self.state = match &self.before {
            Some(before) if before.mechanism != mechanism => State::OtherMechanism(mechanism),
            _ => State::Tokens {
                mechanism,
                tokens: Tokens::new(mechanism),
                is_framed: start.api_version >= 1,
                knows_lifetimes: false,
            },
        };
        step
    }

    fn authenticate(
        &mut self,
        frame: Bytes,
        (mechanism, tokens, knew_lifetimes): (SaslMechanism, Tokens, bool),
        now: TimestampMs,
        around: &dyn Surroundings,
    ) -> Step {
        let start = match RequestStart::peek(&frame) {
            Ok(start) => start,
            Err(error) => return Step::Broken(format!("a request without a header: {error}")),
        };
        let api = ApiKey::from_number(start.api_key);
        if api != Some(ApiKey::SaslAuthenticate) {
            let what = api.map_or_else(|| start.api_key.to_string(), |api| api.to_string());
            return Step::Broken(format!(
                "Unexpected Kafka request of type {what} during SASL authentication."
            ));
        }
        if !ApiKey::SaslAuthenticate.stable_versions().contains(start.api_version) {
            return Step::Broken(format!(
                "Version {} is not supported for SaslAuthenticate",
                start.api_version
            ));
        }
        let request = match RequestBody::decode_frame(frame, DECODED_BYTES_MAX) {
            Ok((_, RequestBody::SaslAuthenticate(request))) => request,
            Ok((_, other)) => return Step::Broken(format!("{} during SASL authentication", other.key())),
            Err(error) => return Step::Broken(format!("SaslAuthenticate cannot be read: {error}")),
        };
        let knows_lifetimes = knew_lifetimes || start.api_version > 0;
        let respond = |response: SaslAuthenticateResponse| answer(start, &response.into(), start.api_version);
        match tokens.take(&request.auth_bytes, now, around) {
            Token::Next(bytes, tokens) => {
                self.state = State::Tokens { mechanism, tokens, is_framed: true, knows_lifetimes };
                respond(SaslAuthenticateResponse { auth_bytes: bytes.into(), ..Default::default() })
            }
            Token::Done(bytes, login) => match self.done(mechanism, login, knows_lifetimes, now, around) {
                Ok(authenticated) => {
                    let session_lifetime_ms = authenticated.lifetime_ms.unwrap_or(0);
                    let response = SaslAuthenticateResponse {
                        auth_bytes: bytes.into(),
                        session_lifetime_ms,
                        ..Default::default()
                    };
                    match respond(response) {
                        Step::Answer(reply) => Step::Done(Some(reply), authenticated),
                        broken => broken,
                    }
                }
                Err(refused) => self.refused(start, mechanism, refused),
            },
            Token::Refused(refused) => self.refused(start, mechanism, refused),
        }
    }

    /// 58, with the part of the reason that the client may read.
    fn refused(&self, start: RequestStart, mechanism: SaslMechanism, refused: Refused) -> Step {
        let text = refused.refusal.text_for_client(mechanism.name(), self.before.is_some());
        let response = SaslAuthenticateResponse {
            error_code: ErrorCode::SaslAuthenticationFailed.code(),
            error_message: Some(text.into()),
            ..Default::default()
        };
        let answer = match answer(start, &response.into(), start.api_version) {
            Step::Answer(reply) if !refused.is_temporary => Some(reply),
            _ => None,
        };
        Step::Failed(Failure { answer, why: refused.why(), mechanism: Some(mechanism), user: refused.user })
    }

    /// The same for tokens without a header: a refusal is no answer.
    fn raw(
        &mut self,
        mechanism: SaslMechanism,
        step: Token,
        now: TimestampMs,
        around: &dyn Surroundings,
    ) -> Step {
        let failed = |refused: Refused| {
            let (why, user) = (refused.why(), refused.user);
            Step::Failed(Failure { answer: None, why, mechanism: Some(mechanism), user })
        };
        match step {
            Token::Next(bytes, tokens) => {
                self.state = State::Tokens { mechanism, tokens, is_framed: false, knows_lifetimes: false };
                Step::Answer(sized(&bytes))
            }
            Token::Done(bytes, login) => match self.done(mechanism, login, false, now, around) {
                // Java's server of GSSAPI has no last answer, where those of the others have an empty one.
                Ok(authenticated) if mechanism == SaslMechanism::Gssapi => Step::Done(None, authenticated),
                Ok(authenticated) => Step::Done(Some(sized(&bytes)), authenticated),
                Err(refused) => failed(refused),
            },
            Token::Refused(refused) => failed(refused),
        }
    }

    fn done(
        &self,
        mechanism: SaslMechanism,
        login: Login,
        may_reauthenticate: bool,
        now: TimestampMs,
        around: &dyn Surroundings,
    ) -> Result<Authenticated, Refused> {
        if let Some(before) = self.before.as_ref().filter(|before| before.login.name != login.name) {
            let refusal = Refusal::told(format!(
                "Cannot change principals during re-authentication from User.{}: User.{}",
                before.login.name, login.name
            ));
            return Err(Refused::new(refusal, Some(login.name)));
        }
        let offer = around.offers().iter().find(|offer| offer.mechanism == mechanism);
        let most = offer.map(|offer| offer.session_max_ms).filter(|&most| most > 0);
        let rest = login.expires.map(|expires| expires.0.saturating_sub(now.0));
        let lifetime_ms = match (most, rest) {
            (None, None) => None,
            (most, rest) => Some(most.unwrap_or(i64::MAX).min(rest.unwrap_or(i64::MAX)).max(0)),
        };
        Ok(Authenticated { login, mechanism, lifetime_ms, may_reauthenticate })
    }
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}

fn answer(start: RequestStart, body: &ResponseBody, version: i16) -> Step {
    match frame_response(start.correlation_id, body, version) {
        Ok(frame) => Step::Answer(Reply(frame)),
        Err(error) => Step::Broken(format!("the answer cannot be encoded: {error}")),
    }
}

/// A token without a header: its length, then its bytes.
fn sized(token: &[u8]) -> Reply {
    let mut bytes = BytesMut::with_capacity(4 + token.len());
    bytes.put_u32(token.len() as u32);
    bytes.put_slice(token);
    Reply(Frame { len: bytes.len(), segments: vec![bytes.freeze()] })
}

/// What a first frame that is no request of Kafka may be.
fn unreadable(frame: &[u8], is_first: bool, what: &str) -> String {
    if is_first && frame.first() == Some(&GSSAPI_TOKEN) {
        return format!(
            "the first bytes are a GSSAPI token without SaslHandshake: the client is older than Kafka 0.10 ({what})"
        );
    }
    if is_first {
        return format!(
            "Invalid request, potential reasons: kafka client configured with the wrong security protocol, it does not \
             support KIP-43 or it is not a kafka client ({what})"
        );
    }
    format!("a request that cannot be read during SASL handshake: {what}")
}
