//! Selectors and what they come to.

use super::*;
use crate::{Header, Properties};
use bytes::Bytes;

fn message() -> Message {
    let application = [
        ("age", Value::Int(17)),
        ("weight", Value::Double(61.5f64.to_bits())),
        ("country", Value::string("UK")),
        ("flag", Value::Bool(true)),
        ("code", Value::string("a_b%c")),
        ("bytes", Value::Binary(Bytes::from_static(b"x"))),
        ("huge", Value::Ulong(u64::MAX)),
    ];
    Message {
        header: Header { durable: true, priority: 7, delivery_count: 1, ..Header::default() },
        properties: Properties {
            message_id: Some(Value::Ulong(7)),
            correlation_id: Some(Value::string("c1")),
            subject: Some("car".to_owned()),
            group_id: Some("g".to_owned()),
            creation_time_ms: Some(1000),
            ..Properties::default()
        },
        application: application.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        ..Message::default()
    }
}

/// `None`: unknown.
fn truth(text: &str) -> Option<bool> {
    let selector = Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let found = evaluate::truth(&selector.0, &message());
    assert_eq!(selector.matches(&message()), found == Some(true));
    found
}

#[track_caller]
fn come_to(wanted: Option<bool>, texts: &[&str]) {
    for text in texts {
        assert_eq!(truth(text), wanted, "{text}");
    }
}

#[test]
fn comparisons_are_of_one_kind() {
    come_to(
        Some(true),
        &[
            "age = 17",
            "age <> 18",
            "age < 17.5",
            "17 >= age",
            "weight > 61",
            "weight = 6.15E1",
            "country = 'UK'",
            "flag = TRUE",
            "flag",
            "flag <> false",
            "huge > 9223372036854775807",
            "age = 0x11",
            "age = 021",
            "age = 17L",
            "age > -9223372036854775808",
            ".5 < 1",
            "5. = 5",
        ],
    );
    come_to(
        Some(false),
        &["country = 17", "country <> 17", "country < 'V'", "flag > FALSE", "age = '17'", "Not flag"],
    );
}

#[test]
fn arithmetic_binds_as_in_java() {
    come_to(
        Some(true),
        &[
            "age + 3 * 2 = 23",
            "(age + 3) * 2 = 40",
            "age - 7 - 5 = 5",
            "age / 5 = 3",
            "age / 5.0 = 3.4",
            "-age = -17",
            "- -age = +17",
            "2 * -3 = -6",
            "weight * 2 = 123",
            "1.0 / 0 > 1E300",
        ],
    );
    come_to(None, &["age / 0 = 1", "age + country = 1", "-country = 1", "age + nothing = 1", "flag * 2 = 2"]);
}

#[test]
fn lists_and_ranges() {
    come_to(
        Some(true),
        &[
            "country IN ('FR', 'UK')",
            "country NOT IN ('FR')",
            "age BETWEEN 17 AND 17 + 0",
            "age NOT BETWEEN 18 AND 20",
            "age NOT BETWEEN 1 AND 16 AND flag",
            "age NOT IN ('17')",
        ],
    );
    come_to(
        Some(false),
        &[
            "country in ('u')",
            "age BETWEEN 18 AND 20",
            "country BETWEEN 1 AND 2",
            "age BETWEEN 18 AND nothing",
        ],
    );
    come_to(None, &["nothing IN ('a')", "nothing NOT IN ('a')", "age BETWEEN 1 AND nothing"]);
}

#[test]
fn patterns() {
    come_to(
        Some(true),
        &[
            "country LIKE 'UK'",
            "country LIKE '_K'",
            "country LIKE '%'",
            "country LIKE 'U%'",
            "country LIKE '%U%K%'",
            "country NOT LIKE 'U'",
            "code LIKE 'a\\_b\\%c' ESCAPE '\\'",
            "code LIKE '%!%_' ESCAPE '!'",
            "age NOT LIKE '17'",
        ],
    );
    come_to(Some(false), &["country LIKE 'uk'", "country LIKE '__%_'", "code LIKE 'axb\\%c' ESCAPE '\\'"]);
    come_to(None, &["nothing LIKE '%'", "nothing NOT LIKE '%'"]);
}

#[test]
fn pattern_that_takes_too_long_is_unknown() {
    let pattern = Pattern::new(&format!("%{}b", "a".repeat(2000)), None).expect("sound");
    assert_eq!(pattern.fits(&"a".repeat(1 << 20)), None);
    assert_eq!(pattern.fits(&format!("{}b", "a".repeat(2001))), Some(true));
}

