//! What this broker must not lead although it is alive: the controller gives it to other replicas in sync, where
//! there are any.
//!
//! Three reasons. A log directory without room refuses producers (full.rs), and another replica may have room; if
//! the directory takes no bytes at all, other replicas should not wait for this broker either. A replica with damage
//! cannot serve all of its records, and another replica can. A replica whose log cannot be opened is an *offline
//! replica*: it serves nothing. The metadata log has none of this. Every heartbeat reports it as long as it lasts,
//! and a change triggers a heartbeat.
//!
//! Always true: a heartbeat names at most [`NAMED_MAX`] partitions, and the others as those are repaired.
//!
//! Neighbours: impairments.rs, which says it; core/quorum's `controller/impaired.rs`, which acts on it.

use crate::log_dirs::full::{Impairs, Room};
use crate::mailbox::PartitionKey;
use crate::node::log_dirs::LogDirs;
use arc_swap::ArcSwapOption;
use barnabas_api::OfflineReplicas;
use barnabas_base::{BrokerId, DirectoryId, MonotonicMs};
use barnabas_log_dirs::ImpairedReplicas;
use barnabas_metadata::Image;
use barnabas_quorum::controller::impaired::said::{Impairments, NAMED_MAX};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the file's header. Shared by all threads; nearly always empty.
#[derive(Debug, Default)]
pub struct ImpairedPartitions {
    copies: Mutex<ImpairedReplicas>,
    count: AtomicUsize,
    offline_count: AtomicUsize,
    /// `None`: there are none.
    offline: ArcSwapOption<OfflineReplicas>,
    pub has_changed: AtomicBool,
}

impl ImpairedPartitions {
    /// Notes that this broker's replica is damaged, so that another one leads. Returns whether that is new.
    /// impairments.rs reports it within a second.
    pub fn damaged(&self, key: PartitionKey) -> bool {
        self.change(|copies| copies.damaged(key))
    }

    /// This broker's copy cannot be opened: others shall lead. Returns whether that is new.
    pub fn offline(&self, key: PartitionKey) -> bool {
        self.change(|copies| copies.offline(key))
    }

    /// The copy is whole again, or gone. Returns whether it was not.
    pub fn healed(&self, key: PartitionKey) -> bool {
        self.count() > 0 && self.change(|copies| copies.healed(key))
    }

    /// Copies that are known to be damaged, or cannot be opened.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Copies that cannot be opened.
    pub fn offline_count(&self) -> usize {
        self.offline_count.load(Ordering::Acquire)
    }

    /// Copies that cannot be opened, as answers of this moment show them; `None`: there are none.
    pub fn all_offline(&self) -> Option<Arc<OfflineReplicas>> {
        if self.offline_count() == 0 { None } else { self.offline.load_full() }
    }

    pub fn is_offline(&self, key: PartitionKey) -> bool {
        self.offline_count() > 0 && self.lock().is_offline(key)
    }

    /// Copies that are open and damaged.
    pub fn all_damaged(&self) -> BTreeSet<PartitionKey> {
        if self.count() == 0 { BTreeSet::new() } else { self.lock().all_damaged().clone() }
    }

    /// What a heartbeat names, in the order of keys.
    pub fn partitions(&self) -> Vec<PartitionKey> {
        if self.count() == 0 {
            return Vec::new();
        }
        self.lock().named(NAMED_MAX)
    }

    /// Forgets partitions that this broker has no replica of any more.
    pub fn forget_moved(&self, broker: BrokerId, image: &Image) {
        if self.count() > 0 {
            self.change(|copies| copies.forget_moved(broker, image));
        }
    }

    fn change(&self, change: impl FnOnce(&mut ImpairedReplicas) -> bool) -> bool {
        let mut copies = self.lock();
        let has_changed = change(&mut copies);
        self.count.store(copies.count(), Ordering::Release);
        if has_changed {
            let named: OfflineReplicas =
                copies.all_offline().iter().map(|key| (key.topic, key.partition)).collect();
            self.offline.store((!named.is_empty()).then(|| named.into()));
        }
        self.offline_count.store(copies.offline_count(), Ordering::Release);
        self.has_changed.fetch_or(has_changed, Ordering::AcqRel);
        has_changed
    }

    fn lock(&self) -> MutexGuard<'_, ImpairedReplicas> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogDirs {
    /// What a heartbeat says of this broker now.
    pub fn impairments(&self, now: MonotonicMs) -> Impairments {
        let usable = || self.directories.iter().filter(|directory| directory.is_usable());
        let named = |least: Impairs| {
            let is_so = |room: &Room| room.impairs(now) >= least;
            let mut ids: Vec<_> = usable()
                .filter(|directory| directory.is_known() && is_so(&directory.room))
                .map(|directory| directory.id)
                .collect();
            if !ids.is_empty() && usable().all(|directory| is_so(&directory.room)) {
                // Wherever the metadata log may think that something lies.
                ids.push(DirectoryId::DIRECTORY_UNASSIGNED);
            }
            ids
        };
        let partitions = self.impaired.partitions();
        Impairments {
            directories: named(Impairs::Leading),
            partitions: partitions.into_iter().map(|key| (key.topic, key.partition)).collect(),
            full: named(Impairs::Writing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    #[test]
    fn damaged_and_offline_copies_are_both_named_and_counted_once() {
        let key = |partition| PartitionKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) };
        let impaired = ImpairedPartitions::default();
        assert!(impaired.damaged(key(1)) && impaired.offline(key(1)) && impaired.offline(key(0)));
        assert!(!impaired.offline(key(0)), "known already");
        assert!(impaired.has_changed.swap(false, Ordering::AcqRel));
        assert_eq!(impaired.partitions(), [key(0), key(1)]);
        assert_eq!((impaired.count(), impaired.offline_count()), (2, 2));
        assert!(impaired.is_offline(key(0)) && !impaired.is_offline(key(2)));
        assert_eq!(impaired.all_damaged(), [key(1)].into());
        assert_eq!(impaired.all_offline().map(|all| all.len()), Some(2));
        assert!(impaired.healed(key(1)) && !impaired.healed(key(1)));
        assert_eq!((impaired.count(), impaired.offline_count()), (1, 1));
        assert!(impaired.all_damaged().is_empty());
        assert!(impaired.has_changed.load(Ordering::Acquire));
    }
}
