//! The connection to one leader: connecting and connecting again, requests out, answers in, none of it waited for.
//!
//! Knows frames, correlation ids and which batches each request carries; what an answer means is decided in `mod`.
//! Everything is polled: the one task that owns the producer never sleeps inside a connection.
//!
//! Bounded: `in_flight_max` requests, each at most `max.request.size` (or one batch).

use super::PipelineConfig;
use crate::{ClientError, Connection, Dial, Progress};
use barnabas_base::BrokerId;
use barnabas_net::Stream;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ProduceRequest, ProduceResponse, RequestHeader, ResponseHeader};
use barnabas_wire::{ApiKey, Message, Reader, Request, Str, Struct, Writer};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::Future;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The largest answer to a produce request that is taken.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
const SLICES: usize = 64;

type Connecting = Pin<Box<dyn Future<Output = Result<Connection, ClientError>>>>;

/// A request that was written, or is being written.
#[derive(Debug)]
pub(super) struct Flight {
    correlation_id: i32,
    pub sent: Instant,
    /// (partition, batch)
    pub batches: Vec<(usize, u64)>,
}

/// What happened on a link.
#[derive(Debug)]
pub(super) enum Event {
    Answer(Flight, ProduceResponse),
    /// `acks=0`: the request is with the system.
    Written(Flight),
    /// The connection to this broker is gone, or could not be made, and with it these.
    Lost(BrokerId, ClientError, Vec<Flight>),
}

enum State {
    Down { until: Instant },
    Connecting(Connecting),
    Up(Box<Wire>),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Down { .. } => "Down",
            Self::Connecting(_) => "Connecting",
            Self::Up(_) => "Up",
        })
    }
}

#[derive(Debug)]
struct Wire {
    stream: Stream,
    version: i16,
    /// When the login is to be renewed. Requests overlap here, so it is renewed by a new connection.
    renew_at: Option<Instant>,
    out: VecDeque<Bytes>,
    inbox: BytesMut,
}

/// One leader.
#[derive(Debug)]
pub(super) struct Link {
    pub node: BrokerId,
    pub address: String,
    /// Partitions with something to send, in turn.
    pub ready: VecDeque<usize>,
    pub in_flight: VecDeque<Flight>,
    /// The broker asked for silence until then.
    pub muted_until: Option<Instant>,
    state: State,
    progress: Progress,
    failures: u32,
    correlation_id: i32,
    client_id: Str,
    request_timeout: Duration,
}

impl Link {
    pub fn new(node: BrokerId, address: String, config: &PipelineConfig) -> Self {
        Self {
            node,
            address,
            ready: VecDeque::new(),
            in_flight: VecDeque::new(),
            muted_until: None,
            state: State::Down { until: Instant::now() },
            progress: Progress::default(),
            failures: 0,
            correlation_id: 0,
            client_id: config.client_id.as_str().into(),
            request_timeout: config.request_timeout,
        }
    }

    /// Whether a request can be handed over now.
    pub fn has_room(&self, config: &PipelineConfig, now: Instant) -> bool {
        matches!(&self.state, State::Up(wire) if wire.renew_at.is_none_or(|at| now < at))
            && self.in_flight.len() < config.in_flight_max
            && self.muted_until.is_none_or(|until| until <= now)
    }

    /// When this link has to be looked at although no socket says so.
    pub fn timer(&self) -> Option<Instant> {
        let down = match &self.state {
            State::Down { until } if !self.ready.is_empty() => Some(*until),
            State::Up(wire) if !self.ready.is_empty() && self.in_flight.is_empty() => wire.renew_at,
            _ => None,
        };
        let oldest = self.in_flight.front().map(|flight| flight.sent + self.request_timeout);
        let muted = self.muted_until.filter(|_| !self.ready.is_empty());
        [down, oldest, muted].into_iter().flatten().min()
    }

