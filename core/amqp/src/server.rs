//! A server's connection: the login's frames, sessions, and links that peers attach.
//!
//! The caller, in order: [`Server::new`]; then whenever bytes came, [`Server::receive`]; whenever
//! [`Server::deadline`] has passed, [`Server::tick`]; after each call of any method, send what
//! [`Server::take_output`] returns and drain [`Server::next_event`]. While [`Server::wants_input`] says no, the socket
//! is not read. After an error send what is left in the output (it may hold a `close`) and drop the connection.
//!
//! What a login's bytes mean and what an address is decides the caller: [`ServerEvent::Login`] is answered by
//! [`Server::challenge`] or [`Server::end_login`], [`ServerEvent::Attach`] by [`Server::accept`] or [`Server::refuse`].
//!
//! Always true:
//! 1. a peer sends no more deliveries than it was granted, and no more frames than its session's window; one that
//!    does is an error
//! 2. a delivery that was sent ends in exactly one [`ServerEvent::Outcome`], or with its link. Before it one may come
//!    that belongs to a transaction and is not settled
//! 3. deliveries of a link are reported in the order in which they came
//! 4. payloads that are held here or by the caller are less than [`ServerConfig::held_bytes_max`] and what one read
//!    brings: past that the socket is not read. A peer that holds up its own messages that way, with parts of many that
//!    it does not end, is an error
//!
//! Before and after: edge/queues/src/connection.rs drives it. Beside: client.rs, the other end.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.2, 2.4 to 2.7; part 5, section 5.3.

mod incoming;
mod links;
mod outgoing;
mod sessions;
mod state;
#[cfg(test)]
mod tests;

pub use incoming::Arrived;
pub use state::{DeliveryKey, PeerLink};

use crate::frame::{Frame, FrameDecoder, HEADER_AMQP, HEADER_SASL, encode_frame};
use crate::liveness::Liveness;
use crate::performative::{Attach, Close, Open, Outcome, Performative, Sasl};
use crate::{AmqpError, Condition, Value};
use barnabas_base::MonotonicMs;
use bytes::{Bytes, BytesMut};
use state::Sessions;
use std::collections::VecDeque;

/// The largest frame of a login. The standard says 512; some peers send more.
const LOGIN_FRAME_BYTES_MAX: usize = 4096;
/// The least that the standard allows as a peer's maximum.
const FRAME_BYTES_MIN: u32 = 512;

/// What is announced, and what is borne.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub container_id: String,
    /// SASL mechanisms that are offered.
    pub mechanisms: Vec<String>,
    /// Whether a peer may begin without SASL.
    pub needs_login: bool,
    pub frame_bytes_max: u32,
    /// A larger message ends its link.
    pub message_bytes_max: usize,
    /// Of payloads that came and were not released ([`Server::release`]); two messages at least.
    pub held_bytes_max: usize,
    /// The peer is taken for dead after twice this.
    pub idle_timeout_ms: u32,
    pub sessions_max: u16,
    /// Of all sessions.
    pub links_max: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            container_id: "barnabas".to_owned(),
            mechanisms: Vec::new(),
            needs_login: false,
            frame_bytes_max: 64 * 1024,
            message_bytes_max: 1024 * 1024,
            held_bytes_max: 4 * 1024 * 1024,
            idle_timeout_ms: 30_000,
            sessions_max: 64,
            links_max: 256,
        }
    }
}

/// What a peer says in its login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    Init { mechanism: String, response: Option<Bytes> },
    Response(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    Login(LoginStep),
    /// Sessions and links can follow.
    Opened {
        container_id: String,
    },
    /// A peer attaches a link. In `attach`, `is_receiver` is the peer's role.
    Attach(PeerLink, Box<Attach>),
    Message(Arrived),
    /// The credit of a link that the peer receives on has changed, or its drain.
    Credit(PeerLink),
    /// What became of a delivery that was sent. Without `is_settled` the peer waits for [`Server::conclude`]. One with
    /// [`Outcome::Transactional`] and not settled is not over: another may follow, after [`Server::reopen`] one in a
    /// transaction too.
    Outcome {
        link: PeerLink,
        id: DeliveryKey,
        outcome: Outcome,
        is_settled: bool,
    },
    /// The link is gone: the peer ended it, its session, or answered a detach.
    Detached(PeerLink),
    /// The peer closed the connection, and was answered.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Header,
    SaslInit,
    /// The caller has the peer's words.
    SaslDeciding,
    SaslResponse,
    AmqpHeader,
    Opening,
    Ready,
    Closing,
    Ended,
}

#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    phase: Phase,
    decoder: FrameDecoder,
    out: BytesMut,
    events: VecDeque<ServerEvent>,
    peer_frame_max: usize,
    sessions: Sessions,
    held_bytes: usize,
    liveness: Liveness,
}

