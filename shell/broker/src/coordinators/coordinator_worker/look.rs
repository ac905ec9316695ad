//! What operators see of groups, for the metrics (exporter/lag.rs): names and places, without a record or an answer to
//! a client.

use super::CoordinatorWorker;
use crate::mailbox::GroupAsk;
use barnabas_base::name;
use barnabas_coordinator::GroupCounts;

impl CoordinatorWorker {
    /// Answers at once. A request that names groups starts the loading of their shards; a later request sees them.
    pub fn look(&mut self, ask: GroupAsk) {
        // The caller may be gone.
        match ask {
            GroupAsk::Names(reply) => {
                for key in self.led_here(name::CONSUMER_OFFSETS) {
                    self.groups.host(key);
                }
                let names = self.groups.loaded_keys().into_iter().filter_map(|key| {
                    let shard = self.groups.active(key)?;
                    Some((key, shard.group_names()))
                });
                let _ = reply.send(names.collect());
            }
            GroupAsk::Look { shard, names, positions_max, reply } => {
                if let Some(shard) = self.groups.active(shard) {
                    let _ = reply.send(shard.look(&names, positions_max));
                }
            }
        }
    }

    /// What has happened in the shards of groups since this was last asked.
    pub fn take_group_counts(&mut self) -> GroupCounts {
        let mut all = GroupCounts::default();
        for key in self.groups.loaded_keys() {
            if let Some(shard) = self.groups.active(key) {
                all.add(&shard.take_counts());
            }
        }
        all
    }
}
