//! Nobody reads what was not shown by a leader's high watermark: it may be lost again.

use barnabas_base::Offset;

use super::{Batch, History, Violation};

pub(super) fn check(batches: &[Batch], end: Offset, history: &History) -> Result<(), Violation> {
    if end > history.shown_end {
        return Err(format!("a reader was told of {end}, and {} was shown", history.shown_end));
    }
    match batches.iter().find(|batch| history.shown.get(&batch.base) != Some(batch)) {
        Some(batch) => Err(format!("{batch:?} was read, and never shown")),
        None => Ok(()),
    }
}
