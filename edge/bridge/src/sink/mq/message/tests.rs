//! Records and the messages of MQ that they become.

use super::*;
use barnabas_base::{Offset, PartitionIndex};
use barnabas_mq::{Rfh2, read_rfh2};

fn record(value: Option<&'static str>, headers: &[(&'static str, &'static str)]) -> Received {
    let header =
        |(name, value): &(&'static str, &'static str)| (Bytes::from(*name), Some(Bytes::from(*value)));
    Received {
        partition: PartitionIndex(3),
        offset: Offset(7),
        timestamp_ms: 1000,
        dated_by_broker: false,
        key: Some(Bytes::from_static(b"key")),
        value: value.map(Bytes::from),
        headers: headers.iter().map(header).collect(),
    }
}

fn made(rules: &MessageRules, is_jms: bool, record: &Received) -> (Descriptor, Option<Rfh2>, Bytes) {
    let (md, data) = message(rules, is_jms, "n", "t", record).expect("a message");
    if md.format != FORMAT_RFH2 {
        return (md, None, data);
    }
    let rfh2 = read_rfh2(&data, md.encoding).expect("properties");
    let body = data.slice(rfh2.raw.len()..);
    (md, Some(rfh2), body)
}

#[test]
fn plain_bytes_have_no_properties_and_the_same_id_each_time() {
    let rules = MessageRules::default();
    let (md, rfh2, body) = made(&rules, false, &record(Some("v"), &[("a", "1")]));
    assert_eq!((md.format, rfh2, &body[..]), (FORMAT_NONE, None, &b"v"[..]));
    assert_eq!((md.persistence, md.expiry, md.priority), (1, -1, 4));
    let again = made(&rules, false, &record(Some("other"), &[])).0.msg_id;
    assert_eq!(md.msg_id, again);
    let next = Received { offset: Offset(8), ..record(Some("v"), &[]) };
    assert_ne!(md.msg_id, made(&rules, false, &next).0.msg_id);
}

#[test]
fn jms_message_has_its_headers_and_typed_properties() {
    let rules = MessageRules {
        reads_headers: true,
        is_text: true,
        key_is_correlation: true,
        offset_property: Some("at".to_owned()),
        reply_to: Some("queue://QM/ANSWERS".to_owned()),
        ttl_ms: 150,
        durability: Durability::AsSource,
        ..MessageRules::default()
    };
    let headers = [
        ("JMSDeliveryMode", "1"),
        ("JMSCorrelationID", "old"),
        ("JMSType", "order"),
        ("n", "5"),
        ("d", "2.5"),
        ("b", "true"),
        ("s", "05"),
        ("no name", "1"),
    ];
    let (md, rfh2, body) = made(&rules, true, &record(Some("text"), &headers));
    let rfh2 = rfh2.expect("properties");
    assert_eq!((rfh2.format, &body[..]), (FORMAT_STRING, &b"text"[..]));
    assert_eq!((md.persistence, md.expiry, md.msg_type), (0, 2, 1));
    assert_eq!(
        (barnabas_mq::trimmed(&md.reply_to_q), &md.correl_id[..4]),
        ("ANSWERS".to_owned(), &b"key\0"[..])
    );
    let all: Vec<_> = rfh2
        .properties
        .iter()
        .map(|one| (&one.name[..], one.kind.as_deref(), one.value.as_deref().unwrap_or_default()))
        .collect();
    let wanted = [
        ("Msd", None, "jms_text"),
        ("Type", None, "order"),
        ("n", Some("i8"), "5"),
        ("d", Some("r8"), "2.5"),
        ("b", Some("boolean"), "1"),
        ("s", None, "05"),
        ("at", Some("i8"), "7"),
        ("Cid", None, "key"),
    ];
    assert_eq!(all, wanted);
}

#[test]
fn value_that_is_no_text_or_no_json_is_refused() {
    let text = MessageRules { is_text: true, ..MessageRules::default() };
    let json = MessageRules { is_json: true, ..MessageRules::default() };
    let wrong = Received { value: Some(Bytes::from_static(b"\xff")), ..record(None, &[]) };
    assert!(message(&text, true, "n", "t", &wrong).expect_err("no text").contains("not a text"));
    assert!(message(&json, true, "n", "t", &wrong).expect_err("no JSON").contains("not JSON"));
    let (md, rfh2, body) = made(&text, true, &record(None, &[]));
    assert_eq!((md.format, rfh2.map(|rfh2| rfh2.format), body.len()), (FORMAT_RFH2, Some(FORMAT_NONE), 0));
}

#[test]
fn key_that_is_an_id_of_mq_is_the_correlation_id() {
    let rules = MessageRules { key_is_correlation: true, ..MessageRules::default() };
    let key = Some(Bytes::from(jms::id_text(&[0xab; 24])));
    let (md, rfh2, _) = made(&rules, false, &Received { key, ..record(Some("v"), &[]) });
    assert_eq!((md.correl_id, rfh2), ([0xab; 24], None));
}
