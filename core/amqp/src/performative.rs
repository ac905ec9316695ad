//! The bodies of frames: nine performatives, five of SASL, and the outcomes of deliveries, those of transactions too.
//!
//! Fields that neither side here has a use for are read past and not kept. Trailing nulls are left out, as the standard
//! allows.
//!
//! # Source
//! AMQP 1.0 part 2, section 2.7; part 3, section 3.4; part 4, section 4.5; part 5, section 5.3.3.

mod write;

use crate::{AmqpError, Condition, Value};
use bytes::Bytes;

/// `open`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Open {
    pub container_id: String,
    pub hostname: Option<String>,
    /// Bytes of the largest frame that the sender of this takes; no bound where absent.
    pub max_frame_size: Option<u32>,
    pub channel_max: Option<u16>,
    pub idle_time_out_ms: Option<u32>,
    pub offered_capabilities: Vec<String>,
    pub properties: Vec<(Value, Value)>,
}

/// `begin`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Begin {
    pub remote_channel: Option<u16>,
    pub next_outgoing_id: u32,
    pub incoming_window: u32,
    pub outgoing_window: u32,
    pub handle_max: Option<u32>,
}

/// The source or the target of a link: where messages come from, or go to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terminus {
    pub address: Option<String>,
    /// 0: none, 1: configuration, 2: unsettled-state.
    pub durable: u32,
    pub is_dynamic: bool,
    /// Of a source: `move` takes messages, `copy` looks at them.
    pub distribution_mode: Option<String>,
    /// Of a source: name and described value.
    pub filter: Vec<(String, Value)>,
    pub capabilities: Vec<String>,
    /// A transaction's coordinator, in place of a target. Of the other fields it has `capabilities` alone.
    pub is_coordinator: bool,
}

/// `attach`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attach {
    pub name: String,
    pub handle: u32,
    pub is_receiver: bool,
    /// 0: unsettled, 1: settled, 2: mixed.
    pub snd_settle_mode: u8,
    /// 0: first, 1: second.
    pub rcv_settle_mode: u8,
    pub source: Option<Terminus>,
    pub target: Option<Terminus>,
    pub initial_delivery_count: Option<u32>,
    pub max_message_size: Option<u64>,
}

/// `flow`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    pub next_incoming_id: Option<u32>,
    pub incoming_window: u32,
    pub next_outgoing_id: u32,
    pub outgoing_window: u32,
    pub handle: Option<u32>,
    pub delivery_count: Option<u32>,
    pub link_credit: Option<u32>,
    pub available: Option<u32>,
    pub drain: bool,
    pub echo: bool,
    /// Of the properties: the transaction that deliveries for this credit are to belong to.
    pub txn_id: Option<Bytes>,
}

/// `transfer`; the message, or a part of it, is the frame's payload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transfer {
    pub handle: u32,
    pub delivery_id: Option<u32>,
    pub delivery_tag: Option<Bytes>,
    pub message_format: Option<u32>,
    pub settled: Option<bool>,
    pub more: bool,
    /// At its sender: of the states only [`Outcome::Transactional`] says something new.
    pub state: Option<Outcome>,
    pub aborted: bool,
}

/// `disposition`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disposition {
    pub is_receiver: bool,
    pub first: u32,
    pub last: Option<u32>,
    pub settled: bool,
    pub state: Option<Outcome>,
}

/// `detach`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detach {
    pub handle: u32,
    pub closed: bool,
    pub error: Option<Condition>,
}

/// `end`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    pub error: Option<Condition>,
}

/// `close`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Close {
    pub error: Option<Condition>,
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Accepted,
    Rejected(Condition),
    Released,
    Modified {
        delivery_failed: bool,
        undeliverable_here: bool,
    },
    /// How far the receiver has come: no outcome yet.
    Received,
    /// Of a message to a coordinator: the transaction that was declared.
    Declared {
        txn_id: Bytes,
    },
    /// An outcome that holds if the transaction is committed. A transfer has the state without an outcome.
    Transactional {
        txn_id: Bytes,
        outcome: Option<Box<Outcome>>,
    },
    /// A state of an extension, by its descriptor.
    Other(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Performative {
    Open(Open),
    Begin(Begin),
    Attach(Box<Attach>),
    Flow(Flow),
    Transfer(Transfer),
    Disposition(Disposition),
    Detach(Detach),
    End(End),
    Close(Close),
    Sasl(Sasl),
}

/// What travels in frames of type 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sasl {
    Mechanisms(Vec<String>),
    Init { mechanism: String, response: Option<Bytes>, hostname: Option<String> },
    Challenge(Bytes),
    Response(Bytes),
    Outcome(u8),
}

