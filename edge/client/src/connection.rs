//! One connection to one node: which versions it speaks, one request out, one answer in.

use crate::ClientError;
use barnabas_base::Map;
use barnabas_net::{Budget, FrameReader, FrameWriter};
use barnabas_wire::messages::{ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader};
use barnabas_wire::{ApiKey, Message, Reader, Request, Str, Struct, VersionRange, Writer};
use bytes::{BufMut, Bytes, BytesMut};
use std::time::Duration;
use tokio::net::TcpStream;

/// The largest answer that is taken: a fetch may bring the broker's `fetch.max.bytes` and one oversized batch.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What an answer may take in memory once it is read: a million topics come in less than a tenth of their size here.
const ANSWER_MEMORY_MAX: usize = 4 * 1024 * 1024 * 1024;

/// A connection whose versions are known.
#[derive(Debug)]
pub struct Connection {
    address: String,
    stream: TcpStream,
    reader: FrameReader,
    writer: FrameWriter,
    client_id: Str,
    correlation_id: i32,
    versions: Map<i16, VersionRange>,
    timeout: Duration,
}

impl Connection {
    /// Connects to `address` (`host:port`) and asks which versions it speaks.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if the connect is refused or the name is unknown; any error of
    /// the first request.
    pub async fn open(address: &str, client_id: &str, timeout: Duration) -> Result<Self, ClientError> {
        Self::open_with(address, client_id, timeout, (-1, -1)).await
    }

    /// [`Self::open`] with the sizes of the socket's buffers for sending and receiving; −1 is what the system gives.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        address: &str,
        client_id: &str,
        timeout: Duration,
        (send_bytes, receive_bytes): (i32, i32),
    ) -> Result<Self, ClientError> {
        let unreachable = |why: String| ClientError::Unreachable { address: address.to_owned(), why };
        let connecting = tokio::time::timeout(timeout, TcpStream::connect(address));
        let stream = match connecting.await {
            Ok(connected) => connected.map_err(|error| unreachable(error.to_string()))?,
            Err(_) => return Err(unreachable(format!("no answer within {} ms", timeout.as_millis()))),
        };
        stream.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
        let socket = socket2::SockRef::from(&stream);
        if let Ok(bytes) = usize::try_from(send_bytes) {
            socket.set_send_buffer_size(bytes).map_err(|error| unreachable(error.to_string()))?;
        }
        if let Ok(bytes) = usize::try_from(receive_bytes) {
            socket.set_recv_buffer_size(bytes).map_err(|error| unreachable(error.to_string()))?;
        }
        let budget = Budget::new(2 * ANSWER_BYTES_MAX as u64);
        let mut connection = Self {
            address: address.to_owned(),
            stream,
            reader: FrameReader::new(budget.claim(None), ANSWER_BYTES_MAX),
            writer: FrameWriter::default(),
            client_id: client_id.into(),
            correlation_id: 0,
            versions: Map::default(),
            timeout,
        };
        connection.ask_versions().await?;
        Ok(connection)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// The socket, for callers that pipeline requests on it. No response is outstanding.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Starts low: every broker answers version 0, and a newer one would only tell its name.
    async fn ask_versions(&mut self) -> Result<(), ClientError> {
        let answer: ApiVersionsResponse = self.call_at(&ApiVersionsRequest::default(), 0).await?;
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
            Ok(Ok(Some((frame, _claim)))) => Ok(frame),
            Ok(Ok(None)) => Err(self.lost("the node closed it")),
            Ok(Err(error)) => Err(self.lost(error)),
            Err(_) => {
                Err(self.lost(format!("no answer within {} ms", (self.timeout + patience).as_millis())))
            }
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
