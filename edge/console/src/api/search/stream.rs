//! A search through whole partitions, as server-sent events: what was found, how far it is, what was not searched. It
//! ends with the client's connection.
//!
//! | event | data |
//! |---|---|
//! | `progress` | `scanned`, `offsets`, `found`, `elapsed_ms`, four times a second |
//! | `records` | `data`: records as in `/records` |
//! | `end` | as `progress`; `why` (`all`, `limit`, `time`), and by partition how far and by which way; `gaps`; `next` |
//! | `problem` | why the search ends: a problem document |
//!
//! | bound | value |
//! |---|---|
//! | searches at a time | [`SEARCHES_MAX`](super::SEARCHES_MAX), those of single requests included; more are 429 |
//! | a search | one thread that gives way to all others; [`ENDS_AFTER`]; `limit` records |
//! | memory | a piece of a segment or a Fetch answer, one inflated batch, and what waits for the client |
//! | a client that does not read | nothing is searched for it; it is cut after 30 s, as every answer |
//!
//! Partitions that this node leads are read from its segments ([`OwnLogs`]), others by Fetch from their leaders, and so
//! is what is not in segments yet. The rights are the broker's word: each partition is fetched from as the caller
//! before its segments are read, and again every [`RIGHTS_EVERY`].

use super::{Gaps, Reach, SEARCHES, SEARCHES_MAX, begin, read};
use crate::api::places::{self, LIMITED, OFFSET, PARTITION, TIME};
use crate::api::records::document;
use crate::http::body::Outgoing;
use crate::http::call::Place;
use crate::http::callers::Lease;
use crate::http::problem::{Dialect, Problem};
use crate::http::shape::{Content, Doc, Param, Shape};
use crate::kafka::records::decode::{DECODE, Decoding};
use crate::kafka::records::fetch::{self, Limits, PartitionData};
use crate::kafka::records::needle::{self, Needle};
use crate::kafka::records::scan::{Gap, Scanned, Sought, Source, scan};
use crate::kafka::{metadata, offsets};
use crate::logs::{OwnLog, OwnLogs};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{AbortedTransactions, ClientError, check};
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use bytes::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{SemaphorePermit, mpsc};

pub const PARTITIONS_MAX: usize = 1000;
const ENDS_AFTER: Duration = Duration::from_secs(1800);
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
const RIGHTS_EVERY: Duration = Duration::from_secs(10);
/// Of a segment at a time: it stays in the processor's cache while it is looked at.
const PIECE_BYTES: usize = 512 * 1024;
const FETCH_BYTES: i32 = 4 * 1024 * 1024;
/// In one event.
const EVENT_RECORDS: usize = 100;
const EVENT_BYTES: usize = 1024 * 1024;
/// Events that wait for the client to read them.
const WAITING_MAX: usize = 4;
/// Tries of a partition whose leader changes, and the pause between them.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(300);
const GAPS_MAX: usize = 100;

const ISOLATION: Param = Param {
    name: "isolation",
    shape: Shape::OneOf(&["read_uncommitted", "read_committed"]),
    about: "Whether records of open and aborted transactions are left out; absent: read_uncommitted",
};
pub const STREAM: Doc = Doc {
    summary: "A search through whole partitions, as server-sent events, until all is searched",
    query: &[
        needle::TEXT,
        needle::REGEX,
        needle::IGNORE_CASE,
        needle::PARTS,
        needle::JSON,
        needle::OPERATION,
        needle::VALUE,
        DECODE,
        super::FROM,
        OFFSET,
        TIME,
        super::TO_OFFSET,
        super::TO_TIME,
        PARTITION,
        LIMITED,
        ISOLATION,
        super::CURSOR,
    ],
    body: None,
    status: 200,
    content: Content::Events,
};

/// One partition of a search.
#[derive(Debug)]
struct Part {
    reach: Reach,
    from: i64,
    /// The broker has let the caller fetch from it.
    is_allowed: bool,
    log: Option<Box<dyn OwnLog>>,
    /// Where the leader's records end for this search, as its last answer said. A segment has more.
    shown_end: i64,
    leader: i32,
    segment_bytes: u64,
    fetched_bytes: u64,
    tries: u32,
}

