//! `console-producer`, as Kafka's `kafka-console-producer`: a line of standard input is a record.
//!
//! A batch is sent when it is full or when no further line is there to be read, so that a person sees each line go
//! out and a file goes out in full batches. A partition that cannot be written holds up no other until
//! `buffer.memory` is full.
//!
//! A record that is given up is named by its line on standard error, and the others go on. As in Kafka the exit code
//! is then 0, and 1 with `--sync`, which ends at the first such record. It is 1 too for a line that cannot be read,
//! and where the topic or a broker is not found in `max.block.ms`. Unlike Kafka's, it retries until
//! `delivery.timeout.ms`, not three times, and says what it waits for. Where a broker refuses the login or the
//! certificate, it ends at once.
//!
//! Source: Kafka 4.3 `ConsoleProducer`, `ErrorLoggingCallback`.

use super::lines::{LineReader, read_ahead};
use crate::command_line::args::{is_given, pairs, properties, renamed, switch, text, value};
use crate::command_line::connection::{self, addresses};
use crate::waiting::reached;
use crate::{ToolError, block_on, say_trouble, tell, topic_lookup};
use barnabas_client::{
    ClientError, Cluster, ClusterConfig, Delivery, PipelineConfig, PipelinedProducer, Record, Spread, Taken,
};
use clap::{Arg, ArgMatches};
use std::time::{Duration, Instant};

const TOOL: &str = "console-producer";
/// One wait for what was sent; lines that come end it earlier.
const TURN: Duration = Duration::from_millis(500);
/// Flags that stand for a config: (flag, config).
const CONFIGS: &[(&str, &str)] = &[
    ("batch-size", "batch.size"),
    ("compression-codec", "compression.type"),
    ("max-block-ms", "max.block.ms"),
    ("max-memory-bytes", "buffer.memory"),
    ("message-send-max-retries", "retries"),
    ("metadata-expiry-ms", "metadata.max.age.ms"),
    ("request-required-acks", "acks"),
    ("request-timeout-ms", "request.timeout.ms"),
    ("retry-backoff-ms", "retry.backoff.ms"),
    ("socket-buffer-size", "send.buffer.bytes"),
    ("timeout", "linger.ms"),
];

pub fn flags() -> Vec<Arg> {
    vec![
        connection::bootstrap_server().required(true),
        value("topic", "name", "The topic to send to").required(true),
        switch("sync", "Send each line by itself, and end at the first that cannot be sent"),
        value("request-required-acks", "0|1|all", "When a record counts as sent (default: all)"),
        value("compression-codec", "codec", "none, gzip, snappy, lz4 or zstd; gzip where none is named")
            .num_args(0..=1)
            .default_missing_value("gzip"),
        value("batch-size", "bytes", "How much goes to a partition at once (default: 16384)"),
        value("max-partition-memory-bytes", "bytes", "The older name of --batch-size"),
        value(
            "message-send-max-retries",
            "n",
            "How often a batch is sent again (default: until delivery.timeout.ms)",
        ),
        value("retry-backoff-ms", "ms", "Before a batch is sent again (default: 100)"),
        value("request-timeout-ms", "ms", "How long a broker may take for an answer (default: 30000)"),
        value("max-block-ms", "ms", "How long the topic is looked for (default: 60000)"),
        value("max-memory-bytes", "bytes", "What records may take in memory (default: 33554432)"),
        value("metadata-expiry-ms", "ms", "When leaders are asked for again (default: 300000)"),
        value("socket-buffer-size", "bytes", "The socket's send buffer (default: as the system has it)"),
        value("timeout", "ms", "How long a batch waits while further lines are there (default: 5)"),
        value("line-reader", "class", "LineMessageReader"),
        pairs("reader-property", "How a line is read: parse.key=true, key.separator=:, parse.headers=true …"),
        value("reader-config", "path", "A file with what --reader-property takes"),
        pairs("property", "The older name of --reader-property"),
        pairs(
            "command-property",
            "A config of the producer: delivery.timeout.ms=120000, compression.type=lz4 …",
        ),
        value("command-config", "path", "A file with configs of the producer"),
        pairs("producer-property", "The older name of --command-property"),
        value("producer.config", "path", "The older name of --command-config"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let words = renamed(matches, "reader-property", "property")?;
    let reading = properties(matches, "reader-config", words)?;
    let reader = LineReader::new(text(matches, "line-reader"), &reading)?;
    let config = config(matches)?;
    let topic = text(matches, "topic").unwrap_or_default();
    block_on(send_lines(topic, config, reader, matches.get_flag("sync")))
}

/// Configs of the file, over them those of the command line, over them those that have a flag.
fn config(matches: &ArgMatches) -> Result<PipelineConfig, ToolError> {
    let file = renamed(matches, "command-config", "producer.config")?;
    let words = renamed(matches, "command-property", "producer-property")?;
    let mut given = properties(matches, file, words)?;
    let size = renamed(matches, "batch-size", "max-partition-memory-bytes")?;
    for (flag, config) in CONFIGS {
        let flag = if *flag == "batch-size" { size } else { flag };
        if let Some(value) = text(matches, flag).filter(|_| is_given(matches, flag)) {
            given.set(config, value);
        }
    }
    if given.get("client.id").is_none() {
        given.set("client.id", "console-producer");
    }
    let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
    given.set("bootstrap.servers", &bootstrap);
    let parsed = PipelineConfig::parse(given.iter())?;
    given.warn_of_unknown("producer", |key| !parsed.unknown.iter().any(|unknown| unknown == key));
    Ok(parsed.config)
}

async fn send_lines(
    topic: &str,
    config: PipelineConfig,
    reader: LineReader,
    is_sync: bool,
) -> Result<(), ToolError> {
    let deadline = Instant::now() + config.block_max;
    let mut cluster = Cluster::new(ClusterConfig {
        request_timeout: config.request_timeout,
        deadline: config.block_max,
        retry_backoff: config.retry_backoff,
        security: config.security.clone(),
        ..ClusterConfig::new(&config.bootstrap, &config.client_id)
    });
    reached(TOOL, cluster.config()).await?;
    topic_lookup::find(TOOL, &mut cluster, topic, true, Some(deadline)).await?;
    let producer = PipelinedProducer::new(topic, config, Spread::Sticky).await?;
    let mut sending = Sending { producer, topic: topic.to_owned(), is_sync };
    let mut lines = read_ahead();
    let mut number = 0;
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            turned = sending.producer.turn(TURN) => {
                turned?;
                sending.report()?;
                continue;
            }
        };
        let Some(line) = line else { break };
        number += 1;
        let sent = match line {
            Ok(line) => sending.take(&reader, &line, number).await,
            Err(error) => Err(ToolError::Input(error)),
        };
        if let Err(error) = sent {
            // What was read before is sent all the same.
            sending.flush().await?;
            return Err(error);
        }
        if is_sync {
            sending.flush().await?;
        } else if lines.is_empty() {
            sending.producer.close_batches()?;
        } else if sending.producer.is_due() {
            sending.producer.turn(Duration::ZERO).await?;
            sending.report()?;
        }
    }
    sending.flush().await
}