    /// Connects, writes and reads as far as that goes without waiting.
    pub fn poll(&mut self, config: &PipelineConfig, cx: &mut Context<'_>, events: &mut Vec<Event>) {
        self.renew();
        if let State::Down { until } = self.state
            && until <= Instant::now()
            && !self.ready.is_empty()
        {
            let address = self.address.clone();
            let dial = Dial {
                client_id: config.client_id.clone(),
                timeout: config.connect_timeout,
                buffers: (config.send_buffer_bytes, config.receive_buffer_bytes),
                security: config.security.clone(),
                progress: self.progress.clone(),
            };
            self.state =
                State::Connecting(Box::pin(async move { Connection::open_with(&address, &dial).await }));
        }
        if let State::Connecting(connecting) = &mut self.state
            && let Poll::Ready(connected) = connecting.as_mut().poll(cx)
        {
            match connected.and_then(Wire::new) {
                Ok(wire) => {
                    self.failures = 0;
                    self.state = State::Up(Box::new(wire));
                }
                Err(error) => self.fail(config, error, events),
            }
        }
        if let Err(error) = self.poll_wire(cx, events) {
            self.fail(config, error, events);
        }
    }

    /// Closes a connection whose login is to be renewed, once all its requests are answered.
    fn renew(&mut self) {
        let now = Instant::now();
        if let State::Up(wire) = &self.state
            && wire.renew_at.is_some_and(|at| at <= now)
            && self.in_flight.is_empty()
            && wire.out.is_empty()
        {
            self.state = State::Down { until: now };
        }
    }

    fn poll_wire(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) -> Result<(), ClientError> {
        let State::Up(wire) = &mut self.state else { return Ok(()) };
        let lost = |why: String| ClientError::Lost { address: self.address.clone(), why };
        wire.write(cx).map_err(|error| lost(error.to_string()))?;
        if wire.out.is_empty() {
            // With acks=0 there is no response: a request is complete once it is written.
            while self.in_flight.front().is_some_and(|flight| flight.correlation_id == NO_ANSWER) {
                events.extend(self.in_flight.pop_front().map(Event::Written));
            }
        }
        while let Some(frame) = wire.read(cx).map_err(lost)? {
            let flight = self.in_flight.pop_front().ok_or_else(|| lost("an answer to nothing".to_owned()))?;
            let garbled = |source| ClientError::Garbled { address: self.address.clone(), source };
            let mut reader = Reader::new(frame);
            let header_version = ApiKey::Produce.response_header_version(wire.version);
            let header = ResponseHeader::read(&mut reader, header_version).map_err(garbled)?;
            if header.correlation_id != flight.correlation_id {
                let why = format!("answer {} to question {}", header.correlation_id, flight.correlation_id);
                self.in_flight.push_front(flight);
                return Err(lost(why));
            }
            let answer = ProduceResponse::decode(&mut reader, wire.version).map_err(garbled)?;
            if answer.throttle_time_ms > 0 {
                let pause = Duration::from_millis(answer.throttle_time_ms.unsigned_abs().into());
                self.muted_until = Some(Instant::now() + pause);
            }
            events.push(Event::Answer(flight, answer));
        }
        let oldest = self.in_flight.front();
        if oldest.is_some_and(|flight| flight.sent.elapsed() >= self.request_timeout) {
            return Err(lost(format!("no answer within {} ms", self.request_timeout.as_millis())));
        }
        Ok(())
    }

    fn fail(&mut self, config: &PipelineConfig, error: ClientError, events: &mut Vec<Event>) {
        self.failures += 1;
        let factor = 1_u32 << (self.failures - 1).min(16);
        let pause = config.reconnect_backoff.saturating_mul(factor).min(config.reconnect_backoff_max);
        self.state = State::Down { until: Instant::now() + pause };
        events.push(Event::Lost(self.node, error, self.in_flight.drain(..).collect()));
    }

