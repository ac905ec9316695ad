//! Of share groups: commands → requests, records and answers → lines.

use barnabas_base::{ErrorCode, Uuid};
use barnabas_coordinator::{Request, SharePartitionKey, ShareStateOrder, ShareStateWork};
use barnabas_wire::Str;
use barnabas_wire::messages::alter_share_group_offsets_request::{
    AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use barnabas_wire::messages::delete_share_group_offsets_request::DeleteShareGroupOffsetsRequestTopic;
use barnabas_wire::messages::share_group_describe_response::DescribedGroup;
use barnabas_wire::messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse, GroupRecordValue, ShareGroupDescribeRequest, ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse, share_group_state_partition_metadata_value as state,
};

use super::Words;
use super::consumer::{list, topic};
use super::hear::error;

pub fn request(words: &Words<'_>) -> Option<(i16, Request)> {
    let group = || Str::from(words.text("group", "g"));
    let topics = || words.text("topics", "t").split(',').filter(|name| !name.is_empty());
    Some(match words.verb {
        "share-hb" => {
            let names = words.get("names").map(|names| names.split(',').map(Str::from).collect());
            let request = ShareGroupHeartbeatRequest {
                group_id: group(),
                member_id: words.text("member", "a").into(),
                member_epoch: words.number("epoch", 0),
                rack_id: words.get("rack").map(Str::from),
                subscribed_topic_names: names,
                ..Default::default()
            };
            (1, Request::ShareGroupHeartbeat(request))
        }
        "share-describe" => {
            let group_ids = vec![group()];
            (1, Request::ShareGroupDescribe(ShareGroupDescribeRequest { group_ids, ..Default::default() }))
        }
        "share-partitions" => (0, Request::SharePartitions(group())),
        "share-alter" => {
            let partition = AlterShareGroupOffsetsRequestPartition {
                partition_index: words.number("partition", 0),
                start_offset: words.number("offset", 0),
                ..Default::default()
            };
            let topics = topics().map(|name| AlterShareGroupOffsetsRequestTopic {
                topic_name: name.into(),
                partitions: vec![partition.clone()],
                ..Default::default()
            });
            let topics = topics.collect();
            let request = AlterShareGroupOffsetsRequest { group_id: group(), topics, ..Default::default() };
            (0, Request::AlterShareGroupOffsets(request))
        }
        "share-delete-offsets" => {
            let topics = topics().map(|name| DeleteShareGroupOffsetsRequestTopic {
                topic_name: name.into(),
                ..Default::default()
            });
            let topics = topics.collect();
            let request = DeleteShareGroupOffsetsRequest { group_id: group(), topics, ..Default::default() };
            (0, Request::DeleteShareGroupOffsets(request))
        }
        _ => return None,
    })
}

/// What a record says; `None`: it is of another kind of group.
pub fn said(value: &GroupRecordValue) -> Option<String> {
    Some(match value {
        GroupRecordValue::ShareGroupMetadata(value) => format!("epoch={}", value.epoch),
        GroupRecordValue::ShareGroupTargetAssignmentMetadata(value) => value.assignment_epoch.to_string(),
        GroupRecordValue::ShareGroupMemberMetadata(value) => {
            let names = list(value.subscribed_topic_names.iter().map(|name| name.to_string()).collect());
            let rack = value.rack_id.as_ref().map(|rack| format!(" rack={rack}")).unwrap_or_default();
            format!("{} names={names}{rack}", value.client_id)
        }
        GroupRecordValue::ShareGroupTargetAssignmentMember(value) => {
            let topics = value.topic_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
            list(topics.collect())
        }
        GroupRecordValue::ShareGroupCurrentMemberAssignment(value) => {
            let has = value.assigned_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
            let (epoch, previous) = (value.member_epoch, value.previous_member_epoch);
            format!("epoch={epoch}<{previous} has={}", list(has.collect()))
        }
        GroupRecordValue::ShareGroupStatePartitionMetadata(value) => {
            let show = |topics: &[state::TopicPartitionsInfo]| {
                list(topics.iter().map(|each| topic(each.topic_id, &each.partitions)).collect())
            };
            let deleting = value.deleting_topics.iter().map(|each| each.topic_id.0[15].to_string());
            format!(
                "initializing={} initialized={} deleting={}",
                show(&value.initializing_topics),
                show(&value.initialized_topics),
                list(deleting.collect())
            )
        }
        _ => return None,
    })
}

