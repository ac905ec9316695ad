//! Records of one partition from an offset on, with all that the batch says of them: Fetch without a session, as often
//! as the page needs, up to [`FETCHES_MAX`] times.
//!
//! Nothing is hidden: control records (marked) and records of aborted transactions come too, and batches that cannot be
//! read end the page with the reason.

use super::decode::{Decoded, Decoding, INFLATED_BYTES_MAX};
use super::needle::Needle;
use barnabas_base::{BrokerId, ErrorCode, Offset};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::FetchRequest;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
pub use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::records::{Batch, BatchHeader, ControlType, Entry, RecordRef, TimestampType, entries};
use bytes::Bytes;

/// Of one partition's answer. A larger batch comes whole.
const PARTITION_BYTES_MAX: i32 = 512 * 1024;
const FETCHES_MAX: usize = 32;
/// Of a key, a value or a header; the rest is left out.
pub const SHOWN_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 50;
/// Of keys, values and headers of a page: it ends with the record that reaches it.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The first bytes of a key or a value, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub bytes: Bytes,
    pub size: usize,
}

impl Part {
    /// A copy: a slice would keep its batch.
    pub fn of(bytes: &[u8]) -> Self {
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
        Self { bytes: Bytes::copy_from_slice(shown), size: bytes.len() }
    }
}

/// A record as it is stored.
#[derive(Debug, Clone)]
pub struct Shown {
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    /// Whether the broker dated it.
    pub is_append_time: bool,
    pub key: Option<Part>,
    pub value: Option<Part>,
    /// At most [`HEADERS_MAX`].
    pub headers: Vec<(Part, Option<Part>)>,
    /// −1: without.
    pub producer_id: i64,
    pub is_transactional: bool,
    /// `COMMIT`, `ABORT` …
    pub control: Option<&'static str>,
    pub codec: &'static str,
    /// Key and value as JSON, where that was asked for.
    pub decoded: Option<(Option<Decoded>, Option<Decoded>)>,
}

impl Shown {
    pub fn bytes(&self) -> usize {
        let of = |part: &Option<Part>| part.as_ref().map_or(0, |part| part.bytes.len());
        let headers = self.headers.iter().map(|(key, value)| key.bytes.len() + of(value));
        let decoded = self.decoded.iter().flat_map(|(key, value)| [key, value]).flatten();
        let texts = decoded.map(Decoded::bytes).sum::<usize>();
        of(&self.key) + of(&self.value) + headers.sum::<usize>() + texts
    }
}

/// What one partition has given.
#[derive(Debug, Default)]
pub struct Page {
    pub records: Vec<Shown>,
    pub next: i64,
    pub high_watermark: i64,
    /// Why it goes no further.
    pub trouble: Option<String>,
    /// Of what the records hold.
    pub bytes: usize,
    /// Records that were looked at, and the bytes of their keys, values and headers.
    pub seen_records: u64,
    pub seen_bytes: u64,
}

impl Page {
    pub fn from(next: i64) -> Self {
        Self { next, ..Default::default() }
    }

    fn is_full(&self, want: &Want<'_>) -> bool {
        self.records.len() >= want.count || self.bytes >= want.bytes_max
    }
}

/// Which records of a partition, and how many of them.
#[derive(Debug, Clone, Copy)]
pub struct Want<'a> {
    pub partition: i32,
    pub count: usize,
    /// Of keys, values and headers: a page ends with the record that reaches it.
    pub bytes_max: usize,
    /// The first offset that is not wanted.
    pub until: i64,
    /// `None`: every record.
    pub needle: Option<&'a Needle>,
    pub decoding: Option<&'a Decoding>,
}

/// How long a leader may wait for a record, and how much it gives.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub wait_ms: i32,
    pub bytes: i32,
    pub partition_bytes: i32,
    /// Whether only records up to the last stable offset come.
    pub is_committed: bool,
}

const AT_ONCE: Limits = Limits {
    wait_ms: 0,
    bytes: PARTITION_BYTES_MAX,
    partition_bytes: PARTITION_BYTES_MAX,
    is_committed: false,
};

/// At most `count` records from `from` on.
///
/// # Errors
/// The partition's error: `OFFSET_OUT_OF_RANGE`, `TOPIC_AUTHORIZATION_FAILED` …
pub async fn fetch(
    cluster: &mut Cluster,
    topic: &MetadataResponseTopic,
    partition: i32,
    from: i64,
    (count, decoding): (usize, Option<&Decoding>),
) -> Result<Page, ClientError> {
    let mut page = Page::from(from);
    let (bytes_max, until) = (PAGE_BYTES_MAX, i64::MAX);
    let want = Want { partition, count, bytes_max, until, needle: None, decoding };
    for _ in 0..FETCHES_MAX {
        let at = page.next;
        step(cluster, topic, &mut page, &want).await?;
        let is_over = page.next == at || page.next >= page.high_watermark;
        if is_over || page.is_full(&want) || page.trouble.is_some() {
            break;
        }
    }
    Ok(page)
}

/// Adds to `page` what one Fetch gives.
///
/// # Errors
/// As [`fetch`].
pub async fn step(
    cluster: &mut Cluster,
    topic: &MetadataResponseTopic,
    page: &mut Page,
    want: &Want<'_>,
) -> Result<(), ClientError> {
    let partition = want.partition;
    let what = format!("{}-{partition}", topic.name.as_deref().unwrap_or_default());
    let leader = topic.partitions.iter().find(|row| row.partition_index == partition);
    let leader = leader.map(|row| row.leader_id).filter(|leader| *leader >= 0);
    let leader =
        leader.ok_or_else(|| ClientError::refused(&what, ErrorCode::LeaderNotAvailable.code(), None))?;
    let told = ask(cluster, BrokerId(leader), topic, (&[(partition, page.next)], AT_ONCE)).await?;
    let told = told.into_iter().next();
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
    check(&what, told.error_code, None)?;
    if let (Some(decoding), Some(records)) = (want.decoding, &told.records) {
        decoding.prepare(records).await;
    }
    read(page, told, want);
    Ok(())
}

