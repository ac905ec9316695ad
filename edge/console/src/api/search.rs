//! Records that contain a text, or match a regular expression. One request looks at a bounded part of the topic and
//! says what it has not looked at. Its cursor goes on from there, up to the ends that the partitions had at the first
//! request.
//!
//! | bound | value |
//! |---|---|
//! | a request | [`BYTES_MAX`] of records' keys, values and headers, [`WITHIN`], `limit` records that are found |
//! | requests at a time | [`SEARCHES_MAX`]; more are 429 |
//!
//! It reads what a consumer would read, piece by piece. `stream` searches whole partitions, the node's own beside the
//! log.

pub mod stream;

use super::places::{self, From, LIMITED, OFFSET, PARTITION, PARTITIONS_MAX, TIME};
use super::records::{RECORD, document};
use crate::http::call::{Answer, Call, Place};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Int, List, Object, OneOf, Text};
use crate::http::shape::{Doc, Param, Shape, TEXT_OR_NULL};
use crate::kafka::records::decode::{DECODE, Decoding};
use crate::kafka::records::fetch::{self, Page, Shown, Want};
use crate::kafka::records::needle::{IGNORE_CASE, JSON, Needle, OPERATION, PARTS, REGEX, TEXT, VALUE};
use crate::kafka::{metadata, offsets};
use barnabas_client::Cluster;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::StatusCode;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const SEARCHES_MAX: usize = 2;
static SEARCHES: Semaphore = Semaphore::const_new(SEARCHES_MAX);
const BYTES_MAX: u64 = 64 * 1024 * 1024;
const WITHIN: Duration = Duration::from_secs(3);
/// Of what is found, in one answer.
const FOUND_BYTES_MAX: usize = 4 * 1024 * 1024;

const READ: Shape = Object(&[("partition", Int), ("next", Int), ("end", Int), ("trouble", TEXT_OR_NULL)]);
const FROM: Param = Param {
    name: "from",
    shape: OneOf(&["oldest", "offset", "time"]),
    about: "Where to begin; absent: oldest",
};
const TO_OFFSET: Param =
    Param { name: "to_offset", shape: Int, about: "Where to end: the first offset that is not searched" };
const TO_TIME: Param = Param {
    name: "to_time",
    shape: Int,
    about: "Where to end: at the first record of that time or later, in milliseconds since 1970",
};
const CURSOR: Param =
    Param { name: "cursor", shape: Text, about: "`next` of the answer before, of the same search" };
pub const SEARCH: Doc = Doc::get(
    "Records that contain a text or match an expression, in a bounded part of the topic",
    &[
        TEXT,
        REGEX,
        IGNORE_CASE,
        PARTS,
        JSON,
        OPERATION,
        VALUE,
        DECODE,
        FROM,
        OFFSET,
        TIME,
        TO_OFFSET,
        TO_TIME,
        PARTITION,
        LIMITED,
        CURSOR,
    ],
    Object(&[
        ("data", List(&RECORD)),
        ("partitions", List(&READ)),
        ("scanned", Object(&[("records", Int), ("bytes", Int)])),
        ("not_scanned", Int),
        ("next", TEXT_OR_NULL),
    ]),
);

/// What is still to be looked at of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reach {
    partition: i32,
    next: i64,
    end: i64,
    trouble: Option<String>,
    /// Asked again after a change of its leader; once in each request.
    is_again: bool,
}

impl Reach {
    fn new(partition: i32, (next, end): (i64, i64)) -> Self {
        Self { partition, next, end, trouble: None, is_again: false }
    }

    fn left(&self) -> i64 {
        (self.end - self.next).max(0)
    }

    fn is_open(&self) -> bool {
        self.left() > 0 && self.trouble.is_none()
    }
}

