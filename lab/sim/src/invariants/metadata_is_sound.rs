//! The metadata is consistent: a leader is in the ISR and alive; members of ISR and ELR are replicas; no replica is
//! in both.

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