/// What `leader` has of these partitions, from these offsets on.
///
/// # Errors
/// The request's own error; each partition has one of its own.
pub async fn ask(
    cluster: &mut Cluster,
    leader: BrokerId,
    topic: &MetadataResponseTopic,
    (partitions, limits): (&[(i32, i64)], Limits),
) -> Result<Vec<PartitionData>, ClientError> {
    let name = topic.name.clone().unwrap_or_default();
    let what = format!("reading {}", &*name);
    let asked = |(partition, from): &(i32, i64)| FetchPartition {
        partition: *partition,
        current_leader_epoch: -1,
        fetch_offset: *from,
        partition_max_bytes: limits.partition_bytes,
        ..Default::default()
    };
    let partitions = partitions.iter().map(asked).collect();
    let row = FetchTopic { topic: name, topic_id: topic.topic_id, partitions, ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: limits.wait_ms,
        min_bytes: i32::from(limits.wait_ms > 0),
        max_bytes: limits.bytes,
        isolation_level: i8::from(limits.is_committed),
        session_epoch: -1,
        topics: vec![row],
        ..Default::default()
    };
    let answer = cluster.ask(leader, &request).await?;
    check(&what, answer.error_code, None)?;
    Ok(answer.responses.into_iter().flat_map(|topic| topic.partitions).collect())
}

/// Adds what has come to the page.
pub fn read(page: &mut Page, told: PartitionData, want: &Want<'_>) {
    let from = page.next;
    page.high_watermark = told.high_watermark;
    for entry in entries(told.records.unwrap_or_default()) {
        let batch = match entry {
            Ok(Entry::Batch(batch)) => batch,
            Ok(Entry::Message(_)) => {
                page.trouble = Some("records of a format before Kafka 0.11".to_owned());
                break;
            }
            Err(error) => {
                page.trouble = Some(error.to_string());
                break;
            }
        };
        if batch.header().base_offset.get() >= want.until {
            break;
        }
        if let Err(why) = take(page, &batch, from, want) {
            page.trouble = Some(format!("at offset {}: {why}", batch.header().base_offset));
            break;
        }
        if page.is_full(want) {
            break;
        }
        page.next = page.next.max(batch.header().next_offset().get());
    }
    if let Some(last) = page.records.last().filter(|_| page.is_full(want)) {
        page.next = last.offset + 1;
    }
}

fn take(page: &mut Page, batch: &Batch, from: i64, want: &Want<'_>) -> Result<(), String> {
    batch.check_crc().map_err(|error| error.to_string())?;
    let header = *batch.header();
    let records = batch.records_within(INFLATED_BYTES_MAX).map_err(|error| error.to_string())?;
    for record in records.iter() {
        let record = record.map_err(|error| error.to_string())?;
        if record.offset < Offset(from) {
            continue;
        }
        if page.is_full(want) || record.offset.get() >= want.until {
            break;
        }
        page.seen_records += 1;
        page.seen_bytes += weight(&record);
        // Control records have keys of Kafka's own.
        let is_control = header.attributes.is_control();
        if want.needle.is_some_and(|needle| is_control || !needle.is_in_record(&record, want.decoding)) {
            continue;
        }
        let shown = shown(want.partition, &header, &record, want.decoding);
        page.bytes += shown.bytes();
        page.records.push(shown);
    }
    Ok(())
}

/// A record with all that its batch says of it.
pub fn shown(
    partition: i32,
    header: &BatchHeader,
    record: &RecordRef<'_>,
    decoding: Option<&Decoding>,
) -> Shown {
    let cut =
        |(key, value): (Option<Decoded>, Option<Decoded>)| (key.map(Decoded::cut), value.map(Decoded::cut));
    let headers = record.headers().take(HEADERS_MAX);
    let is_control = header.attributes.is_control();
    Shown {
        partition,
        offset: record.offset.get(),
        timestamp_ms: record.timestamp.0,
        is_append_time: header.attributes.timestamp_type() == TimestampType::LogAppendTime,
        key: record.key.map(Part::of),
        value: record.value.map(Part::of),
        headers: headers.map(|(key, value)| (Part::of(key), value.map(Part::of))).collect(),
        producer_id: header.producer_id.get(),
        is_transactional: header.attributes.is_transactional(),
        control: is_control.then(|| control(record.key.unwrap_or_default())),
        codec: header.attributes.codec().map_or("unknown", |codec| codec.name()),
        // Control records have keys of Kafka's own.
        decoded: decoding.filter(|_| !is_control).map(|decoding| cut(decoding.decode(record))),
    }
}

fn weight(record: &RecordRef<'_>) -> u64 {
    let of = |part: Option<&[u8]>| part.map_or(0, <[u8]>::len);
    let headers = record.headers().map(|(name, value)| name.len() + of(value));
    (of(record.key) + of(record.value) + headers.sum::<usize>()) as u64
}

fn control(key: &[u8]) -> &'static str {
    match ControlType::from_key(key) {
        Some(ControlType::Abort) => "ABORT",
        Some(ControlType::Commit) => "COMMIT",
        Some(_) => "CONTROL",
        None => "UNKNOWN CONTROL",
    }
}
