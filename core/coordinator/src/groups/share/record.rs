//! A share group ↔ its records: types 10 to 15, all in version 0.
//!
//! | type | key | value |
//! |---|---|---|
//! | 10 | group, member | what the member said of itself |
//! | 11 | group | epoch, hash over the topics |
//! | 12 | group | the group epoch of the target, and when it was made |
//! | 13 | group, member | the member's target |
//! | 14 | group, member | the member's epoch and partitions |
//! | 15 | group | which share-partitions are set up, being set up, or on their way out |
//!
//! Reading takes the records in any order, as compaction leaves them: a value of any type founds the group, and a tombstone of
//! type 11 ends it with all that is left of it.
//!
//! # Source
//! Kafka 4.4 `GroupCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::{Text, TopicId};
use barnabas_wire::Str;
use barnabas_wire::messages::{
    GroupRecordValue, ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue, ShareGroupStatePartitionMetadataValue, ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue, share_group_current_member_assignment_value as current,
    share_group_state_partition_metadata_value as set_up,
    share_group_target_assignment_member_value as target,
};

use super::group::ShareGroup;
use super::member::ShareMember;
use super::set_up::{SetUp, Topics};
use crate::assignment::Partitions;
use crate::framework::{Record, encoded};
use crate::groups::reconciled::FIRST_EPOCH;
use crate::records::{Entry, GroupKind};

const VERSION: i16 = 0;

impl ShareGroup {
    /// The record of `entry` as things are: a tombstone for what is not there.
    pub(super) fn record(&self, entry: &Entry) -> Record {
        let value = match entry {
            Entry::Group => Some(GroupRecordValue::ShareGroupMetadata(ShareGroupMetadataValue {
                epoch: self.epoch,
                metadata_hash: self.metadata_hash,
                ..Default::default()
            })),
            Entry::TargetEpoch => Some(GroupRecordValue::ShareGroupTargetAssignmentMetadata(
                ShareGroupTargetAssignmentMetadataValue {
                    assignment_epoch: self.assignment_epoch,
                    assignment_timestamp: self.assignment_timestamp,
                    ..Default::default()
                },
            )),
            Entry::Member(id) => self.member(id).map(|member| said(member)),
            Entry::Current(id) => self.member(id).map(|member| current_of(member)),
            Entry::Target(id) => self.targets.get(id).map(|target| target_of(target)),
            Entry::SetUp => Some(set_up_of(&self.set_up)),
            Entry::OldClassic | Entry::OldPartitionMetadata | Entry::Regex(_) | Entry::Topology => None,
        };
        let value = value.map(|value| encoded(value.encode_value(VERSION)));
        Record { key: entry.key(GroupKind::Share, &self.id), value }
    }

    /// The tombstones of everything that the group has, in the order in which Kafka reads them without complaint.
    ///
    /// # Source
    /// Kafka 4.4 `ShareGroup.createGroupTombstoneRecords`.
    pub fn tombstones(&self) -> Vec<Record> {
        let ids = || self.members().keys().cloned();
        // What is not written yet, or was lost, may be about members that are gone.
        let entries = self
            .unwritten()
            .chain(ids().map(Entry::Current))
            .chain(ids().map(Entry::Target))
            .chain([Entry::TargetEpoch])
            .chain(ids().map(Entry::Member))
            .chain([Entry::SetUp, Entry::Group]);
        let mut last: Vec<Entry> = Vec::new();
        let mut seen = BTreeSet::new();
        for entry in entries {
            if !matches!(entry, Entry::SetUp | Entry::Group) && seen.insert(entry.clone()) {
                last.push(entry);
            }
        }
        last.extend([Entry::SetUp, Entry::Group]);
        last.iter().map(|entry| Record { key: entry.key(GroupKind::Share, &self.id), value: None }).collect()
    }

