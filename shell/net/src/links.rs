//! A link to a peer: one task that owns one connection to the listener of another node.
//!
//! Callers queue requests on a link and wait for the answers. The link's task connects on the first
//! request, learns the peer's API versions, and pipelines a few requests, which the peer answers in
//! order. It does not look into requests. After a lost request the caller decides whether to retry,
//! and where.
//!
//! Always true:
//! 1. the queue and the number of requests under way are bounded; a request is answered, or fails, within its patience
//! 2. a connection that the peer closes is noticed at once, even without requests: requests in flight fail,
//!    and the link connects again at once, so that [`Link::watch`] distinguishes an exited process
//!    ([`LinkState::Refused`]) from a mere reset
//! 3. while a peer cannot be reached, requests fail at once and connections are tried with a pause that grows
//!
//! Used by: the broker's quorum worker (peers, and the link to the active controller), its coordinators, its replica
//! fetchers. In links/task.rs: the task itself; links/login.rs: how it logs in; links/awaited.rs: how much waits, for
//! the metrics.

mod awaited;
mod login;
mod runtime;
mod task;
#[cfg(test)]
mod tests;

pub use awaited::{Awaited, Entry};
pub use login::{LinkLogin, LoginSource, LoginWith, nonce, salt};
pub use runtime::LinkThread;

use barnabas_base::Text;
use barnabas_tls::ClientTls;
use barnabas_wire::messages::{RequestHeader, ResponseHeader};
use barnabas_wire::{
    ApiKey, DecodeError, EncodeError, Frame, Message, Reader, Request, RequestBody, ResponseBody, Str,
    Struct, VersionRange, Writer, decode_response, frame_request,
};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

/// Memory that an answer may take once it is decoded, in multiples of its bytes: peers are trusted as far as that.
const DECODED_FACTOR: usize = 64;

/// Where a peer listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    pub host: Text,
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// How a link behaves.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// What the peer sees as the client id.
    pub client_id: Str,
    /// Requests written and not answered yet; more wait in the queue.
    pub in_flight_max: usize,
    /// Requests that wait to be written.
    pub queue_max: usize,
    /// For a connection and its handshake, and for a request whose sender names no patience of its own.
    pub timeout: Duration,
    /// Pauses after failed connections: the first, and the longest.
    pub backoff_min: Duration,
    pub backoff_max: Duration,
    /// The largest answer that is taken.
    pub answer_bytes_max: usize,
    /// A connection that is given up is reset, not closed: undelivered bytes are dropped.
    pub is_cut_off: bool,
    /// What to log in with, where the peer's listener asks for SASL.
    pub login: Option<LinkLogin>,
    /// `None`: plain text.
    pub tls: Option<Arc<ClientTls>>,
    /// What goes over the link is counted here, together with other links that name the same.
    pub traffic: Arc<Traffic>,
}

/// Requests and answers of some links, and their bytes, without what TLS and SASL add.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    bytes_out: AtomicU64,
    answers: AtomicU64,
    bytes_in: AtomicU64,
}

/// What [`Traffic`] has counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TrafficCounts {
    pub requests: u64,
    pub bytes_out: u64,
    pub answers: u64,
    pub bytes_in: u64,
}

