//! What was sent and what was acknowledged, by topic, partition and producer; shared by all threads.
//!
//! Always true: `acked ≤ sent`, and both only rise. A record's number within its (topic, partition, producer) counts
//! from 0, so that one number describes what the log must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Topic, partition, producer.
pub type Writer = (&'static str, i32, u32);

#[derive(Debug, Default, Clone, Copy)]
pub struct Count {
    pub sent: u64,
    pub acked: u64,
}

#[derive(Debug, Default)]
pub struct Ledger {
    counts: Mutex<BTreeMap<Writer, Count>>,
    /// The newest acknowledged number of each key of the compacted topic.
    keys: Mutex<BTreeMap<(i32, u64), u64>>,
    /// For each (group partition): acknowledged and sent committed offsets.
    committed: Mutex<BTreeMap<i32, Count>>,
    topics: Mutex<Topics>,
    /// The highest acknowledged low watermark of DeleteRecords, by partition.
    low: Mutex<BTreeMap<i32, u64>>,
    problems: Mutex<Vec<String>>,
    stopping: AtomicBool,
    first_ack: Mutex<Option<Instant>>,
    commits: AtomicU64,
}

/// Topics that come and go.
#[derive(Debug, Default, Clone)]
pub struct Topics {
    /// With the records that were acknowledged in each of their two partitions.
    pub live: BTreeMap<String, u64>,
    pub deleted: BTreeSet<String>,
    pub made: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    pub fn sent(&self, writer: Writer, records: u64) -> u64 {
        let mut counts = lock(&self.counts);
        let count = counts.entry(writer).or_default();
        count.sent += records;
        count.sent - records
    }

    pub fn acked(&self, writer: Writer, records: u64) {
        lock(&self.counts).entry(writer).or_default().acked += records;
        lock(&self.first_ack).get_or_insert_with(Instant::now);
    }

    pub fn counts(&self) -> BTreeMap<Writer, Count> {
        lock(&self.counts).clone()
    }

    pub fn acked_total(&self) -> u64 {
        lock(&self.counts).values().map(|count| count.acked).sum()
    }

    pub fn acked_of(&self, producer: u32) -> u64 {
        lock(&self.counts).iter().filter(|(key, _)| key.2 == producer).map(|(_, count)| count.acked).sum()
    }

    pub fn acked_in(&self, topic: &str) -> u64 {
        lock(&self.counts).iter().filter(|(key, _)| key.0 == topic).map(|(_, count)| count.acked).sum()
    }

    pub fn key_acked(&self, partition: i32, key: u64, number: u64) {
        lock(&self.keys).insert((partition, key), number);
    }

    pub fn keys(&self) -> BTreeMap<(i32, u64), u64> {
        lock(&self.keys).clone()
    }

    pub fn commit_sent(&self, partition: i32, offset: u64) {
        lock(&self.committed).entry(partition).or_default().sent = offset;
    }

    pub fn commit_acked(&self, partition: i32, offset: u64) {
        lock(&self.committed).entry(partition).or_default().acked = offset;
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn committed(&self) -> BTreeMap<i32, Count> {
        lock(&self.committed).clone()
    }

    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub fn with_topics<T>(&self, change: impl FnOnce(&mut Topics) -> T) -> T {
        change(&mut lock(&self.topics))
    }

    pub fn topics_made(&self) -> u64 {
        lock(&self.topics).made
    }

    pub fn topics_deleted(&self) -> usize {
        lock(&self.topics).deleted.len()
    }

    pub fn low_acked(&self, partition: i32, offset: u64) {
        lock(&self.low).insert(partition, offset);
    }

    pub fn low(&self) -> BTreeMap<i32, u64> {
        lock(&self.low).clone()
    }

    pub fn problem(&self, what: impl Into<String>) {
        lock(&self.problems).push(what.into());
    }

    pub fn first_problem(&self) -> Result<(), String> {
        lock(&self.problems).first().map_or(Ok(()), |problem| Err(problem.clone()))
    }

    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// How long after `moment` the first acknowledgement came since the last call.
    pub fn take_first_ack(&self, moment: Instant) -> Option<Duration> {
        lock(&self.first_ack).take().map(|at| at.saturating_duration_since(moment))
    }
}
