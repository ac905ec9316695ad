//! Producing: `POST …/records` takes JSON objects one after the other and answers each with a report in their order.
//!
//! With `Transfer-Encoding: chunked` the answer begins at once and is 200; each report has its own `error_code`. With a
//! `Content-Length` and one record, that record's outcome is also the status of the answer.
//!
//! Bounded: [`STREAMS_MAX`] requests at a time, [`RECORD_BYTES_MAX`] of a record's JSON, and a group of records goes
//! to the brokers before more is read.

use super::{check_cluster, known_cluster, record};
use crate::http::body::{Outgoing, next_piece};
use crate::http::call::{Answer, Call, Fields, Place};
use crate::http::callers::Lease;
use crate::http::problem::Problem;
use crate::kafka::metadata;
use crate::kafka::records::produce::{self, NewRecord};
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use record::Parsed;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

const STREAMS_MAX: usize = 32;
static STREAMS: Semaphore = Semaphore::const_new(STREAMS_MAX);
/// A record in JSON. Its bytes must also pass the broker's `message.max.bytes`.
const RECORD_BYTES_MAX: usize = 2 * 1024 * 1024;
/// What goes into one batch, roughly: less than the broker's default limit of a batch.
const GROUP_BYTES_MAX: usize = 512 * 1024;
const GROUP_RECORDS_MAX: usize = 500;
/// Reports that wait for the client to read them.
const REPORTS_WAITING_MAX: usize = 16;
/// Between two pieces of a stream.
const PIECE_WITHIN: Duration = Duration::from_secs(60);

/// Sends to one topic.
struct Sender {
    cluster: Lease,
    name: String,
    topic: MetadataResponseTopic,
}

impl Sender {
    async fn new(mut cluster: Lease, name: &str) -> Result<Self, Problem> {
        let topic = metadata::topic(&mut cluster, name).await?;
        Ok(Self { cluster, name: name.to_owned(), topic })
    }

    /// The report of each record, in order.
    async fn reports(&mut self, parsed: &[Result<Parsed, Problem>]) -> Vec<Result<Value, Problem>> {
        let records: Vec<NewRecord> = parsed.iter().flatten().map(|parsed| parsed.record.clone()).collect();
        let mut outcomes = produce::deliver(&mut self.cluster, &mut self.topic, &records).await.into_iter();
        let mut report = |parsed: &Result<Parsed, Problem>| {
            let parsed = parsed.as_ref().map_err(Clone::clone)?;
            let stored = outcomes.next().expect("invariant: one outcome for each record that was sent")?;
            Ok(record::report(self.cluster.id(), &self.name, parsed, &stored))
        };
        parsed.iter().map(&mut report).collect()
    }
}

/// # Errors
/// The topic cannot be produced to; or the only record was refused.
pub async fn stream(
    cluster: Lease,
    at: Place,
    incoming: &mut Option<Incoming>,
) -> Result<Response<Outgoing>, Problem> {
    known_cluster(cluster.id(), at.param("cluster"))?;
    let Ok(place) = STREAMS.try_acquire() else {
        let detail = format!("{STREAMS_MAX} requests produce already");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    };
    let mut sender = Sender::new(cluster, at.param("topic")).await?;
    let Some(mut body) = incoming.take() else { return Err(Problem::bad("the body is missing")) };
    let (mut groups, mut begun) = (Groups::default(), None);
    // Without a length the client may wait for the first report before it sends on.
    if body.size_hint().exact().is_some() {
        let first = groups.next(&mut body).await.unwrap_or_default();
        let mut told = sender.reports(&first).await;
        let second = groups.next(&mut body).await;
        if let ([Err(_)], None) = (&told[..], &second) {
            return Err(told.remove(0).expect_err("invariant: matched just now"));
        }
        let text = lines(&told);
        let Some(second) = second else {
            sender.cluster.keep();
            return Ok(respond(Outgoing::Whole(Some(text))));
        };
        begun = Some((text, second));
    }
    let (reports, pieces) = mpsc::channel(REPORTS_WAITING_MAX);
    tokio::spawn(async move {
        let _place = place;
        if forward(&mut sender, (groups, begun), &mut body, &reports).await {
            sender.cluster.keep();
        }
    });
    Ok(respond(Outgoing::Pieces(pieces)))
}

