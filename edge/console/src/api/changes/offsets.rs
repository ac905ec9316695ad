//! What a group has committed, reset: to the first or end offsets, to an offset, a time, or so many further.
//!
//! As `kafka-consumer-groups --reset-offsets`: the group has no members meanwhile. An offset outside of a partition
//! becomes the nearer end of it.

use super::{command, doc, is_dry_run};
use crate::http::call::{Answer, Call, Fields};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, Int, List, Object, OneOf, Text};
use crate::http::shape::{Doc, INT_OR_NULL, Shape};
use crate::kafka::groups::{self, Described};
use crate::kafka::{Partition, metadata, offsets, rights};
use crate::v3::timestamps;
use barnabas_base::ErrorCode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const RESET_TO: Shape = Object(&[
    ("to", OneOf(&["earliest", "latest", "offset", "time", "shift"])),
    ("value?", Int),
    ("topic?", Text),
    ("partition?", Int),
]);
const RESET_ROW: Shape =
    Object(&[("topic", Text), ("partition", Int), ("before", INT_OR_NULL), ("after", Int)]);
pub const RESET: Doc = doc(
    "Reset the offsets that a group has committed, of one topic or of all that it has offsets for",
    Some(RESET_TO),
    Object(&[("dry_run", Bool), ("command", Text), ("partitions", List(&RESET_ROW))]),
);

/// Where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Earliest,
    Latest,
    Offset(i64),
    /// Milliseconds since 1970.
    Time(i64),
    Shift(i64),
}

impl Target {
    fn read(fields: &Fields) -> Result<Self, Problem> {
        let value = || {
            let value = fields.number::<i64>("value")?;
            value.ok_or_else(|| Problem::bad("value is missing"))
        };
        match fields.needed_text("to")?.as_str() {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            "offset" => value().map(Self::Offset),
            "time" => value().map(Self::Time),
            "shift" => value().map(Self::Shift),
            other => Err(Problem::bad(format!(
                "to takes earliest, latest, offset, time or shift, not '{}'",
                other.escape_debug()
            ))),
        }
    }

    /// The new offset of a partition between `start` and `end`, whose record at the wanted time is at `at_time`.
    fn offset(
        self,
        (start, end): (i64, i64),
        at_time: Option<i64>,
        current: Option<i64>,
    ) -> Result<i64, &'static str> {
        let wanted = match self {
            Self::Earliest => start,
            Self::Latest => end,
            Self::Offset(offset) => offset,
            Self::Time(_) => at_time.unwrap_or(end),
            Self::Shift(by) => {
                current.ok_or("nothing is committed that could be shifted")?.saturating_add(by)
            }
        };
        Ok(wanted.clamp(start, end.max(start)))
    }
}

pub async fn reset(call: &mut Call) -> Result<Answer, Problem> {
    let is_dry = is_dry_run(call)?;
    let fields = call.fields()?;
    let target = Target::read(&fields)?;
    let name = call.at.param("group").to_owned();
    check_idle(&groups::describe(&mut call.cluster, &name).await?)?;
    let committed = offsets::committed(&mut call.cluster, &name).await?;
    let (topic, partition) = (fields.text("topic")?, fields.number::<i32>("partition")?);
    let wanted = wanted(call, &committed, (topic.as_deref(), partition)).await?;
    for topic in wanted.iter().map(|of| of.0.as_str()).collect::<BTreeSet<_>>() {
        rights::check_topic(&mut call.cluster, topic, rights::READ).await?;
    }
    let plan = plan(call, &wanted, &committed, target).await?;
    if !is_dry {
        call.cluster.commit_offsets(&name, &plan).await?;
    }
    let mut line = command::begin(&call.cluster, "consumer-groups");
    line.flag("--group", &name).word("--reset-offsets");
    match target {
        Target::Earliest => line.word("--to-earliest"),
        Target::Latest => line.word("--to-latest"),
        Target::Offset(offset) => line.flag("--to-offset", &offset.to_string()),
        Target::Time(ms) => line.flag("--to-datetime", &timestamps::write(ms)),
        Target::Shift(by) => line.flag("--shift-by", &by.to_string()),
    };
    match (&topic, partition) {
        (Some(topic), Some(partition)) => line.flag("--topic", &format!("{topic}:{partition}")),
        (Some(topic), None) => line.flag("--topic", topic),
        (None, _) => line.word("--all-topics"),
    };
    line.word("--execute");
    let row = |(of, after): (&Partition, &i64)| json!({ "topic": of.0, "partition": of.1, "before": committed.get(of), "after": after });
    let rows: Vec<Value> = plan.iter().map(row).collect();
    Ok(Answer::json(json!({ "dry_run": is_dry, "command": line.text(), "partitions": rows })))
}

