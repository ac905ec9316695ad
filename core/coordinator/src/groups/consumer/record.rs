//! A consumer group ↔ its records: types 3 to 8 and 16, all in version 0.
//!
//! | type | key | value |
//! |---|---|---|
//! | 3 | group | epoch, hash over the topics |
//! | 4 | group | topics with partitions and racks: written by Kafka up to 4.0, removed when met |
//! | 5 | group, member | what the member said of itself |
//! | 6 | group | the group epoch of the target, and when it was made |
//! | 7 | group, member | the member's target |
//! | 8 | group, member | the member's epoch, state and partitions |
//! | 16 | group, expression | the topics that it matched |
//!
//! A member has a current assignment only once it is known by a record of type 5. See [`crate::groups::reconciled`] for
//! the rest.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::sync::Arc;

use barnabas_wire::Str;
use barnabas_wire::messages::{
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue, ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue, GroupRecordValue,
    consumer_group_current_member_assignment_value as current,
    consumer_group_member_metadata_value as metadata,
    consumer_group_target_assignment_member_value as target,
};
use bytes::Bytes;

use super::Consumer;
use super::group::{ConsumerGroup, Own};
use super::member::{Assigned, ClassicSide, ConsumerMember};
use crate::assignment::{Partitions, Resolved, partitions_from};
use crate::groups::reconciled::{MemberState, Records, set_names, with_epochs};
use crate::records::Entry;
use crate::request::Protocols;

/// The number of a stable member's state.
const STABLE: i8 = 0;

impl Records for Consumer {
    fn group_value(group: &ConsumerGroup) -> GroupRecordValue {
        GroupRecordValue::ConsumerGroupMetadata(ConsumerGroupMetadataValue {
            epoch: group.epoch,
            metadata_hash: group.metadata_hash,
            ..Default::default()
        })
    }

    fn target_epoch_value(assignment_epoch: i32, assignment_timestamp: i64) -> GroupRecordValue {
        GroupRecordValue::ConsumerGroupTargetAssignmentMetadata(ConsumerGroupTargetAssignmentMetadataValue {
            assignment_epoch,
            assignment_timestamp,
            ..Default::default()
        })
    }

