//! A message as one record and back, without a loss: what the listener for AMQP puts and gives out.
//!
//! The record is that of [`crate::record`], with the key of the message's group-id and with readable headers. One more
//! header, [`SECTIONS`], has the message's sections as AMQP encodes them, all but a body that the record's value holds:
//! from it the same message is made again, with the types of its properties. A record of another producer has no such
//! header: its message is that of [`crate::message`].
//!
//! | [`SECTIONS`] begins with | the body |
//! |---|---|
//! | `d` | a data section: the record's value |
//! | `t`, `b` | a value section with a string, or binary: the record's value |
//! | `s` | among the sections |
//!
//! A header that cannot be read is ignored: anyone who may write to the topic can write one.

use crate::{Durability, KeyHeader, MessageRules, RecordRules};
use barnabas_amqp::{Body, Header, Message, Value, decode_message, encode_message};
use barnabas_client::{Outgoing, Received};
use bytes::{BufMut, Bytes, BytesMut};

/// The header with a message's sections.
pub const SECTIONS: &str = "barnabas.amqp";
/// The record's key, where it is no text: an annotation of the message.
const KEY_ANNOTATION: &str = "x-opt-kafka-key";

/// The record of a message.
///
/// # Errors
/// As [`crate::record`]; none with these rules.
pub fn record(message: &Message) -> Result<Outgoing, String> {
    let rules = RecordRules { key: Some(KeyHeader::GroupId), copies_headers: true, is_json: false };
    let mut record = crate::record(&rules, message)?;
    let (mark, body) = match &message.body {
        Body::Data(_) => (b'd', Body::None),
        Body::Value(Value::String(_)) => (b't', Body::None),
        Body::Value(Value::Binary(_)) => (b'b', Body::None),
        other => (b's', other.clone()),
    };
    let mut sections = BytesMut::new();
    sections.put_u8(mark);
    sections.put_slice(&encode_message(&Message { body, ..message.clone() }));
    record.headers.push((Bytes::from_static(SECTIONS.as_bytes()), Some(sections.freeze())));
    Ok(record)
}

/// The message of a record, delivered for the `delivery`th time (from 1).
///
/// # Errors
/// As [`crate::message`]; none with these rules.
pub fn message(topic: &str, record: &Received, delivery: i16) -> Result<Message, String> {
    let mut message = match from_sections(record) {
        Some(message) => message,
        None => of_another_producer(topic, record)?,
    };
    let failed = u32::try_from(delivery.max(1) - 1).unwrap_or(0);
    message.header = Header { first_acquirer: failed == 0, delivery_count: failed, ..message.header };
    Ok(message)
}

fn from_sections(record: &Received) -> Option<Message> {
    let sections = record.headers.iter().rev().find(|(name, _)| &name[..] == SECTIONS.as_bytes());
    let sections = sections?.1.as_ref().filter(|sections| !sections.is_empty())?;
    let mut message = decode_message(sections.slice(1..)).ok()?;
    let value = record.value.clone().unwrap_or_default();
    message.body = match sections[0] {
        b'd' => Body::Data(value),
        b't' => Body::Value(Value::string(std::str::from_utf8(&value).ok()?)),
        b'b' => Body::Value(Value::Binary(value)),
        b's' => message.body,
        _ => return None,
    };
    Some(message)
}

fn of_another_producer(topic: &str, record: &Received) -> Result<Message, String> {
    let rules =
        MessageRules { reads_headers: true, durability: Durability::AsSource, ..MessageRules::default() };
    let mut message = crate::message(&rules, false, crate::Marks::None, "kafka", topic, record)?;
    let Some(key) = &record.key else { return Ok(message) };
    match std::str::from_utf8(key) {
        Ok(text) if message.properties.group_id.is_none() => {
            message.properties.group_id = Some(text.to_owned());
        }
        Ok(_) => {}
        Err(_) => message.annotations.push((Value::symbol(KEY_ANNOTATION), Value::Binary(key.clone()))),
    }
    Ok(message)
}

