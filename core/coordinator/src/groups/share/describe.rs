//! ShareGroupDescribe, for one share group.
//!
//! # Source
//! Kafka 4.4 `ShareGroup.asDescribedGroup`, `ShareGroupMember.asShareGroupDescribeMember`.

use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::share_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};

use super::group::ShareGroup;
use super::member::ShareMember;
use crate::framework::part;
use crate::groups::reconciled::{Refused, describe_refused};

pub(crate) fn describe(group: &ShareGroup, image: &Image) -> DescribedGroup {
    DescribedGroup {
        group_id: Str::from(&group.id),
        group_state: group.state_name().into(),
        group_epoch: group.epoch,
        assignment_epoch: group.assignment_epoch,
        assignor_name: "simple".into(),
        members: group.members().values().map(|member| described(member, image)).collect(),
        ..Default::default()
    }
}

fn described(member: &ShareMember, image: &Image) -> Member {
    // Topics that are gone are left out.
    let topics = member.assigned.iter().filter_map(|(id, partitions)| {
        let topic = image.topics.by_id(*id)?;
        Some(TopicPartitions {
            topic_id: *id,
            topic_name: Str::from(&topic.name),
            partitions: partitions.clone(),
            ..Default::default()
        })
    });
    Member {
        member_id: Str::from(&member.id),
        rack_id: member.rack.as_ref().map(Str::from),
        member_epoch: member.epoch,
        client_id: Str::from(&member.client_id),
        client_host: Str::from(&member.client_host),
        subscribed_topic_names: member.own.names.iter().map(Str::from).collect(),
        assignment: Assignment { topic_partitions: topics.collect(), ..Default::default() },
        ..Default::default()
    }
}

/// What a description takes, at most.
pub(crate) fn described_bytes(group: &ShareGroup, image: &Image) -> usize {
    let members = group.members().values().map(|member| {
        let who = [member.id.as_str(), member.client_id.as_str(), member.client_host.as_str()];
        let names = part::texts(member.own.names.iter().map(|name| name.as_str()));
        let topics = member.assigned.iter().map(|(topic, has)| {
            let name = image.topics.by_id(*topic).map_or(0, |topic| part::text(&topic.name));
            24 + name + 4 * has.len()
        });
        part::texts(who) + part::text_if(member.rack.as_ref()) + names + topics.sum::<usize>() + 16
    });
    part::taken(96 + part::text(&group.id) + members.sum::<usize>())
}

describe_refused!(DescribedGroup);
