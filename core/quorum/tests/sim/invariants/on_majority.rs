//! What a leader commits is on the disks of a majority of its voters: it survives the crash of all of them.

use super::Invariant;
use crate::raft::RoleName;
use crate::sim::cluster::{Cluster, Step};
use crate::sim::disk::keys;

pub struct OnMajority;

impl Invariant for OnMajority {
    fn name(&self) -> &'static str {
        "committed is on a majority's disks"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let is_leader = step.after.as_ref().is_some_and(|after| after.role == RoleName::Leader);
        let new = &cluster.ledger[step.ledger_from.min(cluster.ledger.len())..];
        let (true, Some(last)) = (is_leader, new.last()) else { return Ok(()) };
        let Some(raft) = &cluster.nodes[&step.node].raft else { return Ok(()) };
        let voters = keys(raft.voters());
        let has = cluster
            .nodes
            .values()
            .filter(|node| voters.iter().any(|voter| voter.means(&node.key())) && node.is_durable(last));
        let count = has.count();
        if count > voters.len() / 2 {
            return Ok(());
        }
        Err(format!(
            "{count} of {} voters have {} on disk, which {} commits",
            voters.len(),
            last.base,
            step.node
        ))
    }
}
