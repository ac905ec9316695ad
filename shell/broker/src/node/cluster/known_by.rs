//! By which moment the image is known to hold all that the controllers had committed.
//!
//! Always true: it is set after the image that it is about is published. A reader that loads it before the image has
//! one that is at least as new.
//!
//! Neighbours: controller/quorum_worker.rs, which sets it; worker/partition_worker/replication/repair.rs, which asks;
//! core/quorum/src/raft/replication/known.rs, which knows.

use barnabas_base::MonotonicMs;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the file's header. 0: by no moment.
#[derive(Debug, Default)]
pub struct KnownBy(AtomicU64);

impl KnownBy {
    pub fn set(&self, at: MonotonicMs) {
        self.0.fetch_max(at.0, Ordering::Release);
    }

    pub fn get(&self) -> Option<MonotonicMs> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            at => Some(MonotonicMs(at)),
        }
    }
}