    /// Hands a request over; [`Self::poll`] writes it.
    ///
    /// # Errors
    /// The request cannot be written down in the version that the broker speaks.
    pub fn send(
        &mut self,
        request: Outbound,
        config: &PipelineConfig,
        topic: &TopicName,
    ) -> Result<(), ClientError> {
        let State::Up(wire) = &mut self.state else {
            panic!("a request was handed to a link that is not up");
        };
        self.correlation_id = (self.correlation_id + 1) & i32::MAX;
        let header = RequestHeader {
            request_api_key: ApiKey::Produce.number(),
            request_api_version: wire.version,
            correlation_id: self.correlation_id,
            client_id: Some(self.client_id.clone()),
            ..Default::default()
        };
        let produce = ProduceRequest {
            acks: config.acks,
            timeout_ms: i32::try_from(config.request_timeout.as_millis()).unwrap_or(i32::MAX),
            topic_data: vec![TopicProduceData {
                name: topic.name.clone(),
                topic_id: topic.id,
                partition_data: request.data,
                ..Default::default()
            }],
            ..Default::default()
        };
        let mut writer = Writer::with_capacity(256);
        header.write(&mut writer, ApiKey::Produce.request_header_version(wire.version))?;
        produce.encode(&mut writer, wire.version)?;
        let frame = writer.finish();
        let mut length = BytesMut::with_capacity(4);
        length.put_i32(frame.len as i32);
        wire.out.push_back(length.freeze());
        wire.out.extend(frame.segments);
        let correlation_id = if config.acks == 0 { NO_ANSWER } else { self.correlation_id };
        self.in_flight.push_back(Flight { correlation_id, sent: Instant::now(), batches: request.batches });
        Ok(())
    }
}

/// The correlation id of a request without a response.
const NO_ANSWER: i32 = -1;

/// The topic as requests name it: by name up to version 12, by id from then on.
#[derive(Debug, Clone, Default)]
pub(super) struct TopicName {
    pub name: Str,
    pub id: barnabas_base::TopicId,
}

/// What a request carries.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    pub data: Vec<PartitionProduceData>,
    pub batches: Vec<(usize, u64)>,
    pub bytes: usize,
}

impl Outbound {
    pub fn push(&mut self, partition: usize, batch: u64, records: Bytes) {
        self.bytes += records.len();
        self.batches.push((partition, batch));
        self.data.push(PartitionProduceData {
            index: partition as i32,
            records: Some(records),
            ..Default::default()
        });
    }
}

impl Wire {
    fn new(connection: Connection) -> Result<Self, ClientError> {
        let version = connection.version_for::<ProduceRequest>()?;
        debug_assert_eq!(ProduceRequest::KEY, ApiKey::Produce);
        Ok(Self {
            renew_at: connection.renew_at(),
            stream: connection.into_stream(),
            version,
            out: VecDeque::new(),
            inbox: BytesMut::with_capacity(16 * 1024),
        })
    }

    fn write(&mut self, cx: &mut Context<'_>) -> std::io::Result<()> {
        while !self.out.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = self.out.len().min(SLICES);
            for (slice, bytes) in slices.iter_mut().zip(&self.out) {
                *slice = IoSlice::new(bytes);
            }
            let mut written = match Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count]) {
                Poll::Ready(Ok(0)) => return Err(std::io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => written?,
                Poll::Pending => return Ok(()),
            };
            while let Some(front) = self.out.front_mut() {
                if front.len() > written {
                    front.advance(written);
                    break;
                }
                written -= front.len();
                self.out.pop_front();
            }
        }
        // With TLS, what the socket did not take yet; the task is woken once it does.
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// The next answer that is wholly there.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<Option<Bytes>, String> {
        loop {
            if let Some(length) = self.inbox.first_chunk::<4>() {
                let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                if length > ANSWER_BYTES_MAX {
                    return Err(format!("an answer of {length} bytes"));
                }
                if self.inbox.len() >= 4 + length {
                    self.inbox.advance(4);
                    return Ok(Some(self.inbox.split_to(length).freeze()));
                }
            }
            let mut space = [0; 4 * 1024];
            let mut buffer = ReadBuf::new(&mut space);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return Ok(None),
                Poll::Ready(Err(error)) => return Err(error.to_string()),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                    return Err("the node closed it".to_owned());
                }
                Poll::Ready(Ok(())) => self.inbox.extend_from_slice(buffer.filled()),
            }
        }
    }
}
