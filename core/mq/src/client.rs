//! An application's end of a client channel (SVRCONN) as a state machine: negotiation, login, MQCONN, then calls.
//!
//! The caller, in order: [`Client::new`]; then whenever bytes came, [`Client::receive`]; whenever [`Client::deadline`]
//! has passed, [`Client::tick`]; after each call of any method, send what [`Client::take_output`] returns and drain
//! [`Client::next_event`]. After an error drop the connection: the queue manager backs out what was not committed.
//!
//! ```text
//! INITIAL_DATA → INITIAL_DATA (what the queue manager wants, until both agree)
//! USERID_DATA, CONAUTH → STATUS_DATA (only with a password)
//! MQCONN → MQCONN_REPLY, then one call at a time: MQOPEN, MQGET, MQPUT, MQPUT1, MQCMIT, MQBACK, MQCLOSE, MQDISC
//! ```
//!
//! Always true:
//! 1. one call at most has no answer; a second one is a bug of the caller
//! 2. an answer is at most [`ClientConfig::message_bytes_max`] and [`CALL_BYTES`] large
//! 3. a queue manager that sends nothing for two heartbeats ends the connection, while a call waits too
//!
//! FAP level 12 is announced: from 13 on passwords may be protected, which is not here. TLS protects them.
//!
//! Not here: several conversations, messages ahead of their call (REQUEST_MSGS), puts without an answer.
//!
//! Before and after: edge/bridge/src/session/mq.rs. The other end: server.rs.

mod application;
mod refusal;
#[cfg(test)]
mod tests;

pub use application::{Answer, Application};
pub use refusal::{Advice, Refusal};

use crate::MqError;
use crate::bytes::{Order, Reader};
use crate::call::kind;
use crate::initial::{FAP_LEVEL, at};
use crate::reason;
use crate::segment::{CLOSE, CONFIRM, ERROR, Kind};
use crate::server::Password;
use crate::structures::descriptor::Descriptor;
use crate::text::trimmed;
use application::{Hello, SEGMENT_BYTES};
use barnabas_base::MonotonicMs;
use bytes::Bytes;
use std::collections::VecDeque;

/// Beside a message's data in an answer.
const CALL_BYTES: usize = 8 * 1024;
/// INITIAL_DATA that are sent before both must agree.
const ROUNDS_MAX: u8 = 4;
/// For the whole of connecting.
const CONNECT_WITHIN_MS: u64 = 15_000;
/// Segments of a peer are at least so large: smaller ones are refused.
const SEGMENT_BYTES_MIN: usize = 512;
const HEARTBEAT_S_MAX: u32 = 999_999;

#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// `SYSTEM.DEF.SVRCONN` and the like.
    pub channel: String,
    /// Blank: any. A `*` in front: any of a group.
    pub queue_manager: String,
    /// What the queue manager shows of the connection.
    pub application: String,
    pub user: Option<(String, Password)>,
    pub message_bytes_max: usize,
    pub heartbeat_s: u32,
}

/// A message that was got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Got {
    pub md: Descriptor,
    /// With its properties in front, if it has any.
    pub data: Bytes,
    /// Of the whole message: more than `data` where that is cut.
    pub length: u32,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Completion code and reason code.
    pub codes: (u32, u32),
    pub handle: u32,
    /// Of an MQGET that brought one, also with a warning.
    pub message: Option<Got>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEvent {
    /// MQCONN's answer: the queue manager's name, or its refusal.
    Connected(Result<String, Refusal>),
    Answered(Box<Answered>),
    /// The queue manager ends the connection.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Initial,
    /// The password was sent.
    Password,
    Connecting,
    Ready,
    Ended,
}

#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    application: Application,
    phase: Phase,
    hello: Hello,
    rounds: u8,
    /// The segment of the call without an answer.
    pending: Option<u8>,
    events: VecDeque<ClientEvent>,
    started: MonotonicMs,
    heard: MonotonicMs,
    asked: bool,
}