/// A search on its way.
struct Search {
    cluster: Lease,
    name: String,
    topic: MetadataResponseTopic,
    needle: Arc<Needle>,
    decoding: Option<Arc<Decoding>>,
    limit: usize,
    is_committed: bool,
    logs: Option<Arc<dyn OwnLogs>>,
    parts: Vec<Part>,
    gaps: Gaps<(i32, Gap)>,
    began: Instant,
    allowed_at: Instant,
    scanned: (u64, u64),
    found: usize,
    /// Found, and not sent yet.
    waiting: Vec<Value>,
    waiting_bytes: usize,
    events: mpsc::Sender<Bytes>,
}

/// The client is gone.
struct Gone;

/// # Errors
/// The topic cannot be read by the caller; too many searches run; the system gives no thread.
pub async fn stream(
    mut cluster: Lease,
    at: Place,
    logs: Option<Arc<dyn OwnLogs>>,
) -> Result<Response<Outgoing>, Problem> {
    let missing = || Problem::bad("a search takes text, regex or json");
    let needle = Needle::of_query(&at)?.ok_or_else(missing)?;
    let decoding = Decoding::of_query(&at)?.map(Arc::new);
    let limit = places::limit(&at)?;
    let is_committed = match at.query("isolation") {
        None | Some("read_uncommitted") => false,
        Some("read_committed") => true,
        Some(_) => return Err(Problem::bad("isolation takes read_uncommitted or read_committed")),
    };
    let Ok(place) = SEARCHES.try_acquire() else {
        let detail = format!("{SEARCHES_MAX} searches run already: try again when one has ended");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    };
    let name = at.param("topic").to_owned();
    let topic = metadata::topic(&mut cluster, &name).await?;
    let reaches = match at.query("cursor") {
        Some(cursor) => read(cursor)?,
        None => begin(&mut cluster, &at, &topic, PARTITIONS_MAX).await?,
    };
    let (events, pieces) = mpsc::channel(WAITING_MAX);
    let now = Instant::now();
    let mut search = Search {
        cluster,
        name,
        topic,
        needle: Arc::new(needle),
        decoding,
        limit,
        is_committed,
        logs,
        parts: reaches.into_iter().map(Part::new).collect(),
        gaps: Gaps::new(GAPS_MAX),
        began: now,
        allowed_at: now,
        scanned: (0, 0),
        found: 0,
        waiting: Vec::new(),
        waiting_bytes: 0,
        events,
    };
    // Before the answer begins: a refusal is its status.
    if let Some(at) = search.parts.iter().position(|part| part.reach.is_open()) {
        search.allow(at).await?;
    }
    start(search, place)?;
    let response = Response::builder().header(CONTENT_TYPE, "text/event-stream");
    Ok(response.body(Outgoing::Pieces(pieces)).expect("invariant: the header is a constant"))
}

/// A thread of the search's own: the page and other callers do not wait for it.
fn start(search: Search, place: SemaphorePermit<'static>) -> Result<(), Problem> {
    let failed = |error: std::io::Error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the search cannot begin: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let work = move || {
        let _place = place;
        if let Some(logs) = &search.logs {
            logs.give_way();
        }
        // Where the client is gone, there is nothing left to do.
        let _ = runtime.block_on(search.run());
    };
    std::thread::Builder::new().name("search".to_owned()).spawn(work).map(drop).map_err(failed)
}

impl Part {
    fn new(reach: Reach) -> Self {
        let from = reach.next;
        Self {
            reach,
            from,
            is_allowed: false,
            log: None,
            shown_end: 0,
            leader: -1,
            segment_bytes: 0,
            fetched_bytes: 0,
            tries: 0,
        }
    }

    fn sought<'a>(&self, needle: &'a Needle, decoding: Option<&'a Decoding>, count: usize) -> Sought<'a> {
        let Reach { partition, end: until, .. } = self.reach;
        Sought { partition, until, needle, decoding, count, bytes_max: EVENT_BYTES }
    }

