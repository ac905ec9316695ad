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
//! Reading takes the records in any order, as compaction leaves them: a value of any type founds the group, and a tombstone of
//! type 17 ends it with all that is left of it.
//!
//! # Source
//! Kafka 4.4 `StreamsCoordinatorRecordHelpers`, `GroupMetadataManager.replay`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::Text;
use barnabas_wire::Str;
use barnabas_wire::messages::{
    GroupRecordValue, StreamsGroupCurrentMemberAssignmentValue, StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue, StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataValue, streams_group_current_member_assignment_value as current,
    streams_group_member_metadata_value as metadata, streams_group_metadata_value as group_metadata,
    streams_group_target_assignment_member_value as target,
};

use super::group::StreamsGroup;
use super::member::{Endpoint, MemberState, StreamsMember};
use super::topology::Topology;
use crate::assignment::streams::{ActiveTasks, Held, Target, Tasks, each, each_active};
use crate::framework::weight;
use crate::framework::{Record, encoded};
use crate::records::{Entry, GroupKind};

const VERSION: i16 = 0;

fn tasks_of(held: &Held) -> usize {
    each_active(&held.active).count() + each(&held.standby).count() + each(&held.warmup).count()
}

impl StreamsGroup {
    /// The record of `entry` as things are: a tombstone for what is not there.
    pub(super) fn record(&self, entry: &Entry) -> Record {
        let value = match entry {
            Entry::OldClassic | Entry::OldPartitionMetadata | Entry::Regex(_) | Entry::SetUp => None,
            Entry::Group => Some(self.metadata()),
            Entry::TargetEpoch => Some(GroupRecordValue::StreamsGroupTargetAssignmentMetadata(
                StreamsGroupTargetAssignmentMetadataValue {
                    assignment_epoch: self.assignment_epoch,
                    assignment_timestamp: self.assignment_timestamp,
                    ..Default::default()
                },
            )),
            Entry::Topology => self.topology.as_ref().map(|topology| topology_of(topology)),
            Entry::Member(id) => self.member(id).map(|member| said(member)),
            Entry::Current(id) => self.member(id).map(|member| current_of(member)),
            Entry::Target(id) => self.targets.get(id).map(|target| target_of(target)),
        };
        let value = value.map(|value| encoded(value.encode_value(VERSION)));
        Record { key: entry.key(GroupKind::Streams, &self.id), value }
    }

    fn metadata(&self) -> GroupRecordValue {
        let configs =
            self.assignment_configs.iter().map(|(key, value)| group_metadata::LastAssignmentConfig {
                key: Str::from(key),
                value: Str::from(value),
                ..Default::default()
            });
        let (stored, failed) = self.description_epochs;
        GroupRecordValue::StreamsGroupMetadata(StreamsGroupMetadataValue {
            epoch: self.epoch,
            metadata_hash: self.metadata_hash,
            validated_topology_epoch: self.validated_epoch,
            last_assignment_configs: Some(configs.collect()),
            stored_description_topology_epoch: stored,
            failed_description_topology_epoch: failed,
            ..Default::default()
        })
    }

    /// What the record of a member would weigh. `None`: there can be no such record.
    pub(super) fn member_bytes(&self, member: &StreamsMember) -> Option<usize> {
        self.bytes(&Entry::Member(member.id.clone()), &said(member))
    }

    /// What members, tasks and the topology take, beside the members' structures.
    pub(crate) fn memory_bytes(&self) -> usize {
        let members = self.members().iter().map(|(id, member)| {
            let said = self.member_bytes(member).unwrap_or_default();
            let held = tasks_of(&member.assigned) + tasks_of(&member.revoking);
            let offsets = self.task_offsets.get(id).map_or(0, |known| known.offsets.len() + known.ends.len());
            said + weight::partitions(2 * held + 2 * offsets)
        });
        let topology = self.topology.as_ref().and_then(|topology| self.topology_bytes(topology));
        members.sum::<usize>() + 4 * topology.unwrap_or_default()
    }

    /// What a member that is known has said of itself.
    pub(crate) fn said_bytes(&self, member: &str, instance: Option<&str>) -> usize {
        let known = instance.and_then(|instance| self.static_member(instance));
        let known = known.or_else(|| self.member(member));
        known.and_then(|known| self.member_bytes(known)).unwrap_or_default()
    }

    /// What the record of a topology would weigh. `None`: there can be no such record.
    pub(super) fn topology_bytes(&self, topology: &Topology) -> Option<usize> {
        self.bytes(&Entry::Topology, &topology_of(topology))
    }

    fn bytes(&self, entry: &Entry, value: &GroupRecordValue) -> Option<usize> {
        let value = value.encode_value(VERSION).ok()?;
        Some(Record { key: entry.key(GroupKind::Streams, &self.id), value: Some(value) }.bytes())
    }

    /// The tombstones of everything that the group has, in the order in which Kafka reads them without complaint.
    ///
    /// # Source
    /// Kafka 4.4 `StreamsGroup.createGroupTombstoneRecords`.
    pub fn tombstones(&self) -> Vec<Record> {
        let ids = || self.members().keys().cloned();
        // What is not written yet, or was lost, may be about members that are gone.
        let left = self.unwritten.entries().filter(|entry| {
            !matches!(entry, Entry::OldClassic | Entry::Group | Entry::Topology | Entry::TargetEpoch)
        });
        let entries = left
            .chain(ids().map(Entry::Current))
            .chain(ids().map(Entry::Target))
            .chain([Entry::TargetEpoch])
            .chain(ids().map(Entry::Member))
            .chain([Entry::Group, Entry::Topology]);
        let mut seen = BTreeSet::new();
        let entries = entries.filter(|entry| seen.insert(entry.clone()));
        entries.map(|entry| Record { key: entry.key(GroupKind::Streams, &self.id), value: None }).collect()
    }

