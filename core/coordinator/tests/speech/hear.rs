//! Effects → lines.

use barnabas_base::ErrorCode;
use barnabas_coordinator::{Effect, Record, Response};
use barnabas_wire::messages::describe_groups_response::DescribedGroup;
use barnabas_wire::messages::offset_fetch_response::OffsetFetchResponseGroup;
use barnabas_wire::messages::{
    GroupMetadataValue, GroupRecordKey, GroupRecordValue, JoinGroupResponse, SyncGroupResponse,
};
use bytes::Bytes;

use super::{consumer, entry, share, short_id, short_topic_id, streams};
use crate::rig::EPOCH_MS;

pub fn effect(effect: &Effect) -> Vec<String> {
    match effect {
        Effect::Append { batch, records } => {
            let lines = records.iter().map(|each| format!("append @{} {}", batch.0, record(each)));
            lines.collect()
        }
        Effect::AppendInTransaction { batch, producer, records } => {
            let who = format!("p{}:{}", producer.id, producer.epoch);
            let lines = records.iter().map(|each| format!("append @{} in {who} {}", batch.0, record(each)));
            lines.collect()
        }
        Effect::AppendMarker { batch, end } => {
            let what = if end.commit { "commit" } else { "abort" };
            let (id, epoch) = (end.producer.id, end.producer.epoch);
            vec![format!("append @{} {what} p{id}:{epoch} by {}", batch.0, end.coordinator_epoch)]
        }
        Effect::ShareState(order) => vec![share::order(order)],
        Effect::Compute(job) => vec![format!("job for {}", job.group())],
        Effect::Answer { ticket, response } => vec![format!("#{} {}", ticket.0, answer(response))],
    }
}

pub(super) fn error(code: i16) -> String {
    if code == 0 { String::new() } else { format!(" {}", ErrorCode::from_code(code).name()) }
}

fn said(bytes: &Bytes) -> String {
    if bytes.starts_with(&[0, 3]) {
        return consumer::assignment(bytes).unwrap_or_else(|| "subscription".to_owned());
    }
    if bytes.starts_with(&[0, 0]) {
        return "topics".to_owned();
    }
    String::from_utf8_lossy(bytes).into_owned()
}

fn record(record: &Record) -> String {
    let key = GroupRecordKey::decode_key(record.key.clone()).expect("a key");
    let value = record.value.clone().map(|bytes| {
        GroupRecordValue::decode_value(key.type_number(), bytes).expect("a value of the key's type")
    });
    match (key, value) {
        (GroupRecordKey::OffsetCommit(key), None) => {
            format!("-offset {} {}-{}", key.group, key.topic, key.partition)
        }
        (GroupRecordKey::OffsetCommit(key), Some((GroupRecordValue::OffsetCommit(value), version))) => {
            let mut line = format!("offset {} {}-{} = {}", key.group, key.topic, key.partition, value.offset);
            if value.leader_epoch >= 0 {
                line += &format!(" epoch={}", value.leader_epoch);
            }
            if !value.metadata.is_empty() {
                line += &format!(" metadata={}", value.metadata);
            }
            line += &format!(" at={}", value.commit_timestamp - EPOCH_MS);
            if value.expire_timestamp != -1 {
                line += &format!(" expires={}", value.expire_timestamp - EPOCH_MS);
            }
            line + &format!("{} v{version}", short_topic_id(value.topic_id))
        }
        (GroupRecordKey::GroupMetadata(key), None) => format!("-group {}", key.group),
        (GroupRecordKey::GroupMetadata(key), Some((GroupRecordValue::GroupMetadata(value), version))) => {
            format!("group {} {} v{version}", key.group, group(&value))
        }
        (key, value) => entry::record(&key, value.as_ref().map(|(value, _)| value)),
    }
}

fn group(value: &GroupMetadataValue) -> String {
    let name = |text: &Option<barnabas_wire::Str>| text.as_deref().map_or("-".to_owned(), short_id);
    let mut line = format!(
        "gen={} {}/{} leader={}",
        value.generation,
        value.protocol_type,
        name(&value.protocol),
        name(&value.leader)
    );
    for member in &value.members {
        line += &format!(" [{}", short_id(&member.member_id));
        if let Some(instance) = &member.group_instance_id {
            line += &format!("/{instance}");
        }
        line += &format!(" {}={}]", said(&member.subscription), said(&member.assignment));
    }
    line
}

/// The partitions of an answer, each with its error. The same fields under as many names as there are messages.
macro_rules! partitions {
    ($topics:expr) => {{
        let of_topic = $topics.iter().flat_map(|topic| {
            let all = topic.partitions.iter();
            all.map(|part| format!(" {}-{}{}", topic.name, part.partition_index, error(part.error_code)))
        });
        of_topic.collect::<String>()
    }};
}

fn all<T>(each: &[T], show: impl Fn(&T) -> String) -> String {
    each.iter().map(show).collect::<Vec<_>>().join("; ")
}

