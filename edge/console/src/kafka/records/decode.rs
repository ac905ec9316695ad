//! Keys and values of records as JSON, where a request asks for it (`decode=`).
//!
//! | `decode` | of which records |
//! |---|---|
//! | `auto` | of an internal topic by its name; of others those that a schema's id stands before |
//! | `consumer_offsets`, `transaction_state` … | as of that topic, whatever the topic's name is |
//! | `schema` | those that a schema's id stands before |
//!
//! Always true: the bytes are shown too, as they are. What cannot be decoded is so with a reason.

use crate::http::call::Place;
use crate::http::problem::Problem;
use crate::http::shape::{Param, Shape};
use crate::schemas::{IDS_MAX, Schemas};
use barnabas_decoders::{DECODED_BYTES_MAX, Internal, Schema, framed};
use barnabas_wire::records::{Entry, RecordRef, entries};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Of an inflated batch.
pub const INFLATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of the text of a key or a value; the rest is left out.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

pub const DECODE: Param = Param {
    name: "decode",
    shape: Shape::OneOf(&[
        "none",
        "auto",
        "consumer_offsets",
        "transaction_state",
        "share_group_state",
        "cluster_metadata",
        "schema",
    ]),
    about: "Keys and values as JSON too (decoded_key, decoded_value), and json tests what was decoded; absent: none",
};

/// What a request wants decoded.
#[derive(Debug, Clone)]
pub struct Decoding {
    /// `None`: by the schema whose id stands in front.
    internal: Option<Internal>,
    schemas: Option<Arc<Schemas>>,
}

/// A key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    pub format: &'static str,
    pub schema_id: Option<u32>,
    /// The JSON, or why there is none.
    pub text: Result<String, String>,
    /// Of all the text.
    pub size: usize,
}

impl Decoded {
    fn new(format: &'static str, schema_id: Option<u32>, text: Result<String, String>) -> Self {
        let size = text.as_ref().map_or(0, String::len);
        Self { format, schema_id, text, size }
    }

    /// With the first bytes of its text alone.
    pub fn cut(mut self) -> Self {
        if let Ok(text) = &mut self.text {
            text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
            text.shrink_to_fit();
        }
        self
    }

    pub fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }
}

impl Decoding {
    /// What the query says; `None`: nothing.
    ///
    /// # Errors
    /// Another word.
    pub fn of_query(at: &Place) -> Result<Option<Self>, Problem> {
        let internal = match at.query("decode") {
            None | Some("none") => return Ok(None),
            Some("auto") => Internal::of_topic(at.param("topic")),
            Some("schema") => None,
            Some("consumer_offsets") => Some(Internal::Groups),
            Some("transaction_state") => Some(Internal::Transactions),
            Some("share_group_state") => Some(Internal::Shares),
            Some("cluster_metadata") => Some(Internal::Metadata),
            Some(_) => {
                return Err(Problem::bad(
                    "decode takes none, auto, consumer_offsets, transaction_state, share_group_state, \
                     cluster_metadata or schema",
                ));
            }
        };
        Ok(Some(Self { internal, schemas: at.schemas.clone() }))
    }

    /// Has the schemas read that records of this run name, as far as they are not known.
    pub async fn prepare(&self, run: &Bytes) {
        let Some(schemas) = self.schemas.as_ref().filter(|_| self.internal.is_none()) else { return };
        let ids = ids(run, schemas);
        schemas.prepare(ids).await;
    }

    /// Key and value; `None`: there is none, or it names no schema.
    pub fn decode(&self, record: &RecordRef<'_>) -> (Option<Decoded>, Option<Decoded>) {
        let Some(internal) = self.internal else {
            let one = |bytes: Option<&[u8]>| bytes.and_then(|bytes| self.framed(bytes));
            return (one(record.key), one(record.value));
        };
        let (key, value) = internal.decode(record.key, record.value, DECODED_BYTES_MAX);
        let one = |shown: Result<Option<String>, _>, bytes: Option<&[u8]>| {
            let text = shown.map_err(|why: barnabas_decoders::Unreadable| why.to_string()).transpose();
            text.filter(|_| bytes.is_some()).map(|text| Decoded::new("internal", None, text))
        };
        (one(key, record.key), one(value, record.value))
    }

    /// The value as JSON; `None`: it cannot be decoded.
    pub fn value(&self, record: &RecordRef<'_>) -> Option<String> {
        self.decode(record).1?.text.ok()
    }

    fn framed(&self, bytes: &[u8]) -> Option<Decoded> {
        let (id, payload) = framed(bytes)?;
        let known = self.schemas.as_ref().map_or_else(
            || Err("neither console.schemas.dir nor console.schema.registry.url is set".to_owned()),
            |schemas| schemas.get(id).unwrap_or_else(|| Err("it was not read in time".to_owned())),
        );
        let decoded = match known {
            Ok(schema) => Decoded::new(schema.format(), Some(id), schema.decode(payload, DECODED_BYTES_MAX)),
            // JSON says itself what it is.
            Err(why) => match Schema::Json.decode(payload, DECODED_BYTES_MAX) {
                Ok(text) => Decoded::new("json", Some(id), Ok(text)),
                Err(_) => Decoded::new("unknown", Some(id), Err(format!("schema {id} is not known: {why}"))),
            },
        };
        Some(decoded)
    }
}