    fn member_value(member: &ConsumerMember) -> GroupRecordValue {
        let classic = member.own.classic.as_ref().map(|classic| metadata::ClassicMemberMetadata {
            session_timeout_ms: classic.session_timeout_ms,
            supported_protocols: classic
                .protocols
                .pairs()
                .map(|(name, said)| metadata::ClassicProtocol {
                    name: name.into(),
                    metadata: said.clone(),
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        });
        GroupRecordValue::ConsumerGroupMemberMetadata(ConsumerGroupMemberMetadataValue {
            instance_id: member.instance.as_ref().map(Str::from),
            rack_id: member.rack.as_ref().map(Str::from),
            client_id: Str::from(&member.client_id),
            client_host: Str::from(&member.client_host),
            subscribed_topic_names: member.own.names.iter().map(Str::from).collect(),
            subscribed_topic_regex: member.own.regex.as_ref().map(Str::from),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            server_assignor: member.own.assignor.as_ref().map(Str::from),
            classic_member_metadata: classic,
            ..Default::default()
        })
    }

    fn current_value(member: &ConsumerMember) -> GroupRecordValue {
        let side = |assigned: &Assigned| -> Vec<current::TopicPartitions> {
            let topics = assigned.iter().map(|(topic, partitions)| current::TopicPartitions {
                topic_id: *topic,
                partitions: partitions.keys().copied().collect(),
                assignment_epochs: Some(partitions.values().copied().collect()),
                ..Default::default()
            });
            topics.collect()
        };
        GroupRecordValue::ConsumerGroupCurrentMemberAssignment(ConsumerGroupCurrentMemberAssignmentValue {
            member_epoch: member.epoch,
            previous_member_epoch: member.previous_epoch,
            state: member.state.number(STABLE),
            assigned_partitions: side(&member.assigned),
            partitions_pending_revocation: side(&member.revoking),
            ..Default::default()
        })
    }

    fn target_value(target: &Partitions) -> GroupRecordValue {
        let topics = target.iter().map(|(topic, partitions)| target::TopicPartition {
            topic_id: *topic,
            partitions: partitions.clone(),
            ..Default::default()
        });
        GroupRecordValue::ConsumerGroupTargetAssignmentMember(ConsumerGroupTargetAssignmentMemberValue {
            topic_partitions: topics.collect(),
            ..Default::default()
        })
    }

    fn own_value(group: &Own, entry: &Entry) -> Option<GroupRecordValue> {
        match entry {
            Entry::Regex(regex) => group.resolved.get(regex).map(resolved_of),
            _ => None,
        }
    }

    fn replay(group: &mut ConsumerGroup, entry: Entry, value: GroupRecordValue) {
        match (entry, value) {
            (Entry::Group, GroupRecordValue::ConsumerGroupMetadata(value)) => {
                group.replay_epoch(value.epoch, value.metadata_hash);
            }
            (Entry::TargetEpoch, GroupRecordValue::ConsumerGroupTargetAssignmentMetadata(value)) => {
                group.replay_target_epoch(value.assignment_epoch, value.assignment_timestamp);
            }
            (Entry::Member(id), GroupRecordValue::ConsumerGroupMemberMetadata(value)) => {
                let mut member = with_metadata(group.known(&id), value);
                member.own.names = group.own.names.shared(member.own.names);
                group.put(member);
            }
            (Entry::Target(id), GroupRecordValue::ConsumerGroupTargetAssignmentMember(value)) => {
                let topics = value.topic_partitions.into_iter();
                let target = partitions_from(topics.map(|topic| (topic.topic_id, topic.partitions)));
                group.targets.insert(id, Arc::new(target));
            }
            (Entry::Current(id), GroupRecordValue::ConsumerGroupCurrentMemberAssignment(value)) => {
                group.put(with_current(group.known(&id), &value));
            }
            (Entry::Regex(regex), GroupRecordValue::ConsumerGroupRegularExpression(value)) => {
                let topics = value.topics.iter().map(Str::text).collect();
                let resolved =
                    Resolved { topics: Arc::new(topics), version: value.version, timestamp: value.timestamp };
                group.own.resolved.insert(regex, resolved);
            }
            (Entry::OldPartitionMetadata, _) => group.own.has_partition_metadata = true,
            _ => {}
        }
    }

    fn replay_tombstone(group: &mut Own, entry: &Entry) {
        match entry {
            Entry::OldPartitionMetadata => group.has_partition_metadata = false,
            Entry::Regex(regex) => {
                group.resolved.remove(regex);
            }
            _ => {}
        }
    }

    fn last_entries(group: &Own) -> Vec<Entry> {
        let metadata = group.has_partition_metadata.then_some(Entry::OldPartitionMetadata);
        let expressions = group.resolved.keys().cloned().map(Entry::Regex);
        metadata.into_iter().chain(expressions).chain([Entry::Group]).collect()
    }
}

fn with_metadata(mut member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember {
    set_names(&mut member.own.names, value.subscribed_topic_names.iter().map(Str::text));
    member.instance = value.instance_id.as_ref().map(Str::text);
    member.rack = value.rack_id.as_ref().map(Str::text);
    member.client_id = value.client_id.text();
    member.client_host = value.client_host.text();
    member.own.regex = value.subscribed_topic_regex.as_ref().map(Str::text);
    member.rebalance_timeout_ms = value.rebalance_timeout_ms;
    member.own.assignor = value.server_assignor.as_ref().map(Str::text);
    member.own.classic = value.classic_member_metadata.map(|classic| {
        let pairs = classic.supported_protocols.iter();
        Arc::new(ClassicSide {
            session_timeout_ms: classic.session_timeout_ms,
            protocols: Protocols::of(
                pairs.map(|each| (each.name.text(), Bytes::copy_from_slice(&each.metadata))),
            ),
        })
    });
    member
}

fn with_current(
    mut member: ConsumerMember,
    value: &ConsumerGroupCurrentMemberAssignmentValue,
) -> ConsumerMember {
    let side = |topics: &[current::TopicPartitions]| -> Assigned {
        let mut assigned = Assigned::new();
        for topic in topics {
            let epochs = topic.assignment_epochs.as_deref();
            let partitions = with_epochs(&topic.partitions, epochs, value.member_epoch);
            assigned.entry(topic.topic_id).or_default().extend(partitions);
        }
        assigned.retain(|_, partitions| !partitions.is_empty());
        assigned
    };
    member.epoch = value.member_epoch;
    member.previous_epoch = value.previous_member_epoch;
    member.state = MemberState::from_number(value.state, STABLE);
    member.assigned = Arc::new(side(&value.assigned_partitions));
    member.revoking = Arc::new(side(&value.partitions_pending_revocation));
    member
}

fn resolved_of(resolved: &Resolved) -> GroupRecordValue {
    GroupRecordValue::ConsumerGroupRegularExpression(ConsumerGroupRegularExpressionValue {
        topics: resolved.topics.iter().map(Str::from).collect(),
        version: resolved.version,
        timestamp: resolved.timestamp,
        ..Default::default()
    })
}
