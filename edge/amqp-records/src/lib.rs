//! AMQP messages ↔ Kafka records: bodies, keys, headers. Pure.
//!
//! edge/bridge converts by a connector's file, edge/queues always in one way ([`whole`]), which keeps every section.
//!
//! | body of the message | record's value |
//! |---|---|
//! | data | its bytes |
//! | value: text or binary | its bytes |
//! | value: null, or none | null |
//! | value of another type, sequence | JSON; binary in it as base64 |
//!
//! Headers carry the names that JMS gives to AMQP's properties (JMS mapping of AMQP, `amqp-bindmap-jms`). A
//! header's value is its text. On the way back a text that is exactly a number or a boolean becomes one again.

mod json;
#[cfg(test)]
mod tests;
pub mod whole;

use barnabas_amqp::{Body, Message, Value};
use barnabas_client::{Outgoing, Received};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

/// Artemis drops a message whose value of this property it has seen.
pub const ARTEMIS_DUPLICATE: &str = "_AMQ_DUPL_ID";
/// Tells JMS clients which class a body is: 3 bytes, 5 text.
const JMS_TYPE: &str = "x-opt-jms-msg-type";
const JMS_BYTES: i8 = 3;
const JMS_TEXT: i8 = 5;

type Headers = Vec<(Bytes, Option<Bytes>)>;

/// What of a message becomes the record's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    MessageId,
    CorrelationId,
    Destination,
    GroupId,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    #[default]
    Durable,
    Volatile,
    /// As the peer's queue says: no header at all.
    AsQueue,
    /// As the record's JMSDeliveryMode header says; durable without one.
    AsSource,
}

/// How messages become records.
#[derive(Debug, Clone, Default)]
pub struct RecordRules {
    pub key: Option<KeyHeader>,
    pub copies_headers: bool,
    /// Refuses bodies that are not JSON.
    pub is_json: bool,
}

/// How records become messages.
#[derive(Debug, Clone, Default)]
pub struct MessageRules {
    pub key_is_correlation: bool,
    pub reads_headers: bool,
    /// Refuses values that are not JSON.
    pub is_json: bool,
    pub is_text: bool,
    pub topic_property: Option<String>,
    pub partition_property: Option<String>,
    pub offset_property: Option<String>,
    pub reply_to: Option<String>,
    pub ttl_ms: u32,
    pub durability: Durability,
}

/// The record of a message. Its time is the sender's, where the message has one.
///
/// # Errors
/// Why the message cannot be a record as the rules want it.
pub fn record(rules: &RecordRules, message: &Message) -> Result<Outgoing, String> {
    let value = value(&message.body);
    if rules.is_json {
        let text = value.as_deref().unwrap_or_default();
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(text);
        parsed.map_err(|error| format!("the body is not JSON: {error}"))?;
    }
    let headers = if rules.copies_headers { headers(message) } else { Headers::new() };
    Ok(Outgoing {
        partition: None,
        key: rules.key.and_then(|key| key_of(key, message)),
        value,
        headers,
        timestamp_ms: message.properties.creation_time_ms.filter(|at| *at >= 0),
    })
}

/// The value of a body.
pub fn value(body: &Body) -> Option<Bytes> {
    match body {
        Body::None | Body::Value(Value::Null) => None,
        Body::Data(bytes) | Body::Value(Value::Binary(bytes)) => Some(bytes.clone()),
        Body::Value(Value::String(text)) => Some(Bytes::copy_from_slice(text.as_bytes())),
        Body::Value(other) => Some(json::of(other).to_string().into()),
        Body::Sequence(list) => Some(json::of(&Value::List(list.clone())).to_string().into()),
    }
}

fn key_of(key: KeyHeader, message: &Message) -> Option<Bytes> {
    let p = &message.properties;
    match key {
        KeyHeader::MessageId => p.message_id.as_ref().map(bytes_of),
        KeyHeader::CorrelationId => p.correlation_id.as_ref().map(bytes_of),
        KeyHeader::Destination => p.to.as_ref().map(|to| Bytes::copy_from_slice(to.as_bytes())),
        KeyHeader::GroupId => p.group_id.as_ref().map(|id| Bytes::copy_from_slice(id.as_bytes())),
    }
}

/// An id's bytes: a binary one as it is, any other as its text.
fn bytes_of(id: &Value) -> Bytes {
    match id {
        Value::Binary(bytes) => bytes.clone(),
        other => text_of(other).into(),
    }
}

/// A simple value's text. Others are JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) | Value::Symbol(text) => text.clone(),
        Value::Binary(bytes) => STANDARD.encode(bytes),
        other => match json::of(other) {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        },
    }
}

