//! A streams group ↔ its records: types 17 and 19 to 23, all in version 0.
//!
//! | type | key | value |
//! |---|---|---|
//! | 17 | group | epoch, hash over the topics, epoch of the topology that fits them, what assignors were told |
//! | 19 | group, member | what the member said of itself |
//! | 20 | group | the group epoch of the target, and when it was made |
//! | 21 | group, member | the member's target |
//! | 22 | group, member | the member's epoch, state and tasks |
//! | 23 | group | the topology |
//!
//! # Source
//! Kafka 4.4 `StreamsCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::sync::Arc;

use barnabas_wire::Str;
use barnabas_wire::messages::{
    GroupRecordValue, StreamsGroupCurrentMemberAssignmentValue, StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue, StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue, streams_group_current_member_assignment_value as current,
    streams_group_member_metadata_value as metadata, streams_group_metadata_value as group_metadata,
    streams_group_target_assignment_member_value as target,
};

use super::Streams;
use super::group::{Own, StreamsGroup};
use super::member::{Endpoint, StreamsMember};
use super::topology::Topology;
use crate::assignment::streams::{ActiveTasks, Held, Target, Tasks, each, each_active};
use crate::framework::{Record, weight};
use crate::groups::reconciled::{MemberState, ReconciledGroup, Records, VERSION, with_epochs};
use crate::records::{Entry, GroupKind};

/// The number of a stable member's state.
const STABLE: i8 = 1;

impl Records for Streams {
    fn group_value(group: &StreamsGroup) -> GroupRecordValue {
        let configs =
            group.own.assignment_configs.iter().map(|(key, value)| group_metadata::LastAssignmentConfig {
                key: Str::from(key),
                value: Str::from(value),
                ..Default::default()
            });
        let (stored, failed) = group.own.description_epochs;
        GroupRecordValue::StreamsGroupMetadata(StreamsGroupMetadataValue {
            epoch: group.epoch,
            metadata_hash: group.metadata_hash,
            validated_topology_epoch: group.own.validated_epoch,
            last_assignment_configs: Some(configs.collect()),
            stored_description_topology_epoch: stored,
            failed_description_topology_epoch: failed,
            ..Default::default()
        })
    }

    fn target_epoch_value(assignment_epoch: i32, assignment_timestamp: i64) -> GroupRecordValue {
        GroupRecordValue::StreamsGroupTargetAssignmentMetadata(StreamsGroupTargetAssignmentMetadataValue {
            assignment_epoch,
            assignment_timestamp,
            ..Default::default()
        })
    }

    fn member_value(member: &StreamsMember) -> GroupRecordValue {
        let endpoint = member.own.endpoint.as_ref().map(|endpoint| metadata::Endpoint {
            host: Str::from(&endpoint.host),
            port: endpoint.port,
            ..Default::default()
        });
        let tags = member.own.tags.iter().map(|(key, value)| metadata::KeyValue {
            key: Str::from(key),
            value: Str::from(value),
            ..Default::default()
        });
        GroupRecordValue::StreamsGroupMemberMetadata(StreamsGroupMemberMetadataValue {
            instance_id: member.instance.as_ref().map(Str::from),
            rack_id: member.rack.as_ref().map(Str::from),
            client_id: Str::from(&member.client_id),
            client_host: Str::from(&member.client_host),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            topology_epoch: member.own.topology_epoch,
            process_id: Str::from(&member.own.process),
            user_endpoint: endpoint,
            client_tags: tags.collect(),
            ..Default::default()
        })
    }

