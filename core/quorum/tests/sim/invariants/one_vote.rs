//! A replica votes once an epoch, restarts or not.

use std::collections::BTreeMap;

use super::Invariant;
use crate::raft::RoleName;
use crate::raft::message::ReplicaKey;
use crate::sim::cluster::{Cluster, Step, What};

#[derive(Default)]
pub struct OneVote {
    given: BTreeMap<(ReplicaKey, i32), i32>,
}

impl Invariant for OneVote {
    fn name(&self) -> &'static str {
        "one vote an epoch"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let key = cluster.nodes[&step.node].key();
        let granted = step.said.iter().filter_map(|said| match said.what {
            What::Granted(candidate) => Some((said.epoch, candidate.id.get())),
            _ => None,
        });
        let own = step.after.as_ref().filter(|after| after.role == RoleName::Candidate);
        let own = own.map(|after| (after.epoch, step.node));
        for (epoch, candidate) in granted.chain(own) {
            let first = *self.given.entry((key, epoch)).or_insert(candidate);
            if first != candidate {
                return Err(format!("{key} votes for {candidate} in epoch {epoch}, after {first}"));
            }
        }
        Ok(())
    }
}
