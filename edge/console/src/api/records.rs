//! Records of a topic: from the oldest, the newest, an offset or a time on, of one partition or of all, merged by time.
//!
//! Keys, values and headers go out as base64: what they are is for the reader to say, and nothing changes on the way.
//!
//! `places` reads the query.

use super::places::{self, FROM, From, LIMITED, OFFSET, PARTITION, TIME};
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, List, Object, OrNull, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Shape, TEXT_OR_NULL};
use crate::kafka::metadata;
use crate::kafka::records::decode::{DECODE, Decoded, Decoding};
use crate::kafka::records::fetch::{self, Page, Part, Shown};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use tokio::sync::Semaphore;

/// Answers that are made at a time: each holds two pages of records.
static PAGES: Semaphore = Semaphore::const_new(4);

/// `size` counts all bytes, `base64` has the first of them.
const PART: Shape = Object(&[("size", Int), ("base64", Text)]);
const HEADER: Shape = Object(&[("key", PART), ("value", OrNull(&PART))]);
/// `size` counts all bytes of the JSON, `json` has the first of them. Without it `trouble` says why.
const DECODED: Shape = Object(&[
    ("format", Text),
    ("schema_id", INT_OR_NULL),
    ("size", Int),
    ("json", TEXT_OR_NULL),
    ("trouble", TEXT_OR_NULL),
]);
pub const RECORD: Shape = Object(&[
    ("partition", Int),
    ("offset", Int),
    ("timestamp_ms", Int),
    ("is_append_time", Bool),
    ("key", OrNull(&PART)),
    ("value", OrNull(&PART)),
    ("headers", List(&HEADER)),
    ("producer_id", INT_OR_NULL),
    ("is_transactional", Bool),
    ("control", TEXT_OR_NULL),
    ("codec", Text),
    ("decoded_key?", OrNull(&DECODED)),
    ("decoded_value?", OrNull(&DECODED)),
]);
const READ: Shape =
    Object(&[("partition", Int), ("from", Int), ("next", Int), ("end", Int), ("trouble", TEXT_OR_NULL)]);
pub const LIST: Doc = Doc::get(
    "Records, merged by time",
    &[FROM, OFFSET, TIME, PARTITION, LIMITED, DECODE],
    Object(&[("data", List(&RECORD)), ("partitions", List(&READ))]),
);

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let (from, limit) = (From::read(&call.at, From::Newest)?, places::limit(&call.at)?);
    let decoding = Decoding::of_query(&call.at)?;
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    let wanted = places::wanted(&call.at, &topic)?;
    let spans = places::spans(&mut call.cluster, &wanted, from, limit).await?;
    let _place = PAGES.acquire().await.map_err(|error| Problem::bad(error.to_string()))?;
    let is_newest = from == From::Newest;
    let (mut records, mut partitions) = (Vec::new(), Vec::new());
    for ((_, partition), span) in spans {
        let (start, page) = match span {
            Ok((start, _)) => (
                start,
                fetch::fetch(&mut call.cluster, &topic, partition, start, (limit, decoding.as_ref())).await?,
            ),
            Err(code) => {
                let trouble = Some(code.name().to_owned());
                (-1, Page { next: -1, high_watermark: -1, trouble, ..Default::default() })
            }
        };
        partitions.push((partition, start, page.next, page.high_watermark, page.trouble));
        records.extend(page.records);
        // After each partition, so that no more than two pages are held.
        records = merged(records, limit, is_newest);
    }
    let row = |(partition, start, next, end, trouble): (i32, i64, i64, i64, Option<String>)| {
        // Those that were left out are the next ones.
        let last = records.iter().filter(|one| one.partition == partition).map(|one| one.offset).max();
        let next = if is_newest { next } else { last.map_or(start, |last| last + 1).min(next) };
        json!({ "partition": partition, "from": start, "next": next, "end": end, "trouble": trouble })
    };
    let partitions: Vec<Value> = partitions.into_iter().map(row).collect();
    let rows: Vec<Value> = records.iter().map(document).collect();
    Ok(Answer::json(json!({ "data": rows, "partitions": partitions })))
}

