//! ConsumerGroupDescribe, for one consumer group.
//!
//! # Source
//! Kafka 4.4 `ConsumerGroup.asDescribedGroup`, `ConsumerGroupMember.asConsumerGroupDescribeMember`.

use std::collections::BTreeMap;

use barnabas_base::TopicId;
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};

use super::group::ConsumerGroup;
use super::member::ConsumerMember;
use crate::framework::part;
use crate::groups::reconciled::{Refused, describe_refused};
use crate::groups::table_order;

pub(crate) fn describe(group: &ConsumerGroup, default_assignor: &str, image: &Image) -> DescribedGroup {
    let mut members: Vec<&ConsumerMember> = group.members().values().map(|member| &**member).collect();
    let count = members.len();
    table_order::arrange(&mut members, count, |member| &member.id);
    DescribedGroup {
        group_id: Str::from(&group.id),
        group_state: group.progress().into(),
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
        subscribed_topic_names: member.own.names.iter().map(Str::from).collect(),
        subscribed_topic_regex: Some(member.own.regex.as_ref().map(Str::from).unwrap_or_default()),
        assignment: partitions(has.into_iter(), image),
        target_assignment: partitions(target.map(|(topic, each)| (*topic, each.clone())), image),
        member_type: if member.own.classic.is_some() { 0 } else { 1 },
        ..Default::default()
    }
}

/// What a description takes, at most.
pub(crate) fn described_bytes(group: &ConsumerGroup, image: &Image) -> usize {
    let members = group.members().values().map(|member| {
        let who = [member.id.as_str(), member.client_id.as_str(), member.client_host.as_str()];
        let said = [member.instance.as_ref(), member.rack.as_ref(), member.own.regex.as_ref()];
        let names = part::texts(member.own.names.iter().map(|name| name.as_str()));
        let held = [&member.assigned, &member.revoking];
        let held = held.iter().flat_map(|held| held.iter().map(|(topic, has)| (*topic, has.len())));
        let target = group.targets.get(&member.id).into_iter().flat_map(|target| target.iter());
        let topics = held.chain(target.map(|(topic, has)| (*topic, has.len())));
        let topics = topics.map(|(topic, count)| topic_bytes(topic, count, image));
        part::texts(who) + said.map(part::text_if).iter().sum::<usize>() + names + topics.sum::<usize>() + 32
    });
    part::taken(96 + part::text(&group.id) + members.sum::<usize>())
}

/// What a topic with so many partitions takes on the wire, at most.
fn topic_bytes(topic: TopicId, partitions: usize, image: &Image) -> usize {
    let name = image.topics.by_id(topic).map_or(0, |topic| part::text(&topic.name));
    24 + name + 4 * partitions
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

describe_refused!(DescribedGroup);
