//! How much waits for compaction and what was done: for the metrics, and the last lines of the log.
//!
//! Gauges say what the newest look over the candidates found; counters only rise. Kafka's names of the same figures are
//! in `kafka.log:type=LogCleanerManager` and `LogCleaner`: `max-dirty-percent`, `time-since-last-run-ms`,
//! `uncleanable-partitions-count`, `uncleanable-bytes` (the last two in candidates.rs).

use super::candidates::Candidates;
use crate::mailbox::cleaning::Waiting;
use barnabas_base::TimestampMs;
use barnabas_metrics::Counter;
use barnabas_storage::cleaner::CleanStats;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

#[derive(Debug)]
pub struct Figures {
    /// Bytes that could be compacted now.
    pub dirty_bytes: AtomicU64,
    /// Bytes in sealed segments that have to wait: for `min.compaction.lag.ms`, for a transaction's end.
    pub held_back_bytes: AtomicU64,
    /// Partitions with either.
    pub partitions_waiting: AtomicU64,
    /// The dirtiest partition's share, in hundredths.
    pub dirty_percent_max: AtomicU64,
    /// When the candidates were last looked over; −1: not yet.
    pub looked_at_ms: AtomicI64,
    pub cleanings: Counter,
    pub failures: Counter,
    pub bytes_read: Counter,
    pub bytes_written: Counter,
    pub records_dropped: Counter,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            dirty_bytes: AtomicU64::new(0),
            held_back_bytes: AtomicU64::new(0),
            partitions_waiting: AtomicU64::new(0),
            dirty_percent_max: AtomicU64::new(0),
            looked_at_ms: AtomicI64::new(-1),
            cleanings: Counter::default(),
            failures: Counter::default(),
            bytes_read: Counter::default(),
            bytes_written: Counter::default(),
            records_dropped: Counter::default(),
        }
    }
}

impl Figures {
    pub fn looked<'a>(&self, found: impl Iterator<Item = &'a Waiting>, now: TimestampMs) {
        let (mut dirty, mut held_back, mut count, mut ratio) = (0, 0, 0, 0.0_f64);
        for waiting in found {
            dirty += waiting.debt.dirty_bytes;
            held_back += waiting.debt.held_back_bytes;
            ratio = ratio.max(waiting.debt.dirty_ratio());
            count += 1;
        }
        self.dirty_bytes.store(dirty, Ordering::Relaxed);
        self.held_back_bytes.store(held_back, Ordering::Relaxed);
        self.partitions_waiting.store(count, Ordering::Relaxed);
        self.dirty_percent_max.store((ratio * 100.0) as u64, Ordering::Relaxed);
        self.looked_at_ms.store(now.0, Ordering::Relaxed);
    }

    pub fn cleaned(&self, stats: &CleanStats) {
        self.cleanings.one();
        self.bytes_read.add(stats.bytes_read);
        self.bytes_written.add(stats.bytes_written);
        self.records_dropped.add(stats.records_read - stats.records_kept);
    }

    pub fn failed(&self) {
        self.failures.one();
    }

    /// Names and values, for the log line at the end of the process.
    pub fn snapshot(&self, candidates: &Candidates) -> [(&'static str, u64); 11] {
        let (uncleanable, uncleanable_bytes) = candidates.lock().uncleanable();
        let gauge = |value: &AtomicU64| value.load(Ordering::Relaxed);
        [
            ("compaction_dirty_bytes", gauge(&self.dirty_bytes)),
            ("compaction_held_back_bytes", gauge(&self.held_back_bytes)),
            ("compaction_partitions_waiting", gauge(&self.partitions_waiting)),
            ("compaction_dirty_percent_max", gauge(&self.dirty_percent_max)),
            ("compaction_uncleanable_partitions", uncleanable as u64),
            ("compaction_uncleanable_bytes", uncleanable_bytes),
            ("compaction_cleanings", self.cleanings.get()),
            ("compaction_failures", self.failures.get()),
            ("compaction_bytes_read", self.bytes_read.get()),
            ("compaction_bytes_written", self.bytes_written.get()),
            ("compaction_records_dropped", self.records_dropped.get()),
        ]
    }
}
