//! When the faults are over, everyone is in sync and all logs are equal up to their ends, whatever happened before; and where no record
//! was lost, every log is what was shown, and every producer has its answers.

use barnabas_base::Offset;

use super::{Batch, History, Node, View, Violation};

/// In whatever way leaders were elected.
pub(super) fn check_equal(view: &View<'_>) -> Result<(), Violation> {
    let state = view.controller.now();
    if state.in_sync.len() < state.replicas.len() {
        return Err(format!("{:?} are in sync of {:?}", state.in_sync, state.replicas));
    }
    if let Some(node) = view.nodes.iter().find(|node| node.running.is_none()) {
        return Err(format!("{} is down", node.id));
    }
    // What one of them has deleted, the others may still have.
    let starts = view.nodes.iter().filter_map(|node| node.running.as_ref());
    let start = starts.map(|running| running.partition.log_start()).max().unwrap_or_default();
    let Some((first, others)) = view.nodes.split_first() else { return Ok(()) };
    match others.iter().find(|other| !kept(first, start).eq(kept(other, start)) || ends(first) != ends(other))
    {
        Some(other) => Err(format!(
            "{} and {} differ: they end, and are safe, at {:?} and {:?}",
            first.id,
            other.id,
            ends(first),
            ends(other)
        )),
        None => Ok(()),
    }
}

/// Where no record was lost.
pub(super) fn check_done(history: &History, view: &View<'_>) -> Result<(), Violation> {
    if let Some(client) = view.clients.iter().find(|client| !client.in_flight.is_empty()) {
        return Err(format!("{client:?} has no answer"));
    }
    let expected = || history.shown.values().filter(|batch| batch.end() > view.deleted_to);
    for node in view.nodes {
        if !expected().eq(kept(node, view.deleted_to)) {
            return Err(format!("{}'s log is not what was shown", node.id));
        }
        if ends(node) != Some((history.shown_end, history.shown_end)) {
            return Err(format!(
                "{} ends, and is safe, at {:?} of {}",
                node.id,
                ends(node),
                history.shown_end
            ));
        }
    }
    Ok(())
}

fn kept(node: &Node, start: Offset) -> impl Iterator<Item = &Batch> {
    node.log().iter().filter(move |batch| batch.end() > start)
}

fn ends(node: &Node) -> Option<(Offset, Offset)> {
    let partition = &node.running.as_ref()?.partition;
    Some((partition.log_end(), partition.high_watermark()))
}
