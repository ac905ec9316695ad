//! What this broker must not lead although it is alive: the controller gives it to other replicas in sync, where
//! there are any.
//!
//! Two reasons. A log directory without room refuses producers (full.rs), and another replica may have room; where
//! nothing at all can be
//! written, the others are not to wait for this broker either. And a copy in which
//! damage was found cannot serve all of its records, which another copy can. Neither is said in the metadata log:
//! each heartbeat says
//! both, for as long as they last, and a change is said at once.
//!
//! Always true: what is said is at most [`NAMED_MAX`] partitions; the others are said as those become whole.
//!
//! Neighbours: hindrances.rs, which says it; core/quorum's `controller/hindered.rs`, which acts on it.

use crate::mailbox::PartitionKey;
use barnabas_base::BrokerId;
use barnabas_metadata::Image;
use barnabas_quorum::controller::hindered::said::NAMED_MAX;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the file's header. Shared by all threads; nearly always empty.
#[derive(Debug, Default)]
pub struct NotToLead {
    damaged: Mutex<BTreeSet<PartitionKey>>,
    count: AtomicUsize,
    pub has_changed: AtomicBool,
}

impl NotToLead {
    /// This broker's copy is damaged: others shall lead. Returns whether that is new. It is said within a second, see
    /// hindrances.rs.
    pub fn damaged(&self, key: PartitionKey) -> bool {
        self.change(|damaged| damaged.insert(key))
    }

    /// The copy is whole again, or gone. Returns whether it was damaged.
    pub fn healed(&self, key: PartitionKey) -> bool {
        self.count() > 0 && self.change(|damaged| damaged.remove(&key))
    }

    /// Copies that are known to be damaged.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// What a heartbeat names, in the order of keys.
    pub fn partitions(&self) -> Vec<PartitionKey> {
        if self.count() == 0 {
            return Vec::new();
        }
        self.lock().iter().take(NAMED_MAX).copied().collect()
    }

    /// Forgets partitions that this broker has no replica of any more.
    pub fn forget_strangers(&self, broker: BrokerId, image: &Image) {
        if self.count() == 0 {
            return;
        }
        self.change(|damaged| {
            let before = damaged.len();
            damaged.retain(|key| {
                let topic = image.topics.by_id(key.topic);
                topic
                    .and_then(|topic| topic.partition(key.partition))
                    .is_some_and(|row| row.has_replica(broker))
            });
            damaged.len() != before
        });
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<PartitionKey>) -> bool) -> bool {
        let mut damaged = self.lock();
        let has_changed = change(&mut damaged);
        self.count.store(damaged.len(), Ordering::Release);
        self.has_changed.fetch_or(has_changed, Ordering::AcqRel);
        has_changed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PartitionKey>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
