//! What a high watermark shows is durable on every in-sync replica that the controller counts on, and on
//! `min.insync.replicas` of them at least (a copy that went with its disk counts).

use super::{Batch, View, Violation};

pub(super) fn check(batch: &Batch, view: &View<'_>) -> Result<(), Violation> {
    let state = view.controller.now();
    for node in view.nodes.iter().filter(|node| state.in_sync.contains(&node.id) && !node.is_hollow) {
        if !node.has_durable(batch) {
            return Err(format!("{batch:?} is shown, and in-sync replica {} does not have it", node.id));
        }
    }
    let copies = view.nodes.iter().filter(|node| node.has_lost_disk || node.has_durable(batch)).count();
    let needed = usize::from(view.controller.min_in_sync).min(state.replicas.len());
    if copies < needed {
        return Err(format!("{batch:?} is shown with {copies} copies, of {needed} that are needed"));
    }
    Ok(())
}