    fn current_value(member: &StreamsMember) -> GroupRecordValue {
        let active = |tasks: &ActiveTasks| -> Vec<current::TaskIds> {
            let all = tasks.iter().map(|(id, partitions)| current::TaskIds {
                subtopology_id: Str::from(id),
                partitions: partitions.keys().copied().collect(),
                assignment_epochs: Some(partitions.values().copied().collect()),
                ..Default::default()
            });
            all.collect()
        };
        let copies = |tasks: &Tasks| -> Vec<current::TaskIds> {
            let all = tasks.iter().map(|(id, partitions)| current::TaskIds {
                subtopology_id: Str::from(id),
                partitions: partitions.iter().copied().collect(),
                ..Default::default()
            });
            all.collect()
        };
        GroupRecordValue::StreamsGroupCurrentMemberAssignment(StreamsGroupCurrentMemberAssignmentValue {
            member_epoch: member.epoch,
            previous_member_epoch: member.previous_epoch,
            state: member.state.number(STABLE),
            active_tasks: active(&member.assigned.active),
            standby_tasks: copies(&member.assigned.standby),
            warmup_tasks: copies(&member.assigned.warmup),
            active_tasks_pending_revocation: active(&member.revoking.active),
            standby_tasks_pending_revocation: copies(&member.revoking.standby),
            warmup_tasks_pending_revocation: copies(&member.revoking.warmup),
            ..Default::default()
        })
    }

    fn target_value(target: &Target) -> GroupRecordValue {
        let tasks = |tasks: &Tasks| -> Vec<target::TaskIds> {
            let all = tasks.iter().map(|(id, partitions)| target::TaskIds {
                subtopology_id: Str::from(id),
                partitions: partitions.iter().copied().collect(),
                ..Default::default()
            });
            all.collect()
        };
        GroupRecordValue::StreamsGroupTargetAssignmentMember(StreamsGroupTargetAssignmentMemberValue {
            active_tasks: tasks(&target.active),
            standby_tasks: tasks(&target.standby),
            warmup_tasks: tasks(&target.warmup),
            ..Default::default()
        })
    }

    fn own_value(group: &Own, _: &Entry) -> Option<GroupRecordValue> {
        group.topology.as_ref().map(|topology| topology_value(topology))
    }

    fn replay(group: &mut StreamsGroup, entry: Entry, value: GroupRecordValue) {
        match (entry, value) {
            (Entry::Group, GroupRecordValue::StreamsGroupMetadata(value)) => replay_group(group, value),
            (Entry::TargetEpoch, GroupRecordValue::StreamsGroupTargetAssignmentMetadata(value)) => {
                group.replay_target_epoch(value.assignment_epoch, value.assignment_timestamp);
            }
            (Entry::Member(id), GroupRecordValue::StreamsGroupMemberMetadata(value)) => {
                group.put(with_metadata(group.known(&id), value));
            }
            (Entry::Target(id), GroupRecordValue::StreamsGroupTargetAssignmentMember(value)) => {
                group.targets.insert(id, Arc::new(target_from(&value)));
            }
            (Entry::Current(id), GroupRecordValue::StreamsGroupCurrentMemberAssignment(value)) => {
                group.put(with_current(group.known(&id), &value));
            }
            (Entry::Topology, GroupRecordValue::StreamsGroupTopology(value)) => {
                group.own.topology = Some(Arc::new(Topology::new(value)));
            }
            _ => {}
        }
    }

    fn replay_tombstone(group: &mut Own, _: &Entry) {
        group.topology = None;
    }

    fn last_entries(_: &Own) -> Vec<Entry> {
        vec![Entry::Group, Entry::Topology]
    }
}

fn topology_value(topology: &Topology) -> GroupRecordValue {
    GroupRecordValue::StreamsGroupTopology(topology.value.clone())
}

fn replay_group(group: &mut StreamsGroup, value: StreamsGroupMetadataValue) {
    group.replay_epoch(value.epoch, value.metadata_hash);
    group.own.validated_epoch = value.validated_topology_epoch;
    let configs = value.last_assignment_configs.iter().flatten();
    group.own.assignment_configs = configs.map(|config| (config.key.text(), config.value.text())).collect();
    group.own.description_epochs =
        (value.stored_description_topology_epoch, value.failed_description_topology_epoch);
}

fn tasks_of(held: &Held) -> usize {
    each_active(&held.active).count() + each(&held.standby).count() + each(&held.warmup).count()
}

impl ReconciledGroup<Streams> {
    /// What the record of a member would weigh. `None`: there can be no such record.
    pub(super) fn member_bytes(&self, member: &StreamsMember) -> Option<usize> {
        self.bytes(&Entry::Member(member.id.clone()), &Streams::member_value(member))
    }

