//! One line of a history, taken apart. The shapes stand in README.md; whatever else a line holds is left alone.

use serde_json::Value;

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It is about to begin.
    Invoke,
    /// It took place.
    Ok,
    /// It did not take place and never will.
    Fail,
    /// It may have taken place, or may yet.
    Info,
}

/// A record as a line tells it: `[topic, partition, value, offset, key, tombstone, source]`, what is not known left
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rec {
    pub topic: String,
    pub partition: i32,
    /// `writer << 32 | sequence`; none is a tombstone that was read.
    pub value: Option<u64>,
    pub offset: Option<i64>,
    pub key: Option<String>,
    pub tombstone: bool,
    /// The value that this one was made of.
    pub source: Option<u64>,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Nanoseconds of the one monotonic clock that all clients share.
    pub time: u64,
    pub client: String,
    pub op: String,
    pub phase: Phase,
    /// Which operation of this client; ties an end to its beginning.
    pub id: u64,
    /// The client's transaction that this belongs to.
    pub txn: Option<u64>,
    pub group: Option<String>,
    pub is_committed: bool,
    pub records: Vec<Rec>,
    /// `recs`, `offs`, `parts`, `batches` … of the operations that have no records.
    pub rest: Value,
}

impl Event {
    /// Reads one line.
    ///
    /// # Errors
    /// What is missing, in words: a line that was cut off is no event.
    pub fn parse(line: &str) -> Result<Self, String> {
        let rest: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |name: &str| rest[name].as_str().map(str::to_owned);
        let phase = match rest["ph"].as_str().unwrap_or("ok") {
            "invoke" => Phase::Invoke,
            "ok" => Phase::Ok,
            "fail" => Phase::Fail,
            "info" => Phase::Info,
            other => return Err(format!("no phase is called {other}")),
        };
        let op = text("op").ok_or("no op")?;
        let records = match op.as_str() {
            "send" | "poll" => {
                rest["recs"].as_array().into_iter().flatten().map(record).collect::<Result<_, _>>()?
            }
            _ => Vec::new(),
        };
        Ok(Self {
            time: rest["t"].as_u64().ok_or("no t")?,
            client: text("c").ok_or("no c")?,
            op,
            phase,
            id: rest["id"].as_u64().unwrap_or(0),
            txn: rest["txn"].as_u64(),
            group: text("group"),
            is_committed: rest["iso"].as_str() == Some("rc"),
            records,
            rest: if rest["recs"].is_array() { Value::Null } else { rest },
        })
    }

    /// The rows of an array field, or none.
    pub fn rows(&self, name: &str) -> impl Iterator<Item = &Value> {
        self.rest[name].as_array().into_iter().flatten()
    }
}

fn record(row: &Value) -> Result<Rec, String> {
    Ok(Rec {
        topic: row[0].as_str().ok_or("a record without topic")?.to_owned(),
        partition: partition(&row[1])?,
        value: row[2].as_u64(),
        offset: row[3].as_i64(),
        key: row[4].as_str().map(str::to_owned),
        tombstone: row[5].as_bool().unwrap_or(false),
        source: row[6].as_u64(),
    })
}

/// A partition's number.
///
/// # Errors
/// When it is none.
pub fn partition(value: &Value) -> Result<i32, String> {
    value
        .as_i64()
        .and_then(|number| i32::try_from(number).ok())
        .ok_or_else(|| "a partition that is no number".into())
}
