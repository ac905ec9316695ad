//! Groups of every kind by name; a consumer group with its members and its lag.

use super::listing;
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Int, List, Object, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Shape, TEXT_OR_NULL};
use crate::kafka::groups::{self, Described, Member};
use crate::kafka::{Partition, offsets};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const LISTED: Shape = Object(&[("id", Text), ("type", Text), ("protocol", Text), ("state", Text)]);
pub const LIST: Doc = Doc::get(
    "Groups of every kind",
    listing::QUERY,
    Object(&[("data", List(&LISTED)), ("total", Int), ("next", TEXT_OR_NULL)]),
);

const MEMBER: Shape = Object(&[
    ("id", Text),
    ("instance", TEXT_OR_NULL),
    ("client", Text),
    ("host", Text),
    ("partitions", Int),
]);
const PARTITION: Shape = Object(&[
    ("topic", Text),
    ("partition", Int),
    ("current_offset", INT_OR_NULL),
    ("end_offset", INT_OR_NULL),
    ("error", TEXT_OR_NULL),
    ("lag", INT_OR_NULL),
    ("member", TEXT_OR_NULL),
]);
pub const GET: Doc = Doc::get(
    "A consumer group: its members and its lag",
    &[],
    Object(&[
        ("id", Text),
        ("type", Text),
        ("state", Text),
        ("assignor", Text),
        ("coordinator", Int),
        ("members", List(&MEMBER)),
        ("partitions", List(&PARTITION)),
        ("total_lag", Int),
    ]),
);

pub async fn list(call: &mut Call) -> Result<Answer, Problem> {
    let groups = groups::list(&mut call.cluster).await?;
    let row = |group: &barnabas_wire::messages::list_groups_response::ListedGroup| {
        json!({
            "id": &*group.group_id,
            "type": &*group.group_type,
            "protocol": &*group.protocol_type,
            "state": &*group.group_state,
        })
    };
    let rows = groups.iter().map(row).collect();
    let page = listing::listed(&call.at, rows, "id", &["id", "type", "protocol", "state"])?;
    Ok(Answer::json(json!({ "data": page.data, "total": page.total, "next": page.next })))
}

pub async fn get(call: &mut Call) -> Result<Answer, Problem> {
    let name = call.at.param("group").to_owned();
    let group = groups::describe(&mut call.cluster, &name).await?;
    let committed = offsets::committed(&mut call.cluster, &name).await?;
    // What is read and not committed yet is shown too.
    let mut all: BTreeSet<Partition> = committed.keys().cloned().collect();
    all.extend(group.members.iter().flat_map(|member| member.assigned.iter().cloned()));
    let ends = offsets::list(&mut call.cluster, &all, offsets::LATEST).await?;
    let row = |partition: &Partition| {
        let current = committed.get(partition).copied();
        let end = ends.get(partition).copied();
        let lag = current.zip(end.and_then(Result::ok)).map(|(current, end)| (end - current).max(0));
        json!({
            "topic": partition.0,
            "partition": partition.1,
            "current_offset": current,
            "end_offset": end.and_then(Result::ok),
            "error": end.and_then(Result::err).map(|code| code.name()),
            "lag": lag,
            "member": group.reader(partition).map(|member| member.id.as_str()),
        })
    };
    let rows: Vec<Value> = all.iter().map(row).collect();
    let total: i64 = rows.iter().filter_map(|row| row["lag"].as_i64()).sum();
    Ok(Answer::json(document(&group, rows, total)))
}

fn document(group: &Described, rows: Vec<Value>, total: i64) -> Value {
    let member = |member: &Member| {
        json!({
            "id": member.id,
            "instance": member.instance,
            "client": member.client,
            "host": member.host,
            "partitions": member.assigned.len(),
        })
    };
    json!({
        "id": group.group,
        "type": group.kind,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator.get(),
        "members": group.members.iter().map(member).collect::<Vec<_>>(),
        "partitions": rows,
        "total_lag": total,
    })
}
