//! A message as it came from a peer of either protocol, and what a record takes of it.

pub(super) mod mq;

use crate::state::Id;
use barnabas_amqp::{Message, decode_message};
use barnabas_amqp_records::{self as convert, RecordRules};
use barnabas_client::Outgoing;
use barnabas_mq::Got;
use bytes::Bytes;

#[derive(Debug, Clone)]
pub(super) enum Came {
    Amqp(Bytes),
    Mq(Box<Got>),
}

/// What it says.
#[derive(Debug)]
pub(super) enum Read {
    Amqp(Box<Message>),
    Mq(Box<mq::Message>),
}

impl Came {
    pub fn bytes(&self) -> usize {
        self.payload().len()
    }

    /// All of it, as bytes.
    pub fn payload(&self) -> &Bytes {
        match self {
            Self::Amqp(payload) => payload,
            Self::Mq(got) => &got.data,
        }
    }

    /// # Errors
    /// Why it is no message.
    pub fn read(&self) -> Result<Read, String> {
        match self {
            Self::Amqp(payload) => match decode_message(payload.clone()) {
                Ok(message) => Ok(Read::Amqp(Box::new(message))),
                Err(error) => Err(error.to_string()),
            },
            Self::Mq(got) => mq::Message::read(got).map(|message| Read::Mq(Box::new(message))),
        }
    }
}

impl Read {
    /// `None`: it cannot be recognised when it comes again.
    pub fn id(&self) -> Option<Id> {
        match self {
            Self::Amqp(message) => Id::of(message.properties.message_id.as_ref()),
            Self::Mq(message) => message.id,
        }
    }

    pub fn created_ms(&self) -> Option<i64> {
        match self {
            Self::Amqp(message) => message.properties.creation_time_ms,
            Self::Mq(message) => message.put_ms,
        }
    }

    /// Its message-id's text.
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Amqp(message) => message.properties.message_id.as_ref().map(convert::text_of),
            Self::Mq(message) => Some(barnabas_mq::jms::id_text(&message.md.msg_id)),
        }
    }

    /// # Errors
    /// Why it cannot be a record as the rules want it.
    pub fn record(&self, rules: &RecordRules) -> Result<Outgoing, String> {
        match self {
            Self::Amqp(message) => convert::record(rules, message),
            Self::Mq(message) => message.record(rules),
        }
    }

    /// Its body and headers, as they are.
    pub fn letter(&self) -> Outgoing {
        match self {
            Self::Amqp(message) => Outgoing {
                value: convert::value(&message.body),
                headers: convert::headers(message),
                ..Outgoing::default()
            },
            Self::Mq(message) => message.letter(),
        }
    }
}