pub async fn search(call: &mut Call) -> Result<Answer, Problem> {
    let missing = || Problem::bad("a search takes text, regex or json");
    let needle = Needle::of_query(&call.at)?.ok_or_else(missing)?;
    let decoding = Decoding::of_query(&call.at)?;
    let limit = places::limit(&call.at)?;
    let Ok(_place) = SEARCHES.try_acquire() else {
        let detail = format!("{SEARCHES_MAX} searches run already: try again in some seconds");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    };
    let name = call.at.param("topic").to_owned();
    let mut topic = metadata::topic(&mut call.cluster, &name).await?;
    let mut reaches = match call.at.query("cursor") {
        Some(cursor) => read(cursor)?,
        None => begin(&mut call.cluster, &call.at, &topic, PARTITIONS_MAX).await?,
    };
    let mut found = Found { limit, ..Default::default() };
    let until = Instant::now() + WITHIN;
    let mut at = 0;
    while let Some(reach) = next_open(&mut reaches, &mut at) {
        if !step(&mut call.cluster, &topic, reach, (&needle, decoding.as_ref(), &mut found)).await? {
            topic = metadata::topic(&mut call.cluster, &name).await?;
        }
        if found.is_enough() || Instant::now() >= until {
            break;
        }
    }
    let partition = |reach: &Reach| {
        json!({
            "partition": reach.partition,
            "next": reach.next,
            "end": reach.end,
            "trouble": reach.trouble,
        })
    };
    Ok(Answer::json(json!({
        "data": found.records.iter().map(document).collect::<Vec<_>>(),
        "partitions": reaches.iter().map(partition).collect::<Vec<_>>(),
        "scanned": { "records": found.seen_records, "bytes": found.seen_bytes },
        "not_scanned": reaches.iter().map(Reach::left).sum::<i64>(),
        "next": next(&reaches),
    })))
}

/// What this request has found, and at how much it has looked.
#[derive(Debug, Default)]
struct Found {
    limit: usize,
    records: Vec<Shown>,
    bytes: usize,
    seen_records: u64,
    seen_bytes: u64,
}

impl Found {
    fn is_enough(&self) -> bool {
        self.records.len() >= self.limit || self.bytes >= FOUND_BYTES_MAX || self.seen_bytes >= BYTES_MAX
    }
}

async fn begin(
    cluster: &mut Cluster,
    at: &Place,
    topic: &MetadataResponseTopic,
    partitions_max: usize,
) -> Result<Vec<Reach>, Problem> {
    let from = From::read(at, From::Oldest)?;
    if from == From::Newest {
        return Err(Problem::bad("a search begins at oldest, offset or time"));
    }
    let to_offset = places::number(at, "to_offset")?;
    let to_time = places::number(at, "to_time")?;
    let wanted = places::wanted_of(at, topic, partitions_max)?;
    let spans = places::spans(cluster, &wanted, from, 0).await?;
    let ends = match to_time {
        Some(time) => offsets::list(cluster, &wanted, time).await?,
        None => BTreeMap::new(),
    };
    let mut reaches = Vec::new();
    for (of, span) in spans {
        let trouble = span.err().map(|code| code.name().to_owned());
        let (next, mut end) = span.unwrap_or_default();
        // −1: nothing is that new.
        let at_time = ends.get(&of).copied().and_then(Result::ok).filter(|offset| *offset >= 0);
        for bound in [to_offset, at_time].into_iter().flatten() {
            end = end.min(bound);
        }
        reaches.push(Reach { trouble, ..Reach::new(of.1, (next, end.max(next))) });
    }
    Ok(reaches)
}

/// The next partition in turn that has something left.
fn next_open<'a>(reaches: &'a mut [Reach], at: &mut usize) -> Option<&'a mut Reach> {
    let count = reaches.len();
    let found = (0..count).map(|more| (*at + more) % count).find(|at| reaches[*at].is_open())?;
    *at = found + 1;
    reaches.get_mut(found)
}