/// Merges partitions by time, each in the order of its offsets, whatever its times are. The newest are the last
/// `limit` of all, else the first are kept: of each partition a run from where it was read.
fn merged(records: Vec<Shown>, limit: usize, is_newest: bool) -> Vec<Shown> {
    let mut partitions: BTreeMap<i32, VecDeque<Shown>> = BTreeMap::new();
    for record in records {
        partitions.entry(record.partition).or_default().push_back(record);
    }
    partitions.values_mut().for_each(|rows| rows.make_contiguous().sort_by_key(|row| row.offset));
    let mut merged = VecDeque::new();
    while merged.len() < limit {
        let heads = partitions.iter().filter_map(|(partition, rows)| {
            let head = if is_newest { rows.back() } else { rows.front() };
            Some((head?.timestamp_ms, *partition))
        });
        let next = if is_newest { heads.max() } else { heads.min() };
        let Some(rows) = next.and_then(|(_, partition)| partitions.get_mut(&partition)) else { break };
        if is_newest {
            rows.pop_back().into_iter().for_each(|row| merged.push_front(row));
        } else {
            merged.extend(rows.pop_front());
        }
    }
    merged.into()
}

pub fn document(record: &Shown) -> Value {
    let header =
        |(key, value): &(Part, Option<Part>)| json!({ "key": part(key), "value": value.as_ref().map(part) });
    let mut document = json!({
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "is_append_time": record.is_append_time,
        "key": record.key.as_ref().map(part),
        "value": record.value.as_ref().map(part),
        "headers": record.headers.iter().map(header).collect::<Vec<_>>(),
        "producer_id": (record.producer_id >= 0).then_some(record.producer_id),
        "is_transactional": record.is_transactional,
        "control": record.control,
        "codec": record.codec,
    });
    if let Some((key, value)) = &record.decoded {
        document["decoded_key"] = key.as_ref().map(decoded).into();
        document["decoded_value"] = value.as_ref().map(decoded).into();
    }
    document
}

fn decoded(decoded: &Decoded) -> Value {
    json!({
        "format": decoded.format,
        "schema_id": decoded.schema_id,
        "size": decoded.size,
        "json": decoded.text.as_ref().ok(),
        "trouble": decoded.text.as_ref().err(),
    })
}

/// `size` counts all bytes; `base64` has the first of them.
fn part(part: &Part) -> Value {
    json!({ "size": part.size, "base64": STANDARD.encode(&part.bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(partition: i32, offset: i64, timestamp_ms: i64) -> Shown {
        Shown {
            partition,
            offset,
            timestamp_ms,
            is_append_time: false,
            key: None,
            value: Some(Part::of(b"")),
            headers: Vec::new(),
            producer_id: -1,
            is_transactional: false,
            control: None,
            codec: "none",
            decoded: None,
        }
    }

    #[test]
    fn partitions_are_merged_by_time() {
        let all = || vec![record(0, 7, 30), record(0, 8, 50), record(1, 3, 10), record(1, 4, 40)];
        // Its times run backwards.
        let odd = || vec![record(0, 1, 90), record(0, 2, 10), record(1, 1, 50)];
        let offsets = |records: Vec<Shown>| records.iter().map(|one| one.offset).collect::<Vec<_>>();
        assert_eq!(offsets(merged(all(), 3, true)), [7, 4, 8]);
        assert_eq!(offsets(merged(all(), 3, false)), [3, 7, 4]);
        assert_eq!(offsets(merged(odd(), 2, false)), [1, 1]);
        assert_eq!(offsets(merged(odd(), 9, false)), [1, 1, 2]);
        assert_eq!(offsets(merged(odd(), 9, true)), [1, 2, 1]);
    }

    #[test]
    fn null_and_empty_differ_and_long_values_are_cut() {
        let shown = document(&record(0, 1, 2));
        assert_eq!((&shown["key"], &shown["value"]["size"]), (&Value::Null, &json!(0)));
        let long = part(&Part::of(&[b'x'; fetch::SHOWN_BYTES_MAX + 1]));
        assert_eq!(long["size"], fetch::SHOWN_BYTES_MAX + 1);
        let bytes = STANDARD.decode(long["base64"].as_str().expect("text")).expect("base64");
        assert_eq!(bytes.len(), fetch::SHOWN_BYTES_MAX);
    }
}
