//! Never two leaders in an epoch, nor two beliefs about who it is (TLA+ `NeverTwoLeadersInSameEpoch`).

use std::collections::BTreeMap;

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};

#[derive(Default)]
pub struct OneLeader {
    of_epoch: BTreeMap<i32, i32>,
}

impl Invariant for OneLeader {
    fn name(&self) -> &'static str {
        "one leader an epoch"
    }

    fn check(&mut self, _: &Cluster, step: &Step) -> Result<(), String> {
        let Some(after) = &step.after else { return Ok(()) };
        let Some(leader) = after.leader else { return Ok(()) };
        let known = *self.of_epoch.entry(after.epoch).or_insert(leader);
        if known == leader {
            return Ok(());
        }
        Err(format!(
            "node {} has {leader} for the leader of epoch {}, which {known} leads",
            step.node, after.epoch
        ))
    }
}
