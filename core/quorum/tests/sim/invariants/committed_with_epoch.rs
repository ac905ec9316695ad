//! A leader commits nothing before a batch of its own epoch (Raft, figure 8).

use super::Invariant;
use crate::raft::RoleName;
use crate::sim::cluster::{Cluster, Step};

pub struct CommittedWithEpoch;

impl Invariant for CommittedWithEpoch {
    fn name(&self) -> &'static str {
        "nothing of older epochs is committed by count"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let (Some(end), Some(after)) = (step.committed, &step.after) else { return Ok(()) };
        let last = cluster.ledger.iter().rev().find(|batch| batch.end <= end);
        if after.role != RoleName::Leader || last.is_none_or(|last| last.epoch.get() >= after.epoch) {
            return Ok(());
        }
        Err(format!("leader {} of epoch {} commits up to {end}, of an older epoch", step.node, after.epoch))
    }
}
