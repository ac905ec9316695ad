//! Reads the files of `--generate`, `--execute`, `--verify` and `--cancel`, and writes plans.

use super::{ids, name};
use crate::ToolError;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub type Partition = (String, i32);
/// A partition on a broker: in the order in which Kafka's tool prints them.
pub type Replica = (i32, String, i32);

/// Any directory of the broker will do.
const ANY: &str = "any";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order of the file.
    pub partitions: Vec<(Partition, Vec<i32>)>,
    /// The log directory of each replica for which one is named.
    pub log_dirs: BTreeMap<Replica, String>,
}

impl Plan {
    /// # Errors
    /// No JSON, or not of this shape.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let json = parsed(text)?;
        let mut plan = Self::default();
        for entry in list(&json, "partitions") {
            let topic = entry.get("topic").and_then(Value::as_str);
            let number = entry.get("partition").and_then(whole);
            let replicas = entry.get("replicas").and_then(Value::as_array);
            let replicas: Option<Vec<i32>> = replicas.and_then(|list| list.iter().map(whole).collect());
            let (Some(topic), Some(number), Some(replicas)) = (topic, number, replicas) else {
                return Err(failed(&format!("{entry} is no topic, partition and replicas")));
            };
            for (replica, dir) in replicas.iter().zip(dirs(entry, &replicas, topic, number)?) {
                if dir != ANY {
                    plan.log_dirs.insert((*replica, topic.to_owned(), number), dir);
                }
            }
            plan.partitions.push(((topic.to_owned(), number), replicas));
        }
        Ok(plan)
    }

    /// [`Self::parse`] for what is to be executed.
    ///
    /// # Errors
    /// Besides: no partitions, or none of a partition's replicas, or something that is named twice.
    pub fn parse_for_execution(text: &str) -> Result<Self, ToolError> {
        let plan = Self::parse(text)?;
        if plan.partitions.is_empty() {
            return Err(failed("Partition reassignment list cannot be empty"));
        }
        if plan.partitions.iter().any(|(_, replicas)| replicas.is_empty()) {
            return Err(failed("Partition replica list cannot be empty"));
        }
        let twice = duplicates(plan.partitions.iter().map(|(partition, _)| partition));
        if !twice.is_empty() {
            let twice: Vec<String> = twice.into_iter().map(name).collect();
            let twice = twice.join(",");
            return Err(failed(&format!(
                "Partition reassignment contains duplicate topic partitions: {twice}"
            )));
        }
        let of_replicas =
            plan.partitions.iter().map(|(partition, replicas)| (partition, duplicates(replicas)));
        let of_replicas: Vec<String> = of_replicas
            .filter(|(_, twice)| !twice.is_empty())
            .map(|(partition, twice)| {
                format!("{} contains multiple entries for {}", name(partition), ids(twice))
            })
            .collect();
        match &of_replicas[..] {
            [] => Ok(plan),
            words => Err(failed(&format!(
                "Partition replica lists may not contain duplicate entries: {}",
                words.join(". ")
            ))),
        }
    }
}

fn dirs(entry: &Value, replicas: &[i32], topic: &str, number: i32) -> Result<Vec<String>, ToolError> {
    let Some(dirs) = entry.get("log_dirs") else { return Ok(vec![ANY.to_owned(); replicas.len()]) };
    let dirs = dirs.as_array().into_iter().flatten();
    let dirs: Option<Vec<String>> = dirs.map(|dir| dir.as_str().map(str::to_owned)).collect();
    let dirs = dirs.ok_or_else(|| failed(&format!("{entry}: \"log_dirs\" is no list of directories")))?;
    if dirs.len() == replicas.len() {
        return Ok(dirs);
    }
    let replicas: Vec<String> = replicas.iter().map(ToString::to_string).collect();
    Err(failed(&format!(
        "Size of replicas list [{}] is different from size of log dirs list [{}] for partition {topic}-{number}",
        replicas.join(", "),
        dirs.join(", ")
    )))
}

/// The topics of a file for `--generate`.
///
/// # Errors
/// No JSON, not of this shape, or a topic that is named twice.
pub fn topics(text: &str) -> Result<Vec<String>, ToolError> {
    let json = parsed(text)?;
    let topics: Option<Vec<String>> = list(&json, "topics")
        .iter()
        .map(|entry| entry.get("topic").and_then(Value::as_str).map(str::to_owned))
        .collect();
    let topics = topics.ok_or_else(|| failed("a topic has no name"))?;
    let twice = duplicates(&topics);
    if twice.is_empty() {
        return Ok(topics);
    }
    let twice: Vec<&str> = twice.into_iter().map(String::as_str).collect();
    let twice = twice.join(", ");
    Err(failed(&format!("List of topics to reassign contains duplicate entries: [{twice}]")))
}

fn parsed(text: &str) -> Result<Value, ToolError> {
    let json: Value = serde_json::from_str(text)
        .map_err(|error| failed(&format!("The input string is not a valid JSON: {error}")))?;
    match json.get("version") {
        Some(version) if version.as_i64() != Some(1) => {
            Err(failed(&format!("Not supported version field value {version}")))
        }
        _ => Ok(json),
    }
}

fn list<'a>(json: &'a Value, field: &str) -> &'a [Value] {
    json.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn whole(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}

/// What stands more than once.
pub fn duplicates<'a, T: Ord>(all: impl IntoIterator<Item = &'a T>) -> BTreeSet<&'a T> {
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|one| !seen.insert(*one)).collect()
}

/// How Kafka's tool begins the line of a failure.
pub fn failed(why: &str) -> ToolError {
    ToolError::Plain(format!("Error: {why}"))
}

/// A plan as one line for `--reassignment-json-file`, with the fields in Kafka's order.
pub fn line(partitions: &BTreeMap<Partition, Vec<i32>>) -> String {
    let entry = |((topic, number), replicas): (&Partition, &Vec<i32>)| {
        let any = vec![ANY; replicas.len()];
        format!(
            r#"{{"topic":{},"partition":{number},"replicas":{},"log_dirs":{}}}"#,
            json!(topic),
            json!(replicas),
            json!(any)
        )
    };
    let entries: Vec<String> = partitions.iter().map(entry).collect();
    format!(r#"{{"version":1,"partitions":[{}]}}"#, entries.join(","))
}