    /// A piece of a segment, as far as the leader shows records. The log is read on, unless the broker has to be asked
    /// for the rest.
    async fn read_segment(
        &mut self,
        mut log: Box<dyn OwnLog>,
        sought: Sought<'_>,
        is_committed: bool,
    ) -> Option<Scanned> {
        let mut scanned = Scanned::from(self.reach.next);
        // A cursor may name any end.
        let until = sought.until.min(self.shown_end);
        if scanned.next >= until {
            return None;
        }
        let piece = log.read(scanned.next, PIECE_BYTES);
        self.segment_bytes += piece.len() as u64;
        if piece.is_empty() {
            return None;
        }
        if let Some(decoding) = sought.decoding {
            decoding.prepare(&piece).await;
        }
        scan(piece, &mut scanned, &Sought { until, ..sought }, Source::Segment { is_committed });
        if !scanned.is_brokers && scanned.next < until {
            self.log = Some(log);
        }
        Some(scanned)
    }

    fn document(&self) -> Value {
        let by = match (self.segment_bytes, self.fetched_bytes) {
            (0, 0) => "nothing",
            (_, 0) => "segments",
            (0, _) => "fetch",
            _ => "segments and fetch",
        };
        json!({
            "partition": self.reach.partition,
            "from": self.from,
            "next": self.reach.next,
            "end": self.reach.end,
            "leader": (self.leader >= 0).then_some(self.leader),
            "by": by,
            "segment_bytes": self.segment_bytes,
            "fetched_bytes": self.fetched_bytes,
            "trouble": self.reach.trouble,
        })
    }
}

impl Search {
    /// Until all is searched, enough is found, its time is over, or the client is gone.
    async fn run(mut self) -> Result<(), Gone> {
        self.progress().await?;
        let mut shown = Instant::now();
        let mut at = 0;
        let why = loop {
            let count = self.parts.len();
            let open = (0..count).map(|more| (at + more) % count).find(|at| self.parts[*at].reach.is_open());
            let Some(turn) = open else { break "all" };
            if self.found >= self.limit {
                break "limit";
            }
            if self.began.elapsed() >= ENDS_AFTER {
                break "time";
            }
            at = turn + 1;
            if let Err(error) = self.turn(turn).await {
                let problem = Problem::from(error);
                self.say("problem", &problem.document(Dialect::Own)).await?;
                return Ok(());
            }
            if self.waiting.len() >= EVENT_RECORDS || self.waiting_bytes >= EVENT_BYTES {
                self.show().await?;
            }
            if shown.elapsed() >= PROGRESS_EVERY {
                self.show().await?;
                self.progress().await?;
                shown = Instant::now();
            }
            if self.events.is_closed() {
                return Err(Gone);
            }
        };
        self.show().await?;
        let mut end = self.figures();
        let reaches: Vec<Reach> = self.parts.iter().map(|part| part.reach.clone()).collect();
        let gap = |(partition, gap): &(i32, Gap)| json!({ "partition": partition, "from": gap.from, "to": gap.to, "why": gap.why });
        end["why"] = why.into();
        end["partitions"] = self.parts.iter().map(Part::document).collect();
        end["gaps"] = self.gaps.kept.iter().map(gap).collect();
        end["gaps_left_out"] = self.gaps.left_out.into();
        end["not_scanned"] = reaches.iter().map(Reach::left).sum::<i64>().into();
        end["next"] = super::next(&reaches).into();
        self.say("end", &end).await?;
        // No answer is outstanding.
        self.cluster.keep();
        Ok(())
    }

    /// A piece of one partition.
    ///
    /// # Errors
    /// The search cannot go on: the authorizer refuses, or no broker answers.
    async fn turn(&mut self, at: usize) -> Result<(), ClientError> {
        if !self.parts[at].is_allowed || self.allowed_at.elapsed() >= RIGHTS_EVERY {
            self.allow(at).await?;
            if !self.parts[at].reach.is_open() {
                return Ok(());
            }
        }
        match self.parts[at].log.take() {
            Some(log) => self.read_segment(at, log).await,
            None => self.read_answer(at).await?,
        }
        Ok(())
    }

