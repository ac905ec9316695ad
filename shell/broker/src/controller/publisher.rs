//! Hands a new image to everybody who acts on it.
//!
//! Readers of [`Node::image`](crate::node::Node) see it at once. Workers get the list of changes, so that they touch
//! only the affected partitions. The request that caused the change is answered after this.
//!
//! Metadata path 4 of 4. Before: quorum_worker.rs, core/metadata's delta. After: partition_worker/lifecycle/changes.rs.

use crate::mailbox::{Command, ImageChange};
use crate::node::Node;
use crate::node::cluster_events;
use crate::node::topic_settings;
use crate::upkeep::in_force;
use crate::upkeep::placement::{lost, reports};
use barnabas_base::Text;
use barnabas_metadata::config::{DynamicConfigs, Properties};
use barnabas_metadata::events::Here;
use barnabas_metadata::events::{self, Event, PartitionChange};
use barnabas_metadata::{Changes, Image, Resource, ResourceType};
use std::sync::Arc;

/// Publishes `image`. Blocks while a worker's mailbox is full; never called by a worker.
pub fn publish(node: &Node, image: Arc<Image>, changes: Box<Changes>) {
    if changes.configs.iter().any(|resource| resource.kind == ResourceType::Broker) || changes.everything {
        let dynamic = dynamic_configs(node, &image);
        node.cluster.config.store(Arc::new(node.cluster.config.load().with_dynamic(dynamic)));
        in_force::set_min_free(&node.log_dirs.directories, &node.cluster.config.load());
        node.logins.reconfigure(&node.cluster.config.load());
        node.workers.connection_quotas.reconfigure(&node.cluster.config.load());
        node.workers.connection_places.reconfigure(&node.cluster.config.load());
        let now_s = node.clock.wall().0 / 1000;
        node.peers.tls.reconfigure(&node.cluster.config.load(), &node.identity.listeners, now_s);
        node.peers.replication.throttles.configure(&node.cluster.config.load());
    }
    if !changes.quotas.is_empty() || changes.everything {
        node.workers.quotas.publish(&image);
        node.workers.connection_quotas.publish(&image);
    }
    let deleted = || changes.topics.iter().filter(|(_, topic)| topic.deleted);
    // Before a topic of the same name can be made.
    deleted().for_each(|(id, topic)| node.log_dirs.deleted.announce(*id, &topic.name, node.workers.count));
    node.log_dirs.written.note_deleted(changes.removed.iter().copied().chain(deleted().map(|(id, _)| *id)));
    // New partitions have their places before anybody can ask for them.
    let placed = reports::before_publishing(node, &node.cluster.image.load_full(), &image, &changes);
    node.cluster.authority.follow(&image);
    let before = node.cluster.image.swap(image.clone());
    let is_leader_lost = note_events(node, &before, &image, &changes);
    if is_leader_lost || changes.everything {
        node.peers.controller.events().watch_leaders(&image);
    }
    reports::after_publishing(node, &before, &image, &changes, &placed);
    lost::look(node, &image, &changes);
    let concerns_workers = changes.everything
        || changes.features
        || !changes.topics.is_empty()
        || !changes.configs.is_empty()
        || !changes.brokers.is_empty();
    if !concerns_workers {
        return;
    }
    let change = Arc::new(ImageChange { before, image, changes });
    for mailbox in &node.workers.mailboxes {
        mailbox.send_blocking(Command::ImageChanged(change.clone()));
    }
}

/// Counts and writes what happened to brokers and partitions between two images. Returns whether a partition has lost
/// its leader.
fn note_events(node: &Node, before: &Image, image: &Image, changes: &Changes) -> bool {
    let mut is_leader_lost = false;
    let mine = image.cluster.broker(node.identity.broker_id);
    let serves = mine.is_some_and(|mine| mine.incarnation == node.identity.incarnation && !mine.fenced);
    let me = Here { broker: node.identity.broker_id, serves };
    let min_in_sync = |topic: &Text| topic_settings::min_in_sync(node, image, topic);
    events::between(before, image, changes, min_in_sync, |event| {
        if let Event::Partition { change, old_leader, state, .. } = &event {
            is_leader_lost |= *change == PartitionChange::LostLeader;
            count(
                node,
                *change,
                *old_leader == node.identity.broker_id && state.leader == node.identity.broker_id,
            );
        }
        if let Some(line) = node.peers.controller.events().happened(&event, me) {
            cluster_events::write(&line);
        }
    });
    is_leader_lost
}

fn count(node: &Node, change: PartitionChange, is_led_here: bool) {
    let meter = &node.workers.meter;
    match change {
        PartitionChange::UncleanElection { .. } => meter.unclean_elections.one(),
        PartitionChange::IsrShrank { .. } => meter.isr_shrinks.add(is_led_here.into()),
        PartitionChange::IsrExpanded => meter.isr_expands.add(is_led_here.into()),
        _ => {}
    }
}

/// What the metadata log says of this broker and of all brokers.
pub fn dynamic_configs(node: &Node, image: &Image) -> DynamicConfigs {
    let of = |name: &str| -> Properties {
        let values = image.configs.of(&Resource::new(ResourceType::Broker, name));
        values
            .map(|values| values.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
            .unwrap_or_default()
    };
    DynamicConfigs { broker: of(&node.identity.broker_id.to_string()), default: of("") }
}
