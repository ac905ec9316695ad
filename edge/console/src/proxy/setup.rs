//! What a consumer is made with: the body of `POST /consumers/{group}`, in Confluent's names and in Strimzi's.

use super::media::Format;
use crate::http::call::Fields;
use crate::http::problem::Problem;
use serde_json::Value;
use std::time::Duration;

const INVALID: u32 = 42_204;
/// Confluent's `consumer.request.timeout.ms`.
const TIMEOUT: Duration = Duration::from_millis(1000);
/// An answer begins within a minute.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(50);
const NAME_BYTES_MAX: usize = 249;
/// Between two looks at the topics' partitions, and for a pattern at all topics.
const REFRESH: Duration = Duration::from_secs(60);
const REFRESH_MIN: Duration = Duration::from_secs(1);

/// Where to begin without a committed offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    Earliest,
    Latest,
    /// That is an error.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    pub name: Option<String>,
    pub format: Format,
    pub reset: Reset,
    pub is_auto_commit: bool,
    /// An answer with records waits for as many, up to its time.
    pub bytes_min: usize,
    pub timeout: Duration,
    pub is_committed: bool,
    pub refresh: Duration,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            name: None,
            format: Format::Binary,
            reset: Reset::Latest,
            is_auto_commit: true,
            bytes_min: 1,
            timeout: TIMEOUT,
            is_committed: false,
            refresh: REFRESH,
        }
    }
}

impl Setup {
    /// # Errors
    /// 42204: a name that is not known, or a value that it does not take. 400: no JSON object.
    pub fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut setup = Self::default();
        if body.is_empty() {
            return Ok(setup);
        }
        for (name, text) in Fields::read(body)?.pairs() {
            let value: Value = serde_json::from_str(text).map_err(|why| Problem::bad(why.to_string()))?;
            if !value.is_null() {
                setup.set(name, &value)?;
            }
        }
        Ok(setup)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), Problem> {
        let wrong = |of: &str| {
            let detail = format!("Invalid value {value} for configuration {name}: it takes {of}");
            Problem::coded(INVALID, detail)
        };
        let word = word(value);
        let word = word.as_str();
        match name {
            "name" => {
                let is_sound = value.is_string() && !word.is_empty() && word.len() <= NAME_BYTES_MAX;
                self.name = Some(word.to_owned()).filter(|_| is_sound);
                self.name.as_ref().ok_or_else(|| wrong("a text of up to 249 bytes"))?;
            }
            "format" => {
                let of = "binary, json, text, avro, jsonschema or protobuf";
                self.format = Format::of_word(word).ok_or_else(|| wrong(of))?;
            }
            "auto.offset.reset" => {
                self.reset = match word.to_ascii_lowercase().as_str() {
                    "earliest" | "smallest" => Reset::Earliest,
                    "latest" | "largest" => Reset::Latest,
                    "none" => Reset::None,
                    _ => return Err(wrong("earliest, latest or none")),
                }
            }
            "auto.commit.enable" | "enable.auto.commit" => {
                self.is_auto_commit = word.parse().map_err(|_| wrong("true or false"))?;
            }
            "fetch.min.bytes" => {
                let bytes: i64 =
                    word.parse().ok().filter(|bytes| *bytes >= -1).ok_or_else(|| wrong("-1 or more"))?;
                self.bytes_min = usize::try_from(bytes).unwrap_or(1).max(1);
            }
            "consumer.request.timeout.ms" => {
                self.timeout = Duration::from_millis(word.parse().map_err(|_| wrong("milliseconds"))?);
            }
            "isolation.level" => {
                self.is_committed = match word {
                    "read_committed" => true,
                    "read_uncommitted" => false,
                    _ => return Err(wrong("read_committed or read_uncommitted")),
                }
            }
            "topic.metadata.refresh.interval.ms" => {
                let refresh = Duration::from_millis(word.parse().map_err(|_| wrong("milliseconds"))?);
                self.refresh = refresh.max(REFRESH_MIN);
            }
            _ => {
                let detail = format!("Unknown configuration {} of a consumer", name.escape_debug());
                return Err(Problem::coded(INVALID, detail));
            }
        }
        Ok(())
    }
}

/// A text, a number or a truth value, as its text.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_references_are_read() {
        let read = |text: &str| Setup::read(text.as_bytes()).expect(text);
        assert_eq!(read(""), Setup::default());
        assert_eq!(read("{}"), Setup::default());
        let confluent = read(
            r#"{"name":"a","format":"json","auto.offset.reset":"earliest","auto.commit.enable":"false",
                "fetch.min.bytes":"512","consumer.request.timeout.ms":"30000"}"#,
        );
        let strimzi = read(
            r#"{"name":"a","format":"json","auto.offset.reset":"earliest","enable.auto.commit":false,
                "fetch.min.bytes":512,"consumer.request.timeout.ms":30000}"#,
        );
        assert_eq!(confluent, strimzi);
        assert_eq!((confluent.bytes_min, confluent.is_auto_commit), (512, false));
        assert!(read(r#"{"isolation.level":"read_committed"}"#).is_committed);
        let often = read(r#"{"topic.metadata.refresh.interval.ms":100,"fetch.min.bytes":-1}"#);
        assert_eq!((often.refresh, often.bytes_min), (REFRESH_MIN, 1));
    }

    #[test]
    fn wrong_values_are_42204() {
        for text in [
            r#"{"format":"xml"}"#,
            r#"{"fetch.min.bytes":-10}"#,
            r#"{"auto.offset.reset":"foo"}"#,
            r#"{"enable.auto.commit":"foo"}"#,
            r#"{"isolation.level":"foo"}"#,
            r#"{"consumer.request.timeout.ms":true}"#,
            r#"{"name":""}"#,
            r#"{"foo":"bar"}"#,
        ] {
            assert_eq!(Setup::read(text.as_bytes()).expect_err(text).confluent_code(), INVALID, "{text}");
        }
        assert_eq!(Setup::read(b"[]").expect_err("a list").status, 400);
    }
}
