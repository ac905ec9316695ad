//! `console-producer`, as Kafka's `kafka-console-producer`: a line of standard input is a record.
//!
//! A batch is sent when it is full or when no further line is there to be read, so that a person sees each line go out and
//! a file goes out in full batches.

use crate::key_values::KeyValues;
use crate::waiting::reached;
use crate::{ToolError, block_on, bootstrap_server, number, pairs, switch, text, value};
use barnabas_client::{Cluster, ClusterConfig, Outgoing, Producer, ProducerConfig};
use barnabas_wire::records::{Codec, Compression};
use bytes::Bytes;
use clap::{Arg, ArgMatches};
use std::io::BufRead;
use std::time::Duration;

const READER_KEYS: &[&str] = &[
    "parse.key",
    "key.separator",
    "parse.headers",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "null.marker",
    "ignore.error",
];
const PRODUCER_KEYS: &[&str] = &[
    "acks",
    "batch.size",
    "client.id",
    "compression.type",
    "delivery.timeout.ms",
    "linger.ms",
    "request.timeout.ms",
];
/// Lines that are read ahead of what is being sent.
const LINES_AHEAD_MAX: usize = 10_000;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
        value("topic", "name", "The topic to send to").required(true),
        value("request-required-acks", "0|1|all", "When a record counts as sent (default: all)"),
        value("compression-codec", "codec", "none, gzip, snappy, lz4 or zstd")
            .num_args(0..=1)
            .default_missing_value("gzip"),
        value("batch-size", "bytes", "How much goes out at once (default: 16384)"),
        value(
            "timeout",
            "ms",
            "Accepted as Kafka accepts it: lines go out as soon as no further one is there",
        ),
        switch("sync", "Send each line by itself"),
        pairs("reader-property", "How a line is read: parse.key=true, key.separator=:, parse.headers=true …"),
        pairs("property", "The older name of --reader-property"),
        pairs(
            "command-property",
            "A config of the producer: acks, linger.ms, batch.size, compression.type …",
        ),
        pairs("producer-property", "The older name of --command-property"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let reader = LineReader::new(&KeyValues::read(matches, &["reader-property", "property"], READER_KEYS)?);
    let client = KeyValues::read(matches, &["producer-property", "command-property"], PRODUCER_KEYS)?;
    let config = producer_config(matches, &client)?;
    let mut cluster = ClusterConfig::new(
        text(matches, "bootstrap-server").unwrap_or_default(),
        client.get("client.id").unwrap_or("barnabas-console-producer"),
    );
    if let Some(ms) = client.number("delivery.timeout.ms")? {
        cluster.deadline = Duration::from_millis(ms);
    }
    if let Some(ms) = client.number("request.timeout.ms")? {
        cluster.request_timeout = Duration::from_millis(ms);
    }
    let topic = text(matches, "topic").unwrap_or_default();
    block_on(send_lines(Cluster::new(cluster), topic, config, reader, matches.get_flag("sync")))
}

fn producer_config(matches: &ArgMatches, client: &KeyValues) -> Result<ProducerConfig, ToolError> {
    let mut config = ProducerConfig::default();
    let acks = text(matches, "request-required-acks").or(client.get("acks"));
    config.acks = match acks {
        None | Some("all" | "-1") => -1,
        Some("1") => 1,
        Some("0") => 0,
        Some(other) => return Err(ToolError::Usage(format!("acks are 0, 1 or all, not '{other}'"))),
    };
    if let Some(name) = text(matches, "compression-codec").or(client.get("compression.type")) {
        let codec = Codec::from_name(name);
        let codec = codec.ok_or_else(|| {
            ToolError::Usage(format!("no codec is called '{name}': none, gzip, snappy, lz4, zstd"))
        })?;
        config.compression = Compression::of(codec);
    }
    if let Some(bytes) = number(matches, "batch-size")?.or(client.number("batch.size")?) {
        config.batch_bytes_max = bytes;
    }
    Ok(config)
}

async fn send_lines(
    mut cluster: Cluster,
    topic: &str,
    config: ProducerConfig,
    reader: LineReader,
    is_sync: bool,
) -> Result<(), ToolError> {
    reached("console-producer", cluster.config()).await?;
    let mut producer = Producer::new(&mut cluster, topic, config).await?;
    let mut lines = read_ahead();
    let mut number = 0;
    while let Some(line) = lines.recv().await {
        let line = line.map_err(ToolError::Input)?;
        number += 1;
        producer.send(&reader.read(&line, number)?).await?;
        if is_sync || lines.is_empty() {
            producer.flush().await?;
        }
    }
    Ok(producer.flush().await?)
}

/// Standard input, line by line, on a thread of its own: reading it blocks.
fn read_ahead() -> tokio::sync::mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(LINES_AHEAD_MAX);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line);
            let told = match read {
                Ok(0) => return,
                Ok(_) => Ok(without_end(line)),
                Err(error) => Err(error),
            };
            let is_over = told.is_err();
            // Nobody listens any more: the sender has failed and says so itself.
            if sender.blocking_send(told).is_err() || is_over {
                return;
            }
        }
    });
    receiver
}

