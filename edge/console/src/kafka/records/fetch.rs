//! Records of one partition from an offset on, with all that the batch says of them: Fetch without a session, as often
//! as the page needs, up to [`FETCHES_MAX`] times.
//!
//! Nothing is hidden: control records (marked) and records of aborted transactions come too, and batches that cannot be
//! read end the page with the reason.

use barnabas_base::{BrokerId, ErrorCode, Offset};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::FetchRequest;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::records::{Batch, ControlType, Entry, TimestampType, entries};
use bytes::Bytes;

/// Of one partition's answer. A larger batch comes whole.
const PARTITION_BYTES_MAX: i32 = 512 * 1024;
const FETCHES_MAX: usize = 32;
/// Of an inflated batch.
const INFLATED_BYTES_MAX: usize = 16 * 1024 * 1024;
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
}

impl Shown {
    fn bytes(&self) -> usize {
        let of = |part: &Option<Part>| part.as_ref().map_or(0, |part| part.bytes.len());
        let headers = self.headers.iter().map(|(key, value)| key.bytes.len() + of(value));
        of(&self.key) + of(&self.value) + headers.sum::<usize>()
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
    pub(crate) bytes: usize,
}

impl Page {
    fn is_full(&self, count: usize) -> bool {
        self.records.len() >= count || self.bytes >= PAGE_BYTES_MAX
    }
}

/// At most `count` records from `from` on.
///
/// # Errors
/// The partition's error: `OFFSET_OUT_OF_RANGE`, `TOPIC_AUTHORIZATION_FAILED` …
pub async fn fetch(
    cluster: &mut Cluster,
    topic: &MetadataResponseTopic,
    partition: i32,
    from: i64,
    count: usize,
) -> Result<Page, ClientError> {
    let mut page = Page { next: from, ..Default::default() };
    for _ in 0..FETCHES_MAX {
        let at = page.next;
        let told = ask(cluster, topic, partition, at).await?;
        read(&mut page, told, (partition, count));
        let is_over = page.next == at || page.next >= page.high_watermark;
        if is_over || page.is_full(count) || page.trouble.is_some() {
            break;
        }
    }
    Ok(page)
}

async fn ask(
    cluster: &mut Cluster,
    topic: &MetadataResponseTopic,
    partition: i32,
    from: i64,
) -> Result<PartitionData, ClientError> {
    let name = topic.name.clone().unwrap_or_default();
    let what = format!("{}-{partition}", &*name);
    let leader = topic.partitions.iter().find(|row| row.partition_index == partition);
    let leader = leader.map(|row| row.leader_id).filter(|leader| *leader >= 0);
    let leader =
        leader.ok_or_else(|| ClientError::refused(&what, ErrorCode::LeaderNotAvailable.code(), None))?;
    let asked = FetchPartition {
        partition,
        current_leader_epoch: -1,
        fetch_offset: from,
        partition_max_bytes: PARTITION_BYTES_MAX,
        ..Default::default()
    };
    let row =
        FetchTopic { topic: name, topic_id: topic.topic_id, partitions: vec![asked], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: PARTITION_BYTES_MAX,
        session_epoch: -1,
        topics: vec![row],
        ..Default::default()
    };
    let answer = cluster.ask(BrokerId(leader), &request).await?;
    check(&what, answer.error_code, None)?;
    let told = answer.responses.into_iter().flat_map(|topic| topic.partitions).next();
    let told = told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
    check(&what, told.error_code, None)?;
    Ok(told)
}

/// Adds what has come to the page.
fn read(page: &mut Page, told: PartitionData, (partition, count): (i32, usize)) {
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
        if let Err(why) = take(page, &batch, partition, (from, count)) {
            page.trouble = Some(format!("at offset {}: {why}", batch.header().base_offset));
            break;
        }
        if page.is_full(count) {
            break;
        }
        page.next = page.next.max(batch.header().next_offset().get());
    }
    if let Some(last) = page.records.last().filter(|_| page.is_full(count)) {
        page.next = last.offset + 1;
    }
}

fn take(page: &mut Page, batch: &Batch, partition: i32, (from, count): (i64, usize)) -> Result<(), String> {
    batch.check_crc().map_err(|error| error.to_string())?;
    let header = *batch.header();
    let records = batch.records_within(INFLATED_BYTES_MAX).map_err(|error| error.to_string())?;
    for record in records.iter() {
        let record = record.map_err(|error| error.to_string())?;
        if record.offset < Offset(from) {
            continue;
        }
        if page.is_full(count) {
            break;
        }
        let headers = record.headers().take(HEADERS_MAX);
        let is_control = header.attributes.is_control();
        let shown = Shown {
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
        };
        page.bytes += shown.bytes();
        page.records.push(shown);
    }
    Ok(())
}

fn control(key: &[u8]) -> &'static str {
    match ControlType::from_key(key) {
        Some(ControlType::Abort) => "ABORT",
        Some(ControlType::Commit) => "COMMIT",
        Some(_) => "CONTROL",
        None => "UNKNOWN CONTROL",
    }
}
