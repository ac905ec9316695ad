//! The good client: it writes one record after another, reads them all, and notes how long each answer took.

use crate::talk::Talk;
use barnabas_base::TimestampMs;
use barnabas_wire::ResponseBody;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest};
use barnabas_wire::records::{BatchBuilder, BatchOptions, batches};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Its topic. No attacker names it.
pub const TOPIC: &str = "good";
const PAUSE: Duration = Duration::from_millis(5);

/// What came of it.
#[derive(Debug, Default)]
pub struct Served {
    /// Round trips of acknowledged records, in microseconds.
    pub latencies_us: Vec<u64>,
    /// Requests that failed, and were sent again.
    pub errors: u64,
    pub first_error: Option<String>,
    /// The longest time without an acknowledged record.
    pub longest_gap: Duration,
}

impl Served {
    /// In milliseconds.
    pub fn percentile(&mut self, percent: usize) -> f64 {
        self.latencies_us.sort_unstable();
        let at = (self.latencies_us.len() * percent / 100).min(self.latencies_us.len().saturating_sub(1));
        self.latencies_us.get(at).map_or(0.0, |micros| *micros as f64 / 1000.0)
    }
}

/// What writer and reader share.
#[derive(Debug, Default)]
pub struct Shared {
    pub stop: AtomicBool,
    /// Records that were acknowledged, numbered from 0.
    pub acknowledged: AtomicU64,
}

/// Writes until it is stopped.
pub fn write(address: SocketAddr, shared: &Shared) -> Served {
    let mut served = Served::default();
    let mut talk = None;
    let mut last = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        let number = shared.acknowledged.load(Ordering::Relaxed);
        let began = Instant::now();
        match with_connection(&mut talk, address, |talk| write_one(talk, number)) {
            Ok(()) => {
                served.latencies_us.push(began.elapsed().as_micros() as u64);
                served.longest_gap = served.longest_gap.max(last.elapsed());
                last = Instant::now();
                shared.acknowledged.store(number + 1, Ordering::Relaxed);
            }
            Err(error) => {
                served.errors += 1;
                served.first_error.get_or_insert(format!("record {number}: {error}"));
                std::thread::sleep(PAUSE * 20);
            }
        }
        std::thread::sleep(PAUSE);
    }
    served.longest_gap = served.longest_gap.max(last.elapsed());
    served
}

fn with_connection<T>(
    kept: &mut Option<Talk>,
    address: SocketAddr,
    work: impl FnOnce(&mut Talk) -> Result<T, String>,
) -> Result<T, String> {
    let mut talk = match kept.take() {
        Some(talk) => talk,
        None => Talk::connect(address).map_err(|error| format!("connect: {error}"))?,
    };
    let done = work(&mut talk)?;
    *kept = Some(talk);
    Ok(done)
}

fn write_one(talk: &mut Talk, number: u64) -> Result<(), String> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.push(TimestampMs(1_700_000_000_000), None, Some(&number.to_be_bytes()), &[]);
    let records = builder.build().map_err(|error| error.to_string())?;
    let partition = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
    let topic =
        TopicProduceData { name: TOPIC.into(), partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 20_000, topic_data: vec![topic], ..Default::default() };
    match talk.call(request, 9).map_err(|error| error.to_string())? {
        ResponseBody::Produce(answer) => match answer.responses[0].partition_responses[0].error_code {
            0 => Ok(()),
            code => Err(format!("error {code}")),
        },
        _ => Err("another answer".to_owned()),
    }
}

/// Reads until all that was acknowledged has come. Returns what is wrong with it.
pub fn read(address: SocketAddr, shared: &Shared) -> Result<u64, String> {
    let (mut talk, mut offset, mut next, mut errors) = (None, 0i64, 0u64, 0);
    let mut patience = None;
    loop {
        let is_stopped = shared.stop.load(Ordering::Relaxed);
        let acknowledged = shared.acknowledged.load(Ordering::Relaxed);
        if is_stopped && next >= acknowledged {
            return Ok(next);
        }
        if is_stopped && patience.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(60) {
            return Err(format!(
                "{acknowledged} records were acknowledged, {next} can be read ({errors} errors)"
            ));
        }
        match with_connection(&mut talk, address, |talk| fetch(talk, offset)) {
            Ok(records) => {
                for batch in batches(records).map_while(Result::ok) {
                    offset = batch.header().next_offset().get();
                    for record in batch.records().map_err(|error| error.to_string())?.iter().flatten() {
                        let number =
                            record.value.and_then(|value| value.try_into().ok()).map(u64::from_be_bytes);
                        // A record whose acknowledgement was lost is there twice.
                        match number {
                            Some(number) if number == next => next += 1,
                            Some(number) if number < next => {}
                            other => return Err(format!("record {next} was to come, and {other:?} came")),
                        }
                    }
                }
            }
            Err(_) => {
                errors += 1;
                std::thread::sleep(PAUSE * 20);
            }
        }
    }
}

fn fetch(talk: &mut Talk, offset: i64) -> Result<Bytes, String> {
    let partition = FetchPartition {
        partition: 0,
        fetch_offset: offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = FetchTopic { topic: TOPIC.into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_wait_ms: 100,
        min_bytes: 1,
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    match talk.call(request, 12).map_err(|error| error.to_string())? {
        ResponseBody::Fetch(answer) => {
            let partition =
                answer.responses.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
            match partition {
                Some(partition) if partition.error_code == 0 => Ok(partition.records.unwrap_or_default()),
                Some(partition) => Err(format!("error {}", partition.error_code)),
                None => Ok(Bytes::new()),
            }
        }
        _ => Err("another answer".to_owned()),
    }
}
