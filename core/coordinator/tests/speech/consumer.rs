//! Of consumer groups: records and answers → lines. Topics are shown by the last byte of their ids: `1:0+1`.

use barnabas_base::Uuid;
use barnabas_wire::messages::consumer_group_describe_response::DescribedGroup;
use barnabas_wire::messages::{
    ConsumerGroupHeartbeatResponse, ConsumerProtocolAssignment, GroupRecordKey, GroupRecordValue,
};
use barnabas_wire::{Message, Reader, Str};
use bytes::Bytes;

use super::hear::error;
use super::short_id;
use crate::rig::EPOCH_MS;

fn topic(id: Uuid, partitions: &[i32]) -> String {
    let partitions: Vec<String> = partitions.iter().map(i32::to_string).collect();
    format!("{}:{}", id.0[15], partitions.join("+"))
}

fn list(topics: Vec<String>) -> String {
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

pub fn record(key: GroupRecordKey, value: Option<GroupRecordValue>) -> String {
    match key {
        GroupRecordKey::ConsumerGroupMetadata(key) => match value {
            Some(GroupRecordValue::ConsumerGroupMetadata(value)) => {
                format!("consumer-group {} epoch={}", key.group_id, value.epoch)
            }
            _ => format!("-consumer-group {}", key.group_id),
        },
        GroupRecordKey::ConsumerGroupTargetAssignmentMetadata(key) => match value {
            Some(GroupRecordValue::ConsumerGroupTargetAssignmentMetadata(value)) => {
                format!("target-epoch {} {}", key.group_id, value.assignment_epoch)
            }
            _ => format!("-target-epoch {}", key.group_id),
        },
        GroupRecordKey::ConsumerGroupMemberMetadata(key) => match value {
            Some(GroupRecordValue::ConsumerGroupMemberMetadata(value)) => {
                let mut line = format!(
                    "member {} {} names={}",
                    key.group_id,
                    short_id(&key.member_id),
                    names(&value.subscribed_topic_names)
                );
                if let Some(regex) = value.subscribed_topic_regex.filter(|regex| !regex.is_empty()) {
                    line += &format!(" regex={regex}");
                }
                if let Some(instance) = value.instance_id {
                    line += &format!(" instance={instance}");
                }
                if let Some(assignor) = value.server_assignor {
                    line += &format!(" assignor={assignor}");
                }
                if value.classic_member_metadata.is_some() {
                    line += " classic";
                }
                line
            }
            _ => format!("-member {} {}", key.group_id, short_id(&key.member_id)),
        },
        GroupRecordKey::ConsumerGroupTargetAssignmentMember(key) => match value {
            Some(GroupRecordValue::ConsumerGroupTargetAssignmentMember(value)) => {
                let topics = value.topic_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
                format!("target {} {} {}", key.group_id, short_id(&key.member_id), list(topics.collect()))
            }
            _ => format!("-target {} {}", key.group_id, short_id(&key.member_id)),
        },
        GroupRecordKey::ConsumerGroupCurrentMemberAssignment(key) => match value {
            Some(GroupRecordValue::ConsumerGroupCurrentMemberAssignment(value)) => {
                let state = match value.state {
                    0 => "stable",
                    1 => "unrevoked",
                    2 => "unreleased",
                    _ => "unknown",
                };
                let assigned =
                    value.assigned_partitions.iter().map(|each| topic(each.topic_id, &each.partitions));
                let revoking = value
                    .partitions_pending_revocation
                    .iter()
                    .map(|each| topic(each.topic_id, &each.partitions));
                format!(
                    "current {} {} epoch={}<{} {state} has={} revokes={}",
                    key.group_id,
                    short_id(&key.member_id),
                    value.member_epoch,
                    value.previous_member_epoch,
                    list(assigned.collect()),
                    list(revoking.collect())
                )
            }
            _ => format!("-current {} {}", key.group_id, short_id(&key.member_id)),
        },
        GroupRecordKey::ConsumerGroupRegularExpression(key) => match value {
            Some(GroupRecordValue::ConsumerGroupRegularExpression(value)) => format!(
                "regex {} {} = {} at={} version={}",
                key.group_id,
                key.regular_expression,
                names(&value.topics),
                value.timestamp - EPOCH_MS,
                value.version
            ),
            _ => format!("-regex {} {}", key.group_id, key.regular_expression),
        },
        key => format!("{key:?}"),
    }
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