fn without_end(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() == Some(&b'\n') {
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
    }
    line
}

/// Makes a record of a line.
///
/// # Source
/// Kafka `LineMessageReader`: headers, then key, then value.
#[derive(Debug)]
struct LineReader {
    parse_key: bool,
    parse_headers: bool,
    key_separator: String,
    headers_delimiter: String,
    headers_separator: String,
    header_key_separator: String,
    null_marker: Option<String>,
    ignore_error: bool,
}

impl LineReader {
    fn new(given: &KeyValues) -> Self {
        Self {
            parse_key: given.is_true("parse.key", false),
            parse_headers: given.is_true("parse.headers", false),
            key_separator: given.unescaped("key.separator", "\t"),
            headers_delimiter: given.unescaped("headers.delimiter", "\t"),
            headers_separator: given.unescaped("headers.separator", ","),
            header_key_separator: given.unescaped("headers.key.separator", ":"),
            null_marker: given.get("null.marker").map(str::to_owned),
            ignore_error: given.is_true("ignore.error", false),
        }
    }

    fn read(&self, line: &[u8], number: u64) -> Result<Outgoing, ToolError> {
        let mut record = Outgoing::default();
        let mut rest = line;
        if self.parse_headers
            && let Some((headers, after)) = self.cut(rest, &self.headers_delimiter, number)?
        {
            record.headers = self.headers(headers, number)?;
            rest = after;
        }
        if self.parse_key
            && let Some((key, after)) = self.cut(rest, &self.key_separator, number)?
        {
            record.key = self.bytes(key);
            rest = after;
        }
        record.value = self.bytes(rest);
        Ok(record)
    }

    fn cut<'a>(&self, line: &'a [u8], separator: &str, number: u64) -> Result<Option<Halves<'a>>, ToolError> {
        match split_once(line, separator.as_bytes()) {
            Some(parts) => Ok(Some(parts)),
            None if self.ignore_error => Ok(None),
            None => Err(ToolError::Usage(format!("line {number} has no '{}'", separator.escape_default()))),
        }
    }

    fn headers(&self, text: &[u8], number: u64) -> Result<Vec<(Bytes, Option<Bytes>)>, ToolError> {
        let mut headers = Vec::new();
        if self.bytes(text).is_none() {
            return Ok(headers);
        }
        let mut rest = Some(text);
        while let Some(line) = rest {
            let (header, after) = match split_once(line, self.headers_separator.as_bytes()) {
                Some((header, after)) => (header, Some(after)),
                None => (line, None),
            };
            rest = after;
            match split_once(header, self.header_key_separator.as_bytes()) {
                Some((key, value)) => headers.push((Bytes::copy_from_slice(key), self.bytes(value))),
                None if self.ignore_error => headers.push((Bytes::copy_from_slice(header), None)),
                None => {
                    return Err(ToolError::Usage(format!(
                        "line {number}: a header has no '{}'",
                        self.header_key_separator
                    )));
                }
            }
        }
        Ok(headers)
    }

    fn bytes(&self, text: &[u8]) -> Option<Bytes> {
        let is_null = self.null_marker.as_ref().is_some_and(|marker| marker.as_bytes() == text);
        (!is_null).then(|| Bytes::copy_from_slice(text))
    }
}

/// What stands before and behind a separator.
type Halves<'a> = (&'a [u8], &'a [u8]);

fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<Halves<'a>> {
    if separator.is_empty() {
        return None;
    }
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> LineReader {
        LineReader {
            parse_key: true,
            parse_headers: true,
            key_separator: ":".to_owned(),
            headers_delimiter: "\t".to_owned(),
            headers_separator: ",".to_owned(),
            header_key_separator: ":".to_owned(),
            null_marker: Some("NULL".to_owned()),
            ignore_error: false,
        }
    }

    #[test]
    fn a_line_is_headers_then_key_then_value() {
        let record = reader().read(b"a:1,b:NULL\tkey:value:rest", 1).unwrap();
        assert_eq!(record.headers, [(Bytes::from("a"), Some(Bytes::from("1"))), (Bytes::from("b"), None)]);
        assert_eq!(record.key.as_deref(), Some(&b"key"[..]));
        assert_eq!(record.value.as_deref(), Some(&b"value:rest"[..]));
    }

    #[test]
    fn a_line_without_its_separator_is_named() {
        let error = reader().read(b"no key here", 7).unwrap_err();
        assert!(error.to_string().contains("line 7"), "{error}");
    }

    #[test]
    fn the_marker_stands_for_null() {
        let plain = LineReader { parse_key: false, parse_headers: false, ..reader() };
        assert_eq!(plain.read(b"NULL", 1).unwrap().value, None);
        assert_eq!(plain.read(b"", 1).unwrap().value, Some(Bytes::new()));
    }
}