/// The coordinator refuses too, with a code that says less.
fn check_idle(group: &Described) -> Result<(), Problem> {
    if group.members.is_empty() {
        return Ok(());
    }
    let words = format!("it has {} members: stop them first", group.members.len());
    let what = format!("group {}", group.group);
    Err(Problem::refused(what, ErrorCode::NonEmptyGroup.code(), Some(&words)))
}

/// One partition, all of a topic, or all for which something is committed.
async fn wanted(
    call: &mut Call,
    committed: &BTreeMap<Partition, i64>,
    named: (Option<&str>, Option<i32>),
) -> Result<BTreeSet<Partition>, Problem> {
    match named {
        (None, Some(_)) => Err(Problem::bad("partition needs a topic")),
        (None, None) if committed.is_empty() => {
            Err(Problem::bad("the group has committed nothing: name a topic"))
        }
        (None, None) => Ok(committed.keys().cloned().collect()),
        (Some(topic), Some(partition)) => {
            metadata::partition(&mut call.cluster, topic, partition).await?;
            Ok(BTreeSet::from([(topic.to_owned(), partition)]))
        }
        (Some(topic), None) => {
            let known = metadata::topic(&mut call.cluster, topic).await?;
            Ok(known.partitions.iter().map(|row| (topic.to_owned(), row.partition_index)).collect())
        }
    }
}

async fn plan(
    call: &mut Call,
    wanted: &BTreeSet<Partition>,
    committed: &BTreeMap<Partition, i64>,
    target: Target,
) -> Result<BTreeMap<Partition, i64>, Problem> {
    let starts = offsets::list(&mut call.cluster, wanted, offsets::EARLIEST).await?;
    let ends = offsets::list(&mut call.cluster, wanted, offsets::LATEST).await?;
    let times = match target {
        Target::Time(ms) => offsets::list(&mut call.cluster, wanted, ms).await?,
        _ => BTreeMap::new(),
    };
    let mut plan = BTreeMap::new();
    for of in wanted {
        let what = format!("{}-{}", of.0, of.1);
        let known = |offsets: &BTreeMap<Partition, Result<i64, ErrorCode>>| {
            let found = offsets.get(of).copied().unwrap_or(Err(ErrorCode::UnknownTopicOrPartition));
            found.map_err(|code| Problem::refused(what.clone(), code.code(), None))
        };
        let at_time = if times.is_empty() { None } else { Some(known(&times)?).filter(|at| *at >= 0) };
        let offset = target.offset((known(&starts)?, known(&ends)?), at_time, committed.get(of).copied());
        plan.insert(of.clone(), offset.map_err(|why| Problem::bad(format!("{what}: {why}")))?);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_offset_is_within_the_partition() {
        let offset = |target: Target| target.offset((10, 90), Some(40), Some(50));
        for (target, expected) in [
            (Target::Earliest, 10),
            (Target::Latest, 90),
            (Target::Offset(60), 60),
            (Target::Offset(5), 10),
            (Target::Offset(95), 90),
            (Target::Time(0), 40),
            (Target::Shift(-20), 30),
            (Target::Shift(i64::MIN), 10),
            (Target::Shift(i64::MAX), 90),
        ] {
            assert_eq!(offset(target), Ok(expected), "{target:?}");
        }
        assert_eq!(Target::Time(0).offset((10, 90), None, None), Ok(90));
        assert!(Target::Shift(1).offset((10, 90), None, None).is_err());
    }

    #[test]
    fn target_names_its_value() {
        let read = |text: &str| Target::read(&Fields::read(text.as_bytes()).expect("an object"));
        assert_eq!(read(r#"{"to":"shift","value":-3}"#).expect("sound"), Target::Shift(-3));
        assert_eq!(read(r#"{"to":"latest"}"#).expect("sound"), Target::Latest);
        for bad in ["{}", r#"{"to":"offset"}"#, r#"{"to":"now"}"#, r#"{"to":"time","value":"x"}"#] {
            assert_eq!(read(bad).expect_err(bad).status, 400);
        }
    }
}
