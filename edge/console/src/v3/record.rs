//! One record of the produce API: from JSON to bytes, and the report about it.
//!
//! `data` of type JSON is stored as it was written, so that no number changes.

use super::timestamps;
use crate::http::call::Fields;
use crate::http::problem::{Dialect, Problem};
use crate::kafka::records::produce::{NewRecord, Stored};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

/// A record, and what its report repeats.
#[derive(Debug)]
pub struct Parsed {
    pub record: NewRecord,
    pub key: Part,
    pub value: Part,
}

/// A key or a value: the type that the caller named, and the bytes.
#[derive(Debug, Default)]
pub struct Part {
    kind: Option<&'static str>,
    bytes: Option<Bytes>,
}

/// Confluent's proxy refuses other fields too, with 400 (confluentinc/kafka-rest#1071).
pub const RECORD: &[&str] = &["partition_id", "headers", "key", "value", "timestamp"];
/// Those of schemas are known, and their types refused.
const PART: &[&str] =
    &["type", "data", "subject", "subject_name_strategy", "schema_id", "schema_version", "schema"];

/// # Errors
/// 400: it is no JSON object, has a field that no record has, or a type that needs a schema.
pub fn parse(text: &[u8]) -> Result<Parsed, Problem> {
    let fields = Fields::read(text)?;
    fields.only(RECORD)?;
    of_fields(&fields)
}

/// # Errors
/// As [`parse`].
pub fn of_fields(fields: &Fields) -> Result<Parsed, Problem> {
    let (key, value) = (part(fields, "key")?, part(fields, "value")?);
    let timestamp_ms = match fields.text("timestamp")? {
        None => timestamps::now_ms(),
        Some(text) => timestamps::read(&text).ok_or_else(|| {
            Problem::bad(format!(
                "timestamp takes a time such as 2026-11-28T08:00:00Z, not '{}'",
                text.escape_debug()
            ))
        })?,
    };
    let mut headers = Vec::new();
    for header in fields.objects("headers")? {
        header.only(&["name", "value"])?;
        let value = header.text("value")?.map(|text| binary("a header's value", &text)).transpose()?;
        headers.push((Bytes::from(header.needed_text("name")?), value));
    }
    let partition = fields.number("partition_id")?;
    let record =
        NewRecord { partition, key: key.bytes.clone(), value: value.bytes.clone(), headers, timestamp_ms };
    Ok(Parsed { record, key, value })
}

fn part(fields: &Fields, name: &str) -> Result<Part, Problem> {
    let Some(text) = fields.raw(name) else { return Ok(Part::default()) };
    let part = Fields::read(text.as_bytes())
        .map_err(|_| Problem::bad(format!("{name} takes an object with type and data")))?;
    part.only(PART)?;
    let Some(data) = part.raw("data") else { return Ok(Part::default()) };
    match part.text("type")?.as_deref() {
        Some("BINARY") => {
            let text = part.needed_text("data")?;
            Ok(Part { kind: Some("BINARY"), bytes: Some(binary(name, &text)?) })
        }
        Some("STRING") => {
            Ok(Part { kind: Some("STRING"), bytes: Some(Bytes::from(part.needed_text("data")?)) })
        }
        Some("JSON") => Ok(Part { kind: Some("JSON"), bytes: Some(Bytes::from(data.to_owned())) }),
        given => Err(Problem::bad(format!(
            "{name}: type takes BINARY, JSON or STRING, not {}. Schemas are not supported",
            given.unwrap_or("nothing").escape_debug()
        ))),
    }
}

fn binary(name: &str, text: &str) -> Result<Bytes, Problem> {
    let wrong = |error| Problem::bad(format!("{name} is not base64: {error}"));
    STANDARD.decode(text).map(Bytes::from).map_err(wrong)
}

/// The delivery report of one record.
pub fn report(cluster: &str, topic: &str, parsed: &Parsed, stored: &Stored) -> Value {
    let part = |part: &Part| {
        part.kind.map(|kind| json!({ "type": kind, "size": part.bytes.as_ref().map_or(0, Bytes::len) }))
    };
    let mut report = json!({
        "error_code": 200,
        "cluster_id": cluster,
        "topic_name": topic,
        "partition_id": stored.partition,
        "offset": stored.offset,
        "timestamp": timestamps::write(stored.timestamp_ms),
    });
    for (name, part) in [("key", part(&parsed.key)), ("value", part(&parsed.value))] {
        if let Some(part) = part {
            report[name] = part;
        }
    }
    report
}

/// The report of a record that was refused.
pub fn failure(problem: &Problem) -> Value {
    problem.document(Dialect::V3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_stored_as_written() {
        let text = br#"{"key":{"type":"STRING","data":"k"},"value":{"type":"JSON","data":{"n": 1e400, "m":18446744073709551616}},
            "headers":[{"name":"h","value":"AQI="},{"name":"none"}],"partition_id":3,"timestamp":"1970-01-01T00:00:01Z"}"#;
        let record = parse(text).expect("sound").record;
        assert_eq!(record.value.as_deref(), Some(&br#"{"n": 1e400, "m":18446744073709551616}"#[..]));
        assert_eq!(record.key.as_deref(), Some(&b"k"[..]));
        assert_eq!((record.partition, record.timestamp_ms), (Some(3), 1000));
        assert_eq!(record.headers[0], (Bytes::from("h"), Some(Bytes::from(&b"\x01\x02"[..]))));
        assert_eq!(record.headers[1].1, None);
    }

    #[test]
    fn absent_data_is_null_and_empty_data_is_empty() {
        let value = |text: &str| parse(text.as_bytes()).expect("sound").record.value;
        assert_eq!(value("{}"), None);
        assert_eq!(value(r#"{"value":null}"#), None);
        assert_eq!(value(r#"{"value":{"type":"BINARY","data":null}}"#), None);
        assert_eq!(value(r#"{"value":{"type":"BINARY","data":""}}"#), Some(Bytes::new()));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (text, words) in [
            (r#"{"value":{"type":"AVRO","data":"x"}}"#, "not AVRO"),
            (r#"{"value":{"data":"x"}}"#, "BINARY, JSON or STRING"),
            (r#"{"value":{"type":"BINARY","data":"!"}}"#, "base64"),
            (r#"{"value":"x"}"#, "type and data"),
            (r#"{"timestamp":"yesterday"}"#, "timestamp takes"),
            ("[]", "not a JSON object"),
        ] {
            let problem = parse(text.as_bytes()).expect_err(text);
            assert!(problem.status == 400 && problem.detail.contains(words), "{text}: {}", problem.detail);
        }
    }
}
