//! When the faults are over, everyone is in sync, all logs are equal up to their ends, and every producer has its answers.

use super::{Batch, History, View, Violation};

pub(super) fn check(history: &History, view: &View<'_>) -> Result<(), Violation> {
    let state = view.controller.now();
    if state.in_sync.len() < state.replicas.len() {
        return Err(format!("{:?} are in sync of {:?}", state.in_sync, state.replicas));
    }
    if let Some(client) = view.clients.iter().find(|client| !client.in_flight.is_empty()) {
        return Err(format!("{client:?} has no answer"));
    }
    let mut ends = Vec::new();
    for node in view.nodes {
        let Some(running) = &node.running else { return Err(format!("{} is down", node.id)) };
        let partition = &running.partition;
        ends.push((partition.log_end(), partition.high_watermark()));
        let is_kept = |batch: &&Batch| batch.end() > view.deleted_to;
        let expected = history.shown.values().filter(is_kept);
        let found = running.log.iter().filter(is_kept);
        if !expected.eq(found) {
            return Err(format!("{}'s log is not what was shown", node.id));
        }
    }
    let is_equal = |&(end, high_watermark): &_| end == history.shown_end && high_watermark == end;
    if !ends.iter().all(is_equal) {
        return Err(format!("logs end, and are safe, at {ends:?} of {}", history.shown_end));
    }
    Ok(())
}