impl Server {
    /// Waits for the peer's first bytes.
    pub fn new(config: ServerConfig, now: MonotonicMs) -> Self {
        Self {
            phase: Phase::Header,
            decoder: FrameDecoder::new(LOGIN_FRAME_BYTES_MAX),
            out: BytesMut::new(),
            events: VecDeque::new(),
            peer_frame_max: FRAME_BYTES_MIN as usize,
            sessions: Sessions::default(),
            held_bytes: 0,
            liveness: Liveness::new(config.idle_timeout_ms, now),
            config,
        }
    }

    /// Whether the socket is to be read: not while the caller judges a login, and not while enough payloads are held.
    pub fn wants_input(&self) -> bool {
        !matches!(self.phase, Phase::SaslDeciding | Phase::Ended) && self.held_bytes < self.held_bytes_max()
    }

    fn held_bytes_max(&self) -> usize {
        self.config.held_bytes_max.max(2 * self.config.message_bytes_max)
    }

    /// Whether the peer has opened the connection and neither side has ended it.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Takes bytes as they came.
    ///
    /// # Errors
    /// The connection is over: [`AmqpError`] says why.
    pub fn receive(&mut self, bytes: &[u8], now: MonotonicMs) -> Result<(), AmqpError> {
        self.liveness.heard(now);
        self.decoder.push(bytes);
        let taken = self.take_frames();
        if let Err(error) = &taken {
            self.give_up(error);
        }
        taken
    }

    fn take_frames(&mut self) -> Result<(), AmqpError> {
        loop {
            match self.phase {
                Phase::Ended | Phase::SaslDeciding => return Ok(()),
                Phase::Header | Phase::AmqpHeader => {
                    let Some(header) = self.decoder.header() else { return Ok(()) };
                    self.take_header(header)?;
                }
                _ => {
                    let Some(frame) = self.decoder.frame()? else { return self.check_held() };
                    self.take_frame(frame)?;
                }
            }
        }
    }

    /// Whole messages are released by the caller. Parts alone never are.
    fn check_held(&self) -> Result<(), AmqpError> {
        if self.sessions.partial_bytes() < self.held_bytes_max() {
            return Ok(());
        }
        Err(AmqpError::Protocol("it sent parts of too many messages and ended none".to_owned()))
    }

    /// Tells the peer why, where it can still understand it.
    fn give_up(&mut self, error: &AmqpError) {
        let is_open = matches!(self.phase, Phase::Opening | Phase::Ready);
        self.phase = Phase::Ended;
        if is_open {
            let condition = match error {
                AmqpError::Decode(_) => "amqp:decode-error",
                AmqpError::FrameTooLarge { .. } => "amqp:connection:framing-error",
                _ => "amqp:not-allowed",
            };
            self.write_close(Some(Condition::new(condition, error.to_string())));
        }
    }

    /// A peer that begins with another protocol gets the header of the one that is spoken here.
    fn take_header(&mut self, header: [u8; 8]) -> Result<(), AmqpError> {
        let may_log_in = self.phase == Phase::Header;
        match header {
            HEADER_SASL if may_log_in => {
                self.out.extend_from_slice(&HEADER_SASL);
                self.phase = Phase::SaslInit;
                let mechanisms = self.config.mechanisms.clone();
                self.write(0, &Performative::Sasl(Sasl::Mechanisms(mechanisms)), &[]);
                Ok(())
            }
            HEADER_AMQP if !may_log_in || !self.config.needs_login => {
                self.out.extend_from_slice(&HEADER_AMQP);
                self.phase = Phase::Opening;
                self.decoder.set_frame_bytes_max(self.config.frame_bytes_max as usize);
                Ok(())
            }
            other => {
                self.phase = Phase::Ended;
                let ours = if self.config.needs_login { HEADER_SASL } else { HEADER_AMQP };
                self.out.extend_from_slice(&ours);
                Err(AmqpError::Header(other))
            }
        }
    }

    fn take_frame(&mut self, frame: Frame) -> Result<(), AmqpError> {
        let Some(body) = frame.body else { return Ok(()) };
        match (self.phase, body) {
            (Phase::SaslInit, Performative::Sasl(Sasl::Init { mechanism, response, .. })) => {
                self.phase = Phase::SaslDeciding;
                self.events.push_back(ServerEvent::Login(LoginStep::Init { mechanism, response }));
                Ok(())
            }
            (Phase::SaslResponse, Performative::Sasl(Sasl::Response(bytes))) => {
                self.phase = Phase::SaslDeciding;
                self.events.push_back(ServerEvent::Login(LoginStep::Response(bytes)));
                Ok(())
            }
            (Phase::Opening, Performative::Open(open)) => self.take_open(open),
            (_, Performative::Close(_)) => {
                self.take_close();
                Ok(())
            }
            (Phase::Closing, _) => Ok(()),
            (Phase::Ready, body) => self.take_in_session(frame.channel, body, frame.payload),
            (_, body) => Err(AmqpError::Protocol(format!("{} came out of turn", body.name()))),
        }
    }

