//! What this broker must not lead although it is alive: the controller gives it to other replicas in sync, where there are any.
//!
//! Two reasons. A log directory without room refuses producers (full.rs), and another replica may have room; where nothing at all can be
//! written, the others are not to wait for this broker either. And a copy in which
//! damage was found cannot serve all of its records, which another copy can. Neither is said in the metadata log: each heartbeat says
//! both, for as long as they last, and a change is said at once.
//!
//! Always true: what is said is at most [`NAMED_MAX`] partitions; the others are said as those become whole.
//!
//! Neighbours: directories/reports.rs, which says it; core/quorum's `controller/hindered.rs`, which acts on it.

use crate::directories::reports;
use crate::full::{Hinders, Room};
use crate::mailbox::PartitionKey;
use crate::node::Node;
use barnabas_base::DirectoryId;
use barnabas_metadata::Image;
use barnabas_quorum::controller::hindered::said::{Hindrances, NAMED_MAX};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the file's header. Shared by all threads; nearly always empty.
#[derive(Debug, Default)]
pub struct NotToLead {
    damaged: Mutex<BTreeSet<PartitionKey>>,
    count: AtomicUsize,
    has_changed: AtomicBool,
}

impl NotToLead {
    /// This broker's copy is damaged: others shall lead. Returns whether that is new. It is said within a second, see [`say`].
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
    fn forget_strangers(&self, node: &Node, image: &Image) {
        if self.count() == 0 {
            return;
        }
        self.change(|damaged| {
            let before = damaged.len();
            damaged.retain(|key| {
                let topic = image.topics.by_id(key.topic);
                topic
                    .and_then(|topic| topic.partition(key.partition))
                    .is_some_and(|row| row.has_replica(node.broker_id))
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

/// What a heartbeat says of this broker now.
pub fn hindrances(node: &Node) -> Hindrances {
    let now = node.clock.monotonic();
    let usable = || node.directories.iter().filter(|directory| directory.is_usable());
    let named = |least: Hinders| {
        let is_so = |room: &Room| room.hinders(now) >= least;
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
    let partitions = node.not_to_lead.partitions();
    Hindrances {
        directories: named(Hinders::Leading),
        partitions: partitions.into_iter().map(|key| (key.topic, key.partition)).collect(),
        full: named(Hinders::Writing),
    }
}

/// A producer is refused for want of room: the controller hears of it now, if it has not yet.
pub fn no_room(node: &Node, directory: usize) {
    if note_room(node, directory) {
        tell(node);
    }
}

/// Whether the controller does not know yet what is to be said of a directory.
fn note_room(node: &Node, directory: usize) -> bool {
    let directory = &node.directories[directory];
    if !directory.is_usable() {
        return false;
    }
    let Some(hinders) = directory.room.take_hindrance(node.clock.monotonic()) else { return false };
    let path = directory.path.display();
    if node.image.load().cluster.broker_count() > 1 {
        match hinders {
            Hinders::Writing => tracing::info!(
                "{path} is full: leadership of its partitions moves to other brokers, and this broker's \
                 replicas leave the ISR where min.insync.replicas allows"
            ),
            Hinders::Leading => tracing::info!(
                "{path} is nearly full: leadership of its partitions moves to in-sync replicas on other \
                 brokers that have free space"
            ),
            Hinders::Nothing => {
                tracing::info!("{path} has free space again: this broker may lead its partitions")
            }
        }
    }
    true
}

/// Tells the controller, if anything has changed since it was told. Once a second, and by whoever does not want to wait that long.
pub fn say(node: &Node) {
    if node.not_to_lead.has_changed.swap(false, Ordering::AcqRel) {
        tell(node);
    }
}

/// Once a second.
pub fn watch(node: &Node) {
    node.not_to_lead.forget_strangers(node, &node.image.load());
    // All of them, not up to the first.
    let changed = (0..node.directories.len()).filter(|&at| note_room(node, at)).count();
    node.not_to_lead.has_changed.fetch_or(changed > 0, Ordering::AcqRel);
    say(node);
}

/// A heartbeat between two of the lifecycle's, which would say the same. Only while this broker serves: it asks to be unfenced.
fn tell(node: &Node) {
    let image = node.image.load();
    if image.cluster.broker_count() <= 1 {
        // Nobody else could lead.
        return;
    }
    let serves = image
        .cluster
        .broker(node.broker_id)
        .is_some_and(|known| known.is_active() && known.epoch == node.broker_epoch());
    if serves && !node.shutdown.is_wanted() {
        reports::heartbeat(node);
    }
}