/// When a message ends, in ms since 1970: after its time to live, counted from the record's time, or at its
/// absolute-expiry-time.
pub fn expires_at_ms(message: &Message, record: &Received) -> Option<i64> {
    let ttl = message.header.ttl_ms.filter(|ttl| *ttl > 0);
    let by_ttl = ttl.map(|ttl| record.timestamp_ms.saturating_add(ttl.into()));
    let absolute = message.properties.absolute_expiry_time_ms.filter(|at| *at > 0);
    by_ttl.into_iter().chain(absolute).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_amqp::Properties;
    use barnabas_base::{Offset, PartitionIndex};

    fn received(record: Outgoing) -> Received {
        Received {
            partition: PartitionIndex(0),
            offset: Offset(7),
            timestamp_ms: 1000,
            dated_by_broker: false,
            key: record.key,
            value: record.value,
            headers: record.headers,
        }
    }

    fn sent(body: Body) -> Message {
        Message {
            header: Header { durable: true, priority: 9, ttl_ms: Some(50), ..Header::default() },
            annotations: vec![(Value::symbol("x-opt-jms-msg-type"), Value::Byte(5))],
            properties: Properties {
                message_id: Some(Value::Ulong(3)),
                group_id: Some("g".to_owned()),
                ..Properties::default()
            },
            application: vec![("n".to_owned(), Value::Int(-7)), ("f".to_owned(), Value::Float(1))],
            body,
        }
    }

    #[test]
    fn message_survives_the_way_through_a_topic() {
        for body in [
            Body::Data(Bytes::from_static(b"\x00raw")),
            Body::Value(Value::string("text")),
            Body::Value(Value::Binary(Bytes::from_static(b"\xff"))),
            Body::Value(Value::Null),
            Body::Value(Value::Map(vec![(Value::string("a"), Value::Int(1))])),
            Body::Sequence(vec![Value::Bool(true)]),
        ] {
            let sent = sent(body);
            let record = record(&sent).expect("converted");
            assert_eq!(record.key.as_deref(), Some(&b"g"[..]));
            assert_eq!(record.value, crate::value(&sent.body));
            let back = message("t", &received(record), 3).expect("converted");
            assert_eq!((back.header.delivery_count, back.header.first_acquirer), (2, false));
            let header = Header { delivery_count: 0, first_acquirer: false, ..back.header };
            assert_eq!(Message { header, ..back }, sent);
        }
    }

    #[test]
    fn record_of_another_producer_is_a_message() {
        let record = Outgoing {
            key: Some(Bytes::from_static(b"k")),
            value: Some(Bytes::from_static(b"v")),
            headers: vec![
                (Bytes::from_static(b"a"), Some(Bytes::from_static(b"1"))),
                (Bytes::from_static(SECTIONS.as_bytes()), Some(Bytes::from_static(b"d\xff"))),
            ],
            ..Outgoing::default()
        };
        let made = message("t", &received(record), 1).expect("converted");
        assert_eq!(made.body, Body::Data(Bytes::from_static(b"v")));
        assert_eq!(made.properties.group_id.as_deref(), Some("k"));
        assert_eq!(made.properties.message_id, Some(Value::string("kafka:t:0:7")));
        assert!(made.header.first_acquirer);
    }

    #[test]
    fn message_expires_by_its_ttl_or_its_time() {
        let mut made = sent(Body::None);
        let at = received(Outgoing::default());
        assert_eq!(expires_at_ms(&made, &at), Some(1050));
        made.properties.absolute_expiry_time_ms = Some(1020);
        assert_eq!(expires_at_ms(&made, &at), Some(1020));
        made.properties.absolute_expiry_time_ms = None;
        made.header.ttl_ms = Some(0);
        assert_eq!(expires_at_ms(&made, &at), None);
    }
}
