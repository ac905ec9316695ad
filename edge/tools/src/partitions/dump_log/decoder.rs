//! Keys and values of records: as text, or as JSON by the record's type.

use super::json::{Cursor, object, quoted};
use super::schema::{Kind, Schema};
use super::schemas;
use barnabas_wire::records::{ControlType, EndTxnMarker};
use std::sync::LazyLock;

static GROUPS: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::GROUPS));
static TRANSACTIONS: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::TRANSACTIONS));
static SHARES: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::SHARES));
static METADATA: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::METADATA));
static CONTROL: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::CONTROL));
static CONSUMER: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::CONSUMER));

/// What the records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    Text,
    Groups,
    Transactions,
    Shares,
    Metadata,
}

impl Decoder {
    /// What is printed of a key and a value; `None`: nothing.
    pub fn decode(
        self,
        offset: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> (Option<String>, Option<String>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Text => (key.map(text), value.map(text)),
            Self::Metadata => {
                let told = metadata(value.unwrap_or_default());
                (None, Some(told.unwrap_or_else(|why| format!("Error at {offset}, skipping. {why}"))))
            }
            Self::Groups => coordinator(&GROUPS, offset, key, value),
            Self::Transactions => coordinator(&TRANSACTIONS, offset, key, value),
            Self::Shares => coordinator(&SHARES, offset, key, value),
        }
    }
}

/// A record of a coordinator's topic: its key says its type.
fn coordinator(
    schemas: &[Schema],
    offset: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> (Option<String>, Option<String>) {
    let Some(key) = key else {
        return (Some(format!("Error at offset {offset}, skipping. It has no key")), None);
    };
    let mut cursor = Cursor::new(key);
    let number = cursor.int16();
    let of = |kind: fn(i16) -> Kind| {
        let number = number.as_ref().ok()?;
        schemas.iter().find(|schema| schema.kind == kind(*number))
    };
    let (key_schema, value_schema) = match (&number, of(Kind::Key), of(Kind::Value)) {
        (Ok(_), Some(key), Some(value)) => (key, value),
        (Ok(number), ..) => {
            return (Some(format!("Unknown record type {number} at offset {offset}, skipping.")), None);
        }
        (Err(why), ..) => return (Some(format!("Error at offset {offset}, skipping. {why}")), None),
    };
    let mut told = || -> Result<(String, String), String> {
        let data = object(key_schema, 0, &mut cursor, &embedded)?;
        let number = number.clone()?;
        let key = format!(r#"{{"type":"{number}","data":{data}}}"#);
        let Some(value) = value else { return Ok((key, "<DELETE>".to_owned())) };
        let mut cursor = Cursor::new(value);
        let version = cursor.int16()?;
        let data = object(value_schema, version, &mut cursor, &embedded)?;
        Ok((key, format!(r#"{{"version":"{version}","data":{data}}}"#)))
    };
    match told() {
        Ok((key, value)) => (Some(key), Some(value)),
        Err(why) => (Some(format!("Error at offset {offset}, skipping. {why}")), None),
    }
}

/// The subscription and the assignment of a classic group's member are messages of the consumers' own protocol.
fn embedded(message: &str, field: &str, bytes: &[u8]) -> Option<String> {
    let name = match (message, field) {
        ("GroupMetadataValue", "subscription") => "ConsumerProtocolSubscription",
        ("GroupMetadataValue", "assignment") => "ConsumerProtocolAssignment",
        _ => return None,
    };
    let schema = CONSUMER.iter().find(|schema| schema.name == name)?;
    let mut cursor = Cursor::new(bytes);
    let version = cursor.int16().ok()?;
    object(schema, version, &mut cursor, &|_, _, _| None).ok()
}

/// A record of the metadata log: a frame of three varints, then the record.
fn metadata(bytes: &[u8]) -> Result<String, String> {
    let mut cursor = Cursor::new(bytes);
    let frame = cursor.varint()?;
    if frame != 1 {
        return Err(format!("Could not deserialize metadata record due to unknown frame version {frame}"));
    }
    let number = i16::try_from(cursor.varint()?).map_err(|_| "a type that is none".to_owned())?;
    let version = i16::try_from(cursor.varint()?).map_err(|_| "a version that is none".to_owned())?;
    let schema = METADATA.iter().find(|schema| schema.kind == Kind::Record(number));
    let schema = schema.ok_or_else(|| format!("Unknown metadata id {number}"))?;
    let data = object(schema, version, &mut cursor, &|_, _, _| None)?;
    Ok(format!(r#"{{"type":{},"version":{version},"data":{data}}}"#, quoted(&upper(&schema.name))))
}

/// `TopicRecord` as `TOPIC_RECORD`.
fn upper(name: &str) -> String {
    let mut upper = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !upper.is_empty() {
            upper.push('_');
        }
        upper.push(letter.to_ascii_uppercase());
    }
    upper
}

/// What stands behind a control record.
pub fn control(key: &[u8], value: &[u8]) -> String {
    if let Some(marker) = EndTxnMarker::read(key, value) {
        let kind = if marker.commit { "COMMIT" } else { "ABORT" };
        return format!(" endTxnMarker: {kind} coordinatorEpoch: {}", marker.coordinator_epoch);
    }
    let (words, name) = match ControlType::from_key(key) {
        Some(ControlType::LeaderChange) => ("LeaderChange:", "LeaderChangeMessage"),
        Some(ControlType::SnapshotHeader) => ("SnapshotHeader", "SnapshotHeaderRecord"),
        Some(ControlType::SnapshotFooter) => ("SnapshotFooter", "SnapshotFooterRecord"),
        Some(ControlType::KRaftVersion) => ("KRaftVersion", "KRaftVersionRecord"),
        Some(ControlType::KRaftVoters) => ("KRaftVoters", "VotersRecord"),
        Some(ControlType::Abort | ControlType::Commit) | None => {
            let number = key.get(2..4).map_or(-1, |at| i16::from_be_bytes([at[0], at[1]]));
            return format!(" controlType: UNKNOWN({number})");
        }
    };
    let schema = CONTROL.iter().find(|schema| schema.name == name).expect("it is in the list");
    // Their first field is their version.
    let version = Cursor::new(value).int16().unwrap_or(0);
    match object(schema, version, &mut Cursor::new(value), &|_, _, _| None) {
        Ok(json) => format!(" {words} {json}"),
        Err(why) => format!(" {words} cannot be read: {why}"),
    }
}
