//! Two logs that have a batch of the same offset and epoch are the same up to there (Raft's log matching; TLA+
//! `NoLogDivergence`).

use std::collections::BTreeMap;

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};

type At = (i64, i32);

#[derive(Default)]
pub struct LogMatching {
    /// The bytes of every batch that was ever written, and the batch before it.
    written: BTreeMap<At, (u64, Option<At>)>,
}

impl Invariant for LogMatching {
    fn name(&self) -> &'static str {
        "log matching"
    }

    fn check(&mut self, _: &Cluster, step: &Step) -> Result<(), String> {
        for (batch, before) in &step.appended {
            let at = (batch.base.get(), batch.epoch.get());
            let before = before.as_ref().map(|before| (before.base.get(), before.epoch.get()));
            let (hash, known) = self.written.entry(at).or_insert((batch.hash, before));
            if *hash != batch.hash {
                return Err(format!("two batches at {at:?}: node {} has the second", step.node));
            }
            // A log that begins with a snapshot does not know what was before.
            match (*known, before) {
                (Some(known), Some(before)) if known != before => {
                    return Err(format!(
                        "{before:?} is before {at:?} on node {}, elsewhere {known:?}",
                        step.node
                    ));
                }
                (None, Some(_)) => *known = before,
                _ => {}
            }
        }
        Ok(())
    }
}
