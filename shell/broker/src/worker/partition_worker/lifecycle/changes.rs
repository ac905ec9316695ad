//! What the cluster decided: new leaders, changed settings, deleted topics (deleting.rs), and directories that failed.

use crate::mailbox::ImageChange;
use crate::mailbox::{Declined, PartitionKey};
use crate::node::Node;
use crate::node::peers::replication::throttles::Throttled;
use crate::node::topic_settings;
use crate::worker::partition_worker::PartitionWorker;
use crate::worker::replica::Hosted;
use barnabas_base::{DurationMs, Text, TopicPartition};
use barnabas_metadata::{Image, Partition as Row, ResourceType};
use barnabas_replica::{Outbox, RoleChange, RoleView};

/// Gives a replica the role that the image says, where it has another one.
pub fn take_role(hosted: &mut Hosted, row: &Row, node: &Node, image: &Image, effects: &mut Outbox) {
    let view = RoleView {
        me: node.identity.broker_id,
        image,
        row,
        min_in_sync: topic_settings::min_in_sync(node, image, &hosted.name.topic_partition.topic),
        lag_max: DurationMs(node.cluster.config.load().long("replica.lag.time.max.ms")),
        now: node.clock.monotonic(),
    };
    match hosted.replica.take_role(&view, effects) {
        RoleChange::Nothing => {}
        RoleChange::Follows => hosted.wake_all(),
        RoleChange::Leads => hosted.follower_waiters.wake_all(),
    }
}

impl PartitionWorker {
    pub fn image_changed(&mut self, change: &ImageChange) {
        if change.changes.everything {
            let open: Vec<PartitionKey> = self.replicas.keys().copied().collect();
            for key in open {
                self.partition_changed(&change.image, key);
            }
            self.follow_what_is_mine(&change.image);
        }
        for (&id, topic) in &change.changes.topics {
            if topic.deleted {
                self.topic_deleted(id, topic, change);
                continue;
            }
            if topic.created && change.image.cluster.broker_count() <= 1 {
                // An open partition of it was found in this image, and this broker follows no leader for it.
                continue;
            }
            for &partition in &topic.partitions {
                let key = PartitionKey { topic: id, partition };
                if key.owner(self.node.workers.count) != self.id {
                    continue;
                }
                if self.has_left(change, key) {
                    self.leave_replica(key, TopicPartition { topic: topic.name.clone(), partition });
                } else {
                    self.partition_changed(&change.image, key);
                }
            }
        }
        if !change.changes.brokers.is_empty() {
            self.brokers_changed(&change.image, &change.changes.brokers);
        }
        for resource in &change.changes.configs {
            match resource.kind {
                ResourceType::Topic => self.settings_changed(&change.image, Some(&resource.name)),
                ResourceType::Broker => self.settings_changed(&change.image, None),
                _ => {}
            }
        }
        self.shares_changed(change);
    }

    /// Whether a replica of this broker is one no more.
    fn has_left(&self, change: &ImageChange, key: PartitionKey) -> bool {
        let has_replica = |image: &Image| {
            let row = image.topics.by_id(key.topic)?.partition(key.partition)?;
            Some(row.has_replica(self.node.identity.broker_id))
        };
        has_replica(&change.before) == Some(true) && has_replica(&change.image) == Some(false)
    }

    pub fn partition_changed(&mut self, image: &Image, key: PartitionKey) {
        let row = image.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
        let Some(row) = row else { return };
        let Self { replicas, effects, node, following, .. } = self;
        let Some(replica) = replicas.get_mut(&key) else { return self.open_if_it_follows(key, row) };
        if replica.truncation.is_some() {
            // What the journal notes and what the log holds must agree before anybody writes.
            following.roles_wait(key);
            return;
        }
        take_role(replica, row, node, image, effects);
        self.apply_effects(key);
        self.turn_to_leader(key, row);
    }

    /// New settings for the open partitions of one topic, or of all.
    fn settings_changed(&mut self, image: &Image, topic: Option<&Text>) {
        let concerned =
            |replica: &Hosted| topic.is_none_or(|name| *name == replica.log.place().topic_partition.topic);
        let keys: Vec<PartitionKey> = self
            .replicas
            .values()
            .filter(|replica| concerned(replica))
            .map(|replica| replica.partition_key())
            .collect();
        for key in keys {
            if let Some(replica) = self.replicas.get_mut(&key) {
                let TopicPartition { topic: name, partition } = &replica.name.topic_partition.clone();
                replica.throttled = Throttled::of(self.node.identity.broker_id, image, name, *partition);
                if let Some(fetcher) = self.following.fetcher_of(key) {
                    fetcher.set_throttled(key, replica.throttled.as_follower);
                }
                let config = topic_settings::log_config(&self.node, image, name);
                (replica.flush.messages_max, replica.flush.after) =
                    topic_settings::flush(&self.node, image, name);
                replica.log.set_config(config);
                // So that housekeeping looks whether it is compacted now.
                replica.upkeep.is_changed = true;
            }
            self.partition_changed(image, key);
        }
    }

    /// A directory is offline for good: its partitions refuse everything.
    pub fn directory_failed(&mut self, directory: usize) {
        let keys: Vec<PartitionKey> = self
            .replicas
            .values()
            .filter(|replica| replica.directory == directory)
            .map(|replica| replica.partition_key())
            .collect();
        for key in keys {
            let Self { replicas, effects, following, .. } = self;
            let Some(hosted) = replicas.get_mut(&key) else { continue };
            hosted.replica.log.fail();
            hosted.replica.fail(Declined::Storage, effects);
            hosted.wake_all();
            following.fail(hosted, key);
            self.apply_effects(key);
        }
        self.leaving.directory_failed(directory);
        self.forget_orders(directory);
        self.resume_readers();
    }
}