/// JMS headers, then application properties.
pub fn headers(message: &Message) -> Headers {
    let (h, p) = (&message.header, &message.properties);
    let mut headers = Headers::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            headers.push((Bytes::copy_from_slice(name.as_bytes()), Some(value.into())));
        }
    };
    add("JMSMessageID", p.message_id.as_ref().map(text_of));
    add("JMSCorrelationID", p.correlation_id.as_ref().map(text_of));
    add("JMSDestination", p.to.clone());
    add("JMSReplyTo", p.reply_to.clone());
    add("JMSType", p.subject.clone());
    add("JMSTimestamp", p.creation_time_ms.map(|at| at.to_string()));
    add("JMSExpiration", p.absolute_expiry_time_ms.map(|at| at.to_string()));
    add("JMSPriority", Some(h.priority.to_string()));
    add("JMSDeliveryMode", Some(if h.durable { "2" } else { "1" }.to_owned()));
    add("JMSXDeliveryCount", Some((u64::from(h.delivery_count) + 1).to_string()));
    add("JMSXGroupID", p.group_id.clone());
    add("JMSXGroupSeq", p.group_sequence.map(|sequence| sequence.to_string()));
    add("JMSXUserID", p.user_id.as_ref().map(|user| String::from_utf8_lossy(user).into_owned()));
    add("JMS_AMQP_ContentType", p.content_type.clone());
    for (name, value) in &message.application {
        add(name, (*value != Value::Null).then(|| text_of(value)));
    }
    headers
}

/// How a sink makes its messages known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    Artemis,
    MessageId,
    None,
}

/// The message of a record. Its identity, `connector:topic:partition:offset`, is the same whenever it is sent.
///
/// # Errors
/// Why the record cannot be a message as the rules want it.
pub fn message(
    rules: &MessageRules,
    is_jms: bool,
    marks: Marks,
    connector: &str,
    topic: &str,
    record: &Received,
) -> Result<Message, String> {
    let identity = format!("{connector}:{topic}:{}:{}", record.partition, record.offset);
    let mut message = Message { body: body(rules, is_jms, record)?, ..Message::default() };
    let p = &mut message.properties;
    p.message_id = Some(Value::string(&identity));
    p.creation_time_ms = Some(record.timestamp_ms).filter(|at| *at >= 0);
    p.reply_to.clone_from(&rules.reply_to);
    if rules.key_is_correlation {
        p.correlation_id = record.key.as_deref().map(text_or_binary);
    }
    if rules.reads_headers {
        read_headers(&mut message, record);
    }
    if rules.ttl_ms > 0 {
        message.header.ttl_ms = Some(rules.ttl_ms);
    }
    message.header.durable = match rules.durability {
        Durability::Durable => true,
        Durability::Volatile | Durability::AsQueue => false,
        Durability::AsSource => header(record, "JMSDeliveryMode") != Some(b"1"),
    };
    let mut set = |name: &Option<String>, value: Value| {
        if let Some(name) = name {
            message.application.push((name.clone(), value));
        }
    };
    set(&rules.topic_property, Value::string(topic));
    set(&rules.partition_property, Value::Int(record.partition.get()));
    set(&rules.offset_property, Value::Long(record.offset.get()));
    if marks == Marks::Artemis {
        message.application.push((ARTEMIS_DUPLICATE.to_owned(), Value::string(&identity)));
    }
    if is_jms {
        let kind = if matches!(message.body, Body::Value(Value::String(_))) { JMS_TEXT } else { JMS_BYTES };
        message.annotations.push((Value::symbol(JMS_TYPE), Value::Byte(kind)));
    }
    Ok(message)
}

fn body(rules: &MessageRules, is_jms: bool, record: &Received) -> Result<Body, String> {
    let Some(value) = &record.value else { return Ok(Body::Value(Value::Null)) };
    if rules.is_json {
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(value);
        parsed.map_err(|error| format!("the value is not JSON: {error}"))?;
    }
    if !is_jms || !(rules.is_text || rules.is_json) {
        return Ok(Body::Data(value.clone()));
    }
    let text = std::str::from_utf8(value).map_err(|error| format!("the value is not a text: {error}"))?;
    Ok(Body::Value(Value::string(text)))
}

fn text_or_binary(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::string(text),
        Err(_) => Value::Binary(Bytes::copy_from_slice(bytes)),
    }
}

fn header<'a>(record: &'a Received, name: &str) -> Option<&'a [u8]> {
    let found = record.headers.iter().rev().find(|(key, _)| &key[..] == name.as_bytes());
    found.and_then(|(_, value)| value.as_deref())
}

/// Headers of JMS become AMQP's properties where a sender may set them; all others become application properties.
fn read_headers(message: &mut Message, record: &Received) {
    for (name, value) in &record.headers {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let value = value.as_deref().map_or(Value::Null, text_or_binary);
        let text = value.text().map(str::to_owned);
        let p = &mut message.properties;
        match name {
            "JMSCorrelationID" => p.correlation_id = Some(value).filter(|id| *id != Value::Null),
            "JMSType" => p.subject = text,
            "JMSReplyTo" => p.reply_to = text,
            "JMSXGroupID" => p.group_id = text,
            "JMSXGroupSeq" => p.group_sequence = text.and_then(|text| text.parse().ok()),
            "JMS_AMQP_ContentType" => p.content_type = text,
            "JMSPriority" => {
                message.header.priority = text.and_then(|text| text.parse().ok()).unwrap_or(4);
            }
            // Of the old message, or set by the peer.
            ARTEMIS_DUPLICATE => {}
            name if name.starts_with("JMS") => {}
            name => message.application.push((name.to_owned(), typed(value))),
        }
    }
}

/// A text that is exactly a number's or boolean's own text becomes that.
fn typed(value: Value) -> Value {
    let Value::String(text) = &value else { return value };
    match &text[..] {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) if number.to_string() == *text => Value::Long(number),
        (Err(_), Ok(number)) if number.is_finite() && number.to_string() == *text => {
            Value::Double(number.to_bits())
        }
        _ => value,
    }
}
