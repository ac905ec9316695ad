//! Consumer groups of either protocol, their members, and what each member reads.

use super::check_cluster;
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::kafka::groups::{self, Described, Member};
use barnabas_wire::messages::list_groups_response::ListedGroup;
use serde_json::{Value, json};

/// The list has what ListGroups tells: describing thousands of groups for it would ask each coordinator as often.
pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    check_cluster(call)?;
    let groups = groups::list(&mut call.cluster).await?;
    let rows = groups.iter().filter(|group| groups::has_consumers(group));
    let rows = rows.map(|group| listed_document(call, group)).collect();
    Ok(call.list("KafkaConsumerGroupList", &["consumer-groups"], rows))
}

fn listed_document(call: &Call, group: &ListedGroup) -> Value {
    let mut document = base(call, &group.group_id, &group.group_state);
    document["is_simple"] = group.protocol_type.is_empty().into();
    document["type"] = kind(&group.group_type).into();
    document
}

fn kind(word: &str) -> String {
    if word.is_empty() { "UNKNOWN".to_owned() } else { word.to_ascii_uppercase() }
}

fn base(call: &Call, group: &str, state: &str) -> Value {
    json!({
        "kind": "KafkaConsumerGroup",
        "metadata": call.metadata(&["consumer-groups", group], &format!("consumer-group={group}")),
        "cluster_id": call.cluster.id(),
        "consumer_group_id": group,
        "state": state_name(state),
        "consumers": call.related(&["consumer-groups", group, "consumers"]),
        "lag_summary": call.related(&["consumer-groups", group, "lag-summary"]),
    })
}

/// `PreparingRebalance` as `PREPARING_REBALANCE`.
fn state_name(state: &str) -> String {
    let mut name = String::new();
    for letter in state.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    if name.is_empty() { "UNKNOWN".to_owned() } else { name }
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    let group = described(call).await?;
    let mut document = base(call, &group.group, &group.state);
    document["is_simple"] = group.is_simple.into();
    document["type"] = kind(group.kind).into();
    document["partition_assignor"] = group.assignor.as_str().into();
    document["coordinator"] = call.related(&["brokers", &group.coordinator.to_string()]);
    Ok(Answer::json(document))
}

pub async fn described(call: &mut Call) -> Result<Described, Problem> {
    check_cluster(call)?;
    let name = call.at.param("group").to_owned();
    Ok(groups::describe(&mut call.cluster, &name).await?)
}

pub async fn consumers(call: &mut Call) -> Result<Answer, Problem> {
    let group = described(call).await?;
    let rows = group.members.iter().map(|member| consumer_document(call, &group.group, member)).collect();
    Ok(call.list("KafkaConsumerList", &["consumer-groups", &group.group, "consumers"], rows))
}

pub async fn consumer(call: &mut Call) -> Result<Answer, Problem> {
    let (group, member) = found(call).await?;
    Ok(Answer::json(consumer_document(call, &group, &member)))
}

async fn found(call: &mut Call) -> Result<(String, Member), Problem> {
    let group = described(call).await?;
    let id = call.at.param("consumer");
    let missing = || Problem::not_found(format!("group {} has no consumer {id}", group.group));
    let member = group.member(id).ok_or_else(missing)?;
    Ok((group.group.clone(), member.clone()))
}

fn consumer_document(call: &Call, group: &str, member: &Member) -> Value {
    let place = ["consumer-groups", group, "consumers", &member.id];
    json!({
        "kind": "KafkaConsumer",
        "metadata": call.metadata(&place, &format!("consumer-group={group}/consumer={}", member.id)),
        "cluster_id": call.cluster.id(),
        "consumer_group_id": group,
        "consumer_id": member.id,
        "instance_id": member.instance,
        "client_id": member.client,
        "assignments": call.related(&[&place[..], &["assignments"]].concat()),
    })
}

pub async fn assignments(call: &mut Call) -> Result<Answer, Problem> {
    let (group, member) = found(call).await?;
    let rows = member
        .assigned
        .iter()
        .map(|(topic, index)| assignment_document(call, &group, &member.id, topic, *index));
    let rows = rows.collect();
    let place = ["consumer-groups", &group, "consumers", &member.id, "assignments"];
    Ok(call.list("KafkaConsumerAssignmentList", &place, rows))
}

pub async fn assignment(call: &mut Call) -> Result<Answer, Problem> {
    let wanted = (call.at.param("topic").to_owned(), call.at.number("partition")?);
    let (group, member) = found(call).await?;
    if !member.assigned.contains(&wanted) {
        return Err(Problem::not_found(format!("{} does not read {}-{}", member.id, wanted.0, wanted.1)));
    }
    Ok(Answer::json(assignment_document(call, &group, &member.id, &wanted.0, wanted.1)))
}

fn assignment_document(call: &Call, group: &str, consumer: &str, topic: &str, index: i32) -> Value {
    let number = index.to_string();
    let place =
        ["consumer-groups", group, "consumers", consumer, "assignments", topic, "partitions", &number];
    let name = format!("consumer-group={group}/consumer={consumer}/assignment={topic}/partition={number}");
    json!({
        "kind": "KafkaConsumerAssignment",
        "metadata": call.metadata(&place, &name),
        "cluster_id": call.cluster.id(),
        "consumer_group_id": group,
        "consumer_id": consumer,
        "topic_name": topic,
        "partition_id": index,
        "partition": call.related(&["topics", topic, "partitions", &number]),
        "lag": call.related(&["consumer-groups", group, "lags", topic, "partitions", &number]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_written_as_confluent_writes_them() {
        for (kafka, confluent) in [
            ("Stable", "STABLE"),
            ("PreparingRebalance", "PREPARING_REBALANCE"),
            ("CompletingRebalance", "COMPLETING_REBALANCE"),
            ("", "UNKNOWN"),
        ] {
            assert_eq!(state_name(kafka), confluent);
        }
    }
}
