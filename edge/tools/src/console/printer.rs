//! How a record is printed.
//!
//! Left out: formatters and deserializers that are classes of Java, but for those named here.
//!
//! Source: Kafka `DefaultMessageFormatter`: the order of the parts and their names; `NoOpMessageFormatter`.

use crate::ToolError;
use crate::command_line::properties::Properties;
use crate::tell;
use barnabas_client::Received;
use bytes::Bytes;
use std::io::Write;

const KEYS: &[&str] = &[
    "print.timestamp",
    "print.key",
    "print.offset",
    "print.epoch",
    "print.partition",
    "print.delivery",
    "print.headers",
    "print.value",
    "key.separator",
    "line.separator",
    "headers.separator",
    "null.literal",
    "key.deserializer",
    "value.deserializer",
    "headers.deserializer",
];

/// What bytes are before they are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deserializer {
    /// Printed as they are.
    Bytes,
    Short,
    Integer,
    Long,
    Uuid,
}

impl Deserializer {
    /// By the name of Kafka's class, with or without its package.
    fn from_name(name: &str) -> Result<Self, ToolError> {
        match name.trim().rsplit('.').next().unwrap_or_default() {
            "StringDeserializer" | "ByteArrayDeserializer" | "BytesDeserializer" => Ok(Self::Bytes),
            "ShortDeserializer" => Ok(Self::Short),
            "IntegerDeserializer" => Ok(Self::Integer),
            "LongDeserializer" => Ok(Self::Long),
            "UUIDDeserializer" => Ok(Self::Uuid),
            _ => Err(ToolError::Usage(format!(
                "deserializer '{name}': this tool has Kafka's StringDeserializer, ByteArrayDeserializer, ShortDeserializer, \
                 IntegerDeserializer, LongDeserializer and UUIDDeserializer, and runs no class of Java"
            ))),
        }
    }

    fn write(self, bytes: &[u8]) -> Result<Vec<u8>, ToolError> {
        let wrong = |wanted: usize| {
            ToolError::Usage(format!("a {self:?} has {wanted} bytes, and this record has {}", bytes.len()))
        };
        Ok(match self {
            Self::Bytes => return Ok(bytes.to_vec()),
            Self::Short => i16::from_be_bytes(bytes.try_into().map_err(|_| wrong(2))?).to_string(),
            Self::Integer => i32::from_be_bytes(bytes.try_into().map_err(|_| wrong(4))?).to_string(),
            Self::Long => i64::from_be_bytes(bytes.try_into().map_err(|_| wrong(8))?).to_string(),
            // Kafka's writes it as text.
            Self::Uuid => String::from_utf8_lossy(bytes).to_ascii_lowercase(),
        }
        .into_bytes())
    }
}

/// Writes records as lines.
#[derive(Debug)]
pub struct Printer {
    is_silent: bool,
    timestamp: bool,
    partition: bool,
    offset: bool,
    delivery: bool,
    epoch: bool,
    headers: bool,
    key: bool,
    value: bool,
    key_separator: String,
    line_separator: String,
    headers_separator: String,
    null_literal: String,
    deserializers: [Deserializer; 3],
}

impl Printer {
    /// `formatter`: the name of Kafka's class.
    ///
    /// # Errors
    /// A class that is not here.
    pub fn new(formatter: Option<&str>, given: &Properties) -> Result<Self, ToolError> {
        let formatter = formatter.map_or("", |name| name.rsplit('.').next().unwrap_or_default());
        if !matches!(formatter, "" | "DefaultMessageFormatter" | "NoOpMessageFormatter") {
            return Err(ToolError::Usage(format!(
                "--formatter takes DefaultMessageFormatter or NoOpMessageFormatter, not '{formatter}': no class of Java is run"
            )));
        }
        let is_known = |key: &str| KEYS.contains(&key) || key.contains(".deserializer.");
        given.warn_of_unknown("formatter", is_known);
        let deserializer =
            |key: &str| given.get(key).map_or(Ok(Deserializer::Bytes), Deserializer::from_name);
        Ok(Self {
            is_silent: formatter == "NoOpMessageFormatter",
            timestamp: given.is_true("print.timestamp", false),
            partition: given.is_true("print.partition", false),
            offset: given.is_true("print.offset", false),
            delivery: given.is_true("print.delivery", false),
            epoch: given.is_true("print.epoch", false),
            headers: given.is_true("print.headers", false),
            key: given.is_true("print.key", false),
            value: given.is_true("print.value", true),
            key_separator: given.unescaped("key.separator", "\t"),
            line_separator: given.unescaped("line.separator", "\n"),
            headers_separator: given.unescaped("headers.separator", ","),
            null_literal: given.unescaped("null.literal", "null"),
            deserializers: [
                deserializer("key.deserializer")?,
                deserializer("value.deserializer")?,
                deserializer("headers.deserializer")?,
            ],
        })
    }

