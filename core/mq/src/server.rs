//! A queue manager's end of a client channel: negotiation, logins, conversations and their calls.
//!
//! The caller, in order: [`Server::new`]; then whenever bytes came, [`Server::receive`]; whenever
//! [`Server::deadline`] has passed, [`Server::tick`]; after each call of any method, send what
//! [`Server::take_output`] returns and drain [`Server::next_event`]. While [`Server::wants_input`] says no, the socket
//! is not read. After an error send what is left in the output and drop the connection.
//!
//! Who a user is and what a call does decides the caller: [`ServerEvent::Connect`] is answered by
//! [`Server::connected`] or [`Server::refuse`], [`ServerEvent::Call`] by [`Server::reply`], or by [`Server::dismiss`]
//! where the client waits for nothing.
//!
//! Always true:
//! 1. a conversation has calls only after its connect was answered with success
//! 2. calls of a conversation are reported in the order in which they came, and each is answered in the byte order in
//!    which it came
//! 3. bytes of calls without an answer are less than [`ServerConfig::held_bytes_max`] and what one read brings; so are
//!    parts of calls
//!
//! Before and after: edge/mq-queues/src/connection.rs drives it. The other end: client.rs.

mod connecting;
#[cfg(test)]
mod tests;

pub use connecting::{Connect, Password};

use crate::MqError;
use crate::bytes::{Order, Writer};
use crate::call::{self, Call, kind};
use crate::reason;
use crate::reply::{self, Notice, Reply, Streamed};
use crate::segment::{CONFIRM, FIRST, Header, Kind, LAST, Segments, write_segment, write_segments};
use barnabas_base::MonotonicMs;
use bytes::{Bytes, BytesMut};
use connecting::{Negotiated, Phase};
use std::collections::{BTreeMap, VecDeque};

/// Before the first connect.
const LOGIN_SEGMENT_BYTES_MAX: usize = 4096;
/// What clients may send as one segment: they announce less than 32 KiB.
const SEGMENT_BYTES_MAX: usize = 64 * 1024;
/// Beside a message's data in its call.
const CALL_BYTES: usize = 8 * 1024;
/// Calls of a connection without an answer: clients send puts ahead.
const CALLS_MAX: usize = 256;

/// The number of a conversation: one `MQHCONN` of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConversationId(pub u32);

/// What is announced, and what is borne.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub queue_manager: String,
    /// `MQCA_Q_MGR_IDENTIFIER`: clients share a connection where it is the same.
    pub identifier: String,
    pub message_bytes_max: usize,
    pub held_bytes_max: usize,
    pub conversations_max: u32,
    /// Between two signs of life, in seconds.
    pub heartbeat_s: u32,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            queue_manager: "BARNABAS".to_owned(),
            identifier: "BARNABAS".to_owned(),
            message_bytes_max: 4 * 1024 * 1024,
            held_bytes_max: 8 * 1024 * 1024,
            conversations_max: 10,
            heartbeat_s: 60,
        }
    }
}

/// What an answer needs to know of its call.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    conversation: u32,
    header: Header,
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum ServerEvent {
    Connect(ConversationId, Ticket, Box<Connect>),
    Call(ConversationId, Ticket, Box<Call>),
    /// The client ended the conversation without MQDISC.
    Ended(ConversationId),
    /// The client ended the connection.
    Closed,
}

#[derive(Debug, Default)]
struct Conversation {
    connecting: connecting::Step,
    /// Segments of a call whose last one has not come.
    partial: Option<(Header, BytesMut)>,
    held_bytes: usize,
    calls: usize,
}

#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    phase: Phase,
    segments: Segments,
    out: BytesMut,
    events: VecDeque<ServerEvent>,
    conversations: BTreeMap<u32, Conversation>,
    negotiated: Negotiated,
    heard: MonotonicMs,
    asked: bool,
}

impl Server {
    pub fn new(config: ServerConfig, now: MonotonicMs) -> Self {
        Self {
            config,
            phase: Phase::Initial,
            segments: Segments::default(),
            out: BytesMut::new(),
            events: VecDeque::new(),
            conversations: BTreeMap::new(),
            negotiated: Negotiated::default(),
            heard: now,
            asked: false,
        }
    }

    /// Whether the socket is to be read.
    pub fn wants_input(&self) -> bool {
        let held: usize = self.conversations.values().map(Conversation::bytes).sum();
        let calls: usize = self.conversations.values().map(|conversation| conversation.calls).sum();
        self.phase != Phase::Ended && held < self.held_bytes_max() && calls < CALLS_MAX
    }

    fn held_bytes_max(&self) -> usize {
        self.config.held_bytes_max.max(2 * self.config.message_bytes_max)
    }

