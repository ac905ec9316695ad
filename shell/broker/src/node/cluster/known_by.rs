//! By which moment the image is known to hold all that the controllers had committed.
//!
//! Always true: it is told after the image that it speaks of. Whoever reads it before the image has one as new.
//!
//! Neighbours: quorum_worker.rs, which tells; partition_worker/repair.rs, which asks; core/quorum's `raft/known`, which
//! knows.

use barnabas_base::MonotonicMs;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the file's header. 0: by no moment.
#[derive(Debug, Default)]
pub struct KnownBy(AtomicU64);

impl KnownBy {
    pub fn tell(&self, at: MonotonicMs) {
        self.0.fetch_max(at.0, Ordering::Release);
    }

    pub fn get(&self) -> Option<MonotonicMs> {
        match self.0.load(Ordering::Acquire) {
            0 => None,
            at => Some(MonotonicMs(at)),
        }
    }
}
