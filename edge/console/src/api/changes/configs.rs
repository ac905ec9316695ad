//! Configs of a topic: set, or reset to what holds without them.

use super::{command, doc, is_dry_run};
use crate::http::call::{Answer, Call};
use crate::http::problem::Problem;
use crate::http::shape::Shape::{Bool, List, Map, Object, Text};
use crate::http::shape::{Doc, Shape, TEXT_OR_NULL};
use crate::kafka::configs::{self, Change, Operation, Resource};
use serde_json::{Value, json};

const CHANGED: Shape =
    Object(&[("name", Text), ("before", TEXT_OR_NULL), ("source", TEXT_OR_NULL), ("after", TEXT_OR_NULL)]);
pub const ALTER: Doc = doc(
    "Set configs of a topic; null resets one",
    Some(Object(&[("configs", Map(&TEXT_OR_NULL))])),
    Object(&[("dry_run", Bool), ("command", Text), ("changes", List(&CHANGED))]),
);

pub async fn alter(call: &mut Call) -> Result<Answer, Problem> {
    let is_dry = is_dry_run(call)?;
    let wanted = call.fields()?.map("configs", "texts or null", text_or_null)?;
    if wanted.is_empty() {
        return Err(Problem::bad("configs is missing, or empty"));
    }
    let name = call.at.param("topic").to_owned();
    let resource = Resource::Topic(name.clone());
    let known = configs::describe(&mut call.cluster, std::slice::from_ref(&resource)).await?;
    let changes: Vec<Change> = wanted
        .iter()
        .map(|(name, value)| Change {
            name: name.clone(),
            operation: if value.is_some() { Operation::Set } else { Operation::Delete },
            value: value.clone(),
        })
        .collect();
    configs::alter(&mut call.cluster, &resource, &changes, is_dry).await?;
    let row = |(name, after): (&String, &Option<String>)| {
        let before = known.iter().flatten().find(|config| *config.name == **name);
        json!({
            "name": name,
            "before": before.and_then(|config| config.value.as_deref()),
            "source": before.map(|config| configs::source(config.config_source)),
            "after": after,
        })
    };
    let rows: Vec<Value> = wanted.iter().map(row).collect();
    let mut line = command::begin(&call.cluster, "configs");
    line.word("--alter").flag("--entity-type", "topics").flag("--entity-name", &name);
    let set: Vec<String> =
        wanted.iter().filter_map(|(name, value)| Some(pair(name, value.as_deref()?))).collect();
    if !set.is_empty() {
        line.flag("--add-config", &set.join(","));
    }
    let reset: Vec<&str> =
        wanted.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str()).collect();
    if !reset.is_empty() {
        line.flag("--delete-config", &reset.join(","));
    }
    Ok(Answer::json(json!({ "dry_run": is_dry, "command": line.text(), "changes": rows })))
}

fn text_or_null(value: &Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone())),
        _ => None,
    }
}

/// As `kafka-configs` takes it: a value with commas in brackets.
fn pair(name: &str, value: &str) -> String {
    if value.contains(',') { format!("{name}=[{value}]") } else { format!("{name}={value}") }
}
