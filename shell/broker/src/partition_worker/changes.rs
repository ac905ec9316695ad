//! What the cluster decided: new leaders, changed settings, deleted topics (deleting.rs), and directories that failed.

use super::PartitionWorker;
use crate::mailbox::{Declined, PartitionKey};
use crate::publisher::ImageChange;
use crate::replica::{Effects, Replica};
use crate::topic_settings;
use barnabas_base::{BrokerId, Text};
use barnabas_metadata::{Image, ResourceType};
use barnabas_partition::{FollowerState, Leadership};

/// Gives a replica the role that the image says, where it has another one.
pub(super) fn take_role(
    replica: &mut Replica,
    state: &barnabas_metadata::Partition,
    broker: BrokerId,
    min_in_sync: u16,
    effects: &mut Effects,
) {
    if state.leader == broker {
        let followers: Vec<FollowerState> = state
            .replicas()
            .iter()
            .filter(|&&replica| replica != broker)
            .map(|&replica| FollowerState {
                broker: replica,
                in_sync: state.isr().contains(&replica),
                registered: None,
            })
            .collect();
        let epoch = state.leader_epoch;
        let is_new = replica.partition.leader_epoch() != epoch;
        let leadership = Leadership { epoch, followers: &followers, min_in_sync, ..Leadership::default() };
        if replica.partition.become_leader(&leadership, effects) && is_new {
            replica.log.assign_epoch(epoch, replica.log.end());
        }
    } else {
        replica.partition.become_follower(state.leader_epoch, effects);
        replica.waiters.wake_all();
    }
}

impl PartitionWorker {
    pub(super) fn image_changed(&mut self, change: &ImageChange) {
        if change.changes.everything {
            let open: Vec<PartitionKey> = self.replicas.keys().copied().collect();
            for key in open {
                self.partition_changed(&change.image, key);
            }
        }
        for (&id, topic) in &change.changes.topics {
            if topic.deleted {
                self.topic_deleted(id, topic, change);
                continue;
            }
            if topic.created {
                // Whoever has one of its partitions open found it in this image.
                continue;
            }
            for &partition in &topic.partitions {
                self.partition_changed(&change.image, PartitionKey { topic: id, partition });
            }
        }
        for resource in &change.changes.configs {
            match resource.kind {
                ResourceType::Topic => self.settings_changed(&change.image, Some(&resource.name)),
                ResourceType::Broker => self.settings_changed(&change.image, None),
                _ => {}
            }
        }
    }

    fn partition_changed(&mut self, image: &Image, key: PartitionKey) {
        let Self { replicas, effects, node, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return };
        let topic = image.topics.by_id(key.topic);
        let Some((topic, state)) = topic.and_then(|topic| Some((topic, topic.partition(key.partition)?)))
        else {
            return;
        };
        let min_in_sync = topic_settings::min_in_sync(node, image, &topic.name);
        take_role(replica, state, node.broker_id, min_in_sync, effects);
        self.apply_effects(key);
    }

    /// New settings for the open partitions of one topic, or of all.
    fn settings_changed(&mut self, image: &Image, topic: Option<&Text>) {
        let concerned =
            |replica: &Replica| topic.is_none_or(|name| *name == replica.log.place().topic_partition.topic);
        let keys: Vec<PartitionKey> =
            self.replicas.values().filter(|replica| concerned(replica)).map(|replica| replica.key).collect();
        for key in keys {
            if let Some(replica) = self.replicas.get_mut(&key) {
                let name = &replica.log.place().topic_partition.topic;
                let config = topic_settings::log_config(&self.node, image, name);
                (replica.flush_messages, replica.flush_after) =
                    topic_settings::flush(&self.node, image, name);
                replica.log.set_config(config);
                // So that housekeeping looks whether it is compacted now.
                replica.changed = true;
            }
            self.partition_changed(image, key);
        }
    }

    /// A directory is offline for good: its partitions refuse everything.
    pub(super) fn directory_failed(&mut self, directory: usize) {
        let keys: Vec<PartitionKey> = self
            .replicas
            .values()
            .filter(|replica| replica.directory == directory)
            .map(|replica| replica.key)
            .collect();
        for key in keys {
            let Self { replicas, effects, tickets, node, .. } = self;
            let Some(replica) = replicas.get_mut(&key) else { continue };
            replica.log.fail();
            replica.round.clear();
            node.directories[directory].room.settle(std::mem::take(&mut replica.round_bytes) as u64);
            for ticket in replica.round_tickets.drain(..) {
                tickets.answer(ticket, Err(Declined::Storage));
            }
            replica.partition.fail(effects);
            replica.waiters.wake_all();
            self.apply_effects(key);
        }
        self.forget_orders(directory);
        self.resume_readers();
    }
}
