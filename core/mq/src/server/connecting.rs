//! How a connection and its conversations begin.
//!
//! ```text
//! INITIAL_DATA (TSH)     → INITIAL_DATA with our values, and the error flag where a value of the client's cannot be
//! INITIAL_DATA (TSHM 1)  → INITIAL_DATA: agreed
//! USERID_DATA            no answer
//! CONAUTH                → STATUS_DATA, empty: whether the password is right says the answer to MQCONN
//! MQCONN                 → MQCONN_REPLY
//! SOCKET_ACTION 1 (TSHC) → STATUS_DATA of the conversation that it names; then MQCONN of it
//! ```
//!
//! FAP level 12 is answered, without algorithms for password protection: clients then send passwords as they are.

use super::{CCSID, Conversation, ConversationId, Server, Ticket};
use crate::MqError;
use crate::bytes::{Order, Reader, Writer};
use crate::call::kind;
use crate::initial::{FAP_LEVEL, at};
use crate::reason;
use crate::reply::Reply;
use crate::segment::{CLOSE, ERROR, FIRST, Header, Kind, LAST, write_segment};
use crate::text::{fixed, trimmed};
use bytes::Bytes;
use std::fmt;

const WRONG_MESSAGE_BYTES: u8 = 0x10;
const WRONG_HEARTBEAT: u8 = 0x80;
/// Of the capabilities: the SPI.
const SPI: u8 = 0x40;
const SEGMENT_BYTES: u32 = 32_766;
const CREDENTIAL_BYTES_MAX: usize = 1024;
const CONNECT_BYTES_MIN: usize = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Initial,
    /// Agreed; no conversation was let in yet.
    Login,
    Ready,
    Ended,
}

/// What both ends keep to.
#[derive(Debug)]
pub struct Negotiated {
    pub segment_bytes: usize,
    /// Whether segments name their conversation.
    pub is_shared: bool,
    /// What the client said of itself, for conversations that say nothing.
    user: Option<(String, Option<Password>)>,
    rounds: u8,
}

impl Default for Negotiated {
    fn default() -> Self {
        Self { segment_bytes: SEGMENT_BYTES as usize, is_shared: false, user: None, rounds: 0 }
    }
}

/// How far a conversation is.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Step {
    #[default]
    New,
    Asked {
        body: Bytes,
    },
    Connected,
}

/// A password, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}

/// MQCONN or MQCONNX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect {
    pub user: Option<(String, Option<Password>)>,
    /// Blank, or the name of the queue manager that is wanted. A `*` in front means any.
    pub queue_manager: String,
    pub application: String,
}

impl Conversation {
    pub(super) fn is_connected(&self) -> bool {
        self.connecting == Step::Connected
    }

    pub(super) fn connect(&mut self, header: &Header, body: &Bytes) -> Result<Connect, MqError> {
        if self.connecting != Step::New {
            return Err(MqError::protocol("a second connect of a conversation"));
        }
        let wrong = || MqError::protocol("an MQCONN that is too short");
        if body.len() < 16 + CONNECT_BYTES_MIN {
            return Err(wrong());
        }
        let mut reader = Reader::new(&body[16..], header.order);
        let queue_manager = trimmed(reader.take(48).ok_or_else(wrong)?);
        let application = trimmed(reader.take(28).ok_or_else(wrong)?);
        self.connecting = Step::Asked { body: body.slice(16..) };
        Ok(Connect { user: None, queue_manager, application })
    }
}

impl Server {
    /// Lets a conversation in.
    pub fn connected(&mut self, ticket: Ticket) {
        let number = ticket.conversation;
        let Some(conversation) = self.conversations.get_mut(&number) else { return };
        let Step::Asked { body } = std::mem::replace(&mut conversation.connecting, Step::Connected) else {
            return;
        };
        self.phase = Phase::Ready;
        // A client that named none learns where it is.
        let body = Bytes::from([&fixed::<48>(&self.config.queue_manager)[..], &body[48..]].concat());
        self.reply(ticket, reason::NONE, 0, &Reply::Connect { body });
    }

