//! Brokers that this one has just lost touch with, while the cluster has yet to say whether they are gone.
//!
//! When a broker is killed its clients lose their connections in the same instant as the other brokers do, and ask one of these at
//! once who leads now. The election is 10 to 100 ms away. Who is told the old leader then has nothing to go by: librdkafka looks again
//! after a second or two. So Metadata is answered once the metadata log has caught up with what this broker has seen, or after
//! [`PATIENCE`], whichever comes first.
//!
//! Costs one look at an atomic while nothing is lost.
//!
//! Neighbours: partition_worker/taking.rs and brokers_gone.rs, which lose touch; dispatch/cluster.rs, which waits.

use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, MonotonicMs};
use barnabas_metadata::Image;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How long answers are held back for a broker that has been lost touch with.
const PATIENCE: DurationMs = DurationMs(300);

/// See the file's header.
#[derive(Debug, Default)]
pub struct LostTouch {
    count: AtomicUsize,
    /// Which life of the broker, and since when.
    since: Mutex<BTreeMap<BrokerId, (BrokerEpoch, MonotonicMs)>>,
}

impl LostTouch {
    /// A connection to the broker was closed from the other end, or none comes about.
    pub fn lost(&self, image: &Image, broker: BrokerId, now: MonotonicMs) {
        let Some(known) = image.cluster.broker(broker).filter(|known| known.is_active()) else { return };
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let (epoch, at) = since.entry(broker).or_insert((known.epoch, now));
        if *epoch != known.epoch {
            (*epoch, *at) = (known.epoch, now);
        }
        self.count.store(since.len(), Ordering::Release);
    }

    /// The broker has answered.
    pub fn found(&self, broker: BrokerId) {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
            since.remove(&broker);
            self.count.store(since.len(), Ordering::Release);
        }
    }

    /// Whether the image names a broker as alive that may be gone.
    pub fn is_in_doubt(&self, image: &Image, now: MonotonicMs) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        // One that stays away is remembered: it is lost once, not again with each connection that does not come about.
        since.retain(|id, (epoch, _)| {
            image.cluster.broker(*id).is_some_and(|known| known.epoch == *epoch && known.is_active())
        });
        self.count.store(since.len(), Ordering::Release);
        since.values().any(|(_, at)| now.since(*at) < PATIENCE)
    }
}

#[cfg(test)]
mod tests;