type Group = Vec<Result<Parsed, Problem>>;

fn respond(body: Outgoing) -> Response<Outgoing> {
    let response = Response::builder().header(CONTENT_TYPE, "application/json").body(body);
    response.expect("invariant: the header is a constant")
}

/// Until the body ends. `false`: the client takes no reports any more.
async fn forward(
    sender: &mut Sender,
    (mut groups, begun): (Groups, Option<(Bytes, Group)>),
    body: &mut Incoming,
    reports: &mpsc::Sender<Bytes>,
) -> bool {
    if let Some((text, second)) = begun {
        let next = lines(&sender.reports(&second).await);
        if reports.send(text).await.is_err() || reports.send(next).await.is_err() {
            return false;
        }
    }
    while let Some(group) = groups.next(body).await {
        let text = lines(&sender.reports(&group).await);
        if reports.send(text).await.is_err() {
            return false;
        }
    }
    true
}

fn lines(reports: &[Result<Value, Problem>]) -> Bytes {
    let line = |report: &Result<Value, Problem>| {
        let report = report.as_ref().map_or_else(record::failure, Clone::clone);
        format!("{report}\n")
    };
    reports.iter().map(line).collect::<String>().into()
}

/// A body, cut into groups of records.
#[derive(Default)]
struct Groups {
    splitter: Splitter,
    is_over: bool,
}

impl Groups {
    /// Waits for at least one record; takes those that have come with it. What is wrong with the body is the last of
    /// its group: records before it are stored, and answered.
    async fn next(&mut self, body: &mut Incoming) -> Option<Group> {
        loop {
            let group = self.cut();
            if !group.is_empty() {
                return Some(group);
            }
            if self.is_over {
                let is_cut = !self.splitter.is_empty();
                return is_cut.then(|| vec![self.end(Problem::bad("the body ends within a record"))]);
            }
            match next_piece(body, PIECE_WITHIN).await {
                Ok(Some(piece)) => self.splitter.push(&piece),
                Ok(None) => self.is_over = true,
                Err(problem) => return Some(vec![self.end(problem)]),
            }
        }
    }

    /// As many of the records that have come as go into one group.
    fn cut(&mut self) -> Group {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < GROUP_RECORDS_MAX && bytes < GROUP_BYTES_MAX {
            match self.splitter.next() {
                Ok(Some(text)) => {
                    bytes += text.len();
                    group.push(record::parse(&text));
                }
                Ok(None) => break,
                Err(problem) => group.push(self.end(problem)),
            }
        }
        group
    }

    /// Nothing behind the trouble is read.
    fn end(&mut self, problem: Problem) -> Result<Parsed, Problem> {
        (self.is_over, self.splitter) = (true, Splitter::default());
        Err(problem)
    }
}

