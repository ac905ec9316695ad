//! New records of a topic as server-sent events. The id of an event is where each partition goes on (`0:17,3:4`), which
//! browsers send back as `Last-Event-ID`: a tail that was cut goes on without a gap, if it is not too far behind.
//!
//! | event | data |
//! |---|---|
//! | `records` | `data`: records as in `/records`; by partition `skipped`: offsets passed over, and `troubles` |
//! | `problem` | why the tail ends: a problem document |
//! | without a name | nothing: the id alone, so that a client that is gone is noticed |
//!
//! | bound | value |
//! |---|---|
//! | tails at a time | [`TAILS_MAX`]; more are 429 |
//! | a tail | 100 records and 1 MiB four times a second; what is further behind than 1,000 offsets is skipped |
//! | its time | [`ENDS_AFTER`]: a browser asks again, and a changed password holds |
//! | a client that does not read | nothing is fetched for it; it is cut after 30 s, as every answer |

use super::places::{self, From, PARTITION};
use super::records::document;
use crate::http::body::Outgoing;
use crate::http::call::Place;
use crate::http::callers::Lease;
use crate::http::problem::{Dialect, Problem};
use crate::http::shape::{Content, Doc, Param, Shape};
use crate::kafka::metadata;
use crate::kafka::records::decode::{DECODE, Decoding};
use crate::kafka::records::follow::{Following, Round};
use crate::kafka::records::needle::{Needle, REGEX, TEXT};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

const TAILS_MAX: usize = 16;
static TAILS: Semaphore = Semaphore::const_new(TAILS_MAX);
const ENDS_AFTER: Duration = Duration::from_secs(300);
/// Between rounds that bring something, or that no leader waits in.
const PACE: Duration = Duration::from_millis(250);
const QUIET_FOR: Duration = Duration::from_secs(10);
/// Rounds in a row without a leader for a partition, or without an answer.
const FAILURES_MAX: u32 = 40;
/// Events that wait for the client to read them.
const WAITING_MAX: usize = 2;

pub const TAIL: Doc = Doc {
    summary: "New records as they come, as server-sent events",
    query: &[
        TEXT,
        REGEX,
        DECODE,
        PARTITION,
        Param { name: "from", shape: Shape::Text, about: "As Last-Event-ID: 0:17,3:4; absent: the ends" },
    ],
    body: None,
    status: 200,
    content: Content::Events,
};

/// # Errors
/// The topic cannot be read by the caller; too many tails run.
pub async fn stream(
    mut cluster: Lease,
    at: Place,
    headers: &HeaderMap,
) -> Result<Response<Outgoing>, Problem> {
    let Ok(place) = TAILS.try_acquire() else {
        let detail = format!("{TAILS_MAX} tails run already");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    };
    let (needle, decoding) = (Needle::of_query(&at)?, Decoding::of_query(&at)?);
    let topic = metadata::topic(&mut cluster, at.param("topic")).await?;
    let wanted = places::wanted(&at, &topic)?;
    let spans = places::spans(&mut cluster, &wanted, From::Newest, 0).await?;
    let known = headers.get("last-event-id").and_then(|id| id.to_str().ok()).or_else(|| at.query("from"));
    let known = known.map(read_id).transpose()?.unwrap_or_default();
    let mut next = BTreeMap::new();
    for ((_, partition), span) in spans {
        // A partition without a leader is read from its start, once it has one.
        let end = span.map_or(0, |(_, end)| end);
        next.insert(partition, known.get(&partition).copied().unwrap_or(end));
    }
    let mut following = Following { topic, next, needle, decoding };
    // Before the answer begins: a refusal is its status.
    let first = following.round(&mut cluster, true).await?;
    let (events, pieces) = mpsc::channel(WAITING_MAX);
    tokio::spawn(async move {
        let _place = place;
        // Where the client is gone, there is nothing left to do.
        let _ = run(&mut cluster, following, first, &events).await;
    });
    let response = Response::builder().header(CONTENT_TYPE, "text/event-stream");
    Ok(response.body(Outgoing::Pieces(pieces)).expect("invariant: the header is a constant"))
}

