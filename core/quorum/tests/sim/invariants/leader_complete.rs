//! A leader has everything that was committed in earlier epochs (Raft's leader completeness; TLA+
//! `LeaderHasAllAckedValues`).

use std::rc::Rc;

use super::Invariant;
use crate::raft::RoleName;
use crate::sim::cluster::{Cluster, Step};
use crate::sim::disk::Stored;
use crate::sim::node::Node;

pub struct LeaderComplete;

impl Invariant for LeaderComplete {
    fn name(&self) -> &'static str {
        "leader completeness"
    }

    fn check(&mut self, cluster: &Cluster, step: &Step) -> Result<(), String> {
        let is_leader = |brief: &Option<crate::sim::node::Brief>| {
            brief.as_ref().is_some_and(|brief| brief.role == RoleName::Leader)
        };
        if is_leader(&step.after) && !is_leader(&step.before) {
            has_all(&cluster.nodes[&step.node], &cluster.ledger)?;
        }
        let new = &cluster.ledger[step.ledger_from.min(cluster.ledger.len())..];
        if new.is_empty() {
            return Ok(());
        }
        // What an older leader commits late is in the newer one's log already.
        cluster.nodes.values().filter(|node| is_leader(&node.brief())).try_for_each(|node| has_all(node, new))
    }
}

fn has_all(node: &Node, committed: &[Rc<Stored>]) -> Result<(), String> {
    let Some(brief) = node.brief() else { return Ok(()) };
    for batch in committed.iter().filter(|batch| batch.epoch.get() < brief.epoch) {
        let log = &node.disk.view;
        if batch.end <= log.start || log.at(batch.base).is_some_and(|found| found == batch) {
            continue;
        }
        let (base, epoch) = (batch.base, batch.epoch);
        return Err(format!("the leader {} of epoch {} lacks {base} of epoch {epoch}", node.id, brief.epoch));
    }
    Ok(())
}
