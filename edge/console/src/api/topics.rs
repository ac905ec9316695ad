//! Topics with their sizes; one topic with its partitions and configurations.

use super::overview::is_under_replicated;
use super::{REFUSED, Refused, listing};
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, List, Object, OrNull, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Shape, TEXT_OR_NULL};
use crate::kafka::configs::{self, Resource};
use crate::kafka::log_dirs::{self, Sizes};
use crate::kafka::{Partition, metadata, offsets};
use barnabas_wire::messages::describe_configs_response::DescribeConfigsResourceResult as Config;
use barnabas_wire::messages::metadata_response::MetadataResponseTopic;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const FIELDS: &[&str] =
    &["name", "is_internal", "partitions", "replication_factor", "under_replicated", "offline", "bytes"];
const LISTED: Shape = Object(&[
    ("name", Text),
    ("is_internal", Bool),
    ("partitions", Int),
    ("replication_factor", Int),
    ("under_replicated", Int),
    ("offline", Int),
    ("bytes", INT_OR_NULL),
]);
pub const LIST: Doc = Doc::get(
    "Topics with their sizes",
    listing::QUERY,
    Object(&[("data", List(&LISTED)), ("total", Int), ("next", TEXT_OR_NULL), ("refused", REFUSED)]),
);

const PARTITION: Shape = Object(&[
    ("partition", Int),
    ("leader", INT_OR_NULL),
    ("leader_epoch", Int),
    ("replicas", List(&Int)),
    ("isr", List(&Int)),
    ("offline", List(&Int)),
    ("start_offset", INT_OR_NULL),
    ("end_offset", INT_OR_NULL),
    ("error", TEXT_OR_NULL),
    ("bytes", INT_OR_NULL),
]);
pub const CONFIG: Shape = Object(&[
    ("name", Text),
    ("value", TEXT_OR_NULL),
    ("source", Text),
    ("is_sensitive", Bool),
    ("is_read_only", Bool),
]);
pub const GET: Doc = Doc::get(
    "A topic: its partitions and configs",
    &[],
    Object(&[
        ("name", Text),
        ("id", Text),
        ("is_internal", Bool),
        ("partitions", List(&PARTITION)),
        ("configs", OrNull(&List(&CONFIG))),
        ("refused", REFUSED),
    ]),
);

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let mut refused = Refused::default();
    let topics = metadata::topics(&mut call.cluster).await?;
    let sizes = refused.part("bytes", log_dirs::describe(&mut call.cluster, None).await)?;
    let mut bytes: BTreeMap<&str, i64> = BTreeMap::new();
    for ((topic, _), size) in sizes.iter().flat_map(|sizes| &sizes.partitions) {
        *bytes.entry(topic).or_default() += size;
    }
    let row = |topic: &MetadataResponseTopic| {
        let name = topic.name.as_deref().unwrap_or_default();
        json!({
            "name": name,
            "is_internal": topic.is_internal,
            "partitions": topic.partitions.len(),
            "replication_factor": topic.partitions.first().map_or(0, |row| row.replica_nodes.len()),
            "under_replicated": topic.partitions.iter().filter(|row| is_under_replicated(row)).count(),
            "offline": topic.partitions.iter().filter(|row| row.leader_id < 0).count(),
            "bytes": sizes.as_ref().map(|_| bytes.get(name).copied().unwrap_or(0)),
        })
    };
    let rows: Vec<Value> = topics.iter().map(row).collect();
    let page = listing::listed(&call.at, rows, "name", FIELDS)?;
    Ok(Answer::json(
        json!({ "data": page.data, "total": page.total, "next": page.next, "refused": refused.0 }),
    ))
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    let mut refused = Refused::default();
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic_each(&mut call.cluster, &name).await?;
    let all: BTreeSet<Partition> =
        topic.partitions.iter().map(|row| (name.clone(), row.partition_index)).collect();
    let starts = offsets::list(&mut call.cluster, &all, offsets::EARLIEST).await?;
    let ends = offsets::list(&mut call.cluster, &all, offsets::LATEST).await?;
    let indexes = topic.partitions.iter().map(|row| row.partition_index).collect();
    let sizes = log_dirs::describe(&mut call.cluster, Some((&name, indexes))).await;
    let sizes = refused.part("bytes", sizes)?;
    let described = configs::describe(&mut call.cluster, &[Resource::Topic(name.clone())]).await;
    let configs = refused.part("configs", described)?.map(|mut all| all.remove(0));
    Ok(Answer::json(json!({
        "name": name,
        "id": topic.topic_id.to_string(),
        "is_internal": topic.is_internal,
        "partitions": partitions(&name, &topic, (&starts, &ends), sizes.as_ref()),
        "configs": configs.map(|configs| configs.iter().map(config).collect::<Vec<_>>()),
        "refused": refused.0,
    })))
}

type Offsets = BTreeMap<Partition, Result<i64, barnabas_base::ErrorCode>>;

fn partitions(
    name: &str,
    topic: &MetadataResponseTopic,
    (starts, ends): (&Offsets, &Offsets),
    sizes: Option<&Sizes>,
) -> Vec<Value> {
    let row = |row: &barnabas_wire::messages::metadata_response::MetadataResponsePartition| {
        let of = (name.to_owned(), row.partition_index);
        let offset = |offsets: &Offsets| offsets.get(&of).copied().and_then(Result::ok);
        let error = [starts, ends].into_iter().find_map(|offsets| offsets.get(&of)?.err());
        json!({
            "partition": row.partition_index,
            "leader": (row.leader_id >= 0).then_some(row.leader_id),
            "leader_epoch": row.leader_epoch,
            "replicas": row.replica_nodes,
            "isr": row.isr_nodes,
            "offline": row.offline_replicas,
            "start_offset": offset(starts),
            "end_offset": offset(ends),
            "error": error.map(|code| code.name()),
            "bytes": sizes.and_then(|sizes| sizes.partitions.get(&of)),
        })
    };
    topic.partitions.iter().map(row).collect()
}

fn config(config: &Config) -> Value {
    json!({
        "name": &*config.name,
        "value": config.value.as_deref(),
        "source": configs::source(config.config_source),
        "is_sensitive": config.is_sensitive,
        "is_read_only": config.read_only,
    })
}