impl Client {
    /// The first segment waits in the output.
    pub fn new(config: ClientConfig, now: MonotonicMs) -> Self {
        let hello = Hello {
            fap: FAP_LEVEL,
            channel: config.channel.clone(),
            heartbeat_s: config.heartbeat_s,
            message_bytes: u32::try_from(config.message_bytes_max).unwrap_or(u32::MAX),
            conversations: 1,
        };
        let mut application = Application::new(Order::Little);
        application.name.clone_from(&config.application);
        application.answer_bytes_max = config.message_bytes_max + CALL_BYTES;
        application.hello(Kind::Single, &hello);
        Self {
            config,
            application,
            phase: Phase::Initial,
            hello,
            rounds: 1,
            pending: None,
            events: VecDeque::new(),
            started: now,
            heard: now,
            asked: false,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Ready && self.pending.is_none()
    }

    /// The largest message that both ends take.
    pub fn message_bytes_max(&self) -> usize {
        (self.hello.message_bytes as usize).min(self.config.message_bytes_max)
    }

    /// MQOPEN of a queue by `MQOO_*`.
    pub fn open(&mut self, queue: &str, options: u32) {
        self.begin(kind::MQOPEN);
        self.application.open(queue, options);
    }

    /// MQGET by `MQGMO_*`, of a message of at most [`Self::message_bytes_max`].
    pub fn get(&mut self, handle: u32, options: u32, wait_ms: i32) {
        self.begin(kind::MQGET);
        let most = self.message_bytes_max() as u32;
        self.application.get(handle, options, wait_ms, most);
    }

    /// MQPUT by `MQPMO_*`.
    pub fn put(&mut self, handle: u32, md: &Descriptor, options: u32, data: &[u8]) {
        self.begin(kind::MQPUT);
        self.application.put(None, handle, md, options, data);
    }

    /// MQPUT1: to a queue that is not open.
    pub fn put1(&mut self, queue: &str, md: &Descriptor, options: u32, data: &[u8]) {
        self.begin(kind::MQPUT1);
        self.application.put(Some(queue), 0, md, options, data);
    }

    pub fn commit(&mut self) {
        self.begin(kind::MQCMIT);
        self.application.commit();
    }

    pub fn back_out(&mut self) {
        self.begin(kind::MQBACK);
        self.application.back_out();
    }

    pub fn close(&mut self, handle: u32) {
        self.begin(kind::MQCLOSE);
        self.application.close(handle);
    }

    /// MQDISC: commits what is not committed.
    pub fn disconnect(&mut self) {
        self.begin(kind::MQDISC);
        self.application.disconnect();
    }

    fn begin(&mut self, segment: u8) {
        assert!(self.is_ready(), "a call needs a connection whose last call was answered");
        self.pending = Some(segment);
    }

    /// Takes bytes as they came.
    ///
    /// # Errors
    /// The connection is over: [`MqError`] says why.
    pub fn receive(&mut self, bytes: &[u8], now: MonotonicMs) -> Result<(), MqError> {
        (self.heard, self.asked) = (now, false);
        self.application.receive(bytes);
        while self.phase != Phase::Ended
            && let Some(answer) = self.application.next_answer().inspect_err(|_| self.phase = Phase::Ended)?
        {
            self.take(&answer).inspect_err(|_| self.phase = Phase::Ended)?;
        }
        Ok(())
    }

    fn take(&mut self, answer: &Answer) -> Result<(), MqError> {
        let is_reply = |segment: u8| answer.segment == segment | kind::REPLY;
        match (self.phase, answer.segment) {
            (_, kind::HEARTBEAT) => {
                if answer.flags & CONFIRM != 0 {
                    self.application.heartbeat(0);
                }
            }
            (Phase::Initial, kind::INITIAL_DATA) => self.take_initial(answer)?,
            (_, kind::STATUS_DATA) => return self.take_status(answer),
            (Phase::Connecting, _) if is_reply(kind::MQCONN) => self.take_connected(answer),
            (Phase::Ready, segment) if self.pending.is_some_and(is_reply) => {
                self.pending = None;
                let message = if segment == kind::MQGET | kind::REPLY { self.got(answer)? } else { None };
                let (codes, handle) = (answer.codes, answer.handle);
                let answered = Answered { codes, handle, message };
                self.events.push_back(ClientEvent::Answered(Box::new(answered)));
            }
            // Changes of state that nothing here depends on.
            (_, kind::NOTIFICATION) => {}
            (phase, segment) => {
                return Err(MqError::protocol(format!("segment {segment:#x} while the client is {phase:?}")));
            }
        }
        Ok(())
    }

    fn take_initial(&mut self, answer: &Answer) -> Result<(), MqError> {
        let body = &answer.body;
        if !body.starts_with(b"ID  ") || body.len() < at::CONVERSATIONS + 4 {
            return Err(MqError::protocol("an INITIAL_DATA that is none of a queue manager since IBM MQ 7"));
        }
        let field = |at: usize| Reader::new(&body[at..], answer.order).u32().unwrap_or(0);
        let segment_bytes = field(at::SEGMENT_BYTES) as usize;
        if segment_bytes < SEGMENT_BYTES_MIN {
            return Err(MqError::protocol(format!("segments of {segment_bytes} bytes")));
        }
        self.application.segment_bytes = segment_bytes.min(SEGMENT_BYTES);
        self.hello.fap = body[at::FAP].min(FAP_LEVEL);
        self.hello.heartbeat_s = field(at::HEARTBEAT).min(HEARTBEAT_S_MAX);
        self.hello.message_bytes = self.hello.message_bytes.min(field(at::MESSAGE_BYTES));
        self.hello.conversations = field(at::CONVERSATIONS).min(1);
        // From here on segments name their conversation, where the queue manager shares connections.
        let is_shared = self.hello.conversations > 0;
        self.application.kind = if is_shared { Kind::Multiplexed } else { Kind::Single };
        if answer.flags & ERROR == 0 {
            self.log_in();
            return Ok(());
        }
        if self.rounds >= ROUNDS_MAX {
            let bits = (body[at::ERRORS], body[at::ERRORS_2]);
            let what =
                format!("it does not agree to the channel's values (bits {:#04x} {:#04x})", bits.0, bits.1);
            return Err(MqError::Refused(what));
        }
        self.rounds += 1;
        self.application.hello(self.application.kind, &self.hello);
        Ok(())
    }

    fn log_in(&mut self) {
        let user = self.config.user.clone();
        self.application.user(user.as_ref().map_or("", |(user, _)| user));
        match user {
            Some((user, password)) if !password.0.is_empty() => {
                self.application.password(&user, &password.0);
                self.phase = Phase::Password;
            }
            _ => self.connect(),
        }
    }

    fn connect(&mut self) {
        self.phase = Phase::Connecting;
        self.application.connect(&self.config.queue_manager);
    }

    /// Empty: go on. Else length 4 · a code, and the connection ends.
    fn take_status(&mut self, answer: &Answer) -> Result<(), MqError> {
        let mut reader = Reader::new(&answer.body, answer.order);
        let code = (|| {
            reader.u32()?;
            reader.u32()
        })();
        match code {
            Some(code) if code != 0 => {
                Err(MqError::Refused(format!("it ends the channel with status {code}")))
            }
            _ if self.phase == Phase::Password => {
                self.connect();
                Ok(())
            }
            _ if answer.flags & CLOSE != 0 => {
                self.phase = Phase::Ended;
                self.events.push_back(ClientEvent::Closed);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn take_connected(&mut self, answer: &Answer) {
        let connected = match answer.codes {
            (reason::CC_FAILED, why) => Err(Refusal(why)),
            _ => Ok(trimmed(answer.body.get(..48).unwrap_or_default())),
        };
        self.phase = if connected.is_ok() { Phase::Ready } else { Phase::Ended };
        self.events.push_back(ClientEvent::Connected(connected));
    }

    fn got(&self, answer: &Answer) -> Result<Option<Got>, MqError> {
        if answer.codes.0 == reason::CC_FAILED {
            return Ok(None);
        }
        let (md, length, data) =
            answer.message().ok_or_else(|| MqError::protocol("an answer to MQGET without a message"))?;
        Ok(Some(Got { md, data, length }))
    }

    fn heartbeat_ms(&self) -> u64 {
        // 0: the channel has none. A call may then wait as long as the network does.
        u64::from(if self.hello.heartbeat_s == 0 { HEARTBEAT_S_MAX } else { self.hello.heartbeat_s }) * 1000
    }

    /// When [`Self::tick`] has something to do, if nothing comes before.
    pub fn deadline(&self) -> MonotonicMs {
        if !matches!(self.phase, Phase::Ready) {
            return MonotonicMs(self.started.0 + CONNECT_WITHIN_MS);
        }
        MonotonicMs(self.heard.0 + if self.asked { 2 } else { 1 } * self.heartbeat_ms())
    }

    /// Asks a silent queue manager for a sign of life, and finds that it is dead.
    ///
    /// # Errors
    /// [`MqError::Silent`].
    pub fn tick(&mut self, now: MonotonicMs) -> Result<(), MqError> {
        if now < self.deadline() {
            return Ok(());
        }
        if self.phase != Phase::Ready || self.asked {
            self.phase = Phase::Ended;
            return Err(MqError::Silent((now.0 - self.heard.0) / 1000));
        }
        self.asked = true;
        self.application.heartbeat(CONFIRM);
        Ok(())
    }

    pub fn take_output(&mut self) -> Bytes {
        self.application.take_output()
    }

    pub fn next_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }
}
