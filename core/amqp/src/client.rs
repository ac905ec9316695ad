//! A client's connection: its login, one session, and links that send or receive.
//!
//! The caller, in order: [`Client::new`]; then whenever bytes came, [`Client::receive`]; whenever
//! [`Client::deadline`] has passed, [`Client::tick`]; after each call of any method, send what
//! [`Client::take_output`] returns and drain [`Client::next_event`]. After [`Event::Ready`] links can be attached.
//! After an error the connection is of no use: send what is left in the output (it may hold a `close`) and drop it.
//!
//! Always true:
//! 1. a receiver's peer sends no more deliveries than it was granted, and no more frames than the session's
//!    window; one that does is an error
//! 2. a sender's delivery is sent only on credit, and ends in exactly one [`Event::Outcome`] or with the connection
//! 3. deliveries of a link are reported in the order in which they came
//! 4. payloads that are held here or by the caller are bounded in bytes (`client/window.rs`)
//!
//! Before and after: edge/bridge/src/session.rs drives it. Beside: server.rs, the other end.
//!
//! # Source
//! AMQP 1.0 part 2, sections 2.2, 2.4 to 2.7; part 5, section 5.3.

mod links;
mod login;
#[cfg(test)]
mod tests;
mod window;

pub use links::{Delivery, DeliveryId, Filter, LinkId, NotSent, ReceiverConfig, SenderConfig};
pub use login::Login;

use crate::frame::{Frame, FrameDecoder, HEADER_AMQP, HEADER_SASL, encode_frame};
use crate::liveness::Liveness;
use crate::performative::{Begin, Close, End, Flow, Open, Outcome, Performative, Sasl};
use crate::{AmqpError, Condition, Value};
use barnabas_base::MonotonicMs;
use bytes::{Bytes, BytesMut};
use links::Links;
use std::collections::VecDeque;
use window::Incoming;

/// The session's channel.
const CHANNEL: u16 = 0;
/// Frames that we may send, as the peer hears of them: its own window bounds them.
const OUTGOING_WINDOW: u32 = 2048;
/// The least that the standard allows as a peer's maximum.
const FRAME_BYTES_MIN: u32 = 512;

/// How to introduce ourselves, and what to bear.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    pub container_id: String,
    /// The virtual host, which the peer may need to find its tenant.
    pub hostname: Option<String>,
    pub login: Login,
    pub frame_bytes_max: u32,
    /// Of a larger message only so much is kept; [`Delivery::size_bytes`] says how large it was.
    pub message_bytes_max: usize,
    /// Of payloads that came and were not released ([`Client::release`]); one message and one frame at least.
    pub held_bytes_max: usize,
    /// The peer is taken for dead after twice this.
    pub idle_timeout_ms: u32,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            container_id: "barnabas".to_owned(),
            hostname: None,
            login: Login::Anonymous,
            frame_bytes_max: 64 * 1024,
            message_bytes_max: 4 * 1024 * 1024,
            held_bytes_max: 32 * 1024 * 1024,
            idle_timeout_ms: 30_000,
        }
    }
}

/// What the peer said of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Peer {
    pub container_id: String,
    pub product: String,
    pub version: String,
    pub capabilities: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Links can be attached.
    Ready(Peer),
    Attached(LinkId),
    /// The peer refused the link, ended it, or answered our detach (then without a reason).
    Detached(LinkId, Option<Condition>),
    Message(Delivery),
    /// A sender has more credit now.
    Credit(LinkId),
    /// What became of a delivery that was sent.
    Outcome(LinkId, DeliveryId, Outcome),
    /// The peer of a receiver says how many messages wait at its side.
    Available(LinkId, u32),
    /// The peer answered our close.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    SaslHeader,
    SaslMechanisms,
    SaslOutcome,
    AmqpHeader,
    Opening,
    Beginning,
    Ready,
    Closing,
    Ended,
}

/// The session's windows and ids, in frames.
#[derive(Debug)]
struct Session {
    incoming: Incoming,
    next_outgoing_id: u32,
    remote_window: u32,
}

#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    phase: Phase,
    decoder: FrameDecoder,
    out: BytesMut,
    events: VecDeque<Event>,
    peer: Peer,
    peer_frame_max: usize,
    session: Session,
    links: Links,
    liveness: Liveness,
    written: u64,
}