struct Sending {
    producer: PipelinedProducer,
    topic: String,
    is_sync: bool,
}

impl Sending {
    async fn take(&mut self, reader: &LineReader, line: &[u8], number: u64) -> Result<(), ToolError> {
        let line = reader.read(line, number)?;
        let headers: Vec<_> = line.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let record = Record {
            key: line.key.as_deref(),
            value: line.value.as_deref(),
            headers: &headers,
            ..Record::default()
        };
        loop {
            match self.producer.send(&record, number) {
                Ok(Taken::Yes) => return Ok(()),
                Ok(Taken::Full) => {
                    self.producer.turn(TURN).await?;
                    self.report()?;
                }
                Err(error) => return self.refused(&format!("line {number}"), error),
            }
        }
    }

    /// Sends all that is held, and waits until it is answered or given up.
    async fn flush(&mut self) -> Result<(), ToolError> {
        self.producer.close_batches()?;
        while self.producer.outstanding() > 0 {
            self.producer.turn(TURN).await?;
            self.report()?;
        }
        Ok(())
    }

    /// Says what keeps lines from being sent, and which were given up.
    fn report(&mut self) -> Result<(), ToolError> {
        while let Some(trouble) = self.producer.next_trouble() {
            say_trouble(TOOL, &trouble, &self.topic, "written")?;
        }
        while let Some(delivery) = self.producer.next_delivery() {
            let lines = lines_of(&delivery);
            if let Some(error) = delivery.error {
                self.refused(&lines, error)?;
            }
        }
        Ok(())
    }

    fn refused(&self, lines: &str, error: ClientError) -> Result<(), ToolError> {
        if self.is_sync {
            return Err(error.into());
        }
        tell(&format!("{TOOL}: ERROR {lines} not sent to {}: {error}", self.topic));
        Ok(())
    }
}

/// "line 3", "lines 3 to 7", "lines 3, 5, 9".
fn lines_of(delivery: &Delivery) -> String {
    let numbers: Vec<u64> = delivery.marks.iter().map(|mark| mark.0).collect();
    match numbers[..] {
        [one] => format!("line {one}"),
        [first, .., last] if last - first + 1 == numbers.len() as u64 => format!("lines {first} to {last}"),
        _ => {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("lines {}", numbers.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<PipelineConfig, String> {
        let words = format!("console-producer --bootstrap-server h:1 --topic t {words}");
        let command = clap::Command::new("console-producer").args(flags());
        let matches = command.try_get_matches_from(words.split_whitespace()).expect("flags");
        config(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_stand_over_configs() {
        let config = parsed("--command-property acks=1 --command-property batch.size=5 --batch-size 7")
            .expect("a config");
        assert_eq!((config.acks, config.batch_bytes, config.client_id.as_str()), (1, 7, "console-producer"));
        let config = parsed("--compression-codec --max-partition-memory-bytes 9").expect("a config");
        assert_eq!((config.compression.codec.name(), config.batch_bytes), ("gzip", 9));
        let config = parsed("--command-property compression.type=zstd --timeout 1000").expect("a config");
        assert_eq!((config.compression.codec.name(), config.linger), ("zstd", Duration::from_secs(1)));
    }

    #[test]
    fn values_that_no_producer_takes_are_refused() {
        let refused = |words| parsed(words).expect_err(words);
        assert_eq!(refused("--request-required-acks 5"), "acks takes 0, 1 or all; not '5'");
        assert_eq!(refused("--batch-size -1"), "batch.size takes a number from 0 on; not '-1'");
        assert_eq!(
            refused("--batch-size 1 --max-partition-memory-bytes 2"),
            "--batch-size cannot be used together with --max-partition-memory-bytes"
        );
    }

    #[test]
    fn lines_that_were_not_sent_are_named() {
        let lines = |numbers: &[u64]| {
            let marks = numbers.iter().map(|number| (*number, 1)).collect();
            lines_of(&Delivery {
                partition: 0,
                base_offset: -1,
                records: 1,
                content_bytes: 0,
                marks,
                error: None,
            })
        };
        assert_eq!(lines(&[3]), "line 3");
        assert_eq!(lines(&[3, 4, 5]), "lines 3 to 5");
        assert_eq!(lines(&[3, 5]), "lines 3, 5");
    }
}
