//! Below its high watermark, every replica has what was shown there, and nothing else.

use barnabas_base::{BrokerId, Offset};

use super::{Batch, History, Violation};

pub(super) fn check(
    id: BrokerId,
    log: &[Batch],
    high_watermark: Offset,
    history: &History,
    is_compacted: bool,
) -> Result<(), Violation> {
    for batch in log.iter().filter(|batch| batch.end() <= high_watermark) {
        let is_it = |shown: &Batch| shown == batch || is_compacted && batch.is_left_of(shown);
        if !history.shown.get(&batch.base).is_some_and(is_it) {
            let shown = history.shown.range(..=batch.base).next_back();
            return Err(format!("{id} has {batch:?}, where {shown:?} was shown"));
        }
    }
    Ok(())
}
