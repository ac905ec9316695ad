//! Log lines as JSON, one object a line (`log.format=json`), for collectors that would otherwise take text apart.
//!
//! ```text
//! {"time":"2026-11-29T09:00:00.000000Z","level":"INFO","logger":"barnabas::server","message":"…","key":"value"}
//! ```
//!
//! The fields of an event follow the four that every line has; numbers and booleans stay such, all else is text. A
//! field with one of the four names has `field_` before it. A line holds at most [`LINE_BYTES_MAX`]: what is longer is
//! cut, and `"is_cut":true` says so.
//!
//! Neighbours: config/logging.rs starts it, config/logging/log_lines.rs writes the line.

use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{self as lines, FmtContext};
use tracing_subscriber::registry::LookupSpan;

/// Below what log_lines.rs lets pass, with room for the end.
const LINE_BYTES_MAX: usize = 8_000;
const OWN: [&str; 4] = ["time", "level", "logger", "message"];

/// How an event is written.
#[derive(Debug)]
pub enum Shape {
    Text(Format),
    /// `logger`: what a module's lines are called.
    Json {
        logger: fn(&str) -> String,
    },
}

impl Shape {
    pub fn text() -> Self {
        Self::Text(lines::format().with_target(false))
    }
}

impl<S, N> FormatEvent<S, N> for Shape
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self {
            Self::Text(format) => format.format_event(context, writer, event),
            Self::Json { logger } => {
                let mut time = String::new();
                SystemTime.format_time(&mut Writer::new(&mut time))?;
                let mut fields = Fields::default();
                event.record(&mut fields);
                let metadata = event.metadata();
                let logger = logger(metadata.target());
                writeln!(writer, "{}", line(&time, metadata.level().as_str(), &logger, &fields))
            }
        }
    }
}

/// What an event says, in JSON.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, String)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: String) {
        self.others.push((field.name(), value));
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            _ => self.add(field, quoted(&text)),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            _ => self.add(field, quoted(value)),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.to_string());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        let text = value.to_string();
        self.add(field, if value.is_finite() { text } else { quoted(&text) });
    }
}

fn line(time: &str, level: &str, logger: &str, fields: &Fields) -> String {
    let message = &fields.message[..fields.message.floor_char_boundary(LINE_BYTES_MAX / 4)];
    let mut is_cut = message.len() < fields.message.len();
    let mut line = format!(
        "{{\"time\":{},\"level\":\"{level}\",\"logger\":{},\"message\":{}",
        quoted(time),
        quoted(logger),
        quoted(message)
    );
    for (name, value) in &fields.others {
        let name = if OWN.contains(name) { format!("field_{name}") } else { (*name).to_owned() };
        let field = format!(",{}:{value}", quoted(&name));
        if line.len() + field.len() > LINE_BYTES_MAX {
            is_cut = true;
            continue;
        }
        line.push_str(&field);
    }
    line.push_str(if is_cut { ",\"is_cut\":true}" } else { "}" });
    line
}

/// A string of JSON. Line breaks of every kind and control characters are escaped, so that a line stays one.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &str, others: &[(&'static str, &str)]) -> Fields {
        let others = others.iter().map(|(name, value)| (*name, quoted(value))).collect();
        Fields { message: message.to_owned(), others }
    }

    fn read(line: &str) -> serde_json::Value {
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    #[test]
    fn line_is_an_object_with_the_fields_behind_the_four() {
        let fields =
            fields("began\n\u{1b}[1m \"x\" \\ é\u{2028}\u{85}", &[("topic", "a\"b"), ("level", "9")]);
        let line = line("2026-11-29T09:00:00Z", "WARN", "barnabas::server", &fields);
        assert!(
            line.starts_with("{\"time\":\"2026-11-29T09:00:00Z\",\"level\":\"WARN\",\"logger\":"),
            "{line}"
        );
        let read = read(&line);
        assert_eq!(read["message"], "began\n\u{1b}[1m \"x\" \\ é\u{2028}\u{85}");
        assert_eq!((&read["topic"], &read["field_level"]), (&"a\"b".into(), &"9".into()));
        assert!(read.get("is_cut").is_none());
    }

    #[test]
    fn long_line_is_cut_and_stays_json() {
        let long = "é\n".repeat(9_000);
        for fields in [fields(&long, &[("a", "b")]), fields("short", &[("long", &long), ("a", "b")])] {
            let line = line("t", "INFO", "root", &fields);
            assert!(line.len() <= 8 << 10, "{}", line.len());
            let read = read(&line);
            assert_eq!((&read["is_cut"], &read["a"]), (&true.into(), &"b".into()));
        }
    }
}
