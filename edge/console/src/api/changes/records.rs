//! Records deleted: those before an offset of a partition, or all.

use super::{command, doc, is_dry_run};
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, List, Map, Object, Text};
use crate::http::shape::{Doc, Shape};
use crate::kafka::records::delete as delete_records;
use crate::kafka::{Partition, metadata, offsets, rights};
use barnabas_base::ErrorCode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const DELETED: Shape =
    Object(&[("partition", Int), ("before", Int), ("after", Int), ("end", Int), ("records", Int)]);
pub const DELETE: Doc = doc(
    "Delete the records before an offset of each partition, or with all=true all records",
    Some(Object(&[("offsets?", Map(&Int)), ("all?", Bool)])),
    Object(&[("dry_run", Bool), ("command", Text), ("partitions", List(&DELETED)), ("records", Int)]),
);

pub async fn delete(call: &mut Call) -> Result<Answer, Problem> {
    let is_dry = is_dry_run(call)?;
    let name = call.at.param("topic").to_owned();
    let wanted = wanted(call)?;
    let topic = metadata::topic(&mut call.cluster, &name).await?;
    rights::check_topic(&mut call.cluster, &name, rights::DELETE).await?;
    let all = || topic.partitions.iter().map(|row| (row.partition_index, None)).collect();
    let wanted: BTreeMap<i32, Option<i64>> = wanted.unwrap_or_else(all);
    let named: BTreeSet<Partition> = wanted.keys().map(|index| (name.clone(), *index)).collect();
    let starts = offsets::list(&mut call.cluster, &named, offsets::EARLIEST).await?;
    let ends = offsets::list(&mut call.cluster, &named, offsets::LATEST).await?;
    let mut plan = Vec::new();
    for (of, offset) in named.iter().zip(wanted.values()) {
        let known = |offsets: &BTreeMap<Partition, Result<i64, ErrorCode>>| {
            let found = offsets.get(of).copied().unwrap_or(Err(ErrorCode::UnknownTopicOrPartition));
            found.map_err(|code| Problem::refused(format!("{name}-{}", of.1), code.code(), None))
        };
        plan.push(planned(of, (known(&starts)?, known(&ends)?), *offset)?);
    }
    if !is_dry {
        for row in &mut plan {
            row.after = delete_records::delete(&mut call.cluster, (&name, row.partition), row.after).await?;
        }
    }
    let given: Vec<Value> = plan
        .iter()
        .map(|row| json!({ "topic": name, "partition": row.partition, "offset": row.after }))
        .collect();
    let mut line = command::begin(&call.cluster, "delete-records");
    line.file("--offset-json-file", &json!({ "partitions": given, "version": 1 }).to_string());
    let row = |row: &Planned| {
        json!({
            "partition": row.partition,
            "before": row.before,
            "after": row.after,
            "end": row.end,
            "records": row.records(),
        })
    };
    Ok(Answer::json(json!({
        "dry_run": is_dry,
        "command": line.text(),
        "partitions": plan.iter().map(row).collect::<Vec<_>>(),
        "records": plan.iter().map(Planned::records).sum::<i64>(),
    })))
}

/// The first offset of a partition before and after.
#[derive(Debug, PartialEq, Eq)]
struct Planned {
    partition: i32,
    before: i64,
    after: i64,
    end: i64,
}

impl Planned {
    /// Offsets, which gaps may make more than records.
    fn records(&self) -> i64 {
        self.after - self.before
    }
}

/// As the broker judges it: an offset below the start deletes nothing, one above the end is refused.
fn planned(of: &Partition, (start, end): (i64, i64), offset: Option<i64>) -> Result<Planned, Problem> {
    let after = offset.unwrap_or(end);
    if after > end {
        let words = format!("offset {after} is beyond the end {end}");
        let what = format!("{}-{}", of.0, of.1);
        return Err(Problem::refused(what, ErrorCode::OffsetOutOfRange.code(), Some(&words)));
    }
    Ok(Planned { partition: of.1, before: start, after: after.max(start), end })
}

/// The offsets that the body names; `None`: everything.
fn wanted(call: &Call) -> Result<Option<BTreeMap<i32, Option<i64>>>, Problem> {
    let fields = call.fields()?;
    let named = fields.map("offsets", "offsets by partition, such as {\"0\": 42}", Value::as_i64)?;
    let mut offsets = BTreeMap::new();
    for (partition, offset) in named {
        let wrong = || {
            Problem::bad(format!(
                "offsets takes a partition and an offset, not {}: {offset}",
                partition.escape_debug()
            ))
        };
        let index = partition.parse().ok().filter(|index: &i32| *index >= 0 && offset >= 0);
        offsets.insert(index.ok_or_else(wrong)?, Some(offset));
    }
    match (offsets.is_empty(), fields.is_true("all")?) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some(offsets)),
        _ => Err(Problem::bad(
            "expected either offsets, such as {\"offsets\": {\"0\": 42}}, or {\"all\": true}",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletion_is_planned_as_the_broker_judges_it() {
        let of = ("t".to_owned(), 3);
        let after = |offset: Option<i64>| planned(&of, (5, 9), offset).map(|row| (row.after, row.records()));
        assert_eq!(after(None), Ok((9, 4)));
        assert_eq!(after(Some(7)), Ok((7, 2)));
        assert_eq!(after(Some(2)), Ok((5, 0)));
        assert_eq!(after(Some(10)).expect_err("beyond").kafka, Some(ErrorCode::OffsetOutOfRange));
    }
}
