//! Whoever is elected has every record that was acknowledged, and deleted by nobody.

use super::{History, Node, View, Violation};

pub(super) fn check(node: &Node, history: &History, view: &View<'_>) -> Result<(), Violation> {
    let state = view.controller.now();
    let epoch = node.running.as_ref().map(|running| running.partition.leader_epoch());
    if epoch != Some(state.leader_epoch) {
        // Somebody else has been elected since.
        return Ok(());
    }
    for acked in history.acked.iter().filter(|batch| batch.end() > view.deleted_to) {
        if !node.log().contains(acked) {
            return Err(format!("{} leads epoch {} without {acked:?}", node.id, state.leader_epoch));
        }
    }
    Ok(())
}