#[test]
fn unknown_is_a_third_truth() {
    come_to(Some(true), &["nothing IS NULL", "bytes IS NULL", "age IS NOT NULL", "nothing = 1 OR flag"]);
    come_to(Some(false), &["nothing IS NOT NULL", "nothing = 1 AND age = 1", "age = 1 AND nothing = 1"]);
    come_to(
        None,
        &[
            "nothing",
            "NOT nothing",
            "nothing = 1 AND flag",
            "nothing = 1 OR age = 1",
            "nothing <> 1",
            "country",
        ],
    );
}

#[test]
fn or_binds_less_than_and_and_not_most() {
    come_to(Some(true), &["flag OR flag AND age = 1", "NOT age = 1", "NOT age = 1 AND flag"]);
    come_to(Some(false), &["(flag OR flag) AND age = 1", "NOT (flag OR age = 1)"]);
}

#[test]
fn identifiers_are_headers_and_properties() {
    come_to(
        Some(true),
        &[
            "JMSMessageID = 'ID:AMQP_ULONG:7'",
            "amqp.message_id = 7",
            "JMSCorrelationID = 'c1'",
            "JMSType = 'car'",
            "amqp.subject = 'car'",
            "JMSDeliveryMode = 'PERSISTENT'",
            "JMSPriority > 6",
            "JMSTimestamp = 1000",
            "JMSXGroupID = 'g'",
            "JMSXDeliveryCount = 2",
            "amqp.delivery_count = 1",
            "JMSRedelivered",
            "amqp.durable",
            "JMSReplyTo IS NULL",
            "amqp.other IS NULL",
            "JMSXGroupSeq IS NULL",
        ],
    );
    // Identifiers have a case.
    come_to(None, &["Age = 17"]);
}

#[test]
fn what_is_no_selector_is_refused_with_its_place() {
    for (text, at) in [
        ("", 1),
        ("  ", 3),
        ("age", 0),
        ("age = ", 7),
        ("age = 17 18", 10),
        ("'text'", 1),
        ("17", 1),
        ("age + 1", 1),
        ("(age = 17", 10),
        ("age = 'x", 7),
        ("age # 1", 5),
        ("'a' IN ('a')", 1),
        ("age IN ()", 9),
        ("age NOT = 1", 9),
        ("age LIKE 1", 10),
        ("age LIKE 'a' ESCAPE 'bc'", 25),
        ("age LIKE '!a' ESCAPE '!'", 10),
        ("flag AND 'x'", 10),
        ("(age = 1) + 1 = 2", 1),
        ("age IS 1", 8),
        ("age = 9223372036854775808", 7),
        ("age = 1x", 7),
        ("é = 1 AND é +", 14),
        ("NOT 1", 5),
    ] {
        let parsed = Selector::parse(text);
        if at == 0 {
            assert!(parsed.is_ok(), "{text}");
        } else {
            assert_eq!(parsed.expect_err(text).at, at, "{text}");
        }
    }
}

#[test]
fn length_and_depth_are_bounded() {
    let nested = |depth: usize| format!("{}flag{}", "(".repeat(depth), ")".repeat(depth));
    come_to(Some(true), &[&nested(DEPTH_MAX)]);
    for text in [
        nested(DEPTH_MAX + 1),
        format!("{}flag", "NOT ".repeat(DEPTH_MAX + 1)),
        format!("{}age = 1", "- ".repeat(DEPTH_MAX + 1)),
        format!("flag{}", " ".repeat(SELECTOR_BYTES_MAX)),
    ] {
        assert!(Selector::parse(&text).is_err(), "{} bytes", text.len());
    }
    // A chain is not deep.
    come_to(
        Some(true),
        &[&format!("flag{}", " AND flag".repeat(400)), &format!("0{} = 900", "+1".repeat(900))],
    );
}

#[test]
fn filter_is_known_by_its_descriptor() {
    let filter = |name: Value, text: Value| Selector::of_filter(&Value::Described(Box::new((name, text))));
    let text = || Value::string("flag");
    for name in [Value::Ulong(CODE), Value::symbol(NAME)] {
        assert!(filter(name, text()).expect("a selector").expect("sound").matches(&message()));
    }
    assert_eq!(filter(Value::Ulong(CODE - 1), text()), None);
    assert_eq!(filter(Value::Ulong(CODE), Value::Int(1)), None);
    assert_eq!(Selector::of_filter(&text()), None);
    assert!(filter(Value::Ulong(CODE), Value::string("(")).expect("a selector").is_err());
}