    /// Refuses a conversation. It can try again.
    pub fn refuse(&mut self, ticket: Ticket, why: u32) {
        let Some(conversation) = self.conversations.get_mut(&ticket.conversation) else { return };
        let Step::Asked { body } = std::mem::take(&mut conversation.connecting) else { return };
        self.reply(ticket, why, 0, &Reply::Connect { body });
    }

    /// Who the connection's client said that it is.
    pub fn user(&self) -> Option<&(String, Option<Password>)> {
        self.negotiated.user.as_ref()
    }

    pub(super) fn take_initial(&mut self, header: &Header, body: &Bytes) -> Result<(), MqError> {
        if !body.starts_with(b"ID  ") || body.len() < at::CONVERSATIONS + 4 || body.len() > 2 * at::END {
            return Err(MqError::protocol("an INITIAL_DATA that is none of a client since IBM MQ 7"));
        }
        self.negotiated.rounds += 1;
        if self.phase == Phase::Ready || self.negotiated.rounds > 4 {
            return Err(MqError::protocol("INITIAL_DATA out of turn"));
        }
        let field = |at: usize| Reader::new(&body[at..], header.order).u32().unwrap_or(0);
        let (ours, most) = (self.config.heartbeat_s, self.config.message_bytes_max as u32);
        let mut wrong = 0;
        if field(at::HEARTBEAT) != ours {
            wrong |= WRONG_HEARTBEAT;
        }
        if field(at::MESSAGE_BYTES) > most {
            wrong |= WRONG_MESSAGE_BYTES;
        }
        let conversations = field(at::CONVERSATIONS).min(self.config.conversations_max);
        self.negotiated.segment_bytes = field(at::SEGMENT_BYTES).clamp(1024, SEGMENT_BYTES) as usize;
        self.negotiated.is_shared = conversations > 0;
        // From the second time on the client keeps to what it was answered, or is refused.
        let agreed = wrong == 0;
        if agreed {
            self.phase = Phase::Login;
            let first = if self.negotiated.is_shared { header.conversation.max(1) } else { 0 };
            self.conversations.entry(first).or_default();
        }
        let answer = self.initial(body, wrong, conversations);
        let flags = FIRST | LAST | if agreed { 0 } else { ERROR };
        let header = Header { order: Order::Little, flags, ccsid: CCSID, ..*header };
        write_segment(&mut self.out, &header, &answer);
        Ok(())
    }

    /// What the client said, with our values in it.
    fn initial(&self, body: &Bytes, wrong: u8, conversations: u32) -> Vec<u8> {
        let mut out = Writer::new(Order::Little);
        out.raw(body);
        let set = |out: &mut Writer, at: usize, bytes: &[u8]| {
            if let Some(field) = out.out.get_mut(at..at + bytes.len()) {
                field.copy_from_slice(bytes);
            }
        };
        set(&mut out, at::FAP, &[FAP_LEVEL]);
        set(&mut out, at::ERRORS, &[wrong]);
        set(&mut out, at::BATCH, &50_u16.to_le_bytes());
        out.set_u32(at::SEGMENT_BYTES, self.negotiated.segment_bytes as u32);
        out.set_u32(at::MESSAGE_BYTES, self.config.message_bytes_max as u32);
        out.set_u32(at::MESSAGE_BYTES + 4, 999_999_999);
        set(&mut out, at::CAPABILITIES_2, &[SPI, 0]);
        set(&mut out, at::CCSID, &CCSID.to_le_bytes());
        set(&mut out, at::QUEUE_MANAGER, &fixed::<48>(&self.config.queue_manager));
        out.set_u32(at::HEARTBEAT, self.config.heartbeat_s);
        set(&mut out, at::HEARTBEAT + 4, &0x8a_u16.to_le_bytes());
        set(&mut out, at::ERRORS_2, &[0]);
        // Nothing is compressed.
        set(&mut out, at::HEADER_COMPRESSION, &[0, 0xff]);
        set(&mut out, at::MESSAGE_COMPRESSION, &[&[0][..], &[0xff; 15]].concat());
        out.set_u32(at::MESSAGE_COMPRESSION + 18, 0);
        out.set_u32(at::CONVERSATIONS, conversations);
        set(&mut out, at::CAPABILITIES_3, &[0; 4]);
        set(&mut out, at::PROCESS, &[0; 12]);
        set(&mut out, at::PRODUCT, b"BNBS00000000");
        set(&mut out, at::IDENTIFIER, &fixed::<48>(&self.config.identifier));
        set(&mut out, at::PROTECTION, &[0; at::END - at::PROTECTION]);
        out.out.to_vec()
    }

