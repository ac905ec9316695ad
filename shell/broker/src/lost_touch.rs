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
use barnabas_metadata::{Broker, Image};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How long answers are held back for a broker that has been lost touch with.
const PATIENCE: DurationMs = DurationMs(300);
/// Who is not reached is tried again sooner than after so long: what comes later is another loss.
const APART: DurationMs = DurationMs(30_000);

/// See the file's header.
#[derive(Debug, Default)]
pub struct LostTouch {
    count: AtomicUsize,
    since: Mutex<BTreeMap<BrokerId, Loss>>,
}

#[derive(Debug)]
struct Loss {
    /// Which life of the broker.
    epoch: BrokerEpoch,
    since: MonotonicMs,
    /// When there was last no connection. Nobody may ask the broker for anything, and hear that it lives.
    last: MonotonicMs,
}

impl LostTouch {
    /// A connection to the broker was closed from the other end, or none comes about.
    pub fn lost(&self, image: &Image, broker: BrokerId, now: MonotonicMs) {
        let Some(known) = image.cluster.broker(broker).filter(|known| known.is_active()) else { return };
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let loss = since.entry(broker).or_insert(Loss { epoch: known.epoch, since: now, last: now });
        if loss.epoch != known.epoch || now.since(loss.last) >= APART {
            (loss.epoch, loss.since) = (known.epoch, now);
        }
        loss.last = now;
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
        since.retain(|id, loss| {
            let is_it = |known: &Arc<Broker>| known.epoch == loss.epoch && known.is_active();
            now.since(loss.last) < APART && image.cluster.broker(*id).is_some_and(is_it)
        });
        self.count.store(since.len(), Ordering::Release);
        since.values().any(|loss| now.since(loss.since) < PATIENCE)
    }
}

#[cfg(test)]
mod tests;