/// One Fetch. `false`: the partition's leader is another one now.
async fn step(
    cluster: &mut Cluster,
    topic: &MetadataResponseTopic,
    reach: &mut Reach,
    (needle, decoding, found): (&Needle, Option<&Decoding>, &mut Found),
) -> Result<bool, Problem> {
    let want = Want {
        partition: reach.partition,
        count: found.limit - found.records.len(),
        bytes_max: FOUND_BYTES_MAX,
        until: reach.end,
        needle: Some(needle),
        decoding,
    };
    let mut page = Page::from(reach.next);
    match fetch::step(cluster, topic, &mut page, &want).await {
        Ok(()) => {}
        Err(error) if error.is_retriable() && !reach.is_again => {
            reach.is_again = true;
            return Ok(false);
        }
        Err(error) => match error.code() {
            // It is one partition's, and the others go on.
            Some(code) => {
                reach.trouble = Some(code.name().to_owned());
                return Ok(true);
            }
            None => return Err(error.into()),
        },
    }
    if page.next == reach.next && page.trouble.is_none() {
        page.trouble = Some("the broker gives no records from there on".to_owned());
    }
    (reach.next, reach.trouble) = (page.next.min(reach.end), page.trouble);
    found.seen_records += page.seen_records;
    found.seen_bytes += page.seen_bytes;
    found.bytes += page.bytes;
    found.records.extend(page.records);
    Ok(true)
}

/// The cursor of what is left; `None`: nothing is, or it is in more partitions than a cursor names.
fn next(reaches: &[Reach]) -> Option<String> {
    let open: Vec<Reach> = reaches.iter().filter(|reach| reach.left() > 0).cloned().collect();
    (open.iter().any(Reach::is_open) && open.len() <= PARTITIONS_MAX).then(|| write(&open))
}

/// Some of many, and how many more there were.
#[derive(Debug)]
struct Gaps<T> {
    kept: Vec<T>,
    max: usize,
    left_out: u64,
}

impl<T> Gaps<T> {
    fn new(max: usize) -> Self {
        Self { kept: Vec::new(), max, left_out: 0 }
    }

    fn push(&mut self, one: T) {
        if self.kept.len() < self.max {
            self.kept.push(one);
        } else {
            self.left_out += 1;
        }
    }
}

fn write(reaches: &[Reach]) -> String {
    let rows: Vec<(i32, i64, i64)> =
        reaches.iter().map(|reach| (reach.partition, reach.next, reach.end)).collect();
    URL_SAFE_NO_PAD.encode(json!(rows).to_string())
}

fn read(cursor: &str) -> Result<Vec<Reach>, Problem> {
    let wrong = || Problem::bad("cursor takes the `next` of an answer of the same search");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let rows: Vec<(i32, i64, i64)> = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    let is_sound = |row: &(i32, i64, i64)| row.0 >= 0 && row.1 >= 0 && row.2 >= 0;
    if rows.len() > PARTITIONS_MAX || !rows.iter().all(is_sound) {
        return Err(wrong());
    }
    Ok(rows.into_iter().map(|(partition, next, end)| Reach::new(partition, (next, end))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_goes_on_where_the_search_ended() {
        let reaches = vec![Reach::new(0, (7, 9)), Reach::new(3, (i64::MAX - 1, i64::MAX))];
        assert_eq!(read(&write(&reaches)).expect("sound"), reaches);
        let many: Vec<Reach> = (0..65).map(|partition| Reach::new(partition, (0, 1))).collect();
        for bad in ["", "x", "W1s", &write(&[Reach::new(-1, (0, 1))]), &write(&many)] {
            assert_eq!(read(bad).expect_err(bad).status, 400);
        }
    }

    #[test]
    fn partitions_take_turns_and_those_at_their_end_none() {
        let mut reaches: Vec<Reach> = (0..4).map(|partition| Reach::new(partition, (0, 1))).collect();
        reaches[1].next = 1;
        reaches[2].trouble = Some("unreadable".to_owned());
        let mut at = 0;
        let mut turn = || next_open(&mut reaches, &mut at).map(|reach| reach.partition);
        assert_eq!([turn(), turn(), turn()], [Some(0), Some(3), Some(0)]);
        reaches.iter_mut().for_each(|reach| reach.next = 1);
        assert_eq!(next_open(&mut reaches, &mut at), None);
        assert_eq!(next_open(&mut [], &mut at), None);
    }
}