    /// What members, tasks and the topology take, beside the members' structures.
    pub(crate) fn memory_bytes(&self) -> usize {
        let members = self.members().iter().map(|(id, member)| {
            let said = self.member_bytes(member).unwrap_or_default();
            let held = tasks_of(&member.assigned) + tasks_of(&member.revoking);
            let offsets =
                self.own.task_offsets.get(id).map_or(0, |known| known.offsets.len() + known.ends.len());
            said + weight::partitions(2 * held + 2 * offsets)
        });
        let topology = self.own.topology.as_ref().and_then(|topology| self.topology_bytes(topology));
        members.sum::<usize>() + 4 * topology.unwrap_or_default() + self.own.description.bytes()
    }

    /// What a member that is known has said of itself.
    pub(crate) fn said_bytes(&self, member: &str, instance: Option<&str>) -> usize {
        self.member_or_static(member, instance).and_then(|known| self.member_bytes(known)).unwrap_or_default()
    }

    /// What the record of a topology would weigh. `None`: there can be no such record.
    pub(super) fn topology_bytes(&self, topology: &Topology) -> Option<usize> {
        self.bytes(&Entry::Topology, &topology_value(topology))
    }

    fn bytes(&self, entry: &Entry, value: &GroupRecordValue) -> Option<usize> {
        let value = value.encode_value(VERSION).ok()?;
        Some(Record { key: entry.key(GroupKind::Streams, &self.id), value: Some(value) }.bytes())
    }
}

fn with_metadata(mut member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember {
    member.instance = value.instance_id.as_ref().map(Str::text);
    member.rack = value.rack_id.as_ref().map(Str::text);
    member.client_id = value.client_id.text();
    member.client_host = value.client_host.text();
    member.rebalance_timeout_ms = value.rebalance_timeout_ms;
    member.own.topology_epoch = value.topology_epoch;
    member.own.process = value.process_id.text();
    member.own.endpoint =
        value.user_endpoint.map(|endpoint| Endpoint { host: endpoint.host.text(), port: endpoint.port });
    member.own.tags =
        Arc::new(value.client_tags.iter().map(|tag| (tag.key.text(), tag.value.text())).collect());
    member
}

fn with_current(
    mut member: StreamsMember,
    value: &StreamsGroupCurrentMemberAssignmentValue,
) -> StreamsMember {
    let active = |said: &[current::TaskIds]| -> ActiveTasks {
        let mut tasks = ActiveTasks::new();
        for each in said.iter().filter(|each| !each.partitions.is_empty()) {
            let epochs = each.assignment_epochs.as_deref();
            let partitions = with_epochs(&each.partitions, epochs, value.member_epoch);
            tasks.entry(each.subtopology_id.text()).or_default().extend(partitions);
        }
        tasks
    };
    let copies = |said: &[current::TaskIds]| -> Tasks {
        collected(said.iter().map(|each| (&each.subtopology_id, &each.partitions)))
    };
    member.epoch = value.member_epoch;
    member.previous_epoch = value.previous_member_epoch;
    member.state = MemberState::from_number(value.state, STABLE);
    member.assigned = Arc::new(Held {
        active: active(&value.active_tasks),
        standby: copies(&value.standby_tasks),
        warmup: copies(&value.warmup_tasks),
    });
    member.revoking = Arc::new(Held {
        active: active(&value.active_tasks_pending_revocation),
        standby: copies(&value.standby_tasks_pending_revocation),
        warmup: copies(&value.warmup_tasks_pending_revocation),
    });
    member
}

fn target_from(value: &StreamsGroupTargetAssignmentMemberValue) -> Target {
    let tasks = |said: &[target::TaskIds]| -> Tasks {
        collected(said.iter().map(|each| (&each.subtopology_id, &each.partitions)))
    };
    Target {
        active: tasks(&value.active_tasks),
        standby: tasks(&value.standby_tasks),
        warmup: tasks(&value.warmup_tasks),
    }
}

fn collected<'a>(said: impl Iterator<Item = (&'a Str, &'a Vec<i32>)>) -> Tasks {
    let mut tasks = Tasks::new();
    for (id, partitions) in said.filter(|(_, partitions)| !partitions.is_empty()) {
        tasks.entry(id.text()).or_default().extend(partitions.iter().copied());
    }
    tasks
}
