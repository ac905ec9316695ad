//! A message's sections ↔ bytes.
//!
//! # Source
//! AMQP 1.0 part 3, section 3.2.

use crate::value::write_value;
use crate::{AmqpError, Reader, Value};
use bytes::{Bytes, BytesMut};

/// `header`: how the message travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub durable: bool,
    pub priority: u8,
    pub ttl_ms: Option<u32>,
    pub first_acquirer: bool,
    pub delivery_count: u32,
}

impl Default for Header {
    fn default() -> Self {
        Self { durable: false, priority: 4, ttl_ms: None, first_acquirer: false, delivery_count: 0 }
    }
}

/// `properties`. Ids are ulong, uuid, binary or string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    pub message_id: Option<Value>,
    pub user_id: Option<Bytes>,
    pub to: Option<String>,
    pub subject: Option<String>,
    pub reply_to: Option<String>,
    pub correlation_id: Option<Value>,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub absolute_expiry_time_ms: Option<i64>,
    pub creation_time_ms: Option<i64>,
    pub group_id: Option<String>,
    pub group_sequence: Option<u32>,
    pub reply_to_group_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// No body section at all: some senders leave an empty one out.
    None,
    /// All data sections, joined.
    Data(Bytes),
    Value(Value),
    Sequence(Vec<Value>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub header: Header,
    pub annotations: Vec<(Value, Value)>,
    pub properties: Properties,
    pub application: Vec<(String, Value)>,
    pub body: Body,
}

impl Default for Message {
    fn default() -> Self {
        Self {
            header: Header::default(),
            annotations: Vec::new(),
            properties: Properties::default(),
            application: Vec::new(),
            body: Body::None,
        }
    }
}

const WRONG: AmqpError =
    AmqpError::Decode("a section of the message has another type than the standard says");

/// Reads a whole message. Delivery annotations and the footer are for the peers of one hop, and not kept.
///
/// # Errors
/// [`AmqpError::Decode`].
pub fn decode_message(bytes: Bytes) -> Result<Message, AmqpError> {
    let mut reader = Reader::new(bytes);
    let mut message = Message::default();
    let mut data = Vec::new();
    while !reader.is_empty() {
        let Value::Described(section) = reader.value()? else { return Err(WRONG) };
        let (descriptor, value) = *section;
        match (section_of(&descriptor), value) {
            (Some(0x70), Value::List(fields)) => message.header = header_of(fields)?,
            (Some(0x72), Value::Map(map)) => message.annotations = map,
            (Some(0x73), Value::List(fields)) => message.properties = properties_of(fields)?,
            (Some(0x74), Value::Map(map)) => {
                for (key, value) in map {
                    let Value::String(key) = key else { return Err(WRONG) };
                    message.application.push((key, value));
                }
            }
            (Some(0x75), Value::Binary(part)) => data.push(part),
            (Some(0x76), Value::List(mut part)) => match &mut message.body {
                Body::Sequence(all) => all.append(&mut part),
                _ => message.body = Body::Sequence(part),
            },
            (Some(0x77), value) => message.body = Body::Value(value),
            (Some(0x71 | 0x78), _) => {}
            _ => return Err(WRONG),
        }
    }
    match data.len() {
        0 => {}
        1 => message.body = Body::Data(data.remove(0)),
        _ => message.body = Body::Data(data.concat().into()),
    }
    Ok(message)
}

fn section_of(descriptor: &Value) -> Option<u64> {
    match descriptor {
        Value::Ulong(code) => Some(*code),
        Value::Symbol(name) => Some(match &name[..] {
            "amqp:header:list" => 0x70,
            "amqp:delivery-annotations:map" => 0x71,
            "amqp:message-annotations:map" => 0x72,
            "amqp:properties:list" => 0x73,
            "amqp:application-properties:map" => 0x74,
            "amqp:data:binary" => 0x75,
            "amqp:amqp-sequence:list" => 0x76,
            "amqp:amqp-value:*" => 0x77,
            "amqp:footer:map" => 0x78,
            _ => return None,
        }),
        _ => None,
    }
}

fn header_of(fields: Vec<Value>) -> Result<Header, AmqpError> {
    let mut header = Header::default();
    for (place, value) in fields.into_iter().enumerate() {
        match (place, value) {
            (_, Value::Null) => {}
            (0, Value::Bool(is)) => header.durable = is,
            (1, Value::Ubyte(priority)) => header.priority = priority,
            (2, Value::Uint(ttl)) => header.ttl_ms = Some(ttl),
            (3, Value::Bool(is)) => header.first_acquirer = is,
            (4, Value::Uint(count)) => header.delivery_count = count,
            _ => return Err(WRONG),
        }
    }
    Ok(header)
}

