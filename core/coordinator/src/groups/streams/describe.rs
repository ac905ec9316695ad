//! StreamsGroupDescribe, for one streams group, and the description of its topology that a member sends.
//!
//! # Source
//! Kafka 4.4 `StreamsGroup.asDescribedGroup`, `StreamsGroupMember.asStreamsGroupDescribeMember`, `ConfiguredTopology`,
//! `StreamsTopology`, `GroupMetadataManager.validateStreamsGroupTopologyDescriptionUpdate`.

use std::sync::Arc;

use barnabas_base::{ErrorCode, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::StreamsGroupTopologyDescriptionUpdateRequest;
use barnabas_wire::messages::streams_group_describe_response::{
    Assignment, DescribedGroup, Endpoint, KeyValue, Member, Subtopology, TaskIds, TaskOffset, TopicInfo,
    Topology,
};
use barnabas_wire::messages::streams_group_topology_value as record;

use super::group::StreamsGroup;
use super::member::StreamsMember;
use super::topology::{ConfiguredSubtopology, InternalTopic};
use crate::assignment::streams::Offsets;
use crate::assignment::streams::Tasks;
use crate::framework::part;
use crate::groups::reconciled::{Refused, describe_refused, unknown};
use crate::outbox::Outbox;

/// `with_description`: also how the application describes its topology.
pub(crate) fn describe(group: &StreamsGroup, assignor: &str, with_description: bool) -> DescribedGroup {
    let mut described = DescribedGroup {
        group_id: Str::from(&group.id),
        group_state: group.state_name().into(),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: Some(assignor.into()),
        topology: topology(group),
        members: group.members().values().map(|member| described_member(group, member)).collect(),
        ..Default::default()
    };
    if with_description {
        group.own.description.show(group.topology_epoch(), &mut described);
    }
    described
}

/// Keeps the description of the topology that a member sends.
///
/// # Errors
/// UNKNOWN_MEMBER_ID; INVALID_REQUEST for another topology's; as [`super::topology::Description::keep`].
pub(crate) fn keep_description(
    group: &mut StreamsGroup,
    request: &StreamsGroupTopologyDescriptionUpdateRequest,
    out: &Outbox,
) -> Result<(), Refused> {
    if group.member(&request.member_id).is_none() {
        return Err(unknown(&group.id, &request.member_id));
    }
    let (said, current) = (request.topology_epoch, group.topology_epoch());
    if said != current {
        let why =
            format!("Topology epoch {said} does not match the group's current topology epoch {current}.");
        return Err(Refused::new(ErrorCode::InvalidRequest, why));
    }
    group.own.description.keep(current, &request.topology_description, out.config.member_bytes_max)
}

/// With the partitions that internal topics have, once all topics are there; else as it was brought.
fn topology(group: &StreamsGroup) -> Option<Topology> {
    let known = group.own.topology.as_ref()?;
    let ready = group.own.configured.as_ref().filter(|configured| configured.is_ready());
    let subtopologies = match ready.and_then(|configured| configured.subtopologies.as_ref()) {
        Some(all) => all.iter().map(|(id, each)| configured(id, each)).collect(),
        None => known.value.subtopologies.iter().map(brought).collect(),
    };
    Some(Topology { epoch: known.epoch(), subtopologies: Some(subtopologies), ..Default::default() })
}

fn configured(id: &Text, subtopology: &ConfiguredSubtopology) -> Subtopology {
    let names = |names: &[Text]| names.iter().map(Str::from).collect();
    let topics = |topics: &[InternalTopic]| -> Vec<TopicInfo> {
        let all = topics.iter().map(|topic| TopicInfo {
            name: Str::from(&topic.name),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            topic_configs: topic.configs.iter().map(|(key, value)| pair(key.into(), value.into())).collect(),
            ..Default::default()
        });
        all.collect()
    };
    Subtopology {
        subtopology_id: Str::from(id),
        source_topics: names(&subtopology.source_topics),
        repartition_sink_topics: names(&subtopology.sink_topics),
        state_changelog_topics: topics(&subtopology.changelog_topics),
        repartition_source_topics: topics(&subtopology.repartition_topics),
        ..Default::default()
    }
}

fn brought(subtopology: &record::Subtopology) -> Subtopology {
    let topics = |topics: &[record::TopicInfo]| -> Vec<TopicInfo> {
        let all = topics.iter().map(|topic| TopicInfo {
            name: topic.name.clone(),
            partitions: topic.partitions,
            replication_factor: topic.replication_factor,
            topic_configs: topic
                .topic_configs
                .iter()
                .map(|config| pair(config.key.clone(), config.value.clone()))
                .collect(),
            ..Default::default()
        });
        all.collect()
    };
    Subtopology {
        subtopology_id: subtopology.subtopology_id.clone(),
        source_topics: subtopology.source_topics.clone(),
        repartition_sink_topics: subtopology.repartition_sink_topics.clone(),
        state_changelog_topics: topics(&subtopology.state_changelog_topics),
        repartition_source_topics: topics(&subtopology.repartition_source_topics),
        ..Default::default()
    }
}

fn pair(key: Str, value: Str) -> KeyValue {
    KeyValue { key, value, ..Default::default() }
}

fn described_member(group: &StreamsGroup, member: &StreamsMember) -> Member {
    let offsets = group.own.task_offsets.get(&member.id).cloned().unwrap_or_default();
    let target = group.targets.get(&member.id).map(|target| Assignment {
        active_tasks: task_ids(&target.active),
        standby_tasks: task_ids(&target.standby),
        warmup_tasks: task_ids(&target.warmup),
        ..Default::default()
    });
    let active = member.assigned.active.iter().map(|(id, partitions)| TaskIds {
        subtopology_id: Str::from(id),
        partitions: partitions.keys().copied().collect(),
        ..Default::default()
    });
    Member {
        member_id: Str::from(&member.id),
        member_epoch: member.epoch,
        instance_id: member.instance.as_ref().map(Str::from),
        rack_id: member.rack.as_ref().map(Str::from),
        client_id: Str::from(&member.client_id),
        client_host: Str::from(&member.client_host),
        topology_epoch: member.own.topology_epoch,
        process_id: Str::from(&member.own.process),
        user_endpoint: member.own.endpoint.as_ref().map(|endpoint| Endpoint {
            host: Str::from(&endpoint.host),
            port: endpoint.port,
            ..Default::default()
        }),
        client_tags: member.own.tags.iter().map(|(key, value)| pair(key.into(), value.into())).collect(),
        task_offsets: task_offsets(&offsets.offsets),
        task_end_offsets: task_offsets(&offsets.ends),
        assignment: Assignment {
            active_tasks: active.collect(),
            standby_tasks: task_ids(&member.assigned.standby),
            warmup_tasks: task_ids(&member.assigned.warmup),
            ..Default::default()
        },
        target_assignment: target.unwrap_or_default(),
        ..Default::default()
    }
}

fn task_ids(tasks: &Tasks) -> Vec<TaskIds> {
    let all = tasks.iter().map(|(id, partitions)| TaskIds {
        subtopology_id: Str::from(id),
        partitions: partitions.iter().copied().collect(),
        ..Default::default()
    });
    all.collect()
}

fn task_offsets(offsets: &Arc<Offsets>) -> Vec<TaskOffset> {
    let all = offsets.iter().map(|((id, partition), offset)| TaskOffset {
        subtopology_id: Str::from(id),
        partition: *partition,
        offset: *offset,
        ..Default::default()
    });
    all.collect()
}

/// What the answer about a group takes, at most.
pub(crate) fn described_bytes(group: &StreamsGroup, with_description: bool) -> usize {
    let members = group.members().values().map(|member| {
        let texts = [&member.id, &member.client_id, &member.client_host, &member.own.process];
        let tags = member.own.tags.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
        let host = member.own.endpoint.as_ref().map(|endpoint| &endpoint.host);
        let said = [member.instance.as_ref(), member.rack.as_ref(), host].map(part::text_if);
        let active = member.assigned.active.iter().map(|(id, tasks)| task_bytes(id, tasks.len()));
        let others = [&member.assigned.standby, &member.assigned.warmup];
        let target = group.targets.get(&member.id);
        let target = target.into_iter().flat_map(|each| [&each.active, &each.standby, &each.warmup]);
        let others = others.into_iter().chain(target).flat_map(|tasks| tasks.iter());
        let tasks = active.chain(others.map(|(id, tasks)| task_bytes(id, tasks.len())));
        let offsets = group.own.task_offsets.get(&member.id).into_iter();
        let offsets = offsets.flat_map(|known| known.offsets.keys().chain(known.ends.keys()));
        part::texts(texts.map(|text| text.as_str()))
            + part::texts(tags)
            + said.iter().sum::<usize>()
            + tasks.sum::<usize>()
            + offsets.map(|(id, _)| 16 + part::text(id)).sum::<usize>()
            + 64
    });
    let description = if with_description { group.own.description.shown_bytes() } else { 0 };
    part::taken(96 + part::text(&group.id) + topology_bytes(group) + members.sum::<usize>()) + description
}

fn task_bytes(id: &Text, tasks: usize) -> usize {
    8 + part::text(id) + 4 * tasks
}

/// Partitions and names alone differ between a topology as it was brought and as it is configured.
fn topology_bytes(group: &StreamsGroup) -> usize {
    let Some(topology) = &group.own.topology else { return 0 };
    let subtopologies = topology.value.subtopologies.iter().map(|each| {
        let names = each.source_topics.iter().chain(&each.repartition_sink_topics);
        let made = each.state_changelog_topics.iter().chain(&each.repartition_source_topics).map(|topic| {
            let configs =
                topic.topic_configs.iter().flat_map(|each| [each.key.as_str(), each.value.as_str()]);
            part::text(&topic.name) + part::texts(configs) + 16
        });
        part::text(&each.subtopology_id)
            + part::texts(names.map(|name| name.as_str()))
            + made.sum::<usize>()
            + 32
    });
    // Sources that match an expression are in the configured topology alone.
    let configured = group.own.configured.as_ref().and_then(|configured| configured.subtopologies.as_ref());
    let sources = configured.into_iter().flatten().flat_map(|(_, each)| &each.source_topics);
    subtopologies.sum::<usize>() + sources.map(|name| part::text(name)).sum::<usize>()
}

describe_refused!(DescribedGroup);
