//! A leader has everything that was committed in earlier epochs (Raft's leader completeness; TLA+
//! `LeaderHasAllAckedValues`).

use super::Invariant;
use crate::raft::RoleName;
use crate::sim::cluster::{Cluster, Step};
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
            has_all(&cluster.nodes[&step.node], cluster, 0)?;
        }
        if step.ledger_from >= cluster.ledger.len() {
            return Ok(());
        }
        // What an older leader commits late is in the newer one's log already.
        let mut leaders = cluster.nodes.values().filter(|node| is_leader(&node.brief()));
        leaders.try_for_each(|node| has_all(node, cluster, step.ledger_from))
    }
}

fn has_all(node: &Node, cluster: &Cluster, from: usize) -> Result<(), String> {
    let Some(brief) = node.brief() else { return Ok(()) };
    let committed = cluster.ledger.iter().zip(&cluster.ledger_epochs).skip(from);
    for (batch, _) in committed.filter(|&(_, &epoch)| epoch < brief.epoch) {
        let log = &node.disk.view;
        if batch.end <= log.start || log.at(batch.base).is_some_and(|found| found == batch) {
            continue;
        }
        let (base, epoch) = (batch.base, batch.epoch);
        return Err(format!("the leader {} of epoch {} lacks {base} of epoch {epoch}", node.id, brief.epoch));
    }
    Ok(())
}