    /// `UID ` · user 12 · password 12 · long user 64 · …
    pub(super) fn take_user(&mut self, header: &Header, body: &Bytes) -> Result<(), MqError> {
        let mut reader = Reader::new(body, header.order);
        let fields = (|| {
            (reader.take(4)? == b"UID ").then_some(())?;
            let (short, password) = (reader.take(12)?, reader.take(12)?);
            Some((trimmed(short), trimmed(password), reader.take(64).map(trimmed).unwrap_or_default()))
        })();
        let (short, password, long) =
            fields.ok_or_else(|| MqError::protocol("a USERID_DATA that is none"))?;
        let user = if long.is_empty() { short } else { long };
        let password = Some(password).filter(|password| !password.is_empty()).map(Password);
        self.negotiated.user = Some((user, password));
        Ok(())
    }

    /// `CAUT` · type · most bytes 4 + 4 · user length · password length · user · password
    pub(super) fn take_password(&mut self, header: &Header, body: &Bytes) -> Result<(), MqError> {
        let mut reader = Reader::new(body, header.order);
        let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
        let fields = (|| {
            (reader.take(4)? == b"CAUT").then_some(())?;
            reader.take(12)?;
            let (user, password) = (reader.u32()? as usize, reader.u32()? as usize);
            // Newer ones have 8 more bytes in front of the texts.
            let extra = body.len().checked_sub(24 + user + password)?;
            if user.max(password) > CREDENTIAL_BYTES_MAX {
                return None;
            }
            reader.take(if extra >= 8 { 8 } else { 0 })?;
            Some((text(reader.take(user)?)?, text(reader.take(password)?)?))
        })();
        let (user, password) = fields.ok_or_else(|| MqError::protocol("a CONAUTH that is none"))?;
        self.negotiated.user = Some((user, Some(Password(password))));
        let header = Header { segment: kind::STATUS_DATA, flags: FIRST | LAST, ccsid: CCSID, ..*header };
        write_segment(&mut self.out, &header, &[]);
        Ok(())
    }

    /// conversation · request · action · two values
    pub(super) fn take_socket_action(&mut self, header: &Header, body: &Bytes) -> Result<(), MqError> {
        const START: u32 = 1;
        const END: u32 = 2;
        let mut reader = Reader::new(body, header.order);
        let fields = (|| Some((reader.u32()?, reader.u32()?, reader.u32()?)))();
        let (number, _, action) = fields.ok_or_else(|| MqError::protocol("a SOCKET_ACTION that is none"))?;
        match action {
            START => {
                let has_room = self.conversations.len() < self.config.conversations_max as usize;
                if self.phase == Phase::Initial || !has_room || self.conversations.contains_key(&number) {
                    return Err(MqError::protocol(format!("conversation {number} cannot begin")));
                }
                self.conversations.insert(number, Conversation::default());
                let answer = self.header(ConversationId(number), kind::STATUS_DATA, 0, FIRST | LAST);
                write_segment(&mut self.out, &Header { kind: Kind::Multiplexed, ..answer }, &[]);
            }
            END => {
                if self.conversations.remove(&number).is_some() {
                    self.events.push_back(super::ServerEvent::Ended(ConversationId(number)));
                }
                if header.flags & CLOSE != 0 {
                    self.closed();
                }
            }
            // Others ask for nothing that is here.
            _ => {}
        }
        Ok(())
    }
}
