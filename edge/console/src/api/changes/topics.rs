//! Topics made and deleted.

use super::{command, doc, is_dry_run};
use crate::api::{REFUSED, Refused};
use crate::http::call::{Answer, Call, Fields};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, Map, Object, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Shape};
use crate::kafka::{Partition, log_dirs, metadata, offsets, rights};
use barnabas_client::Admin;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

const NEW: Shape =
    Object(&[("name", Text), ("partitions?", Int), ("replication_factor?", Int), ("configs?", Map(&Text))]);
pub const CREATE: Doc = doc(
    "Make a topic",
    Some(NEW),
    Object(&[
        ("dry_run", Bool),
        ("command", Text),
        ("name", Text),
        ("partitions", INT_OR_NULL),
        ("replication_factor", INT_OR_NULL),
    ]),
);
pub const DELETE: Doc = doc(
    "Delete a topic with its records",
    None,
    Object(&[
        ("dry_run", Bool),
        ("command", Text),
        ("name", Text),
        ("partitions", Int),
        ("records", INT_OR_NULL),
        ("bytes", INT_OR_NULL),
        ("refused", REFUSED),
    ]),
);

pub async fn create(call: &mut Call) -> Result<Answer, Problem> {
    let is_dry = is_dry_run(call)?;
    let topic = new_topic(&call.fields()?)?;
    let mut line = command::begin(&call.cluster, "topics");
    line.word("--create").flag("--topic", &topic.name);
    if topic.num_partitions >= 0 {
        line.flag("--partitions", &topic.num_partitions.to_string());
    }
    if topic.replication_factor >= 0 {
        line.flag("--replication-factor", &topic.replication_factor.to_string());
    }
    for config in &topic.configs {
        line.flag("--config", &format!("{}={}", &*config.name, config.value.as_deref().unwrap_or_default()));
    }
    let name = topic.name.to_string();
    let (partitions, replicas) = metadata::create_topic(&mut call.cluster, topic, is_dry).await?;
    // −1: an old broker does not say.
    let known = |count: i32| (count >= 0).then_some(count);
    Ok(Answer::json(json!({
        "dry_run": is_dry,
        "command": line.text(),
        "name": name,
        "partitions": known(partitions),
        "replication_factor": known(i32::from(replicas)),
    })))
}

fn new_topic(fields: &Fields) -> Result<CreatableTopic, Problem> {
    let config = |(name, value): (String, String)| CreatableTopicConfig {
        name: name.as_str().into(),
        value: Some(value.as_str().into()),
        ..Default::default()
    };
    Ok(CreatableTopic {
        name: fields.needed_text("name")?.as_str().into(),
        num_partitions: fields.number("partitions")?.unwrap_or(-1),
        replication_factor: fields.number("replication_factor")?.unwrap_or(-1),
        configs: fields
            .map("configs", "texts", |value| value.as_str().map(str::to_owned))?
            .into_iter()
            .map(config)
            .collect(),
        ..Default::default()
    })
}

pub async fn delete(call: &mut Call) -> Result<Answer, Problem> {
    let is_dry = is_dry_run(call)?;
    let name = call.at.param("topic").to_owned();
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    rights::check_topic(&mut call.cluster, &name, rights::DELETE).await?;
    let indexes: Vec<i32> = topic.partitions.iter().map(|row| row.partition_index).collect();
    let all: BTreeSet<Partition> = indexes.iter().map(|index| (name.clone(), *index)).collect();
    let starts = offsets::list(&mut call.cluster, &all, offsets::EARLIEST).await?;
    let ends = offsets::list(&mut call.cluster, &all, offsets::LATEST).await?;
    let mut refused = Refused::default();
    let sizes = log_dirs::describe(&mut call.cluster, Some((&name, indexes))).await;
    let sizes = refused.part("bytes", sizes)?;
    if !is_dry {
        Admin::new(&mut call.cluster).delete_topic(&name).await?;
    }
    let mut line = command::begin(&call.cluster, "topics");
    line.word("--delete").flag("--topic", &name);
    Ok(Answer::json(json!({
        "dry_run": is_dry,
        "command": line.text(),
        "name": name,
        "partitions": all.len(),
        "records": counted(&starts, &ends),
        "bytes": sizes.map(|sizes| sizes.partitions.values().sum::<i64>()),
        "refused": refused.0,
    })))
}

type Offsets = BTreeMap<Partition, Result<i64, barnabas_base::ErrorCode>>;

/// Offsets between starts and ends; `None`: those of a partition are not known.
fn counted(starts: &Offsets, ends: &Offsets) -> Option<i64> {
    let of = |(partition, end): (&Partition, &Result<i64, _>)| Some(end.ok()? - starts.get(partition)?.ok()?);
    ends.iter().map(of).sum()
}
