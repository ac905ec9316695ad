//! How far a group is behind the ends of the partitions that it has committed offsets for.

use super::groups::described;
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::kafka::groups::Described;
use crate::kafka::{Partition, offsets};
use barnabas_base::ErrorCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One partition of a group.
struct Lag {
    partition: Partition,
    current: i64,
    end: i64,
}

impl Lag {
    fn records(&self) -> i64 {
        (self.end - self.current).max(0)
    }
}

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let group = described(call).await?;
    let lags = lags(call, &group, |_| true).await?;
    let rows = lags.iter().map(|lag| document(call, &group, lag)).collect();
    Ok(call.list("KafkaConsumerLagList", &["consumer-groups", &group.group, "lags"], rows))
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    let wanted = (call.at.param("topic").to_owned(), call.at.number("partition")?);
    let group = described(call).await?;
    let lags = lags(call, &group, |partition| *partition == wanted).await?;
    let missing = || {
        Problem::not_found(format!(
            "group {} has committed nothing for {}-{}",
            group.group, wanted.0, wanted.1
        ))
    };
    let lag = lags.first().ok_or_else(missing)?;
    Ok(Answer::json(document(call, &group, lag)))
}

/// A partition whose end is not known, since its topic is deleted or it has no leader, has no lag: it is left out.
async fn lags(
    call: &mut Call,
    group: &Described,
    is_meant: impl Fn(&Partition) -> bool,
) -> Result<Vec<Lag>, Problem> {
    let mut committed = offsets::committed(&mut call.cluster, &group.group).await?;
    committed.retain(|partition, _| is_meant(partition));
    let partitions: BTreeSet<Partition> = committed.keys().cloned().collect();
    let ends = offsets::list(&mut call.cluster, &partitions, offsets::LATEST).await?;
    let mut lags = Vec::new();
    for (partition, current) in committed {
        match ends.get(&partition) {
            Some(Ok(end)) => lags.push(Lag { partition, current, end: *end }),
            Some(Err(code @ ErrorCode::TopicAuthorizationFailed)) => {
                let what = format!("the end of {}-{}", partition.0, partition.1);
                return Err(Problem::refused(what, code.code(), None));
            }
            Some(Err(_)) | None => {}
        }
    }
    Ok(lags)
}

fn document(call: &Call, group: &Described, lag: &Lag) -> Value {
    let (topic, index) = &lag.partition;
    let number = index.to_string();
    let place = ["consumer-groups", &group.group, "lags", topic, "partitions", &number];
    let name = format!("consumer-group={}/lag={topic}/partition={number}", group.group);
    let reader = group.reader(&lag.partition);
    json!({
        "kind": "KafkaConsumerLag",
        "metadata": call.metadata(&place, &name),
        "cluster_id": call.cluster.id(),
        "consumer_group_id": group.group,
        "topic_name": topic,
        "partition_id": index,
        "current_offset": lag.current,
        "log_end_offset": lag.end,
        "lag": lag.records(),
        "consumer_id": reader.map_or("", |member| &member.id),
        "instance_id": reader.and_then(|member| member.instance.as_deref()),
        "client_id": reader.map_or("", |member| &member.client),
    })
}

pub async fn summary(call: &mut Call) -> Result<Answer, Problem> {
    let group = described(call).await?;
    let lags = lags(call, &group, |_| true).await?;
    let missing = || Problem::not_found(format!("group {} has committed nothing", group.group));
    let most = lags.iter().max_by_key(|lag| lag.records()).ok_or_else(missing)?;
    let (topic, index) = &most.partition;
    let number = index.to_string();
    let reader = group.reader(&most.partition);
    let id = reader.map_or("", |member| &member.id);
    let name = format!("consumer-group={}/lag-summary", group.group);
    Ok(Answer::json(json!({
        "kind": "KafkaConsumerGroupLagSummary",
        "metadata": call.metadata(&["consumer-groups", &group.group, "lag-summary"], &name),
        "cluster_id": call.cluster.id(),
        "consumer_group_id": group.group,
        "max_lag": most.records(),
        "total_lag": lags.iter().map(Lag::records).sum::<i64>(),
        "max_lag_topic_name": topic,
        "max_lag_partition_id": index,
        "max_lag_consumer_id": id,
        "max_lag_instance_id": reader.and_then(|member| member.instance.as_deref()),
        "max_lag_client_id": reader.map_or("", |member| &member.client),
        "max_lag_consumer": reader.map(|_| call.related(&["consumer-groups", &group.group, "consumers", id])),
        "max_lag_partition": call.related(&["topics", topic, "partitions", &number]),
    })))
}
