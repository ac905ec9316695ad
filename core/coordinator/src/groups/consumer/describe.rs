//! ConsumerGroupDescribe and ListGroups, for one consumer group.
//!
//! # Source
//! Kafka 4.4 `ConsumerGroup.asDescribedGroup`, `ConsumerGroupMember.asConsumerGroupDescribeMember`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, Text, TopicId};
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};
use barnabas_wire::messages::list_groups_response::ListedGroup;

use super::group::ConsumerGroup;
use super::member::ConsumerMember;
use crate::groups::table_order;

pub(crate) fn describe(group: &ConsumerGroup, default_assignor: &str, image: &Image) -> DescribedGroup {
    let mut members: Vec<&ConsumerMember> = group.members().values().map(|member| &**member).collect();
    let count = members.len();
    table_order::arrange(&mut members, count, |member| &member.id);
    DescribedGroup {
        group_id: Str::from(&group.id),
        group_state: group.state_name().into(),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: group.preferred_assignor().map_or(default_assignor, |name| name.as_str()).into(),
        members: members.into_iter().map(|member| described(group, member, image)).collect(),
        ..Default::default()
    }
}

fn described(group: &ConsumerGroup, member: &ConsumerMember, image: &Image) -> Member {
    let target = group.targets.get(&member.id).into_iter().flat_map(|target| target.iter());
    // A member is responsible for what it is to give up until it has (Kafka 4.3).
    let mut has: BTreeMap<TopicId, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in member.holdings() {
        has.entry(topic).or_default().push(partition);
    }
    Member {
        member_id: Str::from(&member.id),
        instance_id: member.instance.as_ref().map(Str::from),
        rack_id: member.rack.as_ref().map(Str::from),
        member_epoch: member.epoch,
        client_id: Str::from(&member.client_id),
        client_host: Str::from(&member.client_host),
        subscribed_topic_names: member.names.iter().map(Str::from).collect(),
        subscribed_topic_regex: Some(member.regex.as_ref().map(Str::from).unwrap_or_default()),
        assignment: partitions(has.into_iter(), image),
        target_assignment: partitions(target.map(|(topic, each)| (*topic, each.clone())), image),
        member_type: if member.classic.is_some() { 0 } else { 1 },
        ..Default::default()
    }
}

/// Topics that are gone are left out.
fn partitions(of: impl Iterator<Item = (TopicId, Vec<i32>)>, image: &Image) -> Assignment {
    let topics = of.filter_map(|(id, partitions)| {
        let topic = image.topics.by_id(id)?;
        Some(TopicPartitions {
            topic_id: id,
            topic_name: Str::from(&topic.name),
            partitions,
            ..Default::default()
        })
    });
    Assignment { topic_partitions: topics.collect(), ..Default::default() }
}

pub(crate) fn describe_missing(id: &str) -> DescribedGroup {
    refused(id, format!("Group {id} not found."))
}

/// There is such a group, of another kind.
pub(crate) fn not_consumer(id: &str) -> DescribedGroup {
    refused(id, format!("Group {id} is not a consumer group."))
}

fn refused(id: &str, why: String) -> DescribedGroup {
    DescribedGroup {
        group_id: id.into(),
        error_code: ErrorCode::GroupIdNotFound.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}

pub(crate) fn list(id: &Text, group: &ConsumerGroup) -> ListedGroup {
    ListedGroup {
        group_id: Str::from(id),
        protocol_type: "consumer".into(),
        group_state: group.state_name().into(),
        group_type: "consumer".into(),
        ..Default::default()
    }
}
