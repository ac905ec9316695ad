//! A snapshot stands for what is committed: its end and epoch are those of a committed batch.

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};

pub struct Snapshots;

impl Invariant for Snapshots {
    fn name(&self) -> &'static str {
        "snapshots are of what is committed"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let node = &cluster.nodes[&step.node];
        for id in node.disk.snapshots.keys() {
            let at = cluster.ledger.partition_point(|batch| batch.end < id.end);
            let batch = cluster.ledger.get(at);
            if batch.is_none_or(|batch| batch.end != id.end || batch.epoch != id.epoch) {
                return Err(format!("node {} has snapshot {id}, the ledger {batch:?}", step.node));
            }
        }
        Ok(())
    }
}
