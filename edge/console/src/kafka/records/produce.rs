//! Sends records with `acks=all`, a batch for each partition and a request for each leader, and says which offset each
//! record got.
//!
//! Without a producer id: each HTTP request would need one of its own, and a partition remembers them for a day. So
//! nothing is sent twice here: where an answer is lost, the caller gets an error and decides.
//!
//! [`deliver`] tries again what found no leader, since that was not sent.

use crate::http::problem::Problem;
use crate::kafka::metadata;
use barnabas_base::{BrokerId, ErrorCode, TimestampMs};
use barnabas_client::{ClientError, Cluster, murmur2};
use barnabas_wire::messages::ProduceRequest;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::produce_response::PartitionProduceResponse;
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const TIMEOUT_MS: i32 = 15_000;
/// Tries of records that a leader has not taken since it is none any more.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// A record to be sent.
#[derive(Debug, Clone, Default)]
pub struct NewRecord {
    pub partition: Option<i32>,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    pub timestamp_ms: i64,
}

/// Where a record is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
}

/// The outcome of each record, in order. `topic` is asked for again where leaders have changed.
///
/// Records that found no leader were not sent, and are tried again. A leader that steps down refuses records that are
/// in its log already: its answer stands, and what comes next goes to the new leader.
pub async fn deliver(
    cluster: &mut Cluster,
    topic: &mut MetadataResponseTopic,
    records: &[NewRecord],
) -> Vec<Result<Stored, Problem>> {
    let name = topic.name.as_deref().unwrap_or_default().to_owned();
    let mut outcomes = send(cluster, topic, records).await;
    for _ in 1..TRIES {
        let again: Vec<usize> =
            (0..outcomes.len()).filter(|at| is(&outcomes[*at], ErrorCode::LeaderNotAvailable)).collect();
        if again.is_empty() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        match metadata::topic(cluster, &name).await {
            Ok(found) => *topic = found,
            Err(_) => continue,
        }
        let some: Vec<NewRecord> = again.iter().map(|at| records[*at].clone()).collect();
        let sent = send(cluster, topic, &some).await;
        again.into_iter().zip(sent).for_each(|(at, outcome)| outcomes[at] = outcome);
    }
    let has_moved = outcomes.iter().any(|outcome| is(outcome, ErrorCode::NotLeaderOrFollower));
    // Where no broker answers, the next group finds that out, and says it.
    if has_moved && let Ok(found) = metadata::topic(cluster, &name).await {
        *topic = found;
    }
    outcomes
}

fn is(outcome: &Result<Stored, Problem>, code: ErrorCode) -> bool {
    outcome.as_ref().is_err_and(|problem| problem.kafka == Some(code))
}

/// The outcome of each record, in order, each tried once.
pub async fn send(
    cluster: &mut Cluster,
    topic: &MetadataResponseTopic,
    records: &[NewRecord],
) -> Vec<Result<Stored, Problem>> {
    let mut outcomes: Vec<Result<Stored, Problem>> =
        records.iter().map(|_| Err(Problem::bad("not sent"))).collect();
    let name = topic.name.as_deref().unwrap_or_default();
    let mut batches: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    let without_key = sticky();
    for (at, record) in records.iter().enumerate() {
        batches.entry(choose(record, topic.partitions.len(), without_key)).or_default().push(at);
    }
    let mut requests: BTreeMap<i32, Vec<(i32, Bytes)>> = BTreeMap::new();
    for (partition, members) in &batches {
        let made = leader(topic, name, *partition).and_then(|leader| {
            let batch = batch(records, members);
            let bytes = batch.build().map_err(|error| Problem::bad(error.to_string()))?;
            requests.entry(leader).or_default().push((*partition, bytes));
            Ok(())
        });
        if let Err(problem) = made {
            members.iter().for_each(|at| outcomes[*at] = Err(problem.clone()));
        }
    }
    for (leader, rows) in requests {
        let partitions: Vec<i32> = rows.iter().map(|row| row.0).collect();
        let answer = ask(cluster, leader, topic, rows).await;
        for partition in partitions {
            let told = answer.as_ref().map_err(Clone::clone).and_then(|rows| {
                let missing =
                    || Problem::new(hyper::StatusCode::BAD_GATEWAY, "the answer names no partition");
                rows.iter().find(|row| row.index == partition).ok_or_else(missing)
            });
            for (place, at) in batches[&partition].iter().enumerate() {
                outcomes[*at] = told.clone().and_then(|row| stored(name, row, place, &records[*at]));
            }
        }
    }
    outcomes
}

async fn ask(
    cluster: &mut Cluster,
    leader: i32,
    topic: &MetadataResponseTopic,
    rows: Vec<(i32, Bytes)>,
) -> Result<Vec<PartitionProduceResponse>, Problem> {
    let data = |(index, records): (i32, Bytes)| PartitionProduceData {
        index,
        records: Some(records),
        ..Default::default()
    };
    let topic = TopicProduceData {
        name: topic.name.clone().unwrap_or_default(),
        topic_id: topic.topic_id,
        partition_data: rows.into_iter().map(data).collect(),
        ..Default::default()
    };
    let request =
        ProduceRequest { acks: -1, timeout_ms: TIMEOUT_MS, topic_data: vec![topic], ..Default::default() };
    let answer = cluster.ask(BrokerId(leader), &request).await.map_err(Problem::from)?;
    Ok(answer.responses.into_iter().flat_map(|topic| topic.partition_responses).collect())
}

fn stored(
    topic: &str,
    row: &PartitionProduceResponse,
    place: usize,
    record: &NewRecord,
) -> Result<Stored, Problem> {
    if row.error_code != 0 {
        let what = format!("{topic}-{}", row.index);
        return Err(Problem::refused(what, row.error_code, row.error_message.as_deref()));
    }
    let timestamp_ms = if row.log_append_time_ms >= 0 { row.log_append_time_ms } else { record.timestamp_ms };
    Ok(Stored { partition: row.index, offset: row.base_offset + place as i64, timestamp_ms })
}

fn batch(records: &[NewRecord], members: &[usize]) -> BatchBuilder {
    let mut batch = BatchBuilder::new(BatchOptions::default());
    for record in members.iter().map(|at| &records[*at]) {
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let timestamp = TimestampMs(record.timestamp_ms);
        batch.push(timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
    }
    batch
}

fn leader(topic: &MetadataResponseTopic, name: &str, partition: i32) -> Result<i32, Problem> {
    let what = || format!("{name}-{partition}");
    let found = topic.partitions.iter().find(|row| row.partition_index == partition);
    match found.map(|row| row.leader_id) {
        None => Err(ClientError::refused(what(), ErrorCode::UnknownTopicOrPartition.code(), None).into()),
        Some(..0) => Err(ClientError::refused(what(), ErrorCode::LeaderNotAvailable.code(), None).into()),
        Some(leader) => Ok(leader),
    }
}

/// As Kafka's clients choose: a key's hash; without a key one partition for all records of a request.
fn choose(record: &NewRecord, partitions: usize, without_key: u32) -> i32 {
    let count = i32::try_from(partitions).unwrap_or(i32::MAX).max(1);
    match (record.partition, &record.key) {
        (Some(partition), _) => partition,
        (None, Some(key)) => (murmur2(key) & i32::MAX) % count,
        (None, None) => (without_key & i32::MAX.cast_unsigned()).cast_signed() % count,
    }
}

/// The next partition for records without a key.
fn sticky() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
