//! The part of a connection on a listener with SASL in which its client authenticates, and does so again.
//!
//! core/sasl's exchange decides. Here its frames are read and written, one at a time; the deadline is kept; a refusal
//! is held back before it is sent. Before the client has authenticated, a frame may have `sasl.server.max.receive.size`
//! bytes and nothing of it is given to the broker's own requests.
//!
//! Always true:
//! 1. no request of a client on such a listener is started before the client has authenticated
//! 2. a connection whose client has not authenticated within [`DEADLINE`] of its begin is closed; a TLS handshake is
//!    part of that time
//! 3. while a client authenticates again, nothing else of its connection is started
//!
//! Neighbours: node/logins.rs, who may log in and how; requests/session/audited.rs, which notes logins.
//!
//! Source: Kafka 4 `KafkaChannel`, `Selector`, `Processor.processCompletedReceives`.

use super::{Queue, State, Waiting, answered};
use crate::node::logins;
use crate::node::workers::complaints::{Cause, LoginFailure};
use crate::requests::call::Call;
use crate::requests::cluster;
use crate::requests::session::Session;
use barnabas_api::k18_api_versions;
use barnabas_base::TimestampMs;
use barnabas_config::sasl::SaslListener;
use barnabas_metadata::Image;
use barnabas_metrics::Stamp;
use barnabas_net::links;
use barnabas_net::tickets;
use barnabas_net::{Claim, FrameError, FrameReader, FrameWriter, ReadHalf, Stream};
use barnabas_sasl::exchange::{Exchange, Failure, Offer, Reply, Step, Surroundings, TokenCredential};
use barnabas_sasl::kerberos;
use barnabas_sasl::oauth::Bearer;
use barnabas_sasl::plain::PlainUsers;
use barnabas_sasl::scram::{Decoy, Mechanism, ScramCredential};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use bytes::Bytes;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout, timeout_at};

/// For a login, with everything before it.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the last answer to a refused client may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Lets the client authenticate, where its listener asks for that. `false`: the connection is to be closed.
///
/// `accepted_at`: when the connection was accepted, before its TLS handshake.
pub(super) async fn log_in(
    session: &Rc<Session>,
    stream: &mut Stream,
    reader: &mut FrameReader,
    accepted_at: Instant,
) -> bool {
    let Some(listener) = session.node.logins.listener(session.listener) else { return true };
    if session.login().is_some() {
        return true;
    }
    let begun = Stamp::now();
    let until = (accepted_at + DEADLINE).into();
    let frame_bytes_max = reader.limit(listener.receive_bytes_max);
    reader.in_turns(true);
    let (mut exchange, mut writer) = (Exchange::new(), FrameWriter::default());
    let (mut read, write) = stream.split();
    // What the exchange keeps of a frame is counted until the next one comes.
    let mut _held;
    loop {
        let frame = match timeout_at(until, reader.next(&mut read)).await {
            Ok(frame) => frame,
            Err(_) => {
                let seconds = DEADLINE.as_secs();
                let why = format!("the client did not authenticate within {seconds} s");
                refused(session, &why, LoginFailure::Deadline, None);
                return false;
            }
        };
        let Some((frame, claim)) = frame_of(session, frame) else { return false };
        _held = claim;
        session.active_ms.set(Stamp::now().ms());
        derive_token(session, &exchange, &frame).await;
        let (reply, verdict) =
            match exchange.take(frame, session.node.clock.wall(), &Around::of(session, &listener)) {
                Step::Answer(reply) => (Some(reply), None),
                Step::Done(reply, authenticated) => (reply, Some(authenticated)),
                Step::Broken(why) => {
                    refused(session, &why, LoginFailure::Order, None);
                    return false;
                }
                Step::Failed(failure) => {
                    hold_back(session, &listener, &failure).await;
                    if let Some(Reply(frame)) = failure.answer {
                        writer.queue(frame.segments);
                        // The client may have gone.
                        let _ = timeout(FAREWELL, writer.flush(&write)).await;
                    }
                    return false;
                }
            };
        if let Some(Reply(frame)) = reply {
            writer.queue(frame.segments);
            if !matches!(timeout_at(until, writer.flush(&write)).await, Ok(Ok(_))) {
                return false;
            }
        }
        if let Some(authenticated) = verdict {
            session.node.workers.meter.logins.succeeded(Stamp::now().since(begun));
            session.logged_in(authenticated);
            session.note_login();
            reader.limit(frame_bytes_max);
            reader.in_turns(false);
            return true;
        }
    }
}

