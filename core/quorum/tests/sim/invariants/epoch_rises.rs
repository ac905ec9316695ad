//! A replica's epoch never falls, restarts or not.

use std::collections::BTreeMap;

use super::Invariant;
use crate::raft::message::ReplicaKey;
use crate::sim::cluster::{Cluster, Step};

#[derive(Default)]
pub struct EpochRises {
    last: BTreeMap<ReplicaKey, i32>,
}

impl Invariant for EpochRises {
    fn name(&self) -> &'static str {
        "epochs rise"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let Some(after) = &step.after else { return Ok(()) };
        let key = cluster.nodes[&step.node].key();
        // Only an epoch that it has sent counts: one that no other node heard of may be forgotten.
        let last = self.last.entry(key).or_insert(0);
        if after.epoch < *last {
            return Err(format!("{key} is in epoch {}, and was in {last}", after.epoch));
        }
        if let Some(said) = step.said.iter().map(|said| said.epoch).max() {
            *last = (*last).max(said);
        }
        Ok(())
    }
}
