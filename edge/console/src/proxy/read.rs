//! `GET …/records`: what has come for a consumer since its last answer, up to a number of bytes and a time.
//!
//! | bound | value |
//! |---|---|
//! | an answer | `max_bytes`, up to [`ANSWER_BYTES_MAX`] of keys, values and headers; the first record comes whole |
//! | answers with records that are not sent yet | [`ANSWERS_MAX`] |
//! | the time | `timeout`, up to `setup::TIMEOUT_MAX` |
//!
//! Its connection is the request's own: where the client goes away, reading ends, and no position has moved.

use super::consumers::found;
use super::embed;
use super::instance::{Instance, Position, Positions};
use super::media::{Accepted, Format};
use super::setup::TIMEOUT_MAX;
use super::subscription::{Subscription, illegal_state};
use crate::http::call::{Answer, Call, Place};
use crate::http::problem::Problem;
use crate::kafka::records::fetch::{self, Limits, PartitionData};
use crate::kafka::{Partition, metadata, offsets};
use barnabas_base::{BrokerId, ErrorCode, Offset};
use barnabas_client::{Cluster, Fault, FetchedBatch, unpack};
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::records::RecordRef;
use bytes::Bytes;
use hyper::StatusCode;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};

const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
const ANSWERS_MAX: usize = 16;
static ANSWERS: Semaphore = Semaphore::const_new(ANSWERS_MAX);
/// Of one leader's answer. A larger batch comes whole, and alone.
const FETCH_BYTES_MAX: i32 = 1024 * 1024;
const PARTITION_BYTES_MAX: i32 = 256 * 1024;
const INFLATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long a leader waits for a record, where there is one to ask.
const WAIT: Duration = Duration::from_millis(500);
/// Between rounds that bring nothing.
const PAUSE: Duration = Duration::from_millis(100);

pub async fn records(call: &mut Call) -> Result<Answer, Problem> {
    let instance = found(call)?;
    let _use = instance.enter();
    let format = instance.setup.format;
    let kind = Accepted::read(&call.headers)?.kind_of(format)?;
    if format.needs_schemas() {
        return Err(embed::no_registry(format));
    }
    let (within, bytes_max) = bounds(&call.at, instance.setup.timeout)?;
    let until = Instant::now() + within;
    let Ok(_turn) = timeout_at(until, instance.turn.lock()).await else {
        return Err(illegal_state("another request reads for this consumer"));
    };
    instance.process();
    let text = loop {
        let (epoch, positions) = assigned(&instance, until).await?;
        let mut reading = Reading::new(&instance, positions, bytes_max);
        reading.run(&mut call.cluster, until).await?;
        let Reading { text, next, permit, .. } = reading;
        // What was read for partitions that others have by now is not given.
        if instance.advance(epoch, next) {
            break Held { text: format!("[{text}]"), _permit: permit };
        }
        if Instant::now() >= until {
            break Held { text: "[]".to_owned(), _permit: None };
        }
    };
    Ok(Answer::written(Bytes::from_owner(text), kind))
}

/// An answer that counts among [`ANSWERS_MAX`] until it is sent.
struct Held {
    text: String,
    _permit: Option<SemaphorePermit<'static>>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

fn bounds(at: &Place, timeout: Duration) -> Result<(Duration, usize), Problem> {
    let number = |name: &str| {
        let wrong = |word: &str| {
            Problem::bad(format!("{name} takes a number from 1 on, not '{}'", word.escape_debug()))
        };
        let read =
            |word: &str| word.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(|| wrong(word));
        at.query(name).map(read).transpose()
    };
    let within = number("timeout")?.map_or(timeout, Duration::from_millis);
    let bytes =
        number("max_bytes")?.map_or(ANSWER_BYTES_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    Ok((within.min(TIMEOUT_MAX), bytes.min(ANSWER_BYTES_MAX)))
}

/// The assignment, once there is one; an empty one where the time is over.
async fn assigned(instance: &Instance, until: Instant) -> Result<(u64, Positions), Problem> {
    loop {
        let changed = instance.changed.notified();
        if let Some(trouble) = instance.trouble() {
            return Err(trouble);
        }
        let (epoch, positions) = instance.positions();
        if matches!(instance.subscription(), Subscription::Nothing) {
            return Err(illegal_state("the consumer has no subscription and no assigned partitions"));
        }
        if !positions.is_empty() || timeout_at(until, changed).await.is_err() {
            return Ok((epoch, positions));
        }
    }
}

/// One answer in the making.
struct Reading<'a> {
    instance: &'a Instance,
    next: Positions,
    topics: BTreeMap<String, MetadataResponseTopic>,
    /// Records, with commas.
    text: String,
    bytes: usize,
    bytes_max: usize,
    /// Why a partition goes no further.
    trouble: Option<Problem>,
    permit: Option<SemaphorePermit<'static>>,
}

impl<'a> Reading<'a> {
    fn new(instance: &'a Instance, next: Positions, bytes_max: usize) -> Self {
        let (topics, text) = (BTreeMap::new(), String::new());
        Self { instance, next, topics, text, bytes: 0, bytes_max, trouble: None, permit: None }
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max.min(self.instance.setup.bytes_min.max(1)) && !self.text.is_empty()
    }

