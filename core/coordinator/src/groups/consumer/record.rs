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
//! Reading takes the records in any order, as compaction leaves them: a value of any type founds the group, a member has a
//! current assignment only once it is known by a record of type 5, and a tombstone of type 3 ends the group with all that is
//! left of it.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Text, TopicId};
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

use super::group::ConsumerGroup;
use super::member::{Assigned, ClassicSide, ConsumerMember, MemberState};
use crate::assignment::{Partitions, Resolved};
use crate::framework::{Record, encoded};
use crate::groups::reconciled::FIRST_EPOCH;
use crate::records::{Entry, GroupKind};
use crate::request::Protocols;

const VERSION: i16 = 0;

impl ConsumerGroup {
    /// The record of `entry` as things are: a tombstone for what is not there.
    pub(super) fn record(&self, entry: &Entry) -> Record {
        let value = match entry {
            Entry::OldClassic | Entry::OldPartitionMetadata | Entry::SetUp | Entry::Topology => None,
            Entry::Group => Some(GroupRecordValue::ConsumerGroupMetadata(ConsumerGroupMetadataValue {
                epoch: self.epoch,
                metadata_hash: self.metadata_hash,
                ..Default::default()
            })),
            Entry::TargetEpoch => Some(GroupRecordValue::ConsumerGroupTargetAssignmentMetadata(
                ConsumerGroupTargetAssignmentMetadataValue {
                    assignment_epoch: self.assignment_epoch,
                    assignment_timestamp: self.assignment_timestamp,
                    ..Default::default()
                },
            )),
            Entry::Member(id) => self.member(id).map(|member| said(member)),
            Entry::Current(id) => self.member(id).map(|member| current_of(member)),
            Entry::Target(id) => self.targets.get(id).map(|target| target_of(target)),
            Entry::Regex(regex) => self.resolved.get(regex).map(resolved_of),
        };
        let value = value.map(|value| encoded(value.encode_value(VERSION)));
        Record { key: entry.key(GroupKind::Consumer, &self.id), value }
    }

    /// The tombstones of everything that the group has, in the order in which Kafka reads them without complaint.
    ///
    /// # Source
    /// Kafka 4.4 `ConsumerGroup.createGroupTombstoneRecords`.
    pub fn tombstones(&self) -> Vec<Record> {
        let ids = || self.members().keys().cloned();
        let regexes = self.resolved.keys().cloned().map(Entry::Regex);
        let metadata = self.has_partition_metadata.then_some(Entry::OldPartitionMetadata);
        // What is not written yet, or was lost, may be about members that are gone.
        let left = self.unwritten.entries().filter(|entry| *entry != Entry::OldClassic);
        let entries = left
            .chain(ids().map(Entry::Current))
            .chain(ids().map(Entry::Target))
            .chain([Entry::TargetEpoch])
            .chain(ids().map(Entry::Member))
            .chain(metadata)
            .chain(regexes)
            .chain([Entry::Group]);
        let mut seen = BTreeSet::new();
        let entries = entries.filter(|entry| seen.insert(entry.clone()));
        entries.map(|entry| Record { key: entry.key(GroupKind::Consumer, &self.id), value: None }).collect()
    }