fn key(key: &SharePartitionKey) -> String {
    format!("{}/{}-{}", key.group, key.topic.0[15], key.partition)
}

pub fn order(order: &ShareStateOrder) -> String {
    match &order.work {
        ShareStateWork::Initialize { state_epoch, starts } => {
            let starts = starts.iter().map(|(each, start)| format!(" {}@{start}", key(each)));
            format!("order {} initialize epoch={state_epoch}{}", order.number, starts.collect::<String>())
        }
        ShareStateWork::Delete(keys) => {
            let keys = keys.iter().map(|each| format!(" {}", key(each)));
            format!("order {} delete{}", order.number, keys.collect::<String>())
        }
    }
}

/// What the share coordinator says where it says no.
pub fn named_error(words: &Words<'_>) -> ErrorCode {
    match words.text("error", "none") {
        "none" => ErrorCode::None,
        "unavailable" => ErrorCode::CoordinatorNotAvailable,
        "unknown-topic" => ErrorCode::UnknownTopicOrPartition,
        "fenced" => ErrorCode::FencedStateEpoch,
        "full" => ErrorCode::GroupMaxSizeReached,
        other => panic!("no such error: {other}"),
    }
}

pub fn heartbeat(response: &ShareGroupHeartbeatResponse) -> String {
    if response.error_code != 0 {
        let why = response.error_message.as_deref().map(|why| format!(": {why}"));
        return format!("share-hb{}{}", error(response.error_code), why.unwrap_or_default());
    }
    let assignment = response.assignment.as_ref().map(|assignment| {
        let topics = assignment.topic_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
        format!(" has={}", list(topics.collect()))
    });
    format!(
        "share-hb member={} epoch={}{}",
        response.member_id.as_deref().unwrap_or_default(),
        response.member_epoch,
        assignment.unwrap_or_default()
    )
}

pub fn described(group: &DescribedGroup) -> String {
    if group.error_code != 0 {
        return format!("described {}{}", group.group_id, error(group.error_code));
    }
    let members = group.members.iter().map(|member| {
        let topics = member.assignment.topic_partitions.iter();
        let has = list(topics.map(|each| topic(each.topic_id, &each.partitions)).collect());
        format!(" [{} {} epoch={} has={has}]", member.member_id, member.client_id, member.member_epoch)
    });
    format!(
        "described {} {} epoch={} target={} {}{}",
        group.group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        group.assignor_name,
        members.collect::<String>()
    )
}

pub fn partitions(said: &Result<Vec<(Uuid, Vec<i32>)>, ErrorCode>) -> String {
    match said {
        Ok(topics) => {
            let topics = topics.iter().map(|(id, partitions)| topic(*id, partitions));
            format!("partitions {}", list(topics.collect()))
        }
        Err(code) => format!("partitions{}", error(code.code())),
    }
}

pub fn altered(response: &AlterShareGroupOffsetsResponse) -> String {
    let parts = response.responses.iter().flat_map(|topic| {
        let name = topic.topic_name.clone();
        let of = move |each: &barnabas_wire::messages::alter_share_group_offsets_response::AlterShareGroupOffsetsResponsePartition| {
            format!(" [{name}-{}{}]", each.partition_index, error(each.error_code))
        };
        topic.partitions.iter().map(of)
    });
    format!("altered{}{}", error(response.error_code), parts.collect::<String>())
}

pub fn offsets_deleted(response: &DeleteShareGroupOffsetsResponse) -> String {
    let topics =
        response.responses.iter().map(|topic| format!(" [{}{}]", topic.topic_name, error(topic.error_code)));
    format!("offsets deleted{}{}", error(response.error_code), topics.collect::<String>())
}