    /// Until there is enough, the time is over, or the assignment has changed.
    async fn run(&mut self, cluster: &mut Cluster, until: Instant) -> Result<(), Problem> {
        let (epoch, _) = self.instance.positions();
        while !self.next.is_empty() && self.instance.positions().0 == epoch {
            let (before, began) = (self.bytes, Instant::now());
            self.round(cluster, until).await?;
            if self.trouble.is_some() || self.is_full() || Instant::now() >= until {
                break;
            }
            if self.bytes == before && began.elapsed() < PAUSE {
                sleep(PAUSE.min(until.saturating_duration_since(Instant::now()))).await;
            }
        }
        match self.trouble.take() {
            // What came before it goes out; the next answer says it.
            Some(trouble) if self.text.is_empty() => Err(trouble),
            _ => Ok(()),
        }
    }

    /// Asks every leader once. Where there is one alone, it may wait for records.
    async fn round(&mut self, cluster: &mut Cluster, until: Instant) -> Result<(), Problem> {
        self.begin(cluster).await?;
        let turn = self.instance.turns.fetch_add(1, Ordering::Relaxed);
        let leaders = rotated(self.leaders().into_iter().collect(), turn);
        let left = until.saturating_duration_since(Instant::now());
        let wait = if leaders.len() == 1 { WAIT.min(left) } else { Duration::ZERO };
        for ((leader, topic), partitions) in leaders {
            self.fetch(cluster, (leader, &topic), rotated(partitions, turn), wait).await?;
            if self.bytes >= self.bytes_max {
                break;
            }
        }
        Ok(())
    }

    /// Finds leaders, and offsets to begin with, where they are not known.
    async fn begin(&mut self, cluster: &mut Cluster) -> Result<(), Problem> {
        let names: BTreeSet<String> = self.next.keys().map(|partition| partition.0.clone()).collect();
        let missing: Vec<&str> =
            names.iter().filter(|name| !self.topics.contains_key(*name)).map(String::as_str).collect();
        if !missing.is_empty() {
            for topic in metadata::ask(cluster, Some(&missing)).await?.topics {
                let name = topic.name.as_deref().unwrap_or_default().to_owned();
                match ErrorCode::from_code(topic.error_code) {
                    ErrorCode::None => drop(self.topics.insert(name, topic)),
                    // It may be made, or be found, later.
                    code if code.is_retriable() => {}
                    code => return Err(Problem::refused(format!("topic {name}"), code.code(), None)),
                }
            }
        }
        self.find_committed(cluster).await?;
        self.list(cluster, Position::Earliest, offsets::EARLIEST).await?;
        self.list(cluster, Position::Latest, offsets::LATEST).await
    }

    async fn find_committed(&mut self, cluster: &mut Cluster) -> Result<(), Problem> {
        let is_wanted = |position: &Position| matches!(position, Position::Committed);
        if self.next.values().any(is_wanted) {
            let committed = cluster.committed_offsets(&self.instance.id.group).await?;
            for (partition, position) in self.next.iter_mut().filter(|row| is_wanted(row.1)) {
                *position = committed.get(partition).map_or(Position::Reset, |it| Position::At(it.offset));
            }
        }
        for (partition, position) in self.next.iter_mut().filter(|row| *row.1 == Position::Reset) {
            *position = self.instance.start(partition)?;
        }
        Ok(())
    }

    async fn list(&mut self, cluster: &mut Cluster, which: Position, timestamp: i64) -> Result<(), Problem> {
        let wanted: BTreeSet<Partition> =
            self.next.iter().filter(|row| *row.1 == which).map(|row| row.0.clone()).collect();
        for (partition, offset) in offsets::list(cluster, &wanted, timestamp).await? {
            match offset {
                Ok(offset) => drop(self.next.insert(partition, Position::At(offset))),
                Err(code) if code.is_retriable() => self.forget(&partition.0),
                Err(code) => {
                    let what = format!("{}-{}", partition.0, partition.1);
                    return Err(Problem::refused(what, code.code(), None));
                }
            }
        }
        Ok(())
    }