const OPEN: u64 = 0x10;
const ACCEPTED: u64 = 0x24;
const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;
const COORDINATOR: u64 = 0x30;
const ERROR: u64 = 0x1d;
pub(crate) const DECLARE: u64 = 0x31;
pub(crate) const DISCHARGE: u64 = 0x32;
const DECLARED: u64 = 0x33;
const TRANSACTIONAL: u64 = 0x34;

/// The fields of a composite type, taken from the front.
struct Fields(std::vec::IntoIter<Value>);

const WRONG: AmqpError = AmqpError::Decode("a field has another type than the standard says");

impl Fields {
    fn of(value: Value) -> Result<Self, AmqpError> {
        match value {
            Value::List(list) => Ok(Self(list.into_iter())),
            _ => Err(WRONG),
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.0.next().filter(|value| *value != Value::Null)
    }

    fn skip(&mut self, count: usize) -> &mut Self {
        self.0.by_ref().take(count).for_each(drop);
        self
    }

    fn take<T>(&mut self, read: impl FnOnce(Value) -> Option<T>) -> Result<Option<T>, AmqpError> {
        self.value().map(|value| read(value).ok_or(WRONG)).transpose()
    }

    fn must<T>(&mut self, read: impl FnOnce(Value) -> Option<T>) -> Result<T, AmqpError> {
        self.take(read)?.ok_or(AmqpError::Decode("a field is missing that the standard demands"))
    }

    fn u32(&mut self) -> Result<Option<u32>, AmqpError> {
        self.take(u32_of)
    }

    fn u8(&mut self) -> Result<Option<u8>, AmqpError> {
        self.take(|value| u8::try_from(value.integer()?).ok())
    }

    fn flag(&mut self) -> Result<bool, AmqpError> {
        Ok(self.take(flag_of)?.unwrap_or(false))
    }

    fn text(&mut self) -> Result<Option<String>, AmqpError> {
        self.take(text_of)
    }

    fn symbols(&mut self) -> Result<Vec<String>, AmqpError> {
        Ok(self.take(symbols_of)?.unwrap_or_default())
    }

    fn map(&mut self) -> Result<Vec<(Value, Value)>, AmqpError> {
        Ok(self.take(map_of)?.unwrap_or_default())
    }
}

fn u32_of(value: Value) -> Option<u32> {
    u32::try_from(value.integer()?).ok()
}

fn flag_of(value: Value) -> Option<bool> {
    match value {
        Value::Bool(is) => Some(is),
        _ => None,
    }
}

fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) | Value::Symbol(text) => Some(text),
        _ => None,
    }
}

pub(crate) fn binary_of(value: Value) -> Option<Bytes> {
    match value {
        Value::Binary(bytes) => Some(bytes),
        _ => None,
    }
}