/// Until the client is gone, its time is over, or the tail cannot go on.
async fn run(
    cluster: &mut Lease,
    mut following: Following,
    first: Round,
    events: &mpsc::Sender<Bytes>,
) -> Result<(), mpsc::error::SendError<Bytes>> {
    let began = Instant::now();
    let (mut sent, mut failures) = (Instant::now(), 0);
    // An answer begins with its first piece: the client knows at once that it is there.
    events.send(event(&following.next, &first)).await?;
    while began.elapsed() < ENDS_AFTER {
        let asked = tokio::select! {
            () = events.closed() => return Ok(()),
            asked = following.round(cluster, false) => asked,
        };
        let round = match asked {
            Ok(round) => round,
            Err(error) => return events.send(problem(&error.into())).await,
        };
        failures = if round.has_moved { failures + 1 } else { 0 };
        if failures > FAILURES_MAX {
            let detail = "a partition has no leader, or its leader does not answer";
            return events.send(problem(&Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))).await;
        }
        if !round.is_empty() || sent.elapsed() >= QUIET_FOR {
            events.send(event(&following.next, &round)).await?;
            sent = Instant::now();
        }
        if !round.is_empty() || round.has_moved || round.leaders != 1 {
            tokio::time::sleep(PACE).await;
        }
    }
    Ok(())
}

fn event(next: &BTreeMap<i32, i64>, round: &Round) -> Bytes {
    let id = write_id(next);
    if round.is_empty() {
        return format!("id: {id}\n\n").into();
    }
    let skipped: Map<String, Value> =
        round.skipped.iter().map(|(partition, offsets)| (partition.to_string(), json!(offsets))).collect();
    let troubles: Map<String, Value> =
        round.troubles.iter().map(|(partition, words)| (partition.to_string(), json!(words))).collect();
    let records: Vec<Value> = round.records.iter().map(document).collect();
    let data = json!({ "data": records, "skipped": skipped, "troubles": troubles });
    // JSON has no line break outside of texts, and those are escaped.
    format!("id: {id}\nevent: records\ndata: {data}\n\n").into()
}

fn problem(problem: &Problem) -> Bytes {
    format!("event: problem\ndata: {}\n\n", problem.document(Dialect::Own)).into()
}

fn write_id(next: &BTreeMap<i32, i64>) -> String {
    let places: Vec<String> = next.iter().map(|(partition, next)| format!("{partition}:{next}")).collect();
    places.join(",")
}

fn read_id(id: &str) -> Result<BTreeMap<i32, i64>, Problem> {
    let place = |word: &str| {
        let (partition, next) = word.split_once(':')?;
        let (partition, next) = (partition.parse::<i32>().ok()?, next.parse::<i64>().ok()?);
        (partition >= 0 && next >= 0).then_some((partition, next))
    };
    let places: Option<BTreeMap<i32, i64>> = id.split(',').map(place).collect();
    places.ok_or_else(|| Problem::bad("Last-Event-ID takes offsets by partition, such as 0:17,3:4"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_says_where_each_partition_goes_on() {
        let next = BTreeMap::from([(0, 17), (3, i64::MAX)]);
        assert_eq!(read_id(&write_id(&next)).expect("sound"), next);
        for bad in ["", "0", "0:", "0:x", "-1:2", "0:-2", "0:1,", "0:1;1:2"] {
            assert_eq!(read_id(bad).expect_err(bad).status, 400);
        }
    }

    #[test]
    fn event_names_what_was_skipped() {
        let next = BTreeMap::from([(0, 17)]);
        assert_eq!(event(&next, &Round::default()), "id: 0:17\n\n");
        let round = Round { skipped: BTreeMap::from([(0, 5)]), ..Default::default() };
        let text = String::from_utf8(event(&next, &round).to_vec()).expect("text");
        assert_eq!(
            text,
            "id: 0:17\nevent: records\ndata: {\"data\":[],\"skipped\":{\"0\":5},\"troubles\":{}}\n\n"
        );
        let ended = problem(&Problem::bad("two\nlines"));
        assert_eq!(ended.iter().filter(|byte| **byte == b'\n').count(), 3);
    }
}