/// Ids that stand in front of keys and values of a run, and are not known. What cannot be read has none.
fn ids(run: &Bytes, schemas: &Schemas) -> BTreeSet<u32> {
    let mut ids = BTreeSet::new();
    for entry in entries(run.clone()) {
        let Ok(Entry::Batch(batch)) = entry else { break };
        if batch.header().attributes.is_control() || batch.check_crc().is_err() {
            continue;
        }
        let Ok(records) = batch.records_within(INFLATED_BYTES_MAX) else { continue };
        for record in records.iter() {
            let Ok(record) = record else { break };
            for (id, _) in [record.key, record.value].into_iter().flatten().filter_map(framed) {
                if !ids.contains(&id) && schemas.get(id).is_none() {
                    ids.insert(id);
                }
                if ids.len() >= IDS_MAX {
                    return ids;
                }
            }
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::records::needle::Needle;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{Batch, BatchBuilder, BatchOptions};

    fn place(query: &str, topic: &str) -> Place {
        let query = Place::read_query(Some(query)).expect("sound");
        Place { query, params: vec![("topic", topic.to_owned())], ..Default::default() }
    }

    fn decoding(query: &str, topic: &str) -> Option<Decoding> {
        Decoding::of_query(&place(query, topic)).expect("sound")
    }

    fn with<T>(key: &[u8], value: &[u8], work: impl Fn(&RecordRef<'_>) -> T) -> T {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.push(TimestampMs(1), Some(key), Some(value), &[]);
        let batch = Batch::new(builder.build().expect("built")).expect("a batch");
        let records = batch.records().expect("readable");
        work(&records.iter().next().expect("one").expect("sound"))
    }

    const KEY: &[u8] = &[0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 5];
    /// Offset 9007199254740993, which no double is.
    const VALUE: &[u8] = &[0, 0, 0, 0x20, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

    #[test]
    fn internal_topic_is_decoded_by_its_name() {
        let auto = decoding("decode=auto", "__consumer_offsets").expect("asked for");
        let (key, value) = with(KEY, VALUE, |record| auto.decode(record));
        let key = key.expect("a key");
        assert_eq!((key.format, key.schema_id), ("internal", None));
        assert_eq!(key.text.as_deref(), Ok(r#"{"type":"1","data":{"group":"g","topic":"t","partition":5}}"#));
        let value = value.expect("a value").text.expect("readable");
        assert!(value.contains(r#""offset":9007199254740993,"#), "{value}");
        let as_such = decoding("decode=consumer_offsets", "a-copy").expect("asked for");
        assert!(with(KEY, VALUE, |record| as_such.decode(record)).0.expect("a key").text.is_ok());
        let (key, _) = with(&[0, 99], VALUE, |record| auto.decode(record));
        assert_eq!(key.expect("a key").text, Err("Unknown record type 99".to_owned()));
    }

    #[test]
    fn field_of_what_was_decoded_is_tested() {
        let auto = decoding("decode=auto", "__consumer_offsets");
        let needle = |query: &str| Needle::of_query(&place(query, "t")).expect("sound").expect("a needle");
        let offset = needle("json=data.offset&value=9007199254740993");
        assert!(with(KEY, VALUE, |record| offset.is_in_record(record, auto.as_ref())));
        assert!(!with(KEY, VALUE, |record| offset.is_in_record(record, None)));
        let other = needle("json=data.offset&value=9007199254740992");
        assert!(!with(KEY, VALUE, |record| other.is_in_record(record, auto.as_ref())));
        // What is JSON without a decoder is tested as it is.
        let plain = needle("json=id&value=7");
        assert!(with(b"", br#"{"id":7}"#, |record| plain.is_in_record(record, auto.as_ref())));
    }

    #[test]
    fn framed_value_without_its_schema_says_why() {
        let auto = decoding("decode=auto", "orders").expect("asked for");
        let (none, value) = with(b"k", &[0, 0, 0, 0, 7, 1, 2], |record| auto.decode(record));
        let value = value.expect("framed");
        assert_eq!((none, value.format, value.schema_id), (None, "unknown", Some(7)));
        let why = value.text.expect_err("no schema");
        assert!(why.starts_with("schema 7 is not known: neither console.schemas.dir"), "{why}");
        let (_, json) = with(b"k", b"\0\0\0\0\x07{\"n\":1.50}", |record| auto.decode(record));
        assert_eq!(json.map(|json| (json.format, json.text)), Some(("json", Ok(r#"{"n":1.50}"#.to_owned()))));
        assert_eq!(with(b"k", b"text", |record| auto.decode(record)), (None, None));
    }

    #[test]
    fn long_text_is_cut_between_letters() {
        let long = "\u{e9}".repeat(TEXT_BYTES_MAX);
        let cut = Decoded::new("avro", None, Ok(format!("x{long}"))).cut();
        assert_eq!((cut.size, cut.bytes()), (2 * TEXT_BYTES_MAX + 1, TEXT_BYTES_MAX - 1));
    }

    #[test]
    fn query_takes_its_words_alone() {
        assert!(decoding("decode=none", "t").is_none() && decoding("", "t").is_none());
        assert_eq!(Decoding::of_query(&place("decode=xml", "t")).expect_err("refused").status, 400);
    }

    #[test]
    fn ids_of_a_run_are_bounded() {
        let schemas = crate::schemas::Places { directory: Some("/nowhere".into()), registry: None };
        let schemas = Schemas::new(schemas).expect("a place");
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for id in 0..100_u32 {
            let value = [&[0][..], &id.to_be_bytes(), b"x"].concat();
            builder.push(TimestampMs(1), Some(b"text"), Some(&value), &[]);
        }
        assert_eq!(ids(&builder.build().expect("built"), &schemas).len(), IDS_MAX);
    }
}
