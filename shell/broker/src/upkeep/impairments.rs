//! Reports to the controller from which log directories this broker must not lead, and which of its replicas are
//! damaged.
//!
//! Neighbours: node/log_dirs/impaired_partitions.rs and full.rs, which know it; placement/reports.rs, which sends it;
//! core/quorum's `controller/impaired.rs`, which acts on it.

use crate::log_dirs::full::Impairs;
use crate::node::Node;
use crate::upkeep::placement::reports;
use std::sync::atomic::Ordering;

/// A producer is refused for want of room: the controller hears of it now, if it has not yet.
pub fn no_room(node: &Node, directory: usize) {
    if note_room(node, directory) {
        tell(node);
    }
}

/// Whether the controller does not know yet what is to be said of a directory.
fn note_room(node: &Node, directory: usize) -> bool {
    let directory = &node.log_dirs.directories[directory];
    if !directory.is_usable() {
        return false;
    }
    let Some(impairs) = directory.room.take_impairment(node.clock.monotonic()) else { return false };
    let path = directory.path.display();
    if node.cluster.image.load().cluster.broker_count() > 1 {
        tracing::info!("{path} {}", what_follows(impairs, directory.room.is_short()));
    }
    true
}

/// Others lead and do not wait for a directory for a while after it has room again: that is not to be read as if it had
/// none.
fn what_follows(impairs: Impairs, is_short: bool) -> &'static str {
    match impairs {
        Impairs::Writing => {
            "is full: leadership of its partitions moves to other brokers, and this broker's replicas leave \
             the ISR where min.insync.replicas allows"
        }
        Impairs::Leading if is_short => {
            "is nearly full: leadership of its partitions moves to in-sync replicas on other brokers that \
             have free space"
        }
        Impairs::Leading => {
            "has free space again: its replicas may join the ISR. In-sync replicas on other brokers are \
             preferred as leaders for another minute at most"
        }
        Impairs::Nothing => "has free space again: this broker may lead its partitions",
    }
}

/// Reports to the controller, if anything has changed since the last report. Called once a second, and at once for
/// urgent changes.
pub fn say(node: &Node) {
    if node.log_dirs.impaired.has_changed.swap(false, Ordering::AcqRel) {
        tell(node);
    }
}

/// Once a second.
pub fn watch(node: &Node) {
    node.log_dirs.impaired.forget_moved(node.identity.broker_id, &node.cluster.image.load());
    // All of them, not up to the first.
    let changed = (0..node.log_dirs.directories.len()).filter(|&at| note_room(node, at)).count();
    node.log_dirs.impaired.has_changed.fetch_or(changed > 0, Ordering::AcqRel);
    say(node);
}

/// A heartbeat between two of the lifecycle's, which would say the same. Only while this broker serves: it asks to be
/// unfenced.
fn tell(node: &Node) {
    let image = node.cluster.image.load();
    if image.cluster.broker_count() <= 1 {
        // No other broker could lead.
        return;
    }
    let serves = image
        .cluster
        .broker(node.identity.broker_id)
        .is_some_and(|known| known.is_active() && known.epoch == node.identity.broker_epoch());
    if serves && !node.shutdown.is_wanted() {
        reports::heartbeat(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_dirs::full::Room;
    use barnabas_base::MonotonicMs;
    use barnabas_storage::{MemoryDisk, StorageError};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    #[test]
    fn room_that_is_back_is_not_called_nearly_full() {
        let disk = MemoryDisk::new();
        disk.set_capacity(0);
        let path: Arc<Path> = PathBuf::from("/data").into();
        let room = Room::new(Arc::new(disk.clone()), path);
        let mut lines = Vec::new();
        for second in 0..100_u64 {
            let now = MonotonicMs(second * 1000);
            match second {
                1 => room.hit(&StorageError::Full(PathBuf::from("/data/t-0")), now),
                3 => disk.set_capacity(1 << 40),
                _ => {}
            }
            room.look_if_due(now);
            let impairs = room.take_impairment(now);
            lines.extend(impairs.map(|impairs| (second, what_follows(impairs, room.is_short()))));
        }
        let starts: Vec<_> = lines.iter().map(|(second, line)| (*second, &line[..9])).collect();
        assert_eq!(starts, [(1, "is full: "), (11, "has free "), (61, "has free ")]);
        assert!(what_follows(Impairs::Leading, true).starts_with("is nearly full"));
    }
}
