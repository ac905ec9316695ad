//! Below its high watermark, every replica has what was shown there, and nothing else.

use barnabas_base::{BrokerId, Offset};

use super::{Batch, History, Violation};

pub(super) fn check(
    id: BrokerId,
    log: &[Batch],
    high_watermark: Offset,
    history: &mut History,
) -> Result<(), Violation> {
    let from = history.compared.insert(id, high_watermark).unwrap_or(Offset::ZERO);
    let is_new = |batch: &&Batch| batch.end() > from && batch.end() <= high_watermark;
    for batch in log.iter().filter(is_new) {
        if history.shown.get(&batch.base) != Some(batch) {
            let shown = history.shown.range(..=batch.base).next_back();
            return Err(format!("{id} has {batch:?}, where {shown:?} was shown"));
        }
    }
    Ok(())
}
