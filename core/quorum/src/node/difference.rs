//! What differs between two images that no log leads from one to the other: a follower that was behind got a snapshot.
//!
//! Looks at everything: it happens to a node that was away for long.

use std::sync::Arc;

use barnabas_metadata::{Changes, Image, Topic, TopicChange};

/// The changes from `before` to `after`.
pub(super) fn difference(before: &Image, after: &Image) -> Changes {
    let mut changes = Changes {
        features: before.features != after.features,
        producer_ids: before.next_producer_id != after.next_producer_id,
        acls: before.acls != after.acls,
        scram: before.scram != after.scram,
        tokens: before.tokens != after.tokens,
        ..Changes::default()
    };
    nodes(before, after, &mut changes);
    topics(before, after, &mut changes);
    for (resource, values) in before.configs.iter() {
        if after.configs.of(resource) != Some(values) {
            changes.configs.insert(resource.clone());
        }
    }
    for (resource, values) in after.configs.iter() {
        if before.configs.of(resource) != Some(values) {
            changes.configs.insert(resource.clone());
        }
    }
    for (entity, values) in &before.quotas {
        if after.quotas.get(entity) != Some(values) {
            changes.quotas.insert(entity.clone());
        }
    }
    changes.quotas.extend(after.quotas.keys().filter(|entity| !before.quotas.contains_key(*entity)).cloned());
    changes
}

fn nodes(before: &Image, after: &Image, changes: &mut Changes) {
    let (old, new) = (&before.cluster, &after.cluster);
    let gone = old.brokers().filter(|broker| new.broker(broker.id).is_none());
    let other = new.brokers().filter(|broker| old.broker(broker.id) != Some(broker));
    changes.brokers.extend(gone.chain(other).map(|broker| broker.id));
    let gone = old.controllers().filter(|controller| new.controller(controller.id).is_none());
    let other = new.controllers().filter(|controller| old.controller(controller.id) != Some(controller));
    changes.controllers.extend(gone.chain(other).map(|controller| controller.id));
}

fn topics(before: &Image, after: &Image, changes: &mut Changes) {
    for topic in before.topics.by_ids().filter(|topic| after.topics.by_id(topic.id).is_none()) {
        let partitions = topic.partitions().map(|(index, _)| index).collect();
        let change = TopicChange { name: topic.name.clone(), created: false, deleted: true, partitions };
        changes.topics.insert(topic.id, change);
    }
    for topic in after.topics.by_ids() {
        let known: Option<&Arc<Topic>> = before.topics.by_id(topic.id);
        let is_new =
            |partition| known.is_none_or(|known| known.partition(partition) != topic.partition(partition));
        let partitions: std::collections::BTreeSet<_> =
            topic.partitions().map(|(index, _)| index).filter(|&index| is_new(index)).collect();
        if known.is_none() || !partitions.is_empty() {
            let change = TopicChange {
                name: topic.name.clone(),
                created: known.is_none(),
                deleted: false,
                partitions,
            };
            changes.topics.insert(topic.id, change);
        }
    }
}