    /// Takes in a value of one of the group's records.
    pub fn replay(&mut self, entry: Entry, value: GroupRecordValue) {
        match (entry, value) {
            (Entry::Group, GroupRecordValue::ConsumerGroupMetadata(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            (Entry::OldPartitionMetadata, _) => self.has_partition_metadata = true,
            (Entry::Member(id), GroupRecordValue::ConsumerGroupMemberMetadata(value)) => {
                let known =
                    self.member(&id).map_or_else(|| ConsumerMember::new(id), |known| (**known).clone());
                let mut member = heard(known, value);
                member.names = self.shared(member.names);
                self.put(member);
            }
            (Entry::TargetEpoch, GroupRecordValue::ConsumerGroupTargetAssignmentMetadata(value)) => {
                self.assignment_epoch = value.assignment_epoch;
                self.assignment_timestamp = value.assignment_timestamp;
            }
            (Entry::Target(id), GroupRecordValue::ConsumerGroupTargetAssignmentMember(value)) => {
                self.targets.insert(id, Arc::new(target_from(value)));
            }
            (Entry::Current(id), GroupRecordValue::ConsumerGroupCurrentMemberAssignment(value)) => {
                let known =
                    self.member(&id).map_or_else(|| ConsumerMember::new(id), |known| (**known).clone());
                self.put(placed(known, &value));
            }
            (Entry::Regex(regex), GroupRecordValue::ConsumerGroupRegularExpression(value)) => {
                let topics = value.topics.iter().map(Str::text).collect();
                let resolved =
                    Resolved { topics: Arc::new(topics), version: value.version, timestamp: value.timestamp };
                self.resolved.insert(regex, resolved);
            }
            _ => {}
        }
    }

    /// Takes in a tombstone; that of the group itself is the shard's business.
    pub fn replay_tombstone(&mut self, entry: &Entry) {
        match entry {
            Entry::OldPartitionMetadata => self.has_partition_metadata = false,
            Entry::Member(id) => {
                self.remove(id);
            }
            Entry::TargetEpoch => {
                self.assignment_epoch = FIRST_EPOCH;
                self.assignment_timestamp = 0;
            }
            Entry::Target(id) => {
                self.targets.remove(id);
            }
            Entry::Current(id) => {
                let Some(known) = self.member(id).cloned() else { return };
                let mut gone = (*known).clone();
                gone.epoch = 0;
                gone.previous_epoch = 0;
                gone.state = MemberState::Stable;
                gone.assigned = Arc::default();
                gone.revoking = Arc::default();
                self.put(gone);
            }
            Entry::Regex(regex) => {
                self.resolved.remove(regex);
            }
            _ => {}
        }
    }
}

fn said(member: &ConsumerMember) -> GroupRecordValue {
    let classic = member.classic.as_ref().map(|classic| metadata::ClassicMemberMetadata {
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
        subscribed_topic_names: member.names.iter().map(Str::from).collect(),
        subscribed_topic_regex: member.regex.as_ref().map(Str::from),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        server_assignor: member.assignor.as_ref().map(Str::from),
        classic_member_metadata: classic,
        ..Default::default()
    })
}

fn heard(mut member: ConsumerMember, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember {
    let mut names: Vec<Text> = value.subscribed_topic_names.iter().map(Str::text).collect();
    names.sort();
    names.dedup();
    member.instance = value.instance_id.as_ref().map(Str::text);
    member.rack = value.rack_id.as_ref().map(Str::text);
    member.client_id = value.client_id.text();
    member.client_host = value.client_host.text();
    member.names = Arc::new(names);
    member.regex = value.subscribed_topic_regex.as_ref().map(Str::text);
    member.rebalance_timeout_ms = value.rebalance_timeout_ms;
    member.assignor = value.server_assignor.as_ref().map(Str::text);
    member.classic = value.classic_member_metadata.map(|classic| {
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

fn current_of(member: &ConsumerMember) -> GroupRecordValue {
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
        state: member.state.number(),
        assigned_partitions: side(&member.assigned),
        partitions_pending_revocation: side(&member.revoking),
        ..Default::default()
    })
}

/// Records of before 4.4 say no assignment epochs: the member's own stands for them, as in Kafka.
fn placed(mut member: ConsumerMember, value: &ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember {
    let side = |topics: &[current::TopicPartitions]| -> Assigned {
        let mut assigned = Assigned::new();
        for topic in topics {
            let epochs = topic.assignment_epochs.as_deref().unwrap_or_default();
            let partitions: &mut BTreeMap<i32, i32> = assigned.entry(topic.topic_id).or_default();
            for (at, partition) in topic.partitions.iter().enumerate() {
                partitions.insert(*partition, epochs.get(at).copied().unwrap_or(value.member_epoch));
            }
        }
        assigned.retain(|_, partitions| !partitions.is_empty());
        assigned
    };
    member.epoch = value.member_epoch;
    member.previous_epoch = value.previous_member_epoch;
    member.state = MemberState::from_number(value.state);
    member.assigned = Arc::new(side(&value.assigned_partitions));
    member.revoking = Arc::new(side(&value.partitions_pending_revocation));
    member
}

fn target_of(target: &Partitions) -> GroupRecordValue {
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

fn target_from(value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions {
    let mut target: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
    for topic in value.topic_partitions {
        target.entry(topic.topic_id).or_default().extend(topic.partitions);
    }
    for partitions in target.values_mut() {
        partitions.sort_unstable();
        partitions.dedup();
    }
    target.retain(|_, partitions| !partitions.is_empty());
    target
}

fn resolved_of(resolved: &Resolved) -> GroupRecordValue {
    GroupRecordValue::ConsumerGroupRegularExpression(ConsumerGroupRegularExpressionValue {
        topics: resolved.topics.iter().map(Str::from).collect(),
        version: resolved.version,
        timestamp: resolved.timestamp,
        ..Default::default()
    })
}
