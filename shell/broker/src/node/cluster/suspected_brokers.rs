//! The lock around `barnabas_api::k03_metadata::waits`, which decides how long Metadata waits for the verdict on an
//! unreachable broker.
//!
//! Costs one look at an atomic while every broker is reached.
//!
//! Neighbours: partition_worker/replication/apply_fetched.rs and broker_probe.rs, which report; requests/cluster.rs,
//! which waits.

use barnabas_api::k03_metadata::waits::{Unreachable, awaits_first_broker};
use barnabas_base::{BrokerId, MonotonicMs};
use barnabas_metadata::Image;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// See the file's header.
#[derive(Debug, Default)]
pub struct SuspectedBrokers {
    count: AtomicUsize,
    unreachable: Mutex<Unreachable>,
}

impl SuspectedBrokers {
    /// A connection to the broker was closed from the other end, or none comes about.
    pub fn lost(&self, image: &Image, broker: BrokerId, now: MonotonicMs) {
        self.with(|unreachable| unreachable.lost(image, broker, now));
    }

    /// The broker has answered.
    pub fn found(&self, broker: BrokerId) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.with(|unreachable| unreachable.found(broker));
        }
    }

    /// Whether a Metadata request that arrived at `arrived` is not to be answered yet.
    pub fn must_wait(&self, image: &Image, arrived: MonotonicMs, now: MonotonicMs) -> bool {
        let is_doubtful = || self.with(|unreachable| unreachable.awaits_verdict(image, now));
        awaits_first_broker(image, arrived, now) || self.count.load(Ordering::Acquire) > 0 && is_doubtful()
    }

    fn with<T>(&self, act: impl FnOnce(&mut Unreachable) -> T) -> T {
        let mut unreachable = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut unreachable);
        self.count.store(unreachable.len(), Ordering::Release);
        done
    }
}