/// Has the credential of the delegation token ready that the frame names. Derived off the worker, once for each token
/// and mechanism: an unknown id costs nothing.
async fn derive_token(session: &Session, exchange: &Exchange, frame: &Bytes) {
    let node = &session.node;
    let Some(key) = node.logins.token_key() else { return };
    let Some((mechanism, id)) = exchange.token_named(frame) else { return };
    let image = node.cluster.image.load_full();
    if !image.tokens.contains_key(id.as_str()) || node.logins.token(&image, mechanism, &id).is_some() {
        return;
    }
    let (key, named) = (key.clone(), id.clone());
    let derive = move || key.credential(mechanism, &named);
    if let Some(credential) = node.workers.unpacking.run(Some(session.peer.ip().to_canonical()), derive).await
    {
        node.logins.keep_token(&image, &id, credential);
    }
}

/// What a frame of an authenticated client is.
pub(super) enum Standing {
    Request,
    /// SaslHandshake, with which the client begins to authenticate again.
    Again,
    /// Its session has ended.
    Over,
}

/// Looks at a frame that was read at `now_ms`.
pub(super) fn standing(session: &Session, frame: &[u8], now_ms: u64) -> Standing {
    if session.is_again(frame, now_ms) {
        return Standing::Again;
    }
    if session.is_over(now_ms) {
        session.node.workers.meter.logins.expired.one();
        return Standing::Over;
    }
    Standing::Request
}

/// Lets the client authenticate again (KIP-368). Takes the frame with SaslHandshake. `false`: the connection is to be
/// closed.
pub(super) async fn again(
    session: &Rc<Session>,
    (reader, stream): (&mut FrameReader, &mut ReadHalf<'_>),
    queue: &Queue,
    mut frame: Bytes,
) -> bool {
    let (Some(listener), Some(before)) = (session.node.logins.listener(session.listener), session.login())
    else {
        return false;
    };
    answered(session, queue).await;
    let begun = Stamp::now();
    let until = (barnabas_clock::now() + DEADLINE).into();
    let frame_bytes_max = reader.limit(listener.receive_bytes_max);
    let mut exchange = Exchange::again(before);
    let mut api = ApiKey::SaslHandshake;
    // As in `log_in`.
    let mut _held;
    loop {
        derive_token(session, &exchange, &frame).await;
        match exchange.take(frame, session.node.clock.wall(), &Around::of(session, &listener)) {
            Step::Answer(reply) => push(session, queue, api, reply),
            Step::Done(reply, authenticated) => {
                if let Some(reply) = reply {
                    push(session, queue, api, reply);
                }
                session.node.workers.meter.logins.succeeded_again(Stamp::now().since(begun));
                session.logged_in(authenticated);
                session.note_login();
                reader.limit(frame_bytes_max);
                return true;
            }
            Step::Broken(why) => {
                refused(session, &why, LoginFailure::Order, None);
                return false;
            }
            Step::Failed(failure) => {
                session.node.workers.meter.logins.failed_again.one();
                hold_back(session, &listener, &failure).await;
                if let Some(reply) = failure.answer {
                    push(session, queue, api, reply);
                    let _ = timeout(FAREWELL, answered(session, queue)).await;
                }
                return false;
            }
        }
        api = ApiKey::SaslAuthenticate;
        let Ok(next) = timeout_at(until, reader.next(stream)).await else {
            let why = "the client did not authenticate again in time";
            refused(session, why, LoginFailure::Deadline, None);
            return false;
        };
        let Some((next, claim)) = frame_of(session, next) else { return false };
        (frame, _held) = (next, claim);
    }
}

/// Queues an answer that is encoded already.
fn push(session: &Session, queue: &Queue, api: ApiKey, Reply(frame): Reply) {
    session.unsent.set(session.unsent.get() + frame.len);
    session.started((api, 1, 0), 0, Stamp::now());
    let state = State::Framed(frame, session.claim());
    let waiting = Waiting {
        correlation_id: 0,
        api,
        version: 1,
        state,
        _claim: session.claim(),
        _free: None,
        _place: None,
        charge: None,
        turn: None,
    };
    queue.borrow_mut().push_back(waiting);
}

fn frame_of(session: &Session, frame: Result<Option<(Bytes, Claim)>, FrameError>) -> Option<(Bytes, Claim)> {
    match frame {
        Ok(Some(frame)) => Some(frame),
        Ok(None) => None,
        Err(FrameError::Io(error)) => {
            tracing::debug!(peer = %session.peer, %error, "connection lost");
            None
        }
        Err(error) => {
            let node = &session.node;
            node.workers.meter.bad_frames.one();
            let listener = &node.identity.listeners[session.listener].0;
            node.workers.complaints.bad_frame(session.peer, listener, &error);
            None
        }
    }
}

/// Counts and logs a failed login, and waits as long as its answer is held back.
async fn hold_back(session: &Session, listener: &SaslListener, failure: &Failure) {
    let node = &session.node;
    let least_ms = listener.failure_delay.as_millis() as u64;
    let now = node.clock.monotonic();
    let delay = node.logins.refused(session.peer.ip(), failure.user.as_deref(), least_ms, now);
    refused(session, &failure.why, LoginFailure::Credentials, Some(failure));
    sleep(Duration::from_millis(delay)).await;
}

fn refused(session: &Session, why: &str, kind: LoginFailure, failure: Option<&Failure>) {
    session.node.workers.meter.logins.failed.one();
    session.note_failed_login(why, failure);
    let listener = &session.node.identity.listeners[session.listener].0.endpoint.listener;
    let mechanism = failure.and_then(|failure| failure.mechanism).map_or("none", |known| known.name());
    let user = failure.and_then(|failure| failure.user.as_deref()).unwrap_or("");
    let what =
        format!("authentication failed: {why}; listener={listener} mechanism={mechanism} user={user:?}");
    session.node.workers.complaints.closed(session.peer, Cause::Login(kind), what);
}

/// What an exchange sees of the node.
struct Around<'a> {
    session: &'a Rc<Session>,
    listener: &'a SaslListener,
    image: Arc<Image>,
    kerberos: Option<Arc<kerberos::Acceptor>>,
}