impl Traffic {
    fn asked(&self, bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn answered(&self, bytes: usize) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub fn counts(&self) -> TrafficCounts {
        TrafficCounts {
            requests: self.requests.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            answers: self.answers.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
        }
    }
}

impl LinkSettings {
    pub fn new(client_id: &str) -> Self {
        Self {
            client_id: Str::from(client_id),
            in_flight_max: 8,
            queue_max: 256,
            timeout: Duration::from_secs(30),
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_millis(500),
            answer_bytes_max: 256 << 20,
            is_cut_off: false,
            login: None,
            tls: None,
            traffic: Arc::default(),
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    /// Nothing was sent.
    #[error("{to} cannot be reached: {why}")]
    Unreachable { to: Address, why: Arc<str> },
    /// The peer may have worked on it, or not.
    #[error("the connection to {to} was lost: {why}")]
    Lost { to: Address, why: Arc<str> },
    /// The same: the connection was given up.
    #[error("{to} did not answer {api} within {after_ms} ms")]
    TimedOut { to: Address, api: ApiKey, after_ms: u64 },
    #[error("{to} does not speak a version of {api} that this can be said in")]
    Unsupported { to: Address, api: ApiKey },
    #[error("the request cannot be written: {0}")]
    Request(#[from] EncodeError),
    #[error("the answer of {to} to {api} cannot be read: {source}")]
    Garbled { to: Address, api: ApiKey, source: DecodeError },
    /// The link has ended with its runtime.
    #[error("the link to {to} has ended")]
    Ended { to: Address },
}

/// How a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// No request yet.
    Idle,
    /// Connected, and the peer's versions are known.
    Up,
    /// The connection was closed, and a new one is being tried.
    Lost,
    /// The connect was refused: nothing listens at the address, so the process has probably exited.
    Refused,
    /// Connections fail in some other way: no route, no answer, an unknown name.
    Unreachable,
}

/// One link. Cheap to clone; the task ends with the last clone.
#[derive(Debug, Clone)]
pub struct Link {
    address: Address,
    client_id: Str,
    timeout: Duration,
    traffic: Arc<Traffic>,
    sender: mpsc::Sender<Outgoing>,
    state: watch::Receiver<LinkState>,
}

/// Makes a request's frame in a version and under a correlation id. `None`: the version cannot carry it.
type Encode = Box<dyn FnOnce(i16, i32) -> Result<Option<Frame>, EncodeError> + Send>;

/// A request on its way into the link's task.
struct Outgoing {
    api: ApiKey,
    ours: VersionRange,
    encode: Encode,
    asked: Instant,
    patience: Duration,
    /// The answer's frame, and the version it is in.
    reply: oneshot::Sender<Result<(Bytes, i16), LinkError>>,
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({})", self.api)
    }
}

impl Link {
    /// Starts a link's task on `runtime`. It connects when the first request comes.
    pub fn start(runtime: &Handle, address: Address, settings: LinkSettings) -> Self {
        let (sender, requests) = mpsc::channel(settings.queue_max.max(1));
        let (told, state) = watch::channel(LinkState::Idle);
        let (client_id, timeout) = (settings.client_id.clone(), settings.timeout);
        let traffic = settings.traffic.clone();
        runtime.spawn(task::Task::new(address.clone(), settings, requests, told).run());
        Self { address, client_id, timeout, traffic, sender, state }
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// How the link stands, and what becomes of it.
    pub fn watch(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Asks in the newest version that both sides speak.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn send<R>(&self, request: R) -> Result<R::Response, LinkError>
    where
        R: Request + Send + 'static,
    {
        self.send_with(self.timeout, |_| Some(request)).await
    }

    /// Asks for something that looks different from version to version (`make`: `None` where a version cannot carry
    /// it), and that the peer may hold back for a while: `patience` is all the time there is, the queue's included.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn send_with<R>(
        &self,
        patience: Duration,
        make: impl FnOnce(i16) -> Option<R> + Send + 'static,
    ) -> Result<R::Response, LinkError>
    where
        R: Request + Send + 'static,
    {
        let client_id = Some(self.client_id.clone());
        let encode = move |version, correlation_id| {
            let Some(request) = make(version) else { return Ok(None) };
            let header = header(R::KEY, version, correlation_id, client_id);
            let mut w = Writer::framed();
            header.encode(&mut w, R::KEY.request_header_version(version))?;
            request.encode(&mut w, version)?;
            w.finish_framed().map(Some)
        };
        let (frame, version) =
            self.exchange(R::KEY, R::KEY.stable_versions(), patience, Box::new(encode)).await?;
        let garbled = |source| LinkError::Garbled { to: self.address.clone(), api: R::KEY, source };
        let memory_max = barnabas_wire::MEMORY_BYTES_MAX.max(frame.len().saturating_mul(DECODED_FACTOR));
        let mut reader = Reader::with_memory_max(frame, memory_max);
        ResponseHeader::read(&mut reader, R::KEY.response_header_version(version)).map_err(garbled)?;
        R::Response::decode(&mut reader, version).map_err(garbled)
    }

    /// The same for a request of any API, already encoded. `version`: the only usable one, or the
    /// newest.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn send_body(
        &self,
        body: RequestBody,
        version: Option<i16>,
        patience: Duration,
    ) -> Result<ResponseBody, LinkError> {
        let api = body.key();
        let ours = version.map_or_else(|| api.stable_versions(), |only| VersionRange::new(only, only));
        let client_id = Some(self.client_id.clone());
        let encode = move |version, correlation_id| {
            frame_request(&header(api, version, correlation_id, client_id), &body).map(Some)
        };
        let (frame, version) = self.exchange(api, ours, patience, Box::new(encode)).await?;
        let garbled = |source| LinkError::Garbled { to: self.address.clone(), api, source };
        decode_response(frame, api, version).map(|(_, body)| body).map_err(garbled)
    }

    async fn exchange(
        &self,
        api: ApiKey,
        ours: VersionRange,
        patience: Duration,
        encode: Encode,
    ) -> Result<(Bytes, i16), LinkError> {
        let ended = || LinkError::Ended { to: self.address.clone() };
        let (reply, answer) = oneshot::channel();
        let traffic = self.traffic.clone();
        let encode: Encode = Box::new(move |version, correlation_id| {
            let frame = encode(version, correlation_id)?;
            frame.iter().for_each(|frame| traffic.asked(frame.len));
            Ok(frame)
        });
        let outgoing = Outgoing { api, ours, encode, asked: barnabas_clock::now(), patience, reply };
        self.sender.send(outgoing).await.map_err(|_| ended())?;
        let answered = answer.await.map_err(|_| ended())?;
        answered.iter().for_each(|(frame, _)| self.traffic.answered(frame.len()));
        answered
    }
}

fn header(api: ApiKey, version: i16, correlation_id: i32, client_id: Option<Str>) -> RequestHeader {
    RequestHeader {
        request_api_key: api.number(),
        request_api_version: version,
        correlation_id,
        client_id,
        ..RequestHeader::default()
    }
}
