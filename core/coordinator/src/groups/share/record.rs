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
//! # Source
//! Kafka 4.4 `GroupCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::sync::Arc;

use barnabas_wire::Str;
use barnabas_wire::messages::{
    GroupRecordValue, ShareGroupCurrentMemberAssignmentValue, ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue, ShareGroupStatePartitionMetadataValue, ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue, share_group_current_member_assignment_value as current,
    share_group_state_partition_metadata_value as set_up,
    share_group_target_assignment_member_value as target,
};

use super::Share;
use super::group::{Own, ShareGroup};
use super::member::ShareMember;
use super::set_up::{SetUp, Topics};
use crate::assignment::{Partitions, partitions_from};
use crate::groups::reconciled::{Records, set_names};
use crate::records::Entry;

impl Records for Share {
    fn group_value(group: &ShareGroup) -> GroupRecordValue {
        GroupRecordValue::ShareGroupMetadata(ShareGroupMetadataValue {
            epoch: group.epoch,
            metadata_hash: group.metadata_hash,
            ..Default::default()
        })
    }

    fn target_epoch_value(assignment_epoch: i32, assignment_timestamp: i64) -> GroupRecordValue {
        GroupRecordValue::ShareGroupTargetAssignmentMetadata(ShareGroupTargetAssignmentMetadataValue {
            assignment_epoch,
            assignment_timestamp,
            ..Default::default()
        })
    }

    fn member_value(member: &ShareMember) -> GroupRecordValue {
        GroupRecordValue::ShareGroupMemberMetadata(ShareGroupMemberMetadataValue {
            rack_id: member.rack.as_ref().map(Str::from),
            client_id: Str::from(&member.client_id),
            client_host: Str::from(&member.client_host),
            subscribed_topic_names: member.own.names.iter().map(Str::from).collect(),
            ..Default::default()
        })
    }

    fn current_value(member: &ShareMember) -> GroupRecordValue {
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

    fn target_value(target: &Partitions) -> GroupRecordValue {
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

    fn own_value(group: &Own, _: &Entry) -> Option<GroupRecordValue> {
        Some(set_up_of(&group.set_up))
    }

    fn replay(group: &mut ShareGroup, entry: Entry, value: GroupRecordValue) {
        match (entry, value) {
            (Entry::Group, GroupRecordValue::ShareGroupMetadata(value)) => {
                group.replay_epoch(value.epoch, value.metadata_hash);
            }
            (Entry::TargetEpoch, GroupRecordValue::ShareGroupTargetAssignmentMetadata(value)) => {
                group.replay_target_epoch(value.assignment_epoch, value.assignment_timestamp);
            }
            (Entry::Member(id), GroupRecordValue::ShareGroupMemberMetadata(value)) => {
                let mut member = with_metadata(group.known(&id), &value);
                member.own.names = group.own.names.shared(member.own.names);
                group.put(member);
            }
            (Entry::Target(id), GroupRecordValue::ShareGroupTargetAssignmentMember(value)) => {
                let topics = value.topic_partitions.into_iter();
                let target = partitions_from(topics.map(|topic| (topic.topic_id, topic.partitions)));
                group.targets.insert(id, Arc::new(target));
            }
            (Entry::Current(id), GroupRecordValue::ShareGroupCurrentMemberAssignment(value)) => {
                let topics = value.assigned_partitions.into_iter();
                let assigned = partitions_from(topics.map(|topic| (topic.topic_id, topic.partitions)));
                group.put(ShareMember {
                    epoch: value.member_epoch,
                    previous_epoch: value.previous_member_epoch,
                    assigned: Arc::new(assigned),
                    ..group.known(&id)
                });
            }
            (Entry::SetUp, GroupRecordValue::ShareGroupStatePartitionMetadata(value)) => {
                group.own.set_up = set_up_from(value);
            }
            _ => {}
        }
    }

    fn replay_tombstone(group: &mut Own, _: &Entry) {
        group.set_up = SetUp::default();
    }

    fn last_entries(_: &Own) -> Vec<Entry> {
        vec![Entry::SetUp, Entry::Group]
    }
}

fn with_metadata(mut member: ShareMember, value: &ShareGroupMemberMetadataValue) -> ShareMember {
    set_names(&mut member.own.names, value.subscribed_topic_names.iter().map(Str::text));
    member.rack = value.rack_id.as_ref().map(Str::text);
    member.client_id = value.client_id.text();
    member.client_host = value.client_host.text();
    member
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
