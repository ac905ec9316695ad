//! ShareGroupDescribe and ListGroups, for one share group.
//!
//! # Source
//! Kafka 4.4 `ShareGroup.asDescribedGroup`, `ShareGroupMember.asShareGroupDescribeMember`.

use barnabas_base::{ErrorCode, Text};
use barnabas_metadata::Image;
use barnabas_wire::Str;
use barnabas_wire::messages::list_groups_response::ListedGroup;
use barnabas_wire::messages::share_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};

use super::group::ShareGroup;
use super::member::ShareMember;

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
        subscribed_topic_names: member.names.iter().map(Str::from).collect(),
        assignment: Assignment { topic_partitions: topics.collect(), ..Default::default() },
        ..Default::default()
    }
}

pub(crate) fn describe_missing(id: &str) -> DescribedGroup {
    refused(id, format!("Group {id} not found."))
}

/// There is such a group, of another kind.
pub(crate) fn not_share(id: &str) -> DescribedGroup {
    refused(id, format!("Group {id} is not a share group."))
}

fn refused(id: &str, why: String) -> DescribedGroup {
    DescribedGroup {
        group_id: id.into(),
        error_code: ErrorCode::GroupIdNotFound.code(),
        error_message: Some(why.into()),
        ..Default::default()
    }
}

pub(crate) fn list(id: &Text, group: &ShareGroup) -> ListedGroup {
    ListedGroup {
        group_id: Str::from(id),
        protocol_type: "share".into(),
        group_state: group.state_name().into(),
        group_type: "share".into(),
        ..Default::default()
    }
}
