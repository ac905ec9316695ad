//! Confluent's wire format: a zero, the schema's id as four bytes, and the value as the schema says.
//!
//! | kind of schema | what follows the id |
//! |---|---|
//! | AVRO | the value in Avro's binary encoding |
//! | JSON | the value as JSON text |

use crate::{TOO_LONG, avro};
use serde_json::value::RawValue;

const MAGIC: u8 = 0;

/// The schema's id, and what follows; `None`: the bytes are not framed so.
pub fn framed(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, payload) = bytes.split_first_chunk::<5>()?;
    let [MAGIC, id @ ..] = *head else { return None };
    let id = u32::from_be_bytes(id);
    i32::try_from(id).ok().map(|_| (id, payload))
}

/// A schema that an id stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    Avro(avro::Schema),
    /// JSON says itself what it is: the schema only narrows it.
    Json,
}

impl Schema {
    /// `kind`: as a registry names it; `references`: the texts of the schemas that this one uses.
    ///
    /// # Errors
    /// It is no such schema, or of a kind that is not known.
    pub fn parse(kind: &str, references: &[String], text: &str) -> Result<Self, String> {
        match kind {
            "AVRO" => avro::Schema::parse(references, text).map(Self::Avro),
            "JSON" => Ok(Self::Json),
            other => Err(format!("schemas of the kind {other} are not decoded")),
        }
    }

    /// How a decoded value calls its format.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Avro(_) => "avro",
            Self::Json => "json-schema",
        }
    }

    /// The value as JSON, `bytes_max` of it at most.
    ///
    /// # Errors
    /// `payload` is no value of the schema; the text is too long or nested too deeply.
    pub fn decode(&self, payload: &[u8], bytes_max: usize) -> Result<String, String> {
        match self {
            Self::Avro(schema) => schema.decode(payload, bytes_max),
            Self::Json => json(payload, bytes_max),
        }
    }
}

/// JSON as it is written.
fn json(payload: &[u8], bytes_max: usize) -> Result<String, String> {
    let value: &RawValue = serde_json::from_slice(payload).map_err(|why| format!("it is no JSON: {why}"))?;
    if value.get().len() > bytes_max { Err(TOO_LONG.to_owned()) } else { Ok(value.get().to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_names_its_schema() {
        assert_eq!(framed(&[0, 0, 0, 1, 2, 7]), Some((258, &[7][..])));
        assert_eq!(framed(&[0, 0, 0, 0, 9]), Some((9, &[][..])));
        for other in [&[][..], &[0, 0, 0, 0], &[1, 0, 0, 0, 9], &[0, 0x80, 0, 0, 0], b"text of a user"] {
            assert_eq!(framed(other), None);
        }
    }

    #[test]
    fn json_stays_as_it_is_written() {
        let schema = Schema::parse("JSON", &[], "{}").expect("JSON");
        let text = r#"{"n":12345678901234567890.10, "a":[]}"#;
        assert_eq!(schema.decode(text.as_bytes(), 100).as_deref(), Ok(text));
        assert_eq!(schema.decode(text.as_bytes(), 10), Err(TOO_LONG.to_owned()));
        assert!(schema.decode(b"{", 100).expect_err("torn").starts_with("it is no JSON"));
        assert!(schema.decode("[".repeat(100_000).as_bytes(), 1 << 20).is_err());
    }

    #[test]
    fn kind_that_is_not_known_is_named() {
        assert_eq!(
            Schema::parse("XML", &[], "").expect_err("refused"),
            "schemas of the kind XML are not decoded"
        );
    }
}
