//! Records of Kafka's internal topics and of the metadata log as JSON, in the form of Kafka's formatters and of its
//! `DumpLogSegments`: `type` and `data` of a key, `version` and `data` of a value.
//!
//! | file | answers |
//! |---|---|
//! | `json` | bytes to JSON by a schema |
//! | `schema`, `schemas` | the schemas of core/messages, and their list |

mod json;
mod schema;
mod schemas;
#[cfg(test)]
mod tests;

use crate::quoted;
use barnabas_wire::records::{ControlType, EndTxnMarker};
use json::{Cursor, object};
use schema::{Kind, Schema};
use std::cell::Cell;
use std::sync::LazyLock;

static GROUPS: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::GROUPS));
static TRANSACTIONS: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::TRANSACTIONS));
static SHARES: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::SHARES));
static METADATA: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::METADATA));
static CONTROL: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::CONTROL));
static CONSUMER: LazyLock<Vec<Schema>> = LazyLock::new(|| Schema::parse_all(schemas::CONSUMER));

/// Of a member's metadata, as text.
const EMBEDDED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What the records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Internal {
    Groups,
    Transactions,
    Shares,
    /// Of the metadata log.
    Metadata,
}

/// Why a key or a value is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    NoKey,
    UnknownType(i16),
    Bytes(String),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoKey => f.write_str("It has no key"),
            Self::UnknownType(number) => write!(f, "Unknown record type {number}"),
            Self::Bytes(why) => f.write_str(why),
        }
    }
}

/// A key or a value as JSON. `None`: there is none.
pub type Shown = Result<Option<String>, Unreadable>;

impl Internal {
    /// What the records of a topic are; `None`: a topic of users.
    pub fn of_topic(name: &str) -> Option<Self> {
        Some(match name {
            "__consumer_offsets" => Self::Groups,
            "__transaction_state" => Self::Transactions,
            "__share_group_state" => Self::Shares,
            "__cluster_metadata" => Self::Metadata,
            _ => return None,
        })
    }

    /// The key and the value, each with `bytes_max` of text at most. Where the type is unknown, both are unreadable.
    pub fn decode(self, key: Option<&[u8]>, value: Option<&[u8]>, bytes_max: usize) -> (Shown, Shown) {
        let schemas = match self {
            Self::Groups => &GROUPS,
            Self::Transactions => &TRANSACTIONS,
            Self::Shares => &SHARES,
            Self::Metadata => {
                let shown = |bytes| metadata(bytes, &Cell::new(bytes_max)).map_err(Unreadable::Bytes);
                return (Ok(None), value.map(shown).transpose());
            }
        };
        coordinator(schemas, key, value, bytes_max)
    }
}

/// A record of a coordinator's topic: its key says its type.
fn coordinator(
    schemas: &[Schema],
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    bytes_max: usize,
) -> (Shown, Shown) {
    let both = |why: Unreadable| (Err(why.clone()), Err(why));
    let Some(key) = key else { return both(Unreadable::NoKey) };
    let mut cursor = Cursor::new(key);
    let number = match cursor.int16() {
        Ok(number) => number,
        Err(why) => return both(Unreadable::Bytes(why)),
    };
    let of = |kind: Kind| schemas.iter().find(|schema| schema.kind == kind);
    let (Some(key_schema), Some(value_schema)) = (of(Kind::Key(number)), of(Kind::Value(number))) else {
        return both(Unreadable::UnknownType(number));
    };
    let shown = object((key_schema, 0), &mut cursor, &embedded, &Cell::new(bytes_max));
    let key = shown.map(|data| Some(format!(r#"{{"type":"{number}","data":{data}}}"#)));
    let read = |value: &[u8]| -> Result<String, String> {
        let mut cursor = Cursor::new(value);
        let version = cursor.int16()?;
        let data = object((value_schema, version), &mut cursor, &embedded, &Cell::new(bytes_max))?;
        Ok(format!(r#"{{"version":"{version}","data":{data}}}"#))
    };
    (key.map_err(Unreadable::Bytes), value.map(read).transpose().map_err(Unreadable::Bytes))
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
    // What it takes is taken again where it is written.
    object((schema, version), &mut cursor, &|_, _, _| None, &Cell::new(EMBEDDED_BYTES_MAX)).ok()
}

/// A record of the metadata log: a frame of three varints, then the record.
fn metadata(bytes: &[u8], left: &Cell<usize>) -> Result<String, String> {
    let mut cursor = Cursor::new(bytes);
    let frame = cursor.varint()?;
    if frame != 1 {
        return Err(format!("Could not deserialize metadata record due to unknown frame version {frame}"));
    }
    let number = i16::try_from(cursor.varint()?).map_err(|_| "a type that is none".to_owned())?;
    let version = i16::try_from(cursor.varint()?).map_err(|_| "a version that is none".to_owned())?;
    let schema = METADATA.iter().find(|schema| schema.kind == Kind::Record(number));
    let schema = schema.ok_or_else(|| format!("Unknown metadata id {number}"))?;
    let data = object((schema, version), &mut cursor, &|_, _, _| None, left)?;
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
    let left = Cell::new(usize::MAX);
    match object((schema, version), &mut Cursor::new(value), &|_, _, _| None, &left) {
        Ok(json) => format!(" {words} {json}"),
        Err(why) => format!(" {words} cannot be read: {why}"),
    }
}
