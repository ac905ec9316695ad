//! What a log directory's own threads count: the journal's rounds and the committer's syncs.

use crate::histogram::{Cell, Histogram, Scale};
use crate::requests::RoundTimes;
use barnabas_clock::Stamp;

/// Written by the thread that writes the journal's rounds, one at a time.
#[derive(Debug)]
pub struct JournalCells {
    /// The synced write of a round.
    pub writes: Histogram,
    /// Padding included.
    pub round_bytes: Histogram,
    /// Partitions that a round made durable.
    pub round_partitions: Histogram,
}

impl Default for JournalCells {
    fn default() -> Self {
        Self {
            writes: Histogram::new(Scale::Nanoseconds),
            round_bytes: Histogram::new(Scale::Count),
            round_partitions: Histogram::new(Scale::Count),
        }
    }
}

impl JournalCells {
    /// A round of so many bytes whose write began then has just become durable.
    pub fn written(&self, begun: Stamp, bytes: u64) -> RoundTimes {
        let durable = Stamp::now();
        self.writes.record(durable.since(begun));
        self.round_bytes.record(bytes);
        RoundTimes { begun, durable }
    }
}

/// Written by the committer's thread alone.
#[derive(Debug)]
pub struct SyncCells {
    pub syncs: Histogram,
    pub files: Histogram,
    /// Partitions that were handed in for it.
    pub requests: Cell,
}

impl Default for SyncCells {
    fn default() -> Self {
        Self {
            syncs: Histogram::new(Scale::Nanoseconds),
            files: Histogram::new(Scale::Count),
            requests: Cell::default(),
        }
    }
}

impl SyncCells {
    pub fn synced(&self, begun: Stamp, requests: usize, files: usize) {
        self.syncs.record(Stamp::now().since(begun));
        self.files.record(files as u64);
        self.requests.add(requests as u64);
    }
}
