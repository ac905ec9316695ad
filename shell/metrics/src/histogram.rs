//! How often which value came: counts in buckets that grow with the value, written by one thread, read by any.
//!
//! core/exposition/src/buckets.rs says which bucket a value falls into, and what sums of them mean. A value is counted
//! with three loads and three stores on lines that no other thread writes: no lock, no locked instruction, 3 ns.
//! Each thread has its own histogram, and the reader adds them up ([`Counts`]).
//!
//! Why not the `hdrhistogram` crate (edge/tools uses it): its counters want `&mut`, so that a reader on another thread
//! needs a lock or its recorder's channels, and with three digits it takes 60 KB for what takes 2 KB here. Why not
//! `prometheus`: it adds to shared counters with locked instructions, and its buckets are searched from the first to
//! the last.
//!
//! Always true:
//! 1. one thread writes; a second one would lose counts, and nothing else
//! 2. what was counted once is in every later reading

use barnabas_exposition::buckets::{BUCKETS, bucket_of_value};
use std::sync::atomic::{AtomicU64, Ordering};

pub use barnabas_exposition::buckets::{Counted, Counts, Scale};

/// A number that one thread writes.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of one thread. See the file's header.
#[derive(Debug)]
pub struct Histogram {
    scale: Scale,
    sum: Cell,
    max: Cell,
    buckets: [Cell; BUCKETS],
}

impl Histogram {
    pub fn new(scale: Scale) -> Self {
        let buckets = std::array::from_fn(|_| Cell::default());
        Self { scale, sum: Cell::default(), max: Cell::default(), buckets }
    }

    /// Counts one value: nanoseconds, or a number of things.
    pub fn record(&self, value: u64) {
        self.buckets[bucket_of_value(value, self.scale)].add(1);
        self.sum.add(value);
        self.max.raise(value);
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::new(self.scale);
        counts.add(self);
        counts
    }
}

impl Counted for Histogram {
    fn scale(&self) -> Scale {
        self.scale
    }

    fn bucket(&self, bucket: usize) -> u64 {
        self.buckets[bucket].get()
    }

    fn sum(&self) -> u64 {
        self.sum.get()
    }

    fn max(&self) -> u64 {
        self.max.get()
    }
}

#[cfg(test)]
mod tests;
