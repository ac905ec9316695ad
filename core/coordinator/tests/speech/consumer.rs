//! Of consumer groups: records and answers → lines. Topics are shown by the last byte of their ids: `1:0+1`.

use barnabas_base::Uuid;
use barnabas_wire::messages::consumer_group_describe_response::DescribedGroup;
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatResponse, ConsumerGroupMemberMetadataValue, ConsumerProtocolAssignment,
    GroupRecordValue, consumer_group_current_member_assignment_value as current,
};
use barnabas_wire::{Message, Reader, Str};
use bytes::Bytes;

use super::hear::error;
use super::short_id;
use crate::rig::EPOCH_MS;

pub fn topic(id: Uuid, partitions: &[i32]) -> String {
    let partitions: Vec<String> = partitions.iter().map(i32::to_string).collect();
    format!("{}:{}", id.0[15], partitions.join("+"))
}

pub fn list(topics: Vec<String>) -> String {
    if topics.is_empty() { "-".to_owned() } else { topics.join(",") }
}

fn names(names: &[Str]) -> String {
    list(names.iter().map(|name| name.to_string()).collect())
}

/// `None`: it is none that names topics with partitions.
pub fn assignment(bytes: &Bytes) -> Option<String> {
    let mut reader = Reader::new(bytes.slice(2..));
    let assignment =
        ConsumerProtocolAssignment::decode(&mut reader, 3).ok().filter(|_| reader.remaining() == 0)?;
    let topics = assignment.assigned_partitions.iter().map(|topic| {
        let partitions: Vec<String> = topic.partitions.iter().map(i32::to_string).collect();
        format!("{}:{}", topic.topic, partitions.join("+"))
    });
    Some(list(topics.collect()))
}

/// What a record says; `None`: it is of another kind of group.
pub fn said(value: &GroupRecordValue) -> Option<String> {
    Some(match value {
        GroupRecordValue::ConsumerGroupMetadata(value) => format!("epoch={}", value.epoch),
        GroupRecordValue::ConsumerGroupTargetAssignmentMetadata(value) => value.assignment_epoch.to_string(),
        GroupRecordValue::ConsumerGroupMemberMetadata(value) => member(value),
        GroupRecordValue::ConsumerGroupTargetAssignmentMember(value) => {
            let topics = value.topic_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
            list(topics.collect())
        }
        GroupRecordValue::ConsumerGroupCurrentMemberAssignment(value) => {
            let state = match value.state {
                0 => "stable",
                1 => "unrevoked",
                2 => "unreleased",
                _ => "unknown",
            };
            let show = |topics: &[current::TopicPartitions]| {
                list(topics.iter().map(|each| topic(each.topic_id, &each.partitions)).collect())
            };
            format!(
                "epoch={}<{} {state} has={} revokes={}",
                value.member_epoch,
                value.previous_member_epoch,
                show(&value.assigned_partitions),
                show(&value.partitions_pending_revocation)
            )
        }
        GroupRecordValue::ConsumerGroupRegularExpression(value) => {
            let at = value.timestamp - EPOCH_MS;
            format!("= {} at={at} version={}", names(&value.topics), value.version)
        }
        _ => return None,
    })
}

fn member(value: &ConsumerGroupMemberMetadataValue) -> String {
    let mut line = format!("names={}", names(&value.subscribed_topic_names));
    if let Some(regex) = value.subscribed_topic_regex.as_ref().filter(|regex| !regex.is_empty()) {
        line += &format!(" regex={regex}");
    }
    if let Some(instance) = &value.instance_id {
        line += &format!(" instance={instance}");
    }
    if let Some(assignor) = &value.server_assignor {
        line += &format!(" assignor={assignor}");
    }
    if value.classic_member_metadata.is_some() {
        line += " classic";
    }
    line
}

pub fn heartbeat(response: &ConsumerGroupHeartbeatResponse) -> String {
    if response.error_code != 0 {
        let why = response.error_message.as_deref().map(|why| format!(": {why}"));
        return format!("hb{}{}", error(response.error_code), why.unwrap_or_default());
    }
    let assignment = response.assignment.as_ref().map(|assignment| {
        let topics = assignment.topic_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
        format!(" has={}", list(topics.collect()))
    });
    format!(
        "hb member={} epoch={}{}",
        response.member_id.as_deref().map(short_id).unwrap_or_default(),
        response.member_epoch,
        assignment.unwrap_or_default()
    )
}

pub fn described(group: &DescribedGroup) -> String {
    if group.error_code != 0 {
        return format!("described {}{}", group.group_id, error(group.error_code));
    }
    let members = group.members.iter().map(|member| {
        let show = |assignment: &barnabas_wire::messages::consumer_group_describe_response::Assignment| {
            list(
                assignment
                    .topic_partitions
                    .iter()
                    .map(|each| topic(each.topic_id, &each.partitions))
                    .collect(),
            )
        };
        format!(
            " [{} {} epoch={} has={} target={}{}]",
            short_id(&member.member_id),
            member.client_id,
            member.member_epoch,
            show(&member.assignment),
            show(&member.target_assignment),
            if member.member_type == 0 { " classic" } else { "" }
        )
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