    /// Its leaders are asked for again.
    fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// Which partitions each leader is asked for, topic by topic.
    fn leaders(&self) -> BTreeMap<(i32, String), Vec<(i32, i64)>> {
        let mut leaders: BTreeMap<(i32, String), Vec<(i32, i64)>> = BTreeMap::new();
        for ((name, index), position) in &self.next {
            let (Position::At(offset), Some(topic)) = (position, self.topics.get(name)) else { continue };
            let row = topic.partitions.iter().find(|row| row.partition_index == *index);
            if let Some(row) = row.filter(|row| row.leader_id >= 0) {
                leaders.entry((row.leader_id, name.clone())).or_default().push((*index, *offset));
            }
        }
        leaders
    }

    async fn fetch(
        &mut self,
        cluster: &mut Cluster,
        (leader, name): (i32, &str),
        partitions: Vec<(i32, i64)>,
        wait: Duration,
    ) -> Result<(), Problem> {
        let Some(topic) = self.topics.get(name) else { return Ok(()) };
        let limits = Limits {
            wait_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
            bytes: FETCH_BYTES_MAX,
            partition_bytes: PARTITION_BYTES_MAX,
            is_committed: self.instance.setup.is_committed,
        };
        let asked = fetch::ask(cluster, BrokerId(leader), topic, (&partitions, limits)).await;
        let rows = match asked {
            Ok(rows) => rows,
            Err(error) if error.is_retriable() => {
                self.forget(name);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        for row in rows {
            let from = partitions.iter().find(|asked| asked.0 == row.partition_index).map(|asked| asked.1);
            let partition = (name.to_owned(), row.partition_index);
            match (ErrorCode::from_code(row.error_code), from) {
                (ErrorCode::None, Some(from)) => self.take(&partition, row, from).await,
                (ErrorCode::OffsetOutOfRange, _) => drop(self.next.insert(partition, Position::Reset)),
                (code, _) if code.is_retriable() => self.forget(name),
                (ErrorCode::UnknownTopicId | ErrorCode::InconsistentTopicId, _) => self.forget(name),
                (code, _) => {
                    let what = format!("{}-{}", partition.0, partition.1);
                    return Err(Problem::refused(what, code.code(), None));
                }
            }
        }
        Ok(())
    }

    /// Adds what has come of a partition.
    async fn take(&mut self, partition: &Partition, row: PartitionData, from: i64) {
        if row.records.as_ref().is_none_or(Bytes::is_empty) || self.bytes >= self.bytes_max {
            return;
        }
        if self.permit.is_none() {
            self.permit = ANSWERS.acquire().await.ok();
        }
        let unpacked = unpack(row, Offset(from), self.instance.setup.is_committed, INFLATED_BYTES_MAX);
        for batch in &unpacked.batches {
            if !self.push(partition, batch) {
                return;
            }
        }
        self.next.insert(partition.clone(), Position::At(unpacked.next.get()));
        let why = match unpacked.error {
            None => return,
            Some(Fault::Unreadable(why)) => why,
            Some(Fault::TooLarge { at, next }) => {
                format!(
                    "at offset {at}: the batch inflates to more than {INFLATED_BYTES_MAX} bytes; seek to {next} to read on"
                )
            }
        };
        let detail = format!("records of {}-{} cannot be read: {why}", partition.0, partition.1);
        self.trouble = Some(Problem::coded(50_002, detail));
    }

    /// `false`: it ends within the batch, and the position says where.
    fn push(&mut self, partition: &Partition, batch: &FetchedBatch) -> bool {
        let format = self.instance.setup.format;
        for record in batch.records.iter() {
            let record = match record {
                Ok(record) if record.offset < batch.from => continue,
                Ok(record) => record,
                Err(why) => return self.stop(partition, &why.to_string()),
            };
            if self.bytes >= self.bytes_max {
                return false;
            }
            let before = self.text.len();
            if let Err(why) = write(&mut self.text, partition, &record, format) {
                self.text.truncate(before);
                let detail = format!("{why}: {}-{} at offset {}", partition.0, partition.1, record.offset);
                let advice = "seek behind it to read on";
                let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{detail}; {advice}"));
                self.trouble = Some(problem);
                self.next.insert(partition.clone(), Position::At(record.offset.get()));
                return false;
            }
            self.bytes += weight(&record);
            self.next.insert(partition.clone(), Position::At(record.offset.get() + 1));
        }
        true
    }

    fn stop(&mut self, partition: &Partition, why: &str) -> bool {
        let detail = format!("records of {}-{} cannot be read: {why}", partition.0, partition.1);
        self.trouble = Some(Problem::coded(50_002, detail));
        false
    }
}

/// Another one is the first in each turn: an answer that is full before the last must not starve it.
fn rotated<T>(mut rows: Vec<T>, turn: usize) -> Vec<T> {
    let count = rows.len().max(1);
    rows.rotate_left(turn % count);
    rows
}

/// One at least: an empty record takes its place too.
fn weight(record: &RecordRef<'_>) -> usize {
    let of = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    let headers: usize = record.headers().map(|(name, value)| name.len() + of(value)).sum();
    (of(record.key) + of(record.value) + headers).max(1)
}

/// Appends a record, behind a comma where one was before.
///
/// # Errors
/// Why it cannot be given in this format.
fn write(
    out: &mut String,
    partition: &Partition,
    record: &RecordRef<'_>,
    format: Format,
) -> Result<(), String> {
    if !out.is_empty() {
        out.push(',');
    }
    let failed =
        |part: &str, why: String| format!("{part} deserialization error for format {}: {why}", format.name());
    out.push_str("{\"topic\":");
    out.push_str(&embed::quoted(&partition.0));
    out.push_str(",\"key\":");
    embed::write(format, record.key, out).map_err(|why| failed("key", why))?;
    out.push_str(",\"value\":");
    embed::write(format, record.value, out).map_err(|why| failed("value", why))?;
    // Writing to a text cannot fail.
    let _ = write!(
        out,
        ",\"partition\":{},\"offset\":{},\"timestamp\":{}",
        partition.1, record.offset, record.timestamp.0
    );
    let mut headers = record.headers().peekable();
    if headers.peek().is_some() {
        out.push_str(",\"headers\":[");
        for (at, (name, value)) in headers.enumerate() {
            out.push_str(if at > 0 { ",{\"key\":" } else { "{\"key\":" });
            out.push_str(&embed::quoted(&String::from_utf8_lossy(name)));
            out.push_str(",\"value\":");
            embed::write(Format::Binary, value, out)?;
            out.push('}');
        }
        out.push(']');
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{BatchBuilder, BatchOptions};

    use crate::proxy::instance::Id;
    use crate::proxy::setup::Setup;
    use tokio::sync::mpsc;

    fn instance(setup: &str) -> Instance {
        let id = Id { user: None, group: "g".to_owned(), name: "i".to_owned() };
        Instance::new(id, Setup::read(setup.as_bytes()).expect("sound"), mpsc::channel(1).0)
    }

    fn told(values: &[&str]) -> PartitionData {
        let mut batch = BatchBuilder::new(BatchOptions::default());
        for value in values {
            batch.push(TimestampMs(7), None, Some(value.as_bytes()), &[(b"h", None)]);
        }
        let records = Some(batch.build().expect("a batch"));
        PartitionData {
            partition_index: 0,
            high_watermark: values.len() as i64,
            records,
            ..Default::default()
        }
    }

    /// The answer's records, the next offset, and the error.
    async fn taken(setup: &str, bytes_max: usize, values: &[&str]) -> (String, Position, Option<u32>) {
        let (instance, of) = (instance(setup), ("t".to_owned(), 0));
        let mut reading =
            Reading::new(&instance, Positions::from([(of.clone(), Position::At(0))]), bytes_max);
        reading.take(&of, told(values), 0).await;
        let code = reading.trouble.as_ref().map(Problem::confluent_code);
        (reading.text.clone(), reading.next[&of], code)
    }

    #[tokio::test]
    async fn records_are_written_as_they_are_stored() {
        let (text, next, _) = taken(r#"{"format":"json"}"#, 100, &["{\"n\": 1e400}", "2"]).await;
        let row = |value: &str, offset: i64| {
            format!(
                "{{\"topic\":\"t\",\"key\":null,\"value\":{value},\"partition\":0,\"offset\":{offset},\"timestamp\":7,\"headers\":[{{\"key\":\"h\",\"value\":null}}]}}"
            )
        };
        assert_eq!(text, format!("{},{}", row("{\"n\": 1e400}", 0), row("2", 1)));
        assert_eq!(next, Position::At(2));
    }

    #[tokio::test]
    async fn answer_ends_with_the_record_that_fills_it() {
        // Each has a header's name of one byte too.
        let (text, next, _) = taken("{}", 4, &["aa", "bb", "cc"]).await;
        assert_eq!((text.matches("offset").count(), next), (2, Position::At(2)));
        let (text, next, _) = taken("{}", 1, &["a large one", "bb"]).await;
        assert_eq!((text.matches("offset").count(), next), (1, Position::At(1)));
    }

    #[tokio::test]
    async fn record_of_another_format_is_not_passed_over() {
        let (text, next, code) = taken(r#"{"format":"json"}"#, 100, &["1", "no json", "3"]).await;
        assert_eq!((text.matches("offset").count(), next, code), (1, Position::At(1), Some(422)));
        assert!(serde_json::from_str::<serde_json::Value>(&format!("[{text}]")).is_ok(), "{text}");
    }

    #[test]
    fn every_partition_is_the_first_in_its_turn() {
        let first: Vec<i32> = (0..4).map(|turn| rotated(vec![0, 1, 2], turn)[0]).collect();
        assert_eq!(first, [0, 1, 2, 0]);
        assert!(rotated(Vec::<i32>::new(), 7).is_empty());
    }
}
