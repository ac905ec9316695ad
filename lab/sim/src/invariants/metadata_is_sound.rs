//! What the controller says makes sense: a leader is in sync and alive; who is in sync or eligible is a replica; nobody
//! is both.

use super::{View, Violation};

pub(super) fn check(view: &View<'_>) -> Result<(), Violation> {
    for (key, state) in view.keys() {
        let is_sound = state.isr().iter().chain(state.elr()).all(|&id| state.has_replica(id))
            && state.elr().iter().all(|id| !state.isr().contains(id));
        let leads = state.leader.get() < 0
            || state.isr().contains(&state.leader) && view.image.cluster.is_active(state.leader);
        if !is_sound || !leads {
            return Err(format!("{key:?} is {state:?}"));
        }
    }
    Ok(())
}
