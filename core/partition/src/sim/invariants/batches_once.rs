//! An idempotent producer's batches are there once, in their order, without a gap.

use std::collections::BTreeMap;

use barnabas_base::{ProducerId, Sequence};

use super::{Batch, Violation};

/// The sequence that each producer's next batch must begin with.
#[derive(Debug, Default)]
pub(super) struct BatchesOnce(BTreeMap<ProducerId, Sequence>);

impl BatchesOnce {
    /// In the order of their offsets.
    pub fn shown(&mut self, batch: &Batch) -> Result<(), Violation> {
        let next = self.0.entry(batch.info.producer_id).or_insert(Sequence(0));
        if batch.info.base_sequence != *next {
            return Err(format!("{batch:?} is shown where sequence {next} comes next"));
        }
        *next = next.plus(batch.info.offsets);
        Ok(())
    }
}