    /// Whether a conversation was let in.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Ready
    }

    /// Takes bytes as they came.
    ///
    /// # Errors
    /// The connection is over: [`MqError`] says why.
    pub fn receive(&mut self, bytes: &[u8], now: MonotonicMs) -> Result<(), MqError> {
        (self.heard, self.asked) = (now, false);
        self.segments.push(bytes);
        let taken = self.take_segments();
        if taken.is_err() {
            self.end();
        }
        taken
    }

    fn take_segments(&mut self) -> Result<(), MqError> {
        while self.phase != Phase::Ended {
            let most = if self.is_open() { SEGMENT_BYTES_MAX } else { LOGIN_SEGMENT_BYTES_MAX };
            let Some((header, body)) = self.segments.next(most)? else { break };
            self.take(header, body)?;
        }
        Ok(())
    }

    fn take(&mut self, header: Header, body: Bytes) -> Result<(), MqError> {
        match (header.kind, header.segment) {
            (_, kind::HEARTBEAT) => self.take_heartbeat(&header),
            (Kind::Control, kind::SOCKET_ACTION) => return self.take_socket_action(&header, &body),
            (_, kind::INITIAL_DATA) => return self.take_initial(&header, &body),
            (_, kind::STATUS_DATA) => self.closed(),
            _ if self.phase == Phase::Initial => {
                return Err(MqError::protocol(format!(
                    "segment {:#x} before any INITIAL_DATA",
                    header.segment
                )));
            }
            (_, kind::USERID_DATA) => return self.take_user(&header, &body),
            (_, kind::CONAUTH) => return self.take_password(&header, &body),
            _ => return self.take_part(header, body),
        }
        Ok(())
    }

    fn take_heartbeat(&mut self, header: &Header) {
        if header.flags & CONFIRM != 0 {
            let header = Header { flags: FIRST | LAST, ..*header };
            write_segment(&mut self.out, &header, &[]);
        }
    }

    fn closed(&mut self) {
        self.end();
        self.events.push_back(ServerEvent::Closed);
    }

    fn end(&mut self) {
        self.phase = Phase::Ended;
        self.conversations.clear();
    }

    /// One segment of a call, or all of it.
    fn take_part(&mut self, header: Header, body: Bytes) -> Result<(), MqError> {
        let most = self.config.message_bytes_max + CALL_BYTES;
        let number = header.conversation;
        let conversation = self.conversations.get_mut(&number).ok_or_else(|| {
            MqError::protocol(format!(
                "segment {:#x} of conversation {number}, which is none",
                header.segment
            ))
        })?;
        let whole = match conversation.partial.take() {
            None if header.flags & FIRST == 0 => {
                return Err(MqError::protocol("a later segment of a call that has no first one"));
            }
            None if header.flags & LAST != 0 => (header, body),
            None => {
                conversation.partial = Some((header, BytesMut::from(&body[..])));
                return Ok(());
            }
            Some((first, mut bytes)) => {
                if header.segment != first.segment || header.flags & FIRST != 0 {
                    return Err(MqError::protocol("a segment of another call inside one"));
                }
                bytes.extend_from_slice(&body);
                if bytes.len() > most {
                    return Err(MqError::SegmentTooLarge { bytes: bytes.len(), bytes_max: most });
                }
                if header.flags & LAST == 0 {
                    conversation.partial = Some((first, bytes));
                    return Ok(());
                }
                (first, bytes.freeze())
            }
        };
        self.take_call(whole.0, whole.1)
    }

    fn take_call(&mut self, header: Header, body: Bytes) -> Result<(), MqError> {
        let number = header.conversation;
        let Some(conversation) = self.conversations.get_mut(&number) else { return Ok(()) };
        let ticket = Ticket { conversation: number, header, bytes: body.len() };
        conversation.held_bytes += ticket.bytes;
        conversation.calls += 1;
        if header.segment == kind::MQCONN {
            let connect = conversation.connect(&header, &body)?;
            self.events.push_back(ServerEvent::Connect(ConversationId(number), ticket, Box::new(connect)));
            return Ok(());
        }
        if !conversation.is_connected() {
            return Err(MqError::protocol(format!("call {:#x} before the connect", header.segment)));
        }
        match call::read(&header, &body) {
            Ok(Call::Query) => self.reply(ticket, reason::NONE, 0, &Reply::Query),
            Ok(call) => {
                self.events.push_back(ServerEvent::Call(ConversationId(number), ticket, Box::new(call)));
            }
            Err(why) => self.reply(ticket, why, 0, &Reply::Bare),
        }
        Ok(())
    }

    /// Answers a call: with success, or with a reason that is a failure.
    pub fn reply(&mut self, ticket: Ticket, reason: u32, handle: u32, reply: &Reply) {
        let code = if reason == reason::NONE { reason::CC_OK } else { reason::CC_FAILED };
        self.reply_with(ticket, (code, reason), handle, reply);
    }

    /// Answers a call with a completion code and a reason.
    pub fn reply_with(&mut self, ticket: Ticket, codes: (u32, u32), handle: u32, reply: &Reply) {
        let header = ticket.header;
        if !self.free(&ticket) {
            return;
        }
        let mut body = Writer::new(header.order);
        reply::write(&mut body, reply);
        let least = if header.kind == Kind::Multiplexed { 36 } else { 28 };
        let mut whole = reply::codes(header.order, least + 16 + body.out.len(), codes, handle);
        whole.raw(&body.out);
        let header = Header { segment: header.segment | kind::REPLY, flags: 0, ccsid: CCSID, ..header };
        write_segments(&mut self.out, &header, &whole.out, self.negotiated.segment_bytes);
        if ticket.header.segment == kind::MQDISC {
            self.conversations.remove(&ticket.conversation);
        }
    }

    /// Ends a call that is not answered.
    pub fn dismiss(&mut self, ticket: Ticket) {
        self.free(&ticket);
    }

    /// `false`: the conversation is gone.
    fn free(&mut self, ticket: &Ticket) -> bool {
        let Some(conversation) = self.conversations.get_mut(&ticket.conversation) else { return false };
        conversation.held_bytes = conversation.held_bytes.saturating_sub(ticket.bytes);
        conversation.calls = conversation.calls.saturating_sub(1);
        true
    }

    /// Sends a message that was requested.
    pub fn send(&mut self, conversation: ConversationId, message: &Streamed) {
        const OWN_HEADER: usize = 24;
        if !self.conversations.contains_key(&conversation.0) {
            return;
        }
        let room = self.negotiated.segment_bytes.saturating_sub(1024).max(1024);
        let segments = message.data.len().div_ceil(room).max(1);
        for number in 0..segments {
            let piece = message.data.slice(number * room..message.data.len().min((number + 1) * room));
            let mut body = Writer::new(Order::Little);
            body.out.reserve(OWN_HEADER + piece.len());
            reply::write_streamed(&mut body, message, number as u16, piece.len());
            body.raw(&piece);
            let first = if number == 0 { FIRST } else { 0 };
            let last = if number + 1 == segments { LAST } else { 0 };
            let header = self.header(conversation, kind::ASYNC_MESSAGE, 1, first | last);
            write_segment(&mut self.out, &header, &body.out);
        }
    }

    /// Sends a notification; as an answer with the request that asked.
    pub fn notify(&mut self, conversation: ConversationId, request: u32, notice: &Notice) {
        if !self.conversations.contains_key(&conversation.0) {
            return;
        }
        let mut body = Writer::new(Order::Little);
        reply::write_notice(&mut body, notice);
        let header = self.header(conversation, kind::NOTIFICATION, request, FIRST | LAST);
        write_segment(&mut self.out, &header, &body.out);
    }

    fn header(&self, conversation: ConversationId, segment: u8, request: u32, flags: u8) -> Header {
        let kind = if self.negotiated.is_shared { Kind::Multiplexed } else { Kind::Single };
        let conversation = conversation.0;
        Header { kind, conversation, request, order: Order::Little, segment, flags, ccsid: CCSID }
    }

    /// When [`Self::tick`] has something to do, if nothing comes before.
    pub fn deadline(&self) -> MonotonicMs {
        let heartbeats = if self.asked { 2 } else { 1 };
        MonotonicMs(self.heard.0 + heartbeats * u64::from(self.config.heartbeat_s) * 1000)
    }

    /// Asks a silent client for a sign of life, and finds that it is dead. One that is not read is not taken for dead.
    ///
    /// # Errors
    /// [`MqError::Silent`].
    pub fn tick(&mut self, now: MonotonicMs) -> Result<(), MqError> {
        if !self.wants_input() && self.phase != Phase::Ended {
            (self.heard, self.asked) = (now, false);
        }
        if now < self.deadline() {
            return Ok(());
        }
        if self.asked || !self.is_open() {
            self.end();
            return Err(MqError::Silent(2 * u64::from(self.config.heartbeat_s)));
        }
        self.asked = true;
        let kind = if self.negotiated.is_shared { Kind::Control } else { Kind::Single };
        let header = self.header(ConversationId(0), kind::HEARTBEAT, 0, FIRST | LAST | CONFIRM);
        write_segment(&mut self.out, &Header { kind, ..header }, &[]);
        Ok(())
    }

    /// Bytes that wait for [`Self::take_output`].
    pub fn output_len(&self) -> usize {
        self.out.len()
    }

    pub fn take_output(&mut self) -> Bytes {
        self.out.split().freeze()
    }

    pub fn next_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }
}

impl Ticket {
    /// The client's number of the request.
    pub fn request(&self) -> u32 {
        self.header.request
    }
}

impl Conversation {
    fn bytes(&self) -> usize {
        self.held_bytes + self.partial.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }
}

/// The queue manager's character set: UTF-8.
const CCSID: u16 = 1208;