    /// The record's line. With `skips`, one that its deserializer cannot read is left out and reported.
    ///
    /// # Errors
    /// Standard output takes no more; a record that its deserializer cannot read.
    pub fn print(&self, record: &Received, skips: bool, output: &mut impl Write) -> Result<(), ToolError> {
        if self.is_silent {
            return Ok(());
        }
        match self.line(record, None) {
            Ok(line) => output.write_all(&line).map_err(ToolError::Output),
            Err(error) if skips => {
                let (partition, offset) = (record.partition, record.offset);
                tell(&format!("WARN partition {partition}, offset {offset} is skipped: {error}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// The line of a record that is delivered for this time; nothing with `NoOpMessageFormatter`.
    ///
    /// # Errors
    /// A record that its deserializer cannot read.
    pub fn delivered(&self, record: &Received, delivery: i16) -> Result<Vec<u8>, ToolError> {
        if self.is_silent { Ok(Vec::new()) } else { self.line(record, Some(delivery)) }
    }

    fn line(&self, record: &Received, delivery: Option<i16>) -> Result<Vec<u8>, ToolError> {
        let [key, value, headers] = self.deserializers;
        let mut parts: Vec<Vec<u8>> = Vec::new();
        if self.timestamp {
            let kind = if record.dated_by_broker { "LogAppendTime" } else { "CreateTime" };
            let known = format!("{kind}:{}", record.timestamp_ms);
            parts.push(if record.timestamp_ms < 0 { b"NO_TIMESTAMP".to_vec() } else { known.into_bytes() });
        }
        if self.partition {
            parts.push(format!("Partition:{}", record.partition).into_bytes());
        }
        if self.offset {
            parts.push(format!("Offset:{}", record.offset).into_bytes());
        }
        if self.delivery {
            let count = delivery.map_or_else(|| "NOT_PRESENT".to_owned(), |count| count.to_string());
            parts.push(format!("Delivery:{count}").into_bytes());
        }
        if self.epoch {
            // Kafka's console consumer hands its formatter no epoch either.
            parts.push(b"Epoch:NOT_PRESENT".to_vec());
        }
        if self.headers {
            parts.push(self.headers_of(&record.headers, headers)?);
        }
        if self.key {
            parts.push(key.write(self.or_null(record.key.as_deref()))?);
        }
        if self.value {
            parts.push(value.write(self.or_null(record.value.as_deref()))?);
        }
        let mut line = parts.join(self.key_separator.as_bytes());
        line.extend_from_slice(self.line_separator.as_bytes());
        Ok(line)
    }

    fn headers_of(
        &self,
        headers: &[(Bytes, Option<Bytes>)],
        deserializer: Deserializer,
    ) -> Result<Vec<u8>, ToolError> {
        if headers.is_empty() {
            return Ok(b"NO_HEADERS".to_vec());
        }
        let header = |(key, value): &(Bytes, Option<Bytes>)| {
            let value = deserializer.write(self.or_null(value.as_deref()))?;
            Ok([&key[..], b":", &value].concat())
        };
        let headers = headers.iter().map(header).collect::<Result<Vec<Vec<u8>>, ToolError>>()?;
        Ok(headers.join(self.headers_separator.as_bytes()))
    }

    fn or_null<'a>(&'a self, bytes: Option<&'a [u8]>) -> &'a [u8] {
        bytes.unwrap_or(self.null_literal.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{Offset, PartitionIndex};

    fn record() -> Received {
        Received {
            partition: PartitionIndex(2),
            offset: Offset(7),
            timestamp_ms: 5,
            dated_by_broker: false,
            key: Some(Bytes::from_static(&[0, 0, 0, 9])),
            value: None,
            headers: vec![(Bytes::from("h"), Some(Bytes::from("x"))), (Bytes::from("i"), None)],
        }
    }

    fn printer(words: &[&str]) -> Result<Printer, ToolError> {
        let mut given = Properties::default();
        given.add_words("formatter-property", words.iter().copied())?;
        Printer::new(None, &given)
    }

    fn print(words: &[&str]) -> String {
        let mut line = Vec::new();
        printer(words).expect("known").print(&record(), false, &mut line).expect("written");
        String::from_utf8(line).expect("text")
    }

    #[test]
    fn record_is_printed_in_kafkas_order() {
        assert_eq!(print(&[]), "null\n");
        let all = [
            "print.timestamp=true",
            "print.partition=true",
            "print.offset=true",
            "print.delivery=true",
            "print.epoch=true",
            "print.headers=true",
            "print.key=true",
            "key.deserializer=org.apache.kafka.common.serialization.IntegerDeserializer",
            "key.separator=|",
        ];
        assert_eq!(
            print(&all),
            "CreateTime:5|Partition:2|Offset:7|Delivery:NOT_PRESENT|Epoch:NOT_PRESENT|h:x,i:null|9|null\n"
        );
    }

    #[test]
    fn delivery_count_is_printed_where_there_is_one() {
        let counted = printer(&["print.delivery=true", "print.value=false"]).expect("known");
        assert_eq!(counted.delivered(&record(), 3).expect("a line"), b"Delivery:3\n");
    }

    #[test]
    fn record_of_another_type_is_refused_or_skipped() {
        let wrong = printer(&["value.deserializer=LongDeserializer"]).expect("known");
        let mut out = Vec::new();
        let refused = wrong.print(&record(), false, &mut out).expect_err("it is null");
        assert_eq!(refused.to_string(), "a Long has 8 bytes, and this record has 4");
        wrong.print(&record(), true, &mut out).expect("skipped");
        assert!(out.is_empty());
        let unknown = printer(&["value.deserializer=com.example.Avro"]).expect_err("not here");
        assert!(unknown.to_string().starts_with("deserializer 'com.example.Avro'"), "{unknown}");
    }

    #[test]
    fn formatters_are_known_by_their_classes() {
        let given = Properties::default();
        let of = |name| Printer::new(Some(name), &given);
        assert!(of("org.apache.kafka.tools.consumer.NoOpMessageFormatter").expect("known").is_silent);
        assert!(!of("org.apache.kafka.tools.consumer.DefaultMessageFormatter").expect("known").is_silent);
        let refused = of("com.example.Mine").expect_err("not here");
        assert!(refused.to_string().starts_with("--formatter takes"), "{refused}");
    }
}
