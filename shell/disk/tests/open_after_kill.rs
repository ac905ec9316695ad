//! How long does opening a log take after `kill -9`, whatever its size?
//!
//! Unit: ms of wall time, and of this thread's CPU. Held fixed: one segment, in the page cache, all of it synced but
//! for the last 1 MiB; a producer snapshot every 16 MiB, as the node writes them. Left out: what the journal holds. The
//! bound that matters: a start serves within a second. Beside it, the same with nothing known to be synced, so that
//! every batch is read and checked.
//!
//! Runs small with the other tests; `OPEN_BYTES=1073741824 cargo test --release -p barnabas-disk --test open_after_kill
//! -- --nocapture` measures.

use barnabas_base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicPartition};
use barnabas_disk::LinuxDisk;
use barnabas_storage::{AppendBytes, FilePool, Log, LogConfig, LogPlace, OpenFrom};
use barnabas_wire::records::{BatchBuilder, BatchOptions};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

const NOW: TimestampMs = TimestampMs(1_700_000_000_000);
const UNSYNCED: u64 = 1 << 20;

fn batch(value_bytes: usize) -> Vec<u8> {
    let mut builder =
        BatchBuilder::new(BatchOptions { leader_epoch: LeaderEpoch(0), ..BatchOptions::default() });
    builder.push(NOW, None, Some(&vec![7; value_bytes]), &[]);
    builder.build().expect("a batch").to_vec()
}

/// Several batches from `base` on, each with a record.
fn piece(batch: &[u8], base: Offset) -> (Bytes, Offset) {
    let count = (256 << 10) / batch.len() + 1;
    let mut bytes = Vec::with_capacity(count * batch.len());
    for at in 0..count as i64 {
        let from = bytes.len();
        bytes.extend_from_slice(batch);
        // Outside of the checksum.
        bytes[from..from + 8].copy_from_slice(&base.plus(at).get().to_be_bytes());
    }
    (bytes.into(), base.plus(count as i64))
}

fn place(root: &Path) -> LogPlace {
    LogPlace {
        root: Arc::from(root),
        topic_partition: TopicPartition::new("t", PartitionIndex(0)),
        topic_id: barnabas_base::Uuid([1; 16]),
        future: None,
    }
}

fn config() -> Arc<LogConfig> {
    Arc::new(LogConfig { segment_bytes: i32::MAX as u32, ..LogConfig::default() })
}

fn sync(log: &mut Log, files: &FilePool) {
    if let Some(dirty) = log.take_dirty() {
        dirty.sync(&**files.disk(), None).expect("synced");
        log.mark_synced(dirty.ticket);
    }
}

/// Returns the recovery point and the end.
fn write(root: &Path, total: u64, value_bytes: usize) -> (Offset, Offset) {
    let mut files = FilePool::new(Arc::new(LinuxDisk), 16);
    let mut log = Log::create(place(root), config(), Offset::ZERO);
    let (batch, mut written, mut end) = (batch(value_bytes), 0, Offset::ZERO);
    while written < total {
        if written >= total - UNSYNCED && log.recovery_point() == Offset::ZERO {
            sync(&mut log, &files);
            log.checkpoint(&mut files).expect("a checkpoint");
        }
        let (bytes, next) = piece(&batch, end);
        (written, end) = (written + bytes.len() as u64, next);
        log.append(&mut files, &[AppendBytes::Whole(bytes)], NOW).expect("appended");
        if log.snapshot_is_due(1) {
            log.write_producer_snapshot(&mut files, end, &[]).expect("a snapshot");
        }
    }
    (log.recovery_point(), end)
}

fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("ns") / 1e6
}

fn open(root: &Path, recovery_point: Offset, end: Offset) -> (f64, f64) {
    let mut files = FilePool::new(Arc::new(LinuxDisk), 16);
    let (begun, cpu) = (barnabas_clock::now(), cpu_ms());
    let from = OpenFrom { recovery_point, is_ours: true, ..OpenFrom::default() };
    let (mut log, opened) = Log::open(&mut files, place(root), config(), from, NOW).expect("opened");
    // As the partition's owner does for producers' states.
    let found = log.read_producer_snapshot(&mut files, end).expect("read");
    let from = found.map_or(Offset::ZERO, |(at, _)| at);
    log.scan_headers(&mut files, from, end, &mut |_| {}).expect("scanned");
    let took = (barnabas_clock::since(begun).as_secs_f64() * 1e3, cpu_ms() - cpu);
    assert!(log.end() == end && opened.disbelieved.is_empty(), "{opened:?}");
    took
}

#[test]
fn opening_takes_as_long_as_what_is_not_synced() {
    let told = std::env::var("OPEN_BYTES").ok().and_then(|text| text.parse().ok());
    let total: u64 = told.unwrap_or(24 << 20);
    for value_bytes in [16 << 10, 200] {
        let root = std::env::temp_dir().join(format!("barnabas-open-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("a directory");
        let (recovery_point, end) = write(&root, total, value_bytes);
        let (known_ms, known_cpu) = open(&root, recovery_point, end);
        let (all_ms, all_cpu) = open(&root, Offset::ZERO, end);
        std::fs::remove_dir_all(&root).expect("removed");
        println!(
            "{{\"segment_bytes\":{total},\"value_bytes\":{value_bytes},\"open_ms\":{known_ms:.1},\"open_cpu_ms\":{known_cpu:.1},\
             \"all_checked_ms\":{all_ms:.1},\"all_checked_cpu_ms\":{all_cpu:.1}}}"
        );
    }
}
