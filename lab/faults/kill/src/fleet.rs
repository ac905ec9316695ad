//! Who writes: threads with a client each, which try on through every kill.
//!
//! With `acks=all` the client numbers its batches (an idempotent producer), so each record is there once; with `acks=1`
//! it does not, and a batch whose answer was lost may be there twice, but never out of order and never missing.

use crate::ledger::Ledger;
use crate::random::Random;
use barnabas_client::{ClientError, Cluster, ClusterConfig, Outgoing, Producer, ProducerConfig};
use bytes::{BufMut, Bytes, BytesMut};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Everything stays; several producers in each partition.
pub const KEPT: &str = "kept";
/// As [`KEPT`], with `acks=1`.
pub const LOOSE: &str = "loose";
/// Retention and DeleteRecords cut its beginning; one producer, so that a record's number is its offset.
pub const TRIMMED: &str = "trimmed";
/// Keys; one producer.
pub const COMPACTED: &str = "compacted";

/// Name, partitions, configs.
pub type Topic = (&'static str, i32, &'static [(&'static str, &'static str)]);

/// Written by a client of another make, in a process of its own.
pub const OUTSIDE: &str = "outside";

pub const TOPICS: &[Topic] = &[
    (KEPT, 8, &[("retention.ms", "-1"), ("segment.bytes", "4194304")]),
    (LOOSE, 4, &[("retention.ms", "-1"), ("segment.bytes", "2097152")]),
    (TRIMMED, 2, &[("retention.bytes", "3145728"), ("segment.bytes", "1048576")]),
    (
        COMPACTED,
        2,
        &[
            ("cleanup.policy", "compact"),
            ("segment.bytes", "1048576"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("max.compaction.lag.ms", "2000"),
            ("segment.ms", "2000"),
        ],
    ),
    (OUTSIDE, 4, &[("retention.ms", "-1"), ("segment.bytes", "4194304")]),
];

/// Keys of the compacted topic.
const KEYS: u64 = 200;

/// One writing thread.
#[derive(Debug, Clone, Copy)]
struct Kind {
    producer: u32,
    topic: &'static str,
    acks: i16,
    records_max: u64,
    record_bytes: usize,
    pause_ms: u64,
}

const KINDS: &[Kind] = &[
    Kind { producer: 1, topic: KEPT, acks: -1, records_max: 1, record_bytes: 100, pause_ms: 1 },
    Kind { producer: 2, topic: KEPT, acks: -1, records_max: 20, record_bytes: 100, pause_ms: 2 },
    Kind { producer: 3, topic: KEPT, acks: -1, records_max: 100, record_bytes: 300, pause_ms: 10 },
    Kind { producer: 4, topic: KEPT, acks: -1, records_max: 80, record_bytes: 8_000, pause_ms: 120 },
    Kind { producer: 5, topic: LOOSE, acks: 1, records_max: 20, record_bytes: 100, pause_ms: 3 },
    Kind { producer: 6, topic: LOOSE, acks: 1, records_max: 60, record_bytes: 2_000, pause_ms: 60 },
    Kind { producer: 7, topic: TRIMMED, acks: -1, records_max: 60, record_bytes: 2_000, pause_ms: 15 },
    Kind { producer: 8, topic: COMPACTED, acks: -1, records_max: 60, record_bytes: 200, pause_ms: 5 },
];

pub fn cluster(address: &str, client: &str) -> Cluster {
    let mut config = ClusterConfig::new(address, client);
    config.request_timeout = Duration::from_secs(10);
    config.deadline = Duration::from_secs(120);
    config.retry_backoff = Duration::from_millis(2);
    Cluster::new(config)
}

pub fn runtime() -> tokio::runtime::Runtime {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.expect("invariant: the system gives a runtime")
}

pub fn partitions(topic: &str) -> i32 {
    TOPICS.iter().find(|known| known.0 == topic).map_or(1, |known| known.1)
}

pub fn start(address: &str, ledger: &Arc<Ledger>, random: &mut Random) -> Vec<JoinHandle<()>> {
    let start = |kind: &Kind| {
        let (address, ledger, mut random, kind) = (address.to_owned(), ledger.clone(), random.fork(), *kind);
        std::thread::spawn(move || {
            if let Err(error) = runtime().block_on(write(&address, &ledger, &mut random, kind)) {
                ledger.problem(format!("producer {} of {}: {error}", kind.producer, kind.topic));
            }
        })
    };
    KINDS.iter().map(start).collect()
}

async fn write(address: &str, ledger: &Ledger, random: &mut Random, kind: Kind) -> Result<(), ClientError> {
    let mut cluster = cluster(address, &format!("fleet-{}", kind.producer));
    let config = ProducerConfig { acks: kind.acks, batch_bytes_max: 900_000, ..ProducerConfig::default() };
    let mut producer = Producer::new(&mut cluster, kind.topic, config).await?;
    let count = partitions(kind.topic) as u64;
    while !ledger.is_stopping() {
        let partition = random.below(count) as i32;
        let records = 1 + random.below(kind.records_max);
        let writer = (kind.topic, partition, kind.producer);
        let first = ledger.sent(writer, records);
        let mut keys = Vec::new();
        for number in first..first + records {
            let key = random.below(KEYS);
            let has_key = kind.topic == COMPACTED;
            if has_key {
                keys.push((key, number));
            }
            let record = Outgoing {
                partition: Some(partition),
                key: has_key.then(|| Bytes::from(key.to_string())),
                value: Some(value(kind.producer, number, kind.record_bytes)),
                ..Outgoing::default()
            };
            producer.send(&mut cluster, &record).await?;
        }
        producer.flush(&mut cluster).await?;
        ledger.acked(writer, records);
        for (key, number) in keys {
            ledger.key_acked(partition, key, number);
        }
        tokio::time::sleep(Duration::from_millis(random.below(2 * kind.pause_ms + 1))).await;
    }
    Ok(())
}

/// Producer, number, filler.
pub fn value(producer: u32, number: u64, len: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(len);
    bytes.put_u32(producer);
    bytes.put_u64(number);
    bytes.resize(len.max(12), b'.');
    bytes.freeze()
}

/// What [`value`] wrote.
pub fn read_value(value: &[u8]) -> Option<(u32, u64)> {
    let (producer, rest) = value.split_first_chunk::<4>()?;
    let number = rest.first_chunk::<8>()?;
    Some((u32::from_be_bytes(*producer), u64::from_be_bytes(*number)))
}
