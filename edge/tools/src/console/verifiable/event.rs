//! One event of a verifiable tool: a JSON object on one line, `timestamp` and `name` first.
//!
//! The order of the other fields is that of the source. Kafka's tools print them in the order in which Java's
//! reflection lists them, which differs from run to run.

use crate::{ToolError, now_ms, say};
use serde_json::Value;

/// A JSON object that is being written, its fields in the order in which they were added.
#[derive(Debug, Default)]
pub struct Object {
    fields: String,
}

impl Object {
    pub fn field(self, name: &str, value: impl Into<Value>) -> Self {
        let value: Value = value.into();
        self.written(name, &value.to_string())
    }

    /// A list of objects.
    pub fn list(self, name: &str, items: impl IntoIterator<Item = Object>) -> Self {
        let items: Vec<String> = items.into_iter().map(|item| item.text()).collect();
        self.written(name, &format!("[{}]", items.join(",")))
    }

    fn written(mut self, name: &str, value: &str) -> Self {
        let comma = if self.fields.is_empty() { "" } else { "," };
        self.fields.push_str(&format!("{comma}{}:{value}", Value::from(name)));
        self
    }

    pub fn text(&self) -> String {
        format!("{{{}}}", self.fields)
    }

    /// # Errors
    /// Standard output takes no more.
    pub fn print(&self) -> Result<(), ToolError> {
        say(&self.text())
    }
}

/// An event that happens now.
pub fn event(name: &str) -> Object {
    event_at(now_ms(), name)
}

pub fn event_at(timestamp_ms: i64, name: &str) -> Object {
    Object::default().field("timestamp", timestamp_ms).field("name", name)
}

/// A partition, as a field of events.
pub fn partition(topic: &str, index: i32) -> Object {
    Object::default().field("topic", topic).field("partition", index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_in_the_order_in_which_they_were_added() {
        let key: Option<&str> = None;
        let line =
            event_at(7, "x").field("key", key).list("at", [partition("t", 1), partition("\"", 2)]).text();
        assert_eq!(
            line,
            r#"{"timestamp":7,"name":"x","key":null,"at":[{"topic":"t","partition":1},{"topic":"\"","partition":2}]}"#
        );
    }
}
