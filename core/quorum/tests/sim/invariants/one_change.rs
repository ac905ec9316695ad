//! Voters change by one at a time, and no change begins before the last one, and something of the leader's epoch, is
//! committed (KIP-853).

use std::rc::Rc;

use barnabas_base::Offset;

use super::Invariant;
use crate::raft::RoleName;
use crate::raft::message::ReplicaKey;
use crate::sim::cluster::{Cluster, Step};
use crate::sim::disk::Stored;

pub struct OneChange;

impl Invariant for OneChange {
    fn name(&self) -> &'static str {
        "one change of voters at a time"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let Some(after) = step.after.as_ref().filter(|after| after.role == RoleName::Leader) else {
            return Ok(());
        };
        if !step.appended.iter().any(|(batch, _)| batch.voters.is_some()) {
            return Ok(());
        }
        let node = &cluster.nodes[&step.node];
        let batches = &node.disk.view.batches;
        let with_voters: Vec<&Rc<Stored>> = batches.iter().filter(|batch| batch.voters.is_some()).collect();
        // Not by the leader's high watermark: after a restart it knows of less than is committed.
        let committed = cluster.ledger.last().map_or(Offset::ZERO, |last| last.end);
        let mut open = 0;
        for pair in with_voters.windows(2) {
            let changed = difference(pair[0].voters.as_deref(), pair[1].voters.as_deref());
            if changed > 1 {
                return Err(format!("{changed} voters change at {}", pair[1].base));
            }
            open += usize::from(changed == 1 && pair[1].end > committed);
        }
        if open > 1 {
            return Err(format!("leader {}: {open} changes are not committed", step.node));
        }
        let own = batches.iter().find(|batch| batch.epoch.get() == after.epoch);
        let is_first = |batch: &Stored| own.is_some_and(|own| own.base == batch.base);
        let early = step.appended.iter().any(|(batch, _)| batch.voters.is_some() && !is_first(batch));
        let before = step.before.as_ref().map_or(after.high_watermark, |before| before.high_watermark);
        if early && own.is_some_and(|own| own.base >= before) {
            return Err(format!("leader {} of epoch {} has committed nothing yet", step.node, after.epoch));
        }
        Ok(())
    }
}

fn difference(before: Option<&[ReplicaKey]>, after: Option<&[ReplicaKey]>) -> usize {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let gone = before.iter().filter(|key| !after.contains(key)).count();
    let come = after.iter().filter(|key| !before.contains(key)).count();
    gone + come
}
