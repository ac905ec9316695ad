//! A node goes by the newest voters in its log (KIP-853).

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};
use crate::sim::disk::keys;

pub struct VotersOfLog;

impl Invariant for VotersOfLog {
    fn name(&self) -> &'static str {
        "voters are those of the log"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let node = &cluster.nodes[&step.node];
        let Some(raft) = &node.raft else { return Ok(()) };
        let in_log = node.disk.view.batches.iter().rev().find_map(|batch| batch.voters.clone());
        let known = keys(raft.voters());
        match in_log {
            Some(voters) if voters != known => {
                Err(format!("node {} goes by {known:?}, its log says {voters:?}", step.node))
            }
            None if node.disk.view.start.get() == 0 && known != keys(node.formatted.voters()) => {
                Err(format!("node {} goes by {known:?}, and its log names none", step.node))
            }
            _ => Ok(()),
        }
    }
}