impl Client {
    /// Begins: the first bytes are in the output.
    pub fn new(config: ClientConfig, now: MonotonicMs) -> Self {
        let has_login = config.login != Login::None;
        let (header, phase) =
            if has_login { (HEADER_SASL, Phase::SaslHeader) } else { (HEADER_AMQP, Phase::AmqpHeader) };
        let frame_bytes_max = config.frame_bytes_max as usize;
        let incoming = Incoming::new(config.held_bytes_max, config.message_bytes_max, frame_bytes_max);
        Self {
            phase,
            decoder: FrameDecoder::new(frame_bytes_max),
            out: BytesMut::from(&header[..]),
            events: VecDeque::new(),
            peer: Peer::default(),
            peer_frame_max: FRAME_BYTES_MIN as usize,
            session: Session { incoming, next_outgoing_id: 0, remote_window: 0 },
            links: Links::default(),
            liveness: Liveness::new(config.idle_timeout_ms, now),
            written: 0,
            config,
        }
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
                Phase::Ended => return Ok(()),
                Phase::SaslHeader | Phase::AmqpHeader => {
                    let Some(header) = self.decoder.header() else { return Ok(()) };
                    self.take_header(header)?;
                }
                _ => {
                    let Some(frame) = self.decoder.frame()? else { return Ok(()) };
                    self.take_frame(frame)?;
                }
            }
        }
    }

    /// Tells the peer why, where it can still understand it.
    fn give_up(&mut self, error: &AmqpError) {
        let is_open = matches!(self.phase, Phase::Beginning | Phase::Ready);
        self.phase = Phase::Ended;
        if is_open && !matches!(error, AmqpError::Closed(_)) {
            let condition = match error {
                AmqpError::Decode(_) | AmqpError::FrameTooLarge { .. } => "amqp:decode-error",
                _ => "amqp:not-allowed",
            };
            let error = Some(Condition::new(condition, error.to_string()));
            self.write(&Performative::Close(Close { error }), &[]);
        }
    }

    fn take_header(&mut self, header: [u8; 8]) -> Result<(), AmqpError> {
        let is_login = self.phase == Phase::SaslHeader;
        if header != if is_login { HEADER_SASL } else { HEADER_AMQP } {
            return Err(AmqpError::Header(header));
        }
        if is_login {
            self.phase = Phase::SaslMechanisms;
            return Ok(());
        }
        self.phase = Phase::Opening;
        self.write(
            &Performative::Open(Open {
                container_id: self.config.container_id.clone(),
                hostname: self.config.hostname.clone(),
                max_frame_size: Some(self.config.frame_bytes_max),
                channel_max: Some(0),
                idle_time_out_ms: Some(self.config.idle_timeout_ms),
                properties: vec![(Value::symbol("product"), Value::string("barnabas"))],
                ..Open::default()
            }),
            &[],
        );
        Ok(())
    }

    fn take_frame(&mut self, frame: Frame) -> Result<(), AmqpError> {
        let Some(body) = frame.body else { return Ok(()) };
        match (self.phase, body) {
            (Phase::SaslMechanisms | Phase::SaslOutcome, Performative::Sasl(sasl)) => self.take_sasl(sasl),
            (Phase::Opening, Performative::Open(open)) => self.take_open(open),
            (Phase::Beginning, Performative::Begin(begin)) => {
                self.session.incoming.next_id = begin.next_outgoing_id;
                self.session.remote_window = begin.incoming_window;
                self.phase = Phase::Ready;
                self.events.push_back(Event::Ready(self.peer.clone()));
                Ok(())
            }
            (_, Performative::Close(close)) => self.take_close(close),
            (Phase::Closing, _) => Ok(()),
            (Phase::Ready | Phase::Beginning, Performative::End(end)) => {
                self.write(&Performative::End(End::default()), &[]);
                Err(AmqpError::Closed(end.error.unwrap_or_default()))
            }
            (Phase::Ready, body) => self.take_in_session(body, frame.payload),
            (_, body) => Err(AmqpError::Protocol(format!("{} came out of turn", body.name()))),
        }
    }

    fn take_sasl(&mut self, sasl: Sasl) -> Result<(), AmqpError> {
        match (self.phase, sasl) {
            (Phase::SaslMechanisms, Sasl::Mechanisms(offered)) => {
                let init = self.config.login.init(&offered, self.config.hostname.as_deref())?;
                self.phase = Phase::SaslOutcome;
                self.write(&Performative::Sasl(init), &[]);
                Ok(())
            }
            // Of the mechanisms here only EXTERNAL may be asked a second time, for the identity that it left out.
            (Phase::SaslOutcome, Sasl::Challenge(_)) => {
                self.write(&Performative::Sasl(Sasl::Response(Bytes::new())), &[]);
                Ok(())
            }
            (Phase::SaslOutcome, Sasl::Outcome(0)) => {
                self.phase = Phase::AmqpHeader;
                self.out.extend_from_slice(&HEADER_AMQP);
                Ok(())
            }
            (Phase::SaslOutcome, Sasl::Outcome(code)) => Err(AmqpError::Login(code)),
            (_, sasl) => {
                Err(AmqpError::Protocol(format!("{} came out of turn", Performative::Sasl(sasl).name())))
            }
        }
    }

    fn take_open(&mut self, open: Open) -> Result<(), AmqpError> {
        let max = open.max_frame_size.unwrap_or(u32::MAX);
        if max < FRAME_BYTES_MIN {
            return Err(AmqpError::Protocol(format!("it takes frames of {max} bytes; the least is 512")));
        }
        // Larger frames than ours would only make buffers larger.
        self.peer_frame_max = max.min(self.config.frame_bytes_max).max(FRAME_BYTES_MIN) as usize;
        self.liveness.peer_idle_ms = open.idle_time_out_ms.unwrap_or(0).into();
        let told = |name: &str| {
            let found = open.properties.iter().find(|pair| pair.0.text() == Some(name));
            found.and_then(|pair| pair.1.text()).unwrap_or_default().to_owned()
        };
        let (product, version) = (told("product"), told("version"));
        self.peer = Peer {
            container_id: open.container_id,
            product,
            version,
            capabilities: open.offered_capabilities,
        };
        self.phase = Phase::Beginning;
        let begin = Begin {
            remote_channel: None,
            next_outgoing_id: 0,
            incoming_window: self.session.incoming.left,
            outgoing_window: OUTGOING_WINDOW,
            handle_max: Some(links::HANDLE_MAX),
        };
        self.write(&Performative::Begin(begin), &[]);
        Ok(())
    }

    fn take_close(&mut self, close: Close) -> Result<(), AmqpError> {
        if self.phase == Phase::Closing {
            self.phase = Phase::Ended;
            self.events.push_back(Event::Closed);
            return Ok(());
        }
        if !matches!(self.phase, Phase::Ended) {
            self.write(&Performative::Close(Close::default()), &[]);
        }
        Err(AmqpError::Closed(close.error.unwrap_or_default()))
    }

    /// The session's part of a flow.
    fn session_flow(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.session.incoming.next_id),
            incoming_window: self.session.incoming.left,
            next_outgoing_id: self.session.next_outgoing_id,
            outgoing_window: OUTGOING_WINDOW,
            ..Flow::default()
        }
    }

    /// Asks the peer to close. [`Event::Closed`] follows, or an error.
    pub fn close(&mut self) {
        if matches!(self.phase, Phase::Beginning | Phase::Ready) {
            self.write(&Performative::Close(Close::default()), &[]);
            self.phase = Phase::Closing;
        } else if self.phase != Phase::Closing {
            self.phase = Phase::Ended;
            self.events.push_back(Event::Closed);
        }
    }

    /// When [`Self::tick`] has something to do, if nothing comes before.
    pub fn deadline(&self) -> MonotonicMs {
        self.liveness.deadline()
    }

    /// Keeps the connection alive, or finds that the peer is dead.
    ///
    /// # Errors
    /// [`AmqpError::Silent`].
    pub fn tick(&mut self, now: MonotonicMs) -> Result<(), AmqpError> {
        if let Err(silent) = self.liveness.check(now) {
            self.phase = Phase::Ended;
            return Err(silent);
        }
        let is_open = matches!(self.phase, Phase::Beginning | Phase::Ready | Phase::Closing);
        if is_open && self.liveness.must_speak(now) {
            encode_frame(&mut self.out, 0, None, &[]);
        }
        Ok(())
    }

    /// What is to be sent now. The caller sends it at `now`.
    pub fn take_output(&mut self, now: MonotonicMs) -> Bytes {
        if !self.out.is_empty() {
            self.liveness.sent(now);
        }
        self.out.split().freeze()
    }

    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Frames that were written so far, without the empty ones.
    pub fn frames_written(&self) -> u64 {
        self.written
    }

    fn write(&mut self, body: &Performative, payload: &[u8]) {
        self.written += 1;
        encode_frame(&mut self.out, CHANNEL, Some(body), payload);
    }
}
