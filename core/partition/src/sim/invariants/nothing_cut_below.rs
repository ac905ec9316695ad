//! The high watermark never goes back: no election is unclean here, so that no log is cut below it; but for one that is damaged, and
//! on which nobody counts.
//!
//! Forward it goes by [`crate::Partition`]'s own invariants; a new leader's may lie behind the former one's, as Kafka allows, and
//! is then not told to anybody who asks where the log ends (KIP-207).

use barnabas_base::{BrokerId, Offset};

use super::{History, View, Violation};

pub(super) fn check(id: BrokerId, to: Offset, high_watermark: Offset) -> Result<(), Violation> {
    if to >= high_watermark {
        return Ok(());
    }
    Err(format!("{id} cuts its log to {to}, below its high watermark {high_watermark}"))
}

pub(super) fn check_healed(
    id: BrokerId,
    to: Offset,
    history: &History,
    view: &View<'_>,
) -> Result<(), Violation> {
    let state = view.controller.now();
    let counts = state.in_sync.contains(&id) || state.eligible.contains(&id);
    if counts && to < history.shown_end {
        return Err(format!("{id} cuts off what is damaged, and the controller counts on it"));
    }
    Ok(())
}