fn answer(response: &Response) -> String {
    match response {
        Response::JoinGroup(response) => joined(response),
        Response::SyncGroup(response) => synced(response),
        Response::Heartbeat(response) => format!("heartbeat{}", error(response.error_code)),
        Response::ConsumerGroupHeartbeat(response) => consumer::heartbeat(response),
        Response::StreamsGroupHeartbeat(answer) => streams::heartbeat(answer),
        Response::ShareGroupHeartbeat(response) => share::heartbeat(response),
        Response::DescribeGroups(response) => all(&response.groups, described),
        Response::ConsumerGroupDescribe(response) => all(&response.groups, consumer::described),
        Response::StreamsGroupDescribe(response) => all(&response.groups, streams::described),
        Response::StreamsTopologyDescription(response) => streams::description_taken(response),
        Response::ShareGroupDescribe(response) => all(&response.groups, share::described),
        Response::LeaveGroup(response) => {
            let members = response.members.iter().map(|member| {
                let instance = member.group_instance_id.as_deref().map(|id| format!("/{id}"));
                let id = short_id(&member.member_id);
                format!(" [{id}{}{}]", instance.unwrap_or_default(), error(member.error_code))
            });
            format!("left{}{}", error(response.error_code), members.collect::<String>())
        }
        Response::OffsetCommit(response) => format!("committed{}", partitions!(response.topics)),
        Response::TxnOffsetCommit(response) => format!("committed{}", partitions!(response.topics)),
        Response::EndTransaction(code) => format!("marker{}", error(code.code())),
        Response::OffsetFetch(response) => fetched(response),
        Response::OffsetDelete(response) => {
            format!("deleted{}{}", error(response.error_code), partitions!(response.topics))
        }
        Response::ListGroups(response) => {
            let groups = response.groups.iter().map(|group| {
                let state = format!("{} {}", group.group_type, group.group_state);
                format!(" [{} {state} {}]", group.group_id, group.protocol_type)
            });
            format!("groups{}{}", error(response.error_code), groups.collect::<String>())
        }
        Response::DeleteGroups(response) => {
            let results = response.results.iter();
            let groups = results.map(|group| format!(" [{}{}]", group.group_id, error(group.error_code)));
            format!("deleted{}", groups.collect::<String>())
        }
        Response::Parts(parts) => format!("{} parts", parts.len()),
        Response::Close => "closes the connection".to_owned(),
        Response::SharePartitions(said) => share::partitions(said),
        Response::AlterShareGroupOffsets(response) => share::altered(response),
        Response::DeleteShareGroupOffsets(response) => share::offsets_deleted(response),
    }
}

fn synced(response: &SyncGroupResponse) -> String {
    if response.error_code != 0 {
        return format!("sync{}", error(response.error_code));
    }
    format!(
        "synced {}/{} {}",
        response.protocol_type.as_deref().unwrap_or("-"),
        response.protocol_name.as_deref().unwrap_or("-"),
        said(&response.assignment)
    )
}

fn fetched(response: &OffsetFetchResponseGroup) -> String {
    let parts = response.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|part| {
            let mut line = format!(" {}-{}={}", topic.name, part.partition_index, part.committed_offset);
            if part.committed_leader_epoch >= 0 {
                line += &format!(" epoch={}", part.committed_leader_epoch);
            }
            if let Some(metadata) = part.metadata.as_deref().filter(|text| !text.is_empty()) {
                line += &format!(" metadata={metadata}");
            }
            line + &short_topic_id(topic.topic_id) + &error(part.error_code)
        })
    });
    format!("offsets{}{}", error(response.error_code), parts.collect::<String>())
}

fn described(group: &DescribedGroup) -> String {
    let members = group.members.iter().map(|member| {
        let instance = member.group_instance_id.as_deref().map(|id| format!("/{id}"));
        format!(
            " [{}{} {} {} {}={}]",
            short_id(&member.member_id),
            instance.unwrap_or_default(),
            member.client_id,
            member.client_host,
            said(&member.member_metadata),
            said(&member.member_assignment)
        )
    });
    format!(
        "described {} {} {}/{}{}{}",
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        error(group.error_code),
        members.collect::<String>()
    )
}

fn joined(response: &JoinGroupResponse) -> String {
    if response.error_code != 0 {
        return format!("join{} member={}", error(response.error_code), short_id(&response.member_id));
    }
    let members = response.members.iter().map(|member| {
        let instance = member.group_instance_id.as_deref().map(|id| format!("/{id}"));
        format!(
            " [{}{} {}]",
            short_id(&member.member_id),
            instance.unwrap_or_default(),
            said(&member.metadata)
        )
    });
    format!(
        "joined gen={} {}/{} leader={} member={}{}{}",
        response.generation_id,
        response.protocol_type.as_deref().unwrap_or("-"),
        response.protocol_name.as_deref().unwrap_or("-"),
        short_id(&response.leader),
        short_id(&response.member_id),
        if response.skip_assignment { " skip-assignment" } else { "" },
        members.collect::<String>()
    )
}
