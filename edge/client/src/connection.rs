//! One connection to one node: which versions it speaks, who logs in, one request out, one answer in.
//!
//! A login that expires is renewed on the connection before the next request (KIP-368).

mod login;
mod progress;

pub use progress::Progress;

use crate::security::tls;
use crate::{ClientError, Security};
use barnabas_base::Map;
use barnabas_net::{Budget, FrameError, FrameReader, FrameWriter, Stream};
use barnabas_wire::messages::{ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader};
use barnabas_wire::{ApiKey, Message, Reader, Request, Str, Struct, VersionRange, Writer};
use bytes::{BufMut, Bytes, BytesMut};
use progress::Step;
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// The largest answer that is taken: a fetch may bring the broker's `fetch.max.bytes` and one oversized batch.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What an answer may take in memory once it is read: a million topics come in less than a tenth of their size here.
const ANSWER_MEMORY_MAX: usize = 4 * 1024 * 1024 * 1024;

/// The share of a login's lifetime after which it is renewed. Kafka's clients choose one from 0.85 to 0.95.
const RENEWAL: f64 = 0.85;
/// The first bytes of a TLS alert, 0x15 0x03, as the upper half of a frame's length (RFC 8446, 5.1).
const TLS_ALERT: i32 = 0x1503;

/// How a connection is opened.
#[derive(Debug, Clone)]
pub struct Dial {
    pub client_id: String,
    /// For connecting, and for each answer.
    pub timeout: Duration,
    /// The socket's buffers for sending and receiving; −1: what the system gives.
    pub buffers: (i32, i32),
    pub security: Security,
    /// How far it has come: the same for all connections of a client.
    pub progress: Progress,
}

/// A connection whose versions are known, and whose user is logged in where its security says so.
#[derive(Debug)]
pub struct Connection {
    address: String,
    stream: Stream,
    reader: FrameReader,
    writer: FrameWriter,
    client_id: Str,
    correlation_id: i32,
    versions: Map<i16, VersionRange>,
    timeout: Duration,
    security: Security,
    /// When the login is to be renewed.
    renew_at: Option<Instant>,
    /// Answers so far. A node that closes the connection early may expect another protocol.
    answers: u64,
    progress: Progress,
}

impl Connection {
    /// Connects to `address` (`host:port`) without protection and asks which versions it speaks.
    ///
    /// # Errors
    /// As [`Self::open_with`].
    pub async fn open(address: &str, client_id: &str, timeout: Duration) -> Result<Self, ClientError> {
        let (security, progress) = (Security::default(), Progress::default());
        let client_id = client_id.to_owned();
        Self::open_with(address, &Dial { client_id, timeout, buffers: (-1, -1), security, progress }).await
    }

    /// Connects to `address` (`host:port`), asks which versions it speaks, and logs in.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if the connect is refused or the name is unknown; [`ClientError::Tls`] if a
    /// certificate is refused; [`ClientError::Login`] if the node refuses the login; any error of the first request.
    pub async fn open_with(address: &str, dial: &Dial) -> Result<Self, ClientError> {
        let opened = Self::open_unlogged(address, dial).await;
        if opened.is_err() {
            dial.progress.ended();
        }
        let mut connection = opened?;
        connection.log_in().await?;
        Ok(connection)
    }

    async fn open_unlogged(address: &str, dial: &Dial) -> Result<Self, ClientError> {
        dial.progress.enter(address, Step::Connecting);
        let tcp = connect(address, dial).await?;
        dial.progress.enter(address, Step::Greeting);
        let stream = greeted(tcp, address, dial).await?;
        dial.progress.enter(address, Step::Asking);
        let budget = Budget::new(2 * ANSWER_BYTES_MAX as u64);
        let mut connection = Self {
            address: address.to_owned(),
            stream,
            reader: FrameReader::new(budget.claim(None), ANSWER_BYTES_MAX),
            writer: FrameWriter::default(),
            client_id: dial.client_id.as_str().into(),
            correlation_id: 0,
            versions: Map::default(),
            timeout: dial.timeout,
            security: dial.security.clone(),
            renew_at: None,
            answers: 0,
            progress: dial.progress.clone(),
        };
        connection.ask_versions().await?;
        Ok(connection)
    }

    /// Logs in, or renews the login.
    async fn log_in(&mut self) -> Result<(), ClientError> {
        let security = self.security.clone();
        let Some(login) = security.login() else { return Ok(()) };
        let lifetime = self.log_in_as(login).await?;
        self.renew_at = lifetime.map(|lifetime| Instant::now() + lifetime.mul_f64(RENEWAL));
        Ok(())
    }

    async fn renew(&mut self) -> Result<(), ClientError> {
        if self.renew_at.is_some_and(|at| at <= Instant::now()) { self.log_in().await } else { Ok(()) }
    }

