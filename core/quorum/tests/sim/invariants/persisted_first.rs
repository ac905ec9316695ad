//! What a node says rests on its disk: its epoch, and the vote that it gives or asks for.

use super::Invariant;
use crate::sim::cluster::{Cluster, Step, What};

pub struct PersistedFirst;

impl Invariant for PersistedFirst {
    fn name(&self) -> &'static str {
        "said only once it is on disk"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let key = cluster.nodes[&step.node].key();
        for said in &step.said {
            let durable = said.durable.as_ref();
            let epoch = durable.map_or(0, |state| state.epoch.get());
            // An epoch that a log or snapshot brought is on disk there.
            let of_log =
                cluster.nodes[&step.node].disk.durable.batches.back().map_or(0, |last| last.epoch.get());
            if epoch.max(of_log) < said.epoch && said.epoch > 0 {
                return Err(format!(
                    "node {} speaks of epoch {}, its disk of {epoch}",
                    step.node, said.epoch
                ));
            }
            let expected = match said.what {
                What::Granted(candidate) => Some(candidate.id),
                What::Asked => Some(key.id),
                _ => None,
            };
            let voted = durable.and_then(|state| state.voted).map(|(id, _)| id);
            if expected.is_some() && voted != expected {
                return Err(format!(
                    "node {} speaks of a vote for {expected:?}, its disk of {voted:?}",
                    step.node
                ));
            }
        }
        Ok(())
    }
}
