//! An idempotent producer's batches are there once, in their order, without a gap.

use std::collections::BTreeMap;

use barnabas_base::{ProducerId, Sequence};

use super::{Batch, Violation};

/// In the order of their offsets.
pub(super) fn check(batch: &Batch, next: &mut BTreeMap<ProducerId, Sequence>) -> Result<(), Violation> {
    let next = next.entry(batch.producer).or_insert(Sequence(0));
    if batch.sequence != *next {
        return Err(format!("{batch:?} is shown where sequence {next} comes next"));
    }
    *next = next.plus(batch.offsets);
    Ok(())
}