impl<'a> Around<'a> {
    fn of(session: &'a Rc<Session>, listener: &'a SaslListener) -> Self {
        let kerberos =
            listener.kerberos.as_ref().and_then(|listener| session.node.logins.keytabs.acceptor(listener));
        Self { session, listener, image: session.node.cluster.image.load_full(), kerberos }
    }
}

impl Surroundings for Around<'_> {
    fn offers(&self) -> &[Offer] {
        &self.listener.offers
    }

    fn api_versions(&self, version: i16, request: Option<&ApiVersionsRequest>) -> ApiVersionsResponse {
        let Some(request) = request else { return k18_api_versions::unsupported_version() };
        cluster::answer_api_versions(&Call::before_login(self.session, version), request)
    }

    fn plain_users(&self) -> &PlainUsers {
        &self.listener.plain
    }

    fn scram(&self, mechanism: Mechanism, user: &str) -> Option<ScramCredential> {
        logins::scram(&self.image, mechanism, user)
    }

    fn token(&self, mechanism: Mechanism, id: &str) -> Option<TokenCredential> {
        self.session.node.logins.token(&self.image, mechanism, id)
    }

    fn decoy(&self) -> Decoy {
        self.session.node.logins.decoy(&self.image)
    }

    fn bearer(&self, token: &str, now: TimestampMs) -> Result<Bearer, String> {
        self.session.node.logins.bearer(self.listener, token, now)
    }

    fn kerberos(&self) -> Option<&kerberos::Acceptor> {
        self.kerberos.as_deref()
    }

    fn kerberos_renewed(&self) -> Option<Arc<kerberos::Acceptor>> {
        let (node, listener) = (&self.session.node, self.listener.kerberos.as_ref()?);
        node.logins.keytabs.renewed(listener, self.kerberos.as_ref(), node.clock.monotonic())
    }

    fn note(&self, digest: [u8; 16], until: TimestampMs, now: TimestampMs) -> kerberos::Seen {
        self.session.node.logins.keytabs.note(digest, until, now)
    }

    fn secrets(&self) -> kerberos::Secrets {
        tickets::secrets()
    }

    fn nonce(&self) -> String {
        links::nonce()
    }
}