fn properties_of(fields: Vec<Value>) -> Result<Properties, AmqpError> {
    let mut properties = Properties::default();
    for (place, value) in fields.into_iter().enumerate() {
        let p = &mut properties;
        match (place, value) {
            (_, Value::Null) => {}
            (0, id) => p.message_id = Some(id_of(id)?),
            (1, Value::Binary(user)) => p.user_id = Some(user),
            (2, Value::String(text)) => p.to = Some(text),
            (3, Value::String(text)) => p.subject = Some(text),
            (4, Value::String(text)) => p.reply_to = Some(text),
            (5, id) => p.correlation_id = Some(id_of(id)?),
            (6, Value::Symbol(text)) => p.content_type = Some(text),
            (7, Value::Symbol(text)) => p.content_encoding = Some(text),
            (8, Value::Timestamp(at)) => p.absolute_expiry_time_ms = Some(at),
            (9, Value::Timestamp(at)) => p.creation_time_ms = Some(at),
            (10, Value::String(text)) => p.group_id = Some(text),
            (11, Value::Uint(sequence)) => p.group_sequence = Some(sequence),
            (12, Value::String(text)) => p.reply_to_group_id = Some(text),
            _ => return Err(WRONG),
        }
    }
    Ok(properties)
}

fn id_of(value: Value) -> Result<Value, AmqpError> {
    match value {
        Value::Ulong(_) | Value::Uuid(_) | Value::Binary(_) | Value::String(_) => Ok(value),
        _ => Err(WRONG),
    }
}

/// Writes a message: sections without content are left out, the body is always there.
pub fn encode_message(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    let mut section = |code: u64, value: Value| write_value(&mut out, &Value::described(code, value));
    if message.header != Header::default() {
        section(0x70, Value::List(header_fields(&message.header)));
    }
    if !message.annotations.is_empty() {
        section(0x72, Value::Map(message.annotations.clone()));
    }
    if message.properties != Properties::default() {
        section(0x73, Value::List(property_fields(&message.properties)));
    }
    if !message.application.is_empty() {
        let pairs = message.application.iter().map(|(key, value)| (Value::string(key), value.clone()));
        section(0x74, Value::Map(pairs.collect()));
    }
    match &message.body {
        Body::None => section(0x77, Value::Null),
        Body::Data(bytes) => section(0x75, Value::Binary(bytes.clone())),
        Body::Value(value) => section(0x77, value.clone()),
        Body::Sequence(list) => section(0x76, Value::List(list.clone())),
    }
    out.freeze()
}

fn header_fields(header: &Header) -> Vec<Value> {
    let ttl = header.ttl_ms.map_or(Value::Null, Value::Uint);
    let (first, count) = (Value::Bool(header.first_acquirer), Value::Uint(header.delivery_count));
    vec![Value::Bool(header.durable), Value::Ubyte(header.priority), ttl, first, count]
}

fn property_fields(p: &Properties) -> Vec<Value> {
    let string = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::string);
    let symbol = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::symbol);
    let time = |at: Option<i64>| at.map_or(Value::Null, Value::Timestamp);
    vec![
        p.message_id.clone().unwrap_or(Value::Null),
        p.user_id.clone().map_or(Value::Null, Value::Binary),
        string(&p.to),
        string(&p.subject),
        string(&p.reply_to),
        p.correlation_id.clone().unwrap_or(Value::Null),
        symbol(&p.content_type),
        symbol(&p.content_encoding),
        time(p.absolute_expiry_time_ms),
        time(p.creation_time_ms),
        string(&p.group_id),
        p.group_sequence.map_or(Value::Null, Value::Uint),
        string(&p.reply_to_group_id),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_survives_a_round_trip() {
        let message = Message {
            header: Header { durable: true, ttl_ms: Some(5), delivery_count: 2, ..Header::default() },
            annotations: vec![(Value::symbol("x-opt-jms-msg-type"), Value::Byte(5))],
            properties: Properties {
                message_id: Some(Value::string("ID:1")),
                user_id: Some(Bytes::from_static(b"u")),
                to: Some("q".to_owned()),
                subject: Some("s".to_owned()),
                reply_to: Some("r".to_owned()),
                correlation_id: Some(Value::Binary(Bytes::from_static(b"c"))),
                content_type: Some("text/plain".to_owned()),
                content_encoding: Some("identity".to_owned()),
                absolute_expiry_time_ms: Some(7),
                creation_time_ms: Some(6),
                group_id: Some("g".to_owned()),
                group_sequence: Some(1),
                reply_to_group_id: Some("h".to_owned()),
            },
            application: vec![("n".to_owned(), Value::Long(9))],
            body: Body::Value(Value::string("text")),
        };
        assert_eq!(decode_message(encode_message(&message)), Ok(message));
    }

    #[test]
    fn data_sections_are_joined() {
        let mut bytes = BytesMut::new();
        for part in [&b"ab"[..], b"cd"] {
            write_value(&mut bytes, &Value::described(0x75, Value::Binary(Bytes::from_static(part))));
        }
        assert_eq!(
            decode_message(bytes.freeze()).map(|m| m.body),
            Ok(Body::Data(Bytes::from_static(b"abcd")))
        );
    }

    #[test]
    fn wrong_sections_are_refused() {
        for section in [
            Value::described(0x73, Value::List(vec![Value::Int(1)])),
            Value::described(0x74, Value::Map(vec![(Value::Int(1), Value::Null)])),
            Value::described(0x70, Value::Map(vec![])),
            Value::described(0x99, Value::Null),
            Value::string("bare"),
        ] {
            let mut bytes = BytesMut::new();
            write_value(&mut bytes, &section);
            assert!(decode_message(bytes.freeze()).is_err(), "{section:?}");
        }
    }
}