    /// What the peer is to answer next in its login.
    pub fn challenge(&mut self, bytes: Bytes) {
        if self.phase == Phase::SaslDeciding {
            self.phase = Phase::SaslResponse;
            self.write(0, &Performative::Sasl(Sasl::Challenge(bytes)), &[]);
        }
    }

    /// Ends the login. A code of SASL's outcomes: 0 lets the peer in, 1 is a wrong user or password, 3 and 4 are
    /// errors on this side that last or pass. After any but 0 the connection is over.
    ///
    /// # Errors
    /// As [`Self::receive`]: what the peer sent ahead is taken now.
    pub fn end_login(&mut self, code: u8, now: MonotonicMs) -> Result<(), AmqpError> {
        if self.phase != Phase::SaslDeciding {
            return Ok(());
        }
        self.write(0, &Performative::Sasl(Sasl::Outcome(code)), &[]);
        if code != 0 {
            self.phase = Phase::Ended;
            return Err(AmqpError::Login(code));
        }
        self.phase = Phase::AmqpHeader;
        self.receive(&[], now)
    }

    fn take_open(&mut self, open: Open) -> Result<(), AmqpError> {
        let max = open.max_frame_size.unwrap_or(u32::MAX);
        if max < FRAME_BYTES_MIN {
            return Err(AmqpError::Protocol(format!("it takes frames of {max} bytes; the least is 512")));
        }
        // Larger frames than ours would only make buffers larger.
        self.peer_frame_max = max.min(self.config.frame_bytes_max).max(FRAME_BYTES_MIN) as usize;
        self.liveness.peer_idle_ms = open.idle_time_out_ms.unwrap_or(0).into();
        self.phase = Phase::Ready;
        let ours = Open {
            container_id: self.config.container_id.clone(),
            hostname: None,
            max_frame_size: Some(self.config.frame_bytes_max),
            channel_max: Some(self.config.sessions_max.saturating_sub(1)),
            idle_time_out_ms: Some(self.config.idle_timeout_ms),
            offered_capabilities: Vec::new(),
            properties: vec![(Value::symbol("product"), Value::string("barnabas"))],
        };
        self.write(0, &Performative::Open(ours), &[]);
        self.events.push_back(ServerEvent::Opened { container_id: open.container_id });
        Ok(())
    }

    fn take_close(&mut self) {
        if self.phase != Phase::Closing {
            self.write_close(None);
        }
        self.phase = Phase::Ended;
        self.events.push_back(ServerEvent::Closed);
    }

    /// Ends the connection from this side. [`ServerEvent::Closed`] follows when the peer has answered.
    pub fn close(&mut self, error: Condition) {
        if self.phase == Phase::Ready {
            self.write_close(Some(error));
            self.phase = Phase::Closing;
        } else {
            self.phase = Phase::Ended;
        }
    }

    fn write_close(&mut self, error: Option<Condition>) {
        self.write(0, &Performative::Close(Close { error }), &[]);
    }

    /// When [`Self::tick`] has something to do, if nothing comes before.
    pub fn deadline(&self) -> MonotonicMs {
        self.liveness.deadline()
    }

    /// Keeps the connection alive, or finds that the peer is dead. A peer that is not read is not taken for dead.
    ///
    /// # Errors
    /// [`AmqpError::Silent`].
    pub fn tick(&mut self, now: MonotonicMs) -> Result<(), AmqpError> {
        if !self.wants_input() {
            self.liveness.heard(now);
        }
        if let Err(silent) = self.liveness.check(now) {
            if self.phase == Phase::Ready {
                self.write_close(Some(Condition::new("amqp:resource-limit-exceeded", silent.to_string())));
            }
            self.phase = Phase::Ended;
            return Err(silent);
        }
        let is_open = matches!(self.phase, Phase::Ready | Phase::Closing);
        if is_open && self.liveness.must_speak(now) {
            encode_frame(&mut self.out, 0, None, &[]);
        }
        Ok(())
    }

    /// Bytes that wait for [`Self::take_output`].
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    /// What is to be sent now. The caller sends it at `now`.
    pub fn take_output(&mut self, now: MonotonicMs) -> Bytes {
        if !self.out.is_empty() {
            self.liveness.sent(now);
        }
        self.out.split().freeze()
    }

    pub fn next_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    fn write(&mut self, channel: u16, body: &Performative, payload: &[u8]) {
        encode_frame(&mut self.out, channel, Some(body), payload);
    }
}