fn map_of(value: Value) -> Option<Vec<(Value, Value)>> {
    match value {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

/// One symbol or an array of them: a field of multiple values may come either way.
fn symbols_of(value: Value) -> Option<Vec<String>> {
    match value {
        Value::Symbol(one) => Some(vec![one]),
        Value::Array(many) => many.into_iter().map(text_of).collect(),
        _ => None,
    }
}

fn condition_of(value: Value) -> Option<Condition> {
    let (code, value) = described(value)?;
    let mut fields = Fields::of(value).ok().filter(|_| code == ERROR)?;
    let condition = fields.text().ok()?.unwrap_or_default();
    Some(Condition { condition, description: fields.text().ok()?.unwrap_or_default() })
}

/// The numeric descriptor and the value. Of symbolic descriptors only those of outcomes and termini are met in
/// practice.
pub(crate) fn described(value: Value) -> Option<(u64, Value)> {
    let Value::Described(pair) = value else { return None };
    let code = match &pair.0 {
        Value::Ulong(code) => *code,
        Value::Symbol(name) => match &name[..] {
            "amqp:error:list" => ERROR,
            "amqp:received:list" => 0x23,
            "amqp:accepted:list" => ACCEPTED,
            "amqp:rejected:list" => 0x25,
            "amqp:released:list" => 0x26,
            "amqp:modified:list" => 0x27,
            "amqp:declare:list" => DECLARE,
            "amqp:discharge:list" => DISCHARGE,
            "amqp:declared:list" => DECLARED,
            "amqp:transactional-state:list" => TRANSACTIONAL,
            "amqp:source:list" => SOURCE,
            "amqp:target:list" => TARGET,
            "amqp:coordinator:list" => COORDINATOR,
            _ => return None,
        },
        _ => return None,
    };
    Some((code, pair.1))
}

fn terminus_of(value: Value) -> Option<Terminus> {
    let (code, value) = described(value)?;
    let mut fields = Fields::of(value).ok()?;
    if code == COORDINATOR {
        let capabilities = fields.symbols().ok()?;
        return Some(Terminus { is_coordinator: true, capabilities, ..Terminus::default() });
    }
    if code != SOURCE && code != TARGET {
        return Some(Terminus::default());
    }
    let address = fields.text().ok()?;
    let durable = fields.u32().ok()?.unwrap_or(0);
    let is_dynamic = fields.skip(2).flag().ok()?;
    fields.skip(1);
    let (mut filter, mut distribution_mode) = (Vec::new(), None);
    if code == SOURCE {
        distribution_mode = fields.text().ok()?;
        for (name, value) in fields.map().ok()? {
            filter.push((text_of(name)?, value));
        }
        fields.skip(2);
    }
    let capabilities = fields.symbols().ok()?;
    let is_coordinator = false;
    Some(Terminus { address, durable, is_dynamic, distribution_mode, filter, capabilities, is_coordinator })
}

fn outcome_of(value: Value) -> Option<Outcome> {
    let (code, value) = described(value)?;
    let mut fields = Fields::of(value).ok()?;
    Some(match code {
        0x23 => Outcome::Received,
        ACCEPTED => Outcome::Accepted,
        0x25 => Outcome::Rejected(fields.take(condition_of).ok()?.unwrap_or_default()),
        0x26 => Outcome::Released,
        0x27 => Outcome::Modified {
            delivery_failed: fields.flag().ok()?,
            undeliverable_here: fields.flag().ok()?,
        },
        DECLARED => Outcome::Declared { txn_id: fields.must(binary_of).ok()? },
        TRANSACTIONAL => Outcome::Transactional {
            txn_id: fields.must(binary_of).ok()?,
            outcome: fields.take(plain_outcome_of).ok()?.map(Box::new),
        },
        other => Outcome::Other(other),
    })
}

/// An outcome that may stand in a transaction.
fn plain_outcome_of(value: Value) -> Option<Outcome> {
    let is_nested =
        |outcome: &Outcome| matches!(outcome, Outcome::Transactional { .. } | Outcome::Declared { .. });
    outcome_of(value).filter(|outcome| !is_nested(outcome))
}

impl Performative {
    /// As the standard calls it, for an error's words.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Open(_) => "open",
            Self::Begin(_) => "begin",
            Self::Attach(_) => "attach",
            Self::Flow(_) => "flow",
            Self::Transfer(_) => "transfer",
            Self::Disposition(_) => "disposition",
            Self::Detach(_) => "detach",
            Self::End(_) => "end",
            Self::Close(_) => "close",
            Self::Sasl(_) => "a SASL frame",
        }
    }

    /// Of a described list.
    ///
    /// # Errors
    /// [`AmqpError::Decode`].
    pub(crate) fn read(value: Value) -> Result<Self, AmqpError> {
        let (code, value) = described(value).ok_or(AmqpError::Decode("a frame has no performative"))?;
        let mut fields = Fields::of(value)?;
        Ok(match code {
            OPEN => Self::Open(Open::read(&mut fields)?),
            0x11 => Self::Begin(Begin {
                remote_channel: fields.take(|value| u16::try_from(value.integer()?).ok())?,
                next_outgoing_id: fields.must(u32_of)?,
                incoming_window: fields.must(u32_of)?,
                outgoing_window: fields.must(u32_of)?,
                handle_max: fields.u32()?,
            }),
            0x12 => Self::Attach(Box::new(Attach::read(&mut fields)?)),
            0x13 => Self::Flow(Flow::read(&mut fields)?),
            0x14 => Self::Transfer(Transfer::read(&mut fields)?),
            0x15 => Self::Disposition(Disposition {
                is_receiver: fields.must(flag_of)?,
                first: fields.must(u32_of)?,
                last: fields.u32()?,
                settled: fields.flag()?,
                state: fields.take(outcome_of)?,
            }),
            0x16 => Self::Detach(Detach {
                handle: fields.must(u32_of)?,
                closed: fields.flag()?,
                error: fields.take(condition_of)?,
            }),
            0x17 => Self::End(End { error: fields.take(condition_of)? }),
            0x18 => Self::Close(Close { error: fields.take(condition_of)? }),
            0x40 => Self::Sasl(Sasl::Mechanisms(fields.symbols()?)),
            0x41 => Self::Sasl(Sasl::Init {
                mechanism: fields.must(text_of)?,
                response: fields.take(binary_of)?,
                hostname: fields.text()?,
            }),
            0x42 => Self::Sasl(Sasl::Challenge(fields.must(binary_of)?)),
            0x43 => Self::Sasl(Sasl::Response(fields.must(binary_of)?)),
            0x44 => Self::Sasl(Sasl::Outcome(fields.u8()?.unwrap_or(4))),
            _ => return Err(AmqpError::Decode("a frame has a performative that AMQP 1.0 does not know")),
        })
    }
}

