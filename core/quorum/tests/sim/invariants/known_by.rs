//! What a member believes to know by a moment of its clock holds all that was committed by then.

use barnabas_base::Offset;

use super::Invariant;
use crate::sim::cluster::{Cluster, Step};

/// Where the ledger ended, and since when.
#[derive(Default)]
pub struct KnownBy {
    ends: Vec<(u64, Offset)>,
}

impl Invariant for KnownBy {
    fn name(&self) -> &'static str {
        "what a member knows by a moment is all that was committed by then"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let end = cluster.ledger.last().map_or(Offset::ZERO, |last| last.end);
        if self.ends.last().is_none_or(|(_, last)| *last < end) {
            self.ends.push((cluster.now, end));
        }
        let node = &cluster.nodes[&step.node];
        let known = node.raft.as_ref().and_then(|raft| raft.known_by(node.now(cluster.now)));
        let Some((below, at)) = known else { return Ok(()) };
        let moment = node.global_time(at);
        let before = self.ends.partition_point(|(since, _)| *since < moment);
        match before.checked_sub(1).map(|last| self.ends[last]) {
            Some((since, committed)) if committed > below => Err(format!(
                "node {} knows all below {below} by {moment}, and {committed} was committed at {since}",
                step.node
            )),
            _ => Ok(()),
        }
    }
}
