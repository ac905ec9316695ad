//! Messages to records and back.

use super::*;
use barnabas_amqp::{Properties, decode_message, encode_message};
use barnabas_base::{Offset, PartitionIndex};

fn source() -> RecordRules {
    RecordRules { key: Some(KeyHeader::CorrelationId), copies_headers: true, is_json: false }
}

fn sink() -> MessageRules {
    MessageRules { reads_headers: true, is_text: true, ..MessageRules::default() }
}

fn received(record: Outgoing) -> Received {
    Received {
        partition: PartitionIndex(3),
        offset: Offset(14),
        timestamp_ms: record.timestamp_ms.unwrap_or(0),
        dated_by_broker: false,
        key: record.key,
        value: record.value,
        headers: record.headers,
    }
}

fn with(body: Body) -> Message {
    Message { body, ..Message::default() }
}

#[test]
fn properties_and_types_survive_the_way_through_a_topic() {
    let application = vec![
        ("n".to_owned(), Value::Long(-7)),
        ("b".to_owned(), Value::Bool(true)),
        ("d".to_owned(), Value::Double(1.5f64.to_bits())),
        ("s".to_owned(), Value::string("007")),
        (ARTEMIS_DUPLICATE.to_owned(), Value::string("of the source")),
    ];
    let properties = Properties {
        message_id: Some(Value::string("ID:9")),
        correlation_id: Some(Value::string("c")),
        subject: Some("type".to_owned()),
        reply_to: Some("back".to_owned()),
        group_id: Some("g".to_owned()),
        creation_time_ms: Some(77),
        ..Properties::default()
    };
    let body = Body::Value(Value::string("text"));
    let sent =
        Message { properties, application: application.clone(), body: body.clone(), ..Message::default() };
    let record = record(&source(), &sent).expect("converted");
    assert_eq!((record.key.as_deref(), record.timestamp_ms), (Some(&b"c"[..]), Some(77)));
    let back = message(&sink(), true, Marks::Artemis, "n", "t", &received(record)).expect("converted");
    assert_eq!(decode_message(encode_message(&back)).as_ref(), Ok(&back));
    assert_eq!(back.body, body);
    let (p, mut wanted) = (&back.properties, application);
    wanted.pop();
    wanted.push((ARTEMIS_DUPLICATE.to_owned(), Value::string("n:t:3:14")));
    assert_eq!(back.application, wanted);
    assert_eq!(p.correlation_id, sent.properties.correlation_id);
    assert_eq!(
        (&p.subject, &p.reply_to, &p.group_id),
        (&sent.properties.subject, &sent.properties.reply_to, &sent.properties.group_id)
    );
    assert_eq!(p.message_id, Some(Value::string("n:t:3:14")));
    assert_eq!(back.annotations, [(Value::symbol(JMS_TYPE), Value::Byte(JMS_TEXT))]);
}

#[test]
fn each_kind_of_body_has_a_value() {
    let map = vec![
        (Value::string("a"), Value::Int(1)),
        (Value::string("b"), Value::Binary(Bytes::from_static(b"\x00\xff"))),
        (Value::string("u"), Value::Uuid([0x11; 16])),
    ];
    let cases = [
        (Body::Data(Bytes::from_static(b"raw")), Some("raw")),
        (Body::Value(Value::Binary(Bytes::from_static(b"bin"))), Some("bin")),
        (Body::Value(Value::string("text")), Some("text")),
        (Body::None, None),
        (Body::Value(Value::Null), None),
        (
            Body::Value(Value::Map(map)),
            Some(r#"{"a":1,"b":"AP8=","u":"11111111-1111-1111-1111-111111111111"}"#),
        ),
        (Body::Sequence(vec![Value::Bool(true), Value::Null]), Some("[true,null]")),
    ];
    for (body, wanted) in cases {
        let found = record(&source(), &with(body)).expect("converted").value;
        assert_eq!(found.as_deref(), wanted.map(str::as_bytes));
    }
}

#[test]
fn json_builder_refuses_what_is_not_json() {
    let config = RecordRules { is_json: true, ..source() };
    let body = |text: &str| with(Body::Value(Value::string(text)));
    assert!(record(&config, &body("{\"a\":1}")).is_ok());
    assert!(record(&config, &body("{a")).expect_err("refused").starts_with("the body is not JSON"));
}

#[test]
fn sink_writes_bytes_or_text_and_refuses_text_that_is_none() {
    let of = |value: &'static [u8]| {
        received(Outgoing { value: Some(Bytes::from_static(value)), ..Outgoing::default() })
    };
    let made =
        |is_jms, value| message(&sink(), is_jms, Marks::None, "n", "t", &of(value)).map(|made| made.body);
    assert_eq!(made(false, b"\xff"), Ok(Body::Data(Bytes::from_static(b"\xff"))));
    assert_eq!(made(true, b"ok"), Ok(Body::Value(Value::string("ok"))));
    assert!(made(true, b"\xff").is_err());
}

#[test]
fn durability_is_the_files_or_the_records() {
    let with_mode = |mode: &'static [u8]| {
        let headers = vec![(Bytes::from_static(b"JMSDeliveryMode"), Some(Bytes::from_static(mode)))];
        received(Outgoing { headers, ..Outgoing::default() })
    };
    for (durability, mode, wanted) in [
        (Durability::Durable, &b"1"[..], true),
        (Durability::Volatile, b"2", false),
        (Durability::AsSource, b"1", false),
        (Durability::AsSource, b"2", true),
    ] {
        let config = MessageRules { durability, ..sink() };
        let made = message(&config, false, Marks::None, "n", "t", &with_mode(mode)).expect("converted");
        assert_eq!(made.header.durable, wanted, "{durability:?}");
    }
}