    /// When the login is to be renewed; `None`: it lasts as long as the connection.
    pub(crate) fn renew_at(&self) -> Option<Instant> {
        self.renew_at
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The socket, for callers that pipeline requests on it. No response is outstanding.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    /// Starts low: every broker answers version 0, and a newer one would only tell its name.
    async fn ask_versions(&mut self) -> Result<(), ClientError> {
        let answer: ApiVersionsResponse = self.exchange(&ApiVersionsRequest::default(), 0).await?;
        crate::error::check(format!("asking {} for its versions", self.address), answer.error_code, None)?;
        let ranges = answer
            .api_keys
            .iter()
            .map(|api| (api.api_key, VersionRange::new(api.min_version, api.max_version)));
        self.versions = ranges.collect();
        Ok(())
    }

    /// The newest version of an API that both sides speak.
    pub fn version_of(&self, key: ApiKey, ours: VersionRange) -> Option<i16> {
        let theirs = self.versions.get(&key.number())?;
        let newest = ours.max.min(theirs.max);
        (newest >= ours.min.max(theirs.min)).then_some(newest)
    }

    /// Sends `request` in the newest version that both sides speak and waits for its answer.
    ///
    /// # Errors
    /// The connection is of no use any more after any of them but [`ClientError::Unsupported`] and
    /// [`ClientError::Request`].
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let version = self.version_for::<R>()?;
        self.call_at(request, version).await
    }

    /// The same for a request that looks different from version to version.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_with<R: Request>(
        &mut self,
        make: impl Fn(i16) -> R,
    ) -> Result<R::Response, ClientError> {
        let version = self.version_for::<R>()?;
        self.call_at(&make(version), version).await
    }

    /// The version that [`Self::call`] would use.
    ///
    /// # Errors
    /// [`ClientError::Unsupported`] where there is none.
    pub fn version_for<R: Request>(&self) -> Result<i16, ClientError> {
        let unsupported = || ClientError::Unsupported { address: self.address.clone(), api: R::KEY.name() };
        self.version_of(R::KEY, R::VERSIONS).ok_or_else(unsupported)
    }

    /// The same in a version that the caller names, and perhaps a longer wait than usual on top.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_at<R: Request>(
        &mut self,
        request: &R,
        version: i16,
    ) -> Result<R::Response, ClientError> {
        self.renew().await?;
        self.exchange(request, version).await
    }

    /// The same for what a login consists of.
    async fn exchange<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, ClientError> {
        self.send(request, version).await?;
        let frame = self.receive(Duration::ZERO).await?;
        self.read_answer::<R>(frame, version)
    }

    /// [`Self::call`] for a request that the broker may hold back for `patience`.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_patiently<R: Request>(
        &mut self,
        request: &R,
        patience: Duration,
    ) -> Result<R::Response, ClientError> {
        let version = self.version_for::<R>()?;
        self.renew().await?;
        self.send(request, version).await?;
        let frame = self.receive(patience).await?;
        self.read_answer::<R>(frame, version)
    }

    /// Sends a request that has no response (`acks=0`).
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn send_only<R: Request>(&mut self, request: &R) -> Result<(), ClientError> {
        let version = self.version_for::<R>()?;
        self.renew().await?;
        self.send(request, version).await
    }

    async fn send<R: Request>(&mut self, request: &R, version: i16) -> Result<(), ClientError> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let header = RequestHeader {
            request_api_key: R::KEY.number(),
            request_api_version: version,
            correlation_id: self.correlation_id,
            client_id: Some(self.client_id.clone()),
            ..Default::default()
        };
        let mut writer = Writer::with_capacity(256);
        header.write(&mut writer, R::KEY.request_header_version(version))?;
        request.encode(&mut writer, version)?;
        let frame = writer.finish();
        let mut length = BytesMut::with_capacity(4);
        length.put_i32(frame.len as i32);
        self.writer.queue(std::iter::once(length.freeze()).chain(frame.segments));
        let (_, stream) = self.stream.split();
        match tokio::time::timeout(self.timeout, self.writer.flush(&stream)).await {
            Ok(sent) => sent.map(drop).map_err(|error| self.lost(error)),
            Err(_) => Err(self.lost("it takes no more bytes")),
        }
    }

    async fn receive(&mut self, patience: Duration) -> Result<Bytes, ClientError> {
        let (mut stream, _) = self.stream.split();
        match tokio::time::timeout(self.timeout + patience, self.reader.next(&mut stream)).await {
            Ok(Ok(Some((frame, _claim)))) => {
                if self.answers == 0 {
                    self.progress.answered();
                }
                self.answers += 1;
                Ok(frame)
            }
            Ok(Ok(None)) => Err(self.lost(format!("the node closed it{}", self.suspicion()))),
            Ok(Err(FrameError::TooLarge { length, .. })) if length >> 16 == TLS_ALERT => {
                let protocol = self.security.protocol().name();
                let why = format!(
                    "its listener speaks TLS, and security.protocol is {protocol}. Expected SSL or SASL_SSL"
                );
                Err(ClientError::Login { address: self.address.clone(), why })
            }
            // With TLS 1.3 a node refuses a client's certificate when the client's own side is done.
            Ok(Err(FrameError::Io(error))) if error.kind() == ErrorKind::InvalidData => {
                Err(ClientError::Tls { address: self.address.clone(), why: error.to_string() })
            }
            Ok(Err(error)) => Err(self.lost(format!("{error}{}", self.suspicion()))),
            Err(_) => {
                Err(self.lost(format!("no answer within {} ms", (self.timeout + patience).as_millis())))
            }
        }
    }

    /// What may be behind it that a node closes the connection at the first requests.
    fn suspicion(&self) -> &'static str {
        let has_tls = self.security.protocol().has_tls();
        let closes_all = self.answers == 0 && self.progress.closed();
        match (self.answers, has_tls, self.security.protocol().has_sasl()) {
            (0, false, false) if closes_all => {
                ". It has closed three connections in a row at the first request: its listener expects TLS or a login (security.protocol=SSL, \
                 SASL_SSL or SASL_PLAINTEXT), refuses this address, or is no listener of Kafka's protocol"
            }
            (0, false, true) if closes_all => {
                ". It has closed three connections in a row at the first request: its listener expects TLS (security.protocol=SASL_SSL), \
                 refuses this address, or is no listener of Kafka's protocol"
            }
            (0, false, _) => ". Does its listener expect TLS? That is security.protocol=SSL or SASL_SSL",
            (1, false, false) => {
                ". Does its listener expect a login? That is security.protocol=SASL_PLAINTEXT"
            }
            (1, true, false) => ". Does its listener expect a login? That is security.protocol=SASL_SSL",
            (0, true, _) => {
                ". Does its listener ask for a client certificate? That is ssl.keystore.location or ssl.keystore.key"
            }
            _ => "",
        }
    }

    fn read_answer<R: Request>(&self, frame: Bytes, version: i16) -> Result<R::Response, ClientError> {
        let garbled = |source| ClientError::Garbled { address: self.address.clone(), source };
        let mut reader = Reader::with_memory_max(frame, ANSWER_MEMORY_MAX);
        let header =
            ResponseHeader::read(&mut reader, R::KEY.response_header_version(version)).map_err(garbled)?;
        if header.correlation_id != self.correlation_id {
            return Err(
                self.lost(format!("answer {} to question {}", header.correlation_id, self.correlation_id))
            );
        }
        R::Response::decode(&mut reader, version).map_err(garbled)
    }

    fn lost(&self, why: impl std::fmt::Display) -> ClientError {
        ClientError::Lost { address: self.address.clone(), why: why.to_string() }
    }
}