    fn sought<'a>(
        &self,
        at: usize,
        (needle, decoding): &'a (Arc<Needle>, Option<Arc<Decoding>>),
    ) -> Sought<'a> {
        self.parts[at].sought(needle, decoding.as_deref(), self.limit - self.found)
    }

    async fn read_segment(&mut self, at: usize, log: Box<dyn OwnLog>) {
        let looking = (self.needle.clone(), self.decoding.clone());
        let sought = self.sought(at, &looking);
        if let Some(scanned) = self.parts[at].read_segment(log, sought, self.is_committed).await {
            self.take(at, scanned);
        }
    }

    /// # Errors
    /// As [`Self::turn`].
    async fn read_answer(&mut self, at: usize) -> Result<(), ClientError> {
        let Some(told) = self.fetch(at, FETCH_BYTES).await? else { return Ok(()) };
        let looking = (self.needle.clone(), self.decoding.clone());
        let sought = self.sought(at, &looking);
        let next = self.parts[at].reach.next;
        let mut scanned = Scanned::from(next);
        let mut aborted = self.is_committed.then(|| AbortedTransactions::new(&told));
        let is_open = self.is_committed && told.last_stable_offset <= next;
        let records = told.records.unwrap_or_default();
        if let Some(decoding) = &looking.1 {
            decoding.prepare(&records).await;
        }
        self.parts[at].fetched_bytes += records.len() as u64;
        scan(records, &mut scanned, &sought, Source::Fetched(aborted.as_mut()));
        if scanned.next == next {
            let words = if is_open {
                "a transaction is open from there on"
            } else {
                "the broker gives no records from there on"
            };
            self.parts[at].reach.trouble = Some(words.to_owned());
        }
        self.take(at, scanned);
        Ok(())
    }

    fn take(&mut self, at: usize, scanned: Scanned) {
        let part = &mut self.parts[at];
        part.reach.next = scanned.next;
        self.scanned.0 += scanned.records;
        self.scanned.1 += scanned.bytes;
        self.found += scanned.found.len();
        self.waiting_bytes += scanned.found_bytes;
        self.waiting.extend(scanned.found.iter().map(document));
        let partition = part.reach.partition;
        scanned.gaps.into_iter().for_each(|gap| self.gaps.push((partition, gap)));
    }

    /// Fetches as the caller, and takes the log of a partition that this node leads.
    ///
    /// # Errors
    /// As [`Self::turn`].
    async fn allow(&mut self, at: usize) -> Result<(), ClientError> {
        let Some(told) = self.fetch(at, 1).await? else { return Ok(()) };
        self.allowed_at = Instant::now();
        let part = &mut self.parts[at];
        part.shown_end = if self.is_committed { told.last_stable_offset } else { told.high_watermark };
        if !part.is_allowed {
            part.is_allowed = true;
            part.log = self.logs.as_ref().and_then(|logs| logs.open(&self.name, part.reach.partition));
        }
        Ok(())
    }

    /// What the leader has of a partition. `None`: it is to be asked again, or its trouble is noted.
    ///
    /// # Errors
    /// As [`Self::turn`].
    async fn fetch(&mut self, at: usize, bytes: i32) -> Result<Option<PartitionData>, ClientError> {
        let (partition, next) = (self.parts[at].reach.partition, self.parts[at].reach.next);
        let row = self.topic.partitions.iter().find(|row| row.partition_index == partition);
        let leader = row.map_or(-1, |row| row.leader_id);
        self.parts[at].leader = leader;
        let limits = Limits { wait_ms: 0, bytes, partition_bytes: bytes, is_committed: self.is_committed };
        let asked = match leader {
            ..0 => Err(ClientError::refused(&self.name, ErrorCode::LeaderNotAvailable.code(), None)),
            leader => {
                fetch::ask(&mut self.cluster, BrokerId(leader), &self.topic, (&[(partition, next)], limits))
                    .await
            }
        };
        let told = asked.and_then(|told| {
            let told = told.into_iter().next();
            let told =
                told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
            check(format!("{}-{partition}", self.name), told.error_code, None).map(|()| told)
        });
        match told {
            Ok(told) => {
                self.parts[at].tries = 0;
                Ok(Some(told))
            }
            Err(error) if error.code() == Some(ErrorCode::OffsetOutOfRange) => {
                self.find_start(at).await?;
                Ok(None)
            }
            Err(error) if error.is_retriable() && self.parts[at].tries < TRIES => {
                self.parts[at].tries += 1;
                tokio::time::sleep(PAUSE).await;
                self.topic = metadata::topic(&mut self.cluster, &self.name).await?;
                Ok(None)
            }
            Err(error) => match error.code() {
                Some(ErrorCode::TopicAuthorizationFailed) | None => Err(error),
                // It is one partition's, and the others go on.
                Some(code) => {
                    self.parts[at].reach.trouble = Some(code.name().to_owned());
                    Ok(None)
                }
            },
        }
    }

    /// Records were deleted meanwhile: goes on where the log begins now.
    async fn find_start(&mut self, at: usize) -> Result<(), ClientError> {
        let partition = self.parts[at].reach.partition;
        let of = BTreeSet::from([(self.name.clone(), partition)]);
        let listed = offsets::list(&mut self.cluster, &of, offsets::EARLIEST).await?;
        let reach = &mut self.parts[at].reach;
        match listed.into_values().next() {
            Some(Ok(start)) if start > reach.next => {
                let (from, to) = (reach.next, start.min(reach.end));
                self.gaps.push((partition, Gap { from, to, why: "deleted meanwhile".to_owned() }));
                reach.next = to;
            }
            _ => reach.trouble = Some(ErrorCode::OffsetOutOfRange.name().to_owned()),
        }
        Ok(())
    }

    fn figures(&self) -> Value {
        let done: i64 = self.parts.iter().map(|part| part.reach.next - part.from).sum();
        let all: i64 = self.parts.iter().map(|part| (part.reach.end - part.from).max(0)).sum();
        let elapsed_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!({
            "scanned": { "records": self.scanned.0, "bytes": self.scanned.1 },
            "offsets": { "done": done, "of": all },
            "found": self.found,
            "elapsed_ms": elapsed_ms,
        })
    }

    async fn progress(&mut self) -> Result<(), Gone> {
        let figures = self.figures();
        self.say("progress", &figures).await
    }

    async fn show(&mut self) -> Result<(), Gone> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.waiting_bytes = 0;
        let data = json!({ "data": std::mem::take(&mut self.waiting) });
        self.say("records", &data).await
    }

    async fn say(&mut self, event: &str, data: &Value) -> Result<(), Gone> {
        // JSON has no line break outside of texts, and those are escaped.
        let event = format!("event: {event}\ndata: {data}\n\n");
        self.events.send(event.into()).await.map_err(|_| Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{Offset, TimestampMs};
    use barnabas_wire::records::{BatchBuilder, BatchOptions};

    /// Five batches of one record each.
    #[derive(Debug)]
    struct Five;

    impl OwnLog for Five {
        fn read(&mut self, from: i64, _bytes: usize) -> Bytes {
            let batch = |offset| {
                let mut builder = BatchBuilder::new(BatchOptions {
                    base_offset: Offset(offset),
                    ..BatchOptions::default()
                });
                builder.push(TimestampMs(1), None, Some(b"text"), &[]);
                builder.build().expect("built")
            };
            (from..5).flat_map(batch).collect()
        }
    }

    #[test]
    fn segment_is_searched_as_far_as_the_leader_shows_it() {
        let needle = Needle::text("text", false).expect("sound");
        let found = |next, end, shown_end| {
            let mut part = Part { shown_end, ..Part::new(Reach::new(0, (next, end))) };
            let sought = part.sought(&needle, None, 100);
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let scanned = runtime.block_on(part.read_segment(Box::new(Five), sought, false));
            (scanned.map(|scanned| (scanned.found.len(), scanned.next)), part.log.is_some())
        };
        assert_eq!(found(0, 5, 5), (Some((5, 5)), false));
        assert_eq!(found(1, 3, 5), (Some((2, 3)), false));
        assert_eq!(found(0, i64::MAX, 2), (Some((2, 2)), false), "the broker has the last word of the rest");
        assert_eq!(found(2, i64::MAX, 2), (None, false));
        assert_eq!(found(0, 9, 9), (Some((5, 5)), true), "more may be written back meanwhile");
    }
}
