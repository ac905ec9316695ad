//! Below its high watermark, every replica has what was shown there, and nothing else.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, Offset};

use super::{Batch, History, Node, Violation};

/// Up to where each replica's log was compared.
#[derive(Debug, Default)]
pub(super) struct LogsMatch(BTreeMap<BrokerId, Offset>);

impl LogsMatch {
    pub fn check(&mut self, node: &Node, high_watermark: Offset, history: &History) -> Result<(), Violation> {
        let from = self.0.insert(node.id, high_watermark).unwrap_or(Offset::ZERO);
        let is_new = |batch: &&Batch| batch.end() > from && batch.end() <= high_watermark;
        for batch in node.log().iter().filter(is_new) {
            if history.shown.get(&batch.base) != Some(batch) {
                let shown = history.shown.range(..=batch.base).next_back();
                return Err(format!("{} has {batch:?}, where {shown:?} was shown", node.id));
            }
        }
        Ok(())
    }

    /// Its log was cut, or read anew.
    pub fn forget(&mut self, id: BrokerId) {
        self.0.remove(&id);
    }
}