impl Open {
    fn read(fields: &mut Fields) -> Result<Self, AmqpError> {
        Ok(Self {
            container_id: fields.must(text_of)?,
            hostname: fields.text()?,
            max_frame_size: fields.u32()?,
            channel_max: fields.take(|value| u16::try_from(value.integer()?).ok())?,
            idle_time_out_ms: fields.u32()?,
            offered_capabilities: fields.skip(2).symbols()?,
            properties: fields.skip(1).map()?,
        })
    }
}

impl Attach {
    fn read(fields: &mut Fields) -> Result<Self, AmqpError> {
        Ok(Self {
            name: fields.must(text_of)?,
            handle: fields.must(u32_of)?,
            is_receiver: fields.must(flag_of)?,
            snd_settle_mode: fields.u8()?.unwrap_or(2),
            rcv_settle_mode: fields.u8()?.unwrap_or(0),
            source: fields.take(terminus_of)?,
            target: fields.take(terminus_of)?,
            initial_delivery_count: fields.skip(2).u32()?,
            max_message_size: fields.take(|value| match value {
                Value::Ulong(size) => Some(size),
                _ => None,
            })?,
        })
    }
}

impl Flow {
    fn read(fields: &mut Fields) -> Result<Self, AmqpError> {
        Ok(Self {
            next_incoming_id: fields.u32()?,
            incoming_window: fields.must(u32_of)?,
            next_outgoing_id: fields.must(u32_of)?,
            outgoing_window: fields.must(u32_of)?,
            handle: fields.u32()?,
            delivery_count: fields.u32()?,
            link_credit: fields.u32()?,
            available: fields.u32()?,
            drain: fields.flag()?,
            echo: fields.flag()?,
            txn_id: fields
                .map()?
                .into_iter()
                .find_map(|(name, value)| binary_of(value).filter(|_| name.text() == Some("txn-id"))),
        })
    }
}

impl Transfer {
    fn read(fields: &mut Fields) -> Result<Self, AmqpError> {
        Ok(Self {
            handle: fields.must(u32_of)?,
            delivery_id: fields.u32()?,
            delivery_tag: fields.take(binary_of)?,
            message_format: fields.u32()?,
            settled: fields.take(flag_of)?,
            more: fields.flag()?,
            state: fields.skip(1).take(outcome_of)?,
            aborted: fields.skip(1).flag()?,
        })
    }
}