    /// Takes in a value of one of the group's records.
    pub fn replay(&mut self, entry: Entry, value: GroupRecordValue) {
        match (entry, value) {
            (_, GroupRecordValue::StreamsGroupMetadata(value)) => self.replay_metadata(value),
            (_, GroupRecordValue::StreamsGroupTopology(value)) => {
                self.topology = Some(Arc::new(Topology::new(value)));
            }
            (_, GroupRecordValue::StreamsGroupTargetAssignmentMetadata(value)) => {
                self.assignment_epoch = value.assignment_epoch;
                self.assignment_timestamp = value.assignment_timestamp;
            }
            (Entry::Member(id), GroupRecordValue::StreamsGroupMemberMetadata(value)) => {
                let member = self.known(&id);
                self.put(heard(member, value));
            }
            (Entry::Target(id), GroupRecordValue::StreamsGroupTargetAssignmentMember(value)) => {
                self.targets.insert(id, Arc::new(target_from(&value)));
            }
            (Entry::Current(id), GroupRecordValue::StreamsGroupCurrentMemberAssignment(value)) => {
                let member = self.known(&id);
                self.put(placed(member, &value));
            }
            _ => {}
        }
    }

    fn replay_metadata(&mut self, value: StreamsGroupMetadataValue) {
        self.epoch = value.epoch;
        self.metadata_hash = value.metadata_hash;
        self.validated_epoch = value.validated_topology_epoch;
        let configs = value.last_assignment_configs.iter().flatten();
        self.assignment_configs = configs.map(|config| (config.key.text(), config.value.text())).collect();
        self.description_epochs =
            (value.stored_description_topology_epoch, value.failed_description_topology_epoch);
    }

    fn known(&self, id: &Text) -> StreamsMember {
        self.member(id).map_or_else(|| StreamsMember::new(id.clone()), |known| (**known).clone())
    }

    /// Takes in a tombstone; that of the group itself is the shard's business.
    pub fn replay_tombstone(&mut self, entry: &Entry) {
        match entry {
            Entry::Member(id) => {
                self.remove(id);
            }
            Entry::TargetEpoch => {
                let fresh = StreamsGroup::new(self.id.clone());
                self.assignment_epoch = fresh.assignment_epoch;
                self.assignment_timestamp = fresh.assignment_timestamp;
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
            Entry::Topology => self.topology = None,
            _ => {}
        }
    }
}

fn topology_of(topology: &Topology) -> GroupRecordValue {
    GroupRecordValue::StreamsGroupTopology(topology.value.clone())
}

fn said(member: &StreamsMember) -> GroupRecordValue {
    let endpoint = member.endpoint.as_ref().map(|endpoint| metadata::Endpoint {
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        ..Default::default()
    });
    let tags = member.tags.iter().map(|(key, value)| metadata::KeyValue {
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
        topology_epoch: member.topology_epoch,
        process_id: Str::from(&member.process),
        user_endpoint: endpoint,
        client_tags: tags.collect(),
        ..Default::default()
    })
}

fn heard(mut member: StreamsMember, value: StreamsGroupMemberMetadataValue) -> StreamsMember {
    member.instance = value.instance_id.as_ref().map(Str::text);
    member.rack = value.rack_id.as_ref().map(Str::text);
    member.client_id = value.client_id.text();
    member.client_host = value.client_host.text();
    member.rebalance_timeout_ms = value.rebalance_timeout_ms;
    member.topology_epoch = value.topology_epoch;
    member.process = value.process_id.text();
    member.endpoint =
        value.user_endpoint.map(|endpoint| Endpoint { host: endpoint.host.text(), port: endpoint.port });
    member.tags = Arc::new(value.client_tags.iter().map(|tag| (tag.key.text(), tag.value.text())).collect());
    member
}

fn current_of(member: &StreamsMember) -> GroupRecordValue {
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
        state: member.state.number(),
        active_tasks: active(&member.assigned.active),
        standby_tasks: copies(&member.assigned.standby),
        warmup_tasks: copies(&member.assigned.warmup),
        active_tasks_pending_revocation: active(&member.revoking.active),
        standby_tasks_pending_revocation: copies(&member.revoking.standby),
        warmup_tasks_pending_revocation: copies(&member.revoking.warmup),
        ..Default::default()
    })
}

/// Records of before 4.3 say no assignment epochs: the member's own stands for them, as in Kafka.
fn placed(mut member: StreamsMember, value: &StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember {
    let active = |said: &[current::TaskIds]| -> ActiveTasks {
        let mut tasks = ActiveTasks::new();
        for each in said.iter().filter(|each| !each.partitions.is_empty()) {
            let epochs = each.assignment_epochs.as_deref().unwrap_or_default();
            let partitions: &mut BTreeMap<i32, i32> = tasks.entry(each.subtopology_id.text()).or_default();
            for (at, partition) in each.partitions.iter().enumerate() {
                partitions.insert(*partition, epochs.get(at).copied().unwrap_or(value.member_epoch));
            }
        }
        tasks
    };
    let copies = |said: &[current::TaskIds]| -> Tasks {
        collected(said.iter().map(|each| (&each.subtopology_id, &each.partitions)))
    };
    member.epoch = value.member_epoch;
    member.previous_epoch = value.previous_member_epoch;
    member.state = MemberState::from_number(value.state);
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

fn target_of(target: &Target) -> GroupRecordValue {
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
