//! Of one leader epoch there is one leader, in one life.

use std::collections::BTreeMap;

use barnabas_base::{BrokerEpoch, BrokerId, LeaderEpoch};

use super::{Node, Violation};

/// Who led each epoch.
#[derive(Debug, Default)]
pub(super) struct OneLeader(BTreeMap<LeaderEpoch, (BrokerId, BrokerEpoch)>);

impl OneLeader {
    pub fn leads(&mut self, node: &Node) -> Result<(), Violation> {
        let Some(running) = &node.running else { return Ok(()) };
        let (epoch, who) = (running.partition.leader_epoch(), (node.id, running.life));
        let newest = self.0.keys().next_back().copied();
        match self.0.insert(epoch, who) {
            Some(other) if other != who => Err(format!("{other:?} and {who:?} both lead epoch {epoch}")),
            Some(_) if newest != Some(epoch) => Err(format!("{who:?} leads epoch {epoch} again")),
            _ => Ok(()),
        }
    }
}