    /// Takes in a value of one of the group's records.
    pub fn replay(&mut self, entry: Entry, value: GroupRecordValue) {
        match (entry, value) {
            (Entry::Group, GroupRecordValue::ShareGroupMetadata(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            (Entry::Member(id), GroupRecordValue::ShareGroupMemberMetadata(value)) => {
                let mut member = heard(self.known(&id), &value);
                member.names = self.shared(member.names);
                self.put(member);
            }
            (Entry::TargetEpoch, GroupRecordValue::ShareGroupTargetAssignmentMetadata(value)) => {
                self.assignment_epoch = value.assignment_epoch;
                self.assignment_timestamp = value.assignment_timestamp;
            }
            (Entry::Target(id), GroupRecordValue::ShareGroupTargetAssignmentMember(value)) => {
                let pairs = value.topic_partitions.into_iter();
                let target = target_from(pairs.map(|topic| (topic.topic_id, topic.partitions)));
                self.targets.insert(id, Arc::new(target));
            }
            (Entry::Current(id), GroupRecordValue::ShareGroupCurrentMemberAssignment(value)) => {
                let pairs = value.assigned_partitions.into_iter();
                let assigned = target_from(pairs.map(|topic| (topic.topic_id, topic.partitions)));
                self.put(ShareMember {
                    epoch: value.member_epoch,
                    previous_epoch: value.previous_member_epoch,
                    assigned: Arc::new(assigned),
                    ..self.known(&id)
                });
            }
            (Entry::SetUp, GroupRecordValue::ShareGroupStatePartitionMetadata(value)) => {
                self.set_up = set_up_from(value)
            }
            _ => {}
        }
    }

    /// Takes in a tombstone of one of the group's records, but for that which ends the group.
    pub fn replay_tombstone(&mut self, entry: &Entry) {
        match entry {
            Entry::Member(id) => {
                self.remove(id);
            }
            Entry::Current(id) => {
                if let Some(member) = self.member(id) {
                    let fresh = ShareMember {
                        epoch: 0,
                        previous_epoch: 0,
                        assigned: Arc::default(),
                        ..(**member).clone()
                    };
                    self.put(fresh);
                }
            }
            Entry::Target(id) => {
                self.targets.remove(id);
            }
            Entry::TargetEpoch => {
                self.assignment_epoch = FIRST_EPOCH;
                self.assignment_timestamp = 0;
            }
            Entry::SetUp => self.set_up = SetUp::default(),
            _ => {}
        }
    }

    fn known(&self, id: &Text) -> ShareMember {
        self.member(id).map_or_else(|| ShareMember::new(id.clone()), |known| (**known).clone())
    }
}

fn said(member: &ShareMember) -> GroupRecordValue {
    GroupRecordValue::ShareGroupMemberMetadata(ShareGroupMemberMetadataValue {
        rack_id: member.rack.as_ref().map(Str::from),
        client_id: Str::from(&member.client_id),
        client_host: Str::from(&member.client_host),
        subscribed_topic_names: member.names.iter().map(Str::from).collect(),
        ..Default::default()
    })
}

fn heard(mut member: ShareMember, value: &ShareGroupMemberMetadataValue) -> ShareMember {
    let mut names: Vec<Text> = value.subscribed_topic_names.iter().map(Str::text).collect();
    names.sort();
    names.dedup();
    member.rack = value.rack_id.as_ref().map(Str::text);
    member.client_id = value.client_id.text();
    member.client_host = value.client_host.text();
    member.names = Arc::new(names);
    member
}

fn current_of(member: &ShareMember) -> GroupRecordValue {
    let topics = member.assigned.iter().map(|(topic, partitions)| current::TopicPartitions {
        topic_id: *topic,
        partitions: partitions.clone(),
        ..Default::default()
    });
    GroupRecordValue::ShareGroupCurrentMemberAssignment(ShareGroupCurrentMemberAssignmentValue {
        member_epoch: member.epoch,
        previous_member_epoch: member.previous_epoch,
        // Stable: a share group's member never waits for anything.
        state: 0,
        assigned_partitions: topics.collect(),
        ..Default::default()
    })
}

fn target_of(target: &Partitions) -> GroupRecordValue {
    let topics = target.iter().map(|(topic, partitions)| target::TopicPartition {
        topic_id: *topic,
        partitions: partitions.clone(),
        ..Default::default()
    });
    GroupRecordValue::ShareGroupTargetAssignmentMember(ShareGroupTargetAssignmentMemberValue {
        topic_partitions: topics.collect(),
        ..Default::default()
    })
}

fn target_from(topics: impl Iterator<Item = (TopicId, Vec<i32>)>) -> Partitions {
    let mut target: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
    for (topic, partitions) in topics {
        target.entry(topic).or_default().extend(partitions);
    }
    for partitions in target.values_mut() {
        partitions.sort_unstable();
        partitions.dedup();
    }
    target.retain(|_, partitions| !partitions.is_empty());
    target
}

fn set_up_of(state: &SetUp) -> GroupRecordValue {
    let infos = |topics: &Topics| -> Vec<set_up::TopicPartitionsInfo> {
        let infos = topics.iter().map(|(id, topic)| set_up::TopicPartitionsInfo {
            topic_id: *id,
            topic_name: Str::from(&topic.name),
            partitions: topic.partitions.iter().copied().collect(),
            ..Default::default()
        });
        infos.collect()
    };
    let deleting = state.deleting.iter().map(|(id, name)| set_up::TopicInfo {
        topic_id: *id,
        topic_name: Str::from(name),
        ..Default::default()
    });
    GroupRecordValue::ShareGroupStatePartitionMetadata(ShareGroupStatePartitionMetadataValue {
        initializing_topics: infos(&state.initializing),
        initialized_topics: infos(&state.initialized),
        deleting_topics: deleting.collect(),
        ..Default::default()
    })
}

fn set_up_from(value: ShareGroupStatePartitionMetadataValue) -> SetUp {
    let topics = |infos: Vec<set_up::TopicPartitionsInfo>| -> Topics {
        let mut topics = Topics::new();
        for info in infos {
            let topic = topics.entry(info.topic_id).or_default();
            topic.name = info.topic_name.text();
            topic.partitions.extend(info.partitions);
        }
        topics
    };
    SetUp {
        initializing: topics(value.initializing_topics),
        initialized: topics(value.initialized_topics),
        deleting: value
            .deleting_topics
            .into_iter()
            .map(|info| (info.topic_id, info.topic_name.text()))
            .collect(),
    }
}
