//! Who fetches from an offset has all below it on disk: that is what the leader takes a Fetch for.

use super::Invariant;
use crate::sim::cluster::{Cluster, Step, What};

pub struct Acknowledged;

impl Invariant for Acknowledged {
    fn name(&self) -> &'static str {
        "a Fetch acknowledges what is on disk"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let snapshots = &cluster.nodes[&step.node].disk.snapshots;
        for said in &step.said {
            let What::Fetched(from) = said.what else { continue };
            let covered = snapshots.keys().any(|id| id.end >= from);
            if from > said.durable_end && !covered {
                return Err(format!("node {} fetches from {from} and has {}", step.node, said.durable_end));
            }
        }
        Ok(())
    }
}
