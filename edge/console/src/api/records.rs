//! Records of a topic: from the oldest, the newest, an offset or a time on, of one partition or of all, merged by time.
//!
//! Keys, values and headers go out as base64: what they are is for the reader to say, and nothing changes on the way.
//!
//! | query | meaning |
//! |---|---|
//! | `from` | `newest` (the default: the last `limit` of each partition), `oldest`, `offset`, `time` |
//! | `partition` | one partition; absent: all |
//! | `offset`, `time` | for `from=offset`, and for `from=time` in milliseconds since 1970 |
//! | `limit` | at most so many records, 1 to 500; 50 where absent |

use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, List, Object, OneOf, OrNull, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Param, Shape, TEXT_OR_NULL};
use crate::kafka::fetch::{self, Page, Part, Shown};
use crate::kafka::{Partition, metadata, offsets};
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::sync::Semaphore;

const LIMIT: usize = 50;
const LIMIT_MAX: usize = 500;
/// Answers that are made at a time: each holds two pages of records.
static PAGES: Semaphore = Semaphore::const_new(4);
/// Partitions of one answer: each is a request of its own.
const PARTITIONS_MAX: usize = 64;

/// `size` counts all bytes, `base64` has the first of them.
const PART: Shape = Object(&[("size", Int), ("base64", Text)]);
const HEADER: Shape = Object(&[("key", PART), ("value", OrNull(&PART))]);
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
]);
const READ: Shape =
    Object(&[("partition", Int), ("from", Int), ("next", Int), ("end", Int), ("trouble", TEXT_OR_NULL)]);
pub const FROM: Param =
    Param { name: "from", shape: OneOf(&["newest", "oldest", "offset", "time"]), about: "Where to begin" };
pub const OFFSET: Param = Param { name: "offset", shape: Int, about: "With from=offset" };
pub const TIME: Param = Param { name: "time", shape: Int, about: "With from=time: milliseconds since 1970" };
pub const PARTITION: Param = Param { name: "partition", shape: Int, about: "One partition; absent: all" };
pub const LIMITED: Param = Param { name: "limit", shape: Int, about: "At most so many records, 1 to 500" };
pub const LIST: Doc = Doc::get(
    "Records, merged by time",
    &[FROM, OFFSET, TIME, PARTITION, LIMITED],
    Object(&[("data", List(&RECORD)), ("partitions", List(&READ))]),
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Newest,
    Oldest,
    Offset(i64),
    Time(i64),
}

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let (from, limit) = (from(call)?, limit(call)?);
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    let wanted = wanted(call, &topic)?;
    let starts = begin(call, &name, &wanted, from, limit).await?;
    let _place = PAGES.acquire().await.map_err(|error| Problem::bad(error.to_string()))?;
    let is_newest = from == From::Newest;
    let (mut records, mut partitions) = (Vec::new(), Vec::new());
    for ((_, partition), start) in starts {
        let (start, page) = match start {
            Ok(start) => (start, fetch::fetch(&mut call.cluster, &topic, partition, start, limit).await?),
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

fn from(call: &Call) -> Result<From, Problem> {
    let number = |name: &str| {
        let word = call.at.query(name).ok_or_else(|| Problem::bad(format!("{name} is missing")))?;
        word.parse::<i64>()
            .ok()
            .filter(|number| *number >= 0)
            .ok_or_else(|| Problem::bad(format!("{name} takes a number, not '{}'", word.escape_debug())))
    };
    match call.at.query("from") {
        None | Some("newest") => Ok(From::Newest),
        Some("oldest") => Ok(From::Oldest),
        Some("offset") => number("offset").map(From::Offset),
        Some("time") => number("time").map(From::Time),
        Some(_) => Err(Problem::bad("from takes newest, oldest, offset or time")),
    }
}

fn limit(call: &Call) -> Result<usize, Problem> {
    let Some(word) = call.at.query("limit") else { return Ok(LIMIT) };
    let limit = word.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| Problem::bad(format!("limit takes 1 to {LIMIT_MAX}")))
}

fn wanted(call: &Call, topic: &MetadataResponseTopic) -> Result<BTreeSet<Partition>, Problem> {
    let name = topic.name.as_deref().unwrap_or_default();
    let all: BTreeSet<Partition> =
        topic.partitions.iter().map(|row| (name.to_owned(), row.partition_index)).collect();
    match call.at.query("partition") {
        Some(word) => {
            let one = word.parse().ok().map(|index: i32| (name.to_owned(), index));
            let one = one.filter(|one| all.contains(one));
            let missing = || Problem::not_found(format!("{name} has no partition '{}'", word.escape_debug()));
            Ok(BTreeSet::from([one.ok_or_else(missing)?]))
        }
        None if all.len() > PARTITIONS_MAX => Err(Problem::bad(format!(
            "{name} has {} partitions, and one answer reads {PARTITIONS_MAX} at most: name one by partition=",
            all.len()
        ))),
        None => Ok(all),
    }
}

type Starts = BTreeMap<Partition, Result<i64, barnabas_base::ErrorCode>>;

/// Where each partition is read from: always between its start and its end.
async fn begin(
    call: &mut Call,
    name: &str,
    wanted: &BTreeSet<Partition>,
    from: From,
    limit: usize,
) -> Result<Starts, Problem> {
    let ends = offsets::list(&mut call.cluster, wanted, offsets::LATEST).await?;
    let starts = offsets::list(&mut call.cluster, wanted, offsets::EARLIEST).await?;
    let times = match from {
        From::Time(time) => offsets::list(&mut call.cluster, wanted, time).await?,
        _ => Starts::new(),
    };
    if let Some(Err(code)) = ends.values().find(|end| end.is_err_and(is_denied)) {
        return Err(Problem::refused(format!("reading {name}"), code.code(), None));
    }
    let place = |partition: &Partition| {
        let (start, end) = (starts.get(partition).copied()?, ends.get(partition).copied()?);
        let (start, end) = match (start, end) {
            (Ok(start), Ok(end)) => (start, end),
            (Err(code), _) | (_, Err(code)) => return Some(Err(code)),
        };
        let at = match from {
            From::Newest => end - limit as i64,
            From::Oldest => start,
            From::Offset(offset) => offset,
            // −1: nothing is that new.
            From::Time(_) => match times.get(partition).copied()? {
                Ok(-1) => end,
                Ok(offset) => offset,
                Err(code) => return Some(Err(code)),
            },
        };
        Some(Ok(at.clamp(start, end.max(start))))
    };
    Ok(wanted.iter().filter_map(|partition| Some((partition.clone(), place(partition)?))).collect())
}

fn is_denied(code: barnabas_base::ErrorCode) -> bool {
    code == barnabas_base::ErrorCode::TopicAuthorizationFailed
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

fn document(record: &Shown) -> Value {
    let header =
        |(key, value): &(Part, Option<Part>)| json!({ "key": part(key), "value": value.as_ref().map(part) });
    json!({
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
