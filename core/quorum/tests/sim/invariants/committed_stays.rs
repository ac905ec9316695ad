//! What was committed once is never anything else on any node that calls it committed.

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};

pub struct CommittedStays;

impl Invariant for CommittedStays {
    fn name(&self) -> &'static str {
        "committed entries never change"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let Some(after) = &step.after else { return Ok(()) };
        let end = after.high_watermark;
        let node = &cluster.nodes[&step.node];
        // What moved in this step, and, where it was truncated, the last that is called committed.
        let from = step.before.as_ref().map_or(after.log_start, |before| before.high_watermark);
        let first = cluster.ledger.partition_point(|batch| batch.end <= from).saturating_sub(2);
        for batch in cluster.ledger[first..].iter().take_while(|batch| batch.end <= end) {
            let log = &node.disk.view;
            if batch.end <= log.start || log.at(batch.base).is_some_and(|found| found == batch) {
                continue;
            }
            let (base, epoch) = (batch.base, batch.epoch);
            let found = log.at(base).map(|found| (found.base, found.epoch));
            return Err(format!("node {} has {found:?} where {base} of epoch {epoch} is committed", node.id));
        }
        Ok(())
    }
}