/// The TLS handshake, where there is one.
async fn greeted(tcp: TcpStream, address: &str, dial: &Dial) -> Result<Stream, ClientError> {
    let lost = |why: String| ClientError::Lost { address: address.to_owned(), why };
    let greeting = Stream::greet(tcp, tls::host(address), dial.security.tls());
    match tokio::time::timeout(dial.timeout, greeting).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == ErrorKind::InvalidData => {
            Err(ClientError::Tls { address: address.to_owned(), why: error.to_string() })
        }
        Ok(Err(error)) => Err(lost(format!(
            "{error}. Does its listener have TLS? Without it security.protocol is PLAINTEXT or SASL_PLAINTEXT"
        ))),
        Err(_) => Err(lost(format!(
            "no TLS handshake within {} ms. Does its listener have TLS?",
            dial.timeout.as_millis()
        ))),
    }
}

async fn connect(address: &str, dial: &Dial) -> Result<TcpStream, ClientError> {
    let unreachable = |why: String| ClientError::Unreachable { address: address.to_owned(), why };
    let connecting = tokio::time::timeout(dial.timeout, TcpStream::connect(address));
    let stream = match connecting.await {
        Ok(connected) => connected.map_err(|error| unreachable(error.to_string()))?,
        Err(_) => return Err(unreachable(format!("no answer within {} ms", dial.timeout.as_millis()))),
    };
    stream.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
    let socket = socket2::SockRef::from(&stream);
    let (send_bytes, receive_bytes) = dial.buffers;
    if let Ok(bytes) = usize::try_from(send_bytes) {
        socket.set_send_buffer_size(bytes).map_err(|error| unreachable(error.to_string()))?;
    }
    if let Ok(bytes) = usize::try_from(receive_bytes) {
        socket.set_recv_buffer_size(bytes).map_err(|error| unreachable(error.to_string()))?;
    }
    Ok(stream)
}