/// Finds where each JSON object of a stream ends, reading each byte once.
#[derive(Default)]
struct Splitter {
    buffer: BytesMut,
    /// Bytes of the buffer that have been looked at.
    seen: usize,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl Splitter {
    fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    fn is_empty(&self) -> bool {
        self.buffer.iter().all(u8::is_ascii_whitespace)
    }

    fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(byte) = self.buffer.get(self.seen).copied() {
            self.seen += 1;
            if self.is_in_text {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'{' | b'[' => self.depth += 1,
                _ if self.depth == 0 && !byte.is_ascii_whitespace() => {
                    return Err(Problem::bad("expected JSON objects, one after the other"));
                }
                b'"' => self.is_in_text = true,
                b'}' | b']' if self.depth == 1 => {
                    self.depth = 0;
                    return Ok(Some(self.buffer.split_to(std::mem::take(&mut self.seen)).freeze()));
                }
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
        }
        if self.buffer.len() > RECORD_BYTES_MAX {
            let detail = format!("a record's JSON is larger than {RECORD_BYTES_MAX} bytes");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        Ok(None)
    }
}

/// `POST …/records:batch`: many records in one body, each with an id of the caller's.
pub async fn batch(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    let entries = call.fields_of(&["entries"])?.objects("entries")?;
    if entries.is_empty() || entries.len() > GROUP_RECORDS_MAX {
        return Err(Problem::bad(format!("entries takes 1 to {GROUP_RECORDS_MAX} records")));
    }
    let ids: Vec<String> = entries.iter().map(|entry| entry.needed_text("id")).collect::<Result<_, _>>()?;
    let known: Vec<&str> = record::RECORD.iter().chain(&["id"]).copied().collect();
    let parse = |entry: &Fields| entry.only(&known).and_then(|()| record::of_fields(entry));
    let parsed: Vec<_> = entries.iter().map(parse).collect();
    let records: Vec<NewRecord> = parsed.iter().flatten().map(|parsed| parsed.record.clone()).collect();
    let mut outcomes = produce::send(&mut call.cluster, &topic, &records).await.into_iter();
    let (mut successes, mut failures) = (Vec::new(), Vec::new());
    for (id, parsed) in ids.into_iter().zip(parsed) {
        let sent = parsed.and_then(|parsed| {
            let stored = outcomes.next().expect("invariant: one outcome for each record that was sent")?;
            Ok(record::report(call.cluster.id(), &name, &parsed, &stored))
        });
        let is_sent = sent.is_ok();
        let mut row = sent.unwrap_or_else(|problem| record::failure(&problem));
        row["id"] = id.into();
        if is_sent { successes.push(row) } else { failures.push(row) }
    }
    let document = json!({ "successes": successes, "failures": failures });
    Ok(Answer { status: StatusCode::MULTI_STATUS, ..Answer::json(document) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(pieces: &[&str]) -> Result<Vec<String>, Problem> {
        let (mut splitter, mut found) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece.as_bytes());
            while let Some(text) = splitter.next()? {
                found.push(String::from_utf8_lossy(&text).trim().to_owned());
            }
        }
        assert_eq!(splitter.is_empty(), splitter.depth == 0);
        Ok(found)
    }

    #[test]
    fn objects_are_found_wherever_the_pieces_end() {
        let text = r#"{"a":"}{"} {"b":{"c":[1,{}]},"d":"\"}"}
        {}"#;
        let whole = split(&[text]).expect("sound");
        assert_eq!(whole, [r#"{"a":"}{"}"#, r#"{"b":{"c":[1,{}]},"d":"\"}"}"#, "{}"]);
        for at in 1..text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]]).expect("sound"), whole);
        }
    }

    #[test]
    fn group_ends_at_its_count_or_its_bytes() {
        let sizes = |text: &str| {
            let mut groups = Groups::default();
            groups.splitter.push(text.as_bytes());
            [(); 4].map(|()| groups.cut().len())
        };
        assert_eq!(
            sizes(&"{}\n".repeat(2 * GROUP_RECORDS_MAX + 1)),
            [GROUP_RECORDS_MAX, GROUP_RECORDS_MAX, 1, 0]
        );
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(GROUP_BYTES_MAX / 2));
        assert_eq!(sizes(&large.repeat(3)), [2, 1, 0, 0]);
    }

    #[test]
    fn trouble_is_the_last_of_its_group() {
        let mut groups = Groups::default();
        groups.splitter.push(b"{} {} x {}");
        let group = groups.cut();
        assert_eq!(group.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
        assert!(groups.is_over && groups.cut().is_empty());
    }

    #[test]
    fn what_is_no_object_ends_the_stream() {
        assert_eq!(split(&["{} x"]).expect_err("no object").status, 400);
        let large = format!("{{\"a\":\"{}", "x".repeat(RECORD_BYTES_MAX));
        assert_eq!(split(&[&large]).expect_err("too large").status, 413);
    }
}
