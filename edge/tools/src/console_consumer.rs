//! `console-consumer`, as Kafka's `kafka-console-consumer`: a record is a line of standard output.
//!
//! Without `--group` it reads all partitions by itself and commits nothing; with it, it takes its share and commits what it
//! has printed.

use crate::key_values::KeyValues;
use crate::waiting::reached;
use crate::{ToolError, block_on, bootstrap_server, number, pairs, switch, tell, text, value};
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{
    Cluster, ClusterConfig, Consumer, ConsumerConfig, Group, GroupConfig, Received, StartAt,
};
use clap::{Arg, ArgMatches};
use std::io::Write;
use std::time::{Duration, Instant};

const FORMATTER_KEYS: &[&str] = &[
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
];
const CONSUMER_KEYS: &[&str] = &[
    "auto.offset.reset",
    "client.id",
    "fetch.max.bytes",
    "group.id",
    "isolation.level",
    "max.partition.fetch.bytes",
];
const COMMIT_INTERVAL: Duration = Duration::from_secs(5);
/// How long one look for records lasts; between two looks it beats, commits and checks the clock.
const LOOK: Duration = Duration::from_millis(500);

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server(),
        value("topic", "name", "The topic to read").required(true),
        switch("from-beginning", "Begin with the oldest record where nothing was committed"),
        value("partition", "n", "Read this partition only"),
        value("offset", "earliest|latest|n", "Where to begin (with --partition)"),
        value("group", "id", "Read as a member of this group"),
        value("max-messages", "n", "Stop after so many records"),
        value("timeout-ms", "ms", "Stop after so long without a record"),
        value("isolation-level", "level", "read_uncommitted (default) or read_committed"),
        pairs(
            "formatter-property",
            "What is printed: print.key=true, print.timestamp=true, key.separator=: …",
        ),
        pairs("property", "The older name of --formatter-property"),
        pairs("command-property", "A config of the consumer: auto.offset.reset, group.id …"),
        pairs("consumer-property", "The older name of --command-property"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let printer =
        Printer::new(&KeyValues::read(matches, &["formatter-property", "property"], FORMATTER_KEYS)?);
    let client = KeyValues::read(matches, &["consumer-property", "command-property"], CONSUMER_KEYS)?;
    let job = Job::new(matches, &client)?;
    let bootstrap = text(matches, "bootstrap-server").unwrap_or_default();
    let cluster =
        ClusterConfig::new(bootstrap, client.get("client.id").unwrap_or("barnabas-console-consumer"));
    let mut printed = 0;
    let ended = block_on(job.read(Cluster::new(cluster), &printer, &mut printed));
    tell(&format!("Processed a total of {printed} messages"));
    ended
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    topic: String,
    group: Option<String>,
    partition: Option<i32>,
    start: StartAt,
    records_max: Option<u64>,
    silence_max: Option<Duration>,
    config: ConsumerConfig,
}

impl Job {
    fn new(matches: &ArgMatches, client: &KeyValues) -> Result<Self, ToolError> {
        let partition: Option<i32> = number(matches, "partition")?;
        let group = text(matches, "group").or(client.get("group.id")).map(str::to_owned);
        if partition.is_some() && group.is_some() {
            return Err(ToolError::Usage(
                "--partition and --group exclude each other: a group shares partitions out itself".to_owned(),
            ));
        }
        if partition.is_none() && text(matches, "offset").is_some() {
            return Err(ToolError::Usage("--offset needs --partition".to_owned()));
        }
        let from_beginning =
            matches.get_flag("from-beginning") || client.get("auto.offset.reset") == Some("earliest");
        let start = match text(matches, "offset") {
            Some("earliest") => StartAt::Earliest,
            Some("latest") => StartAt::Latest,
            Some(word) => match word.parse() {
                Ok(offset) => StartAt::Offset(Offset(offset)),
                Err(_) => {
                    return Err(ToolError::Usage(format!(
                        "--offset takes earliest, latest or a number, not '{word}'"
                    )));
                }
            },
            None if from_beginning => StartAt::Earliest,
            None => StartAt::Latest,
        };
        let isolation = text(matches, "isolation-level").or(client.get("isolation.level"));
        let read_committed = match isolation {
            None | Some("read_uncommitted") => false,
            Some("read_committed") => true,
            Some(other) => return Err(ToolError::Usage(format!("no isolation level is called '{other}'"))),
        };
        let mut config = ConsumerConfig { read_committed, ..Default::default() };
        if let Some(bytes) = client.number("fetch.max.bytes")? {
            config.bytes_max = bytes;
        }
        if let Some(bytes) = client.number("max.partition.fetch.bytes")? {
            config.partition_bytes_max = bytes;
        }
        Ok(Self {
            topic: text(matches, "topic").unwrap_or_default().to_owned(),
            group,
            partition,
            start,
            records_max: number(matches, "max-messages")?,
            silence_max: number(matches, "timeout-ms")?.map(Duration::from_millis),
            config,
        })
    }

    async fn read(
        &self,
        mut cluster: Cluster,
        printer: &Printer,
        printed: &mut u64,
    ) -> Result<(), ToolError> {
        reached("console-consumer", cluster.config()).await?;
        let tries = cluster.tries(format!("finding topic {}", self.topic));
        while let Err(error) = cluster.topic(&self.topic, true).await {
            tries.after(error).await?;
        }
        let mut consumer = Consumer::new(&self.topic, self.config.clone());
        let Some(group) = &self.group else {
            let partitions = self.own_partitions(&mut cluster).await?;
            consumer.assign(partitions);
            return self.print_all(&mut cluster, &mut consumer, None, printer, printed).await;
        };
        let mut group = Group::new(GroupConfig::new(group), &self.topic);
        let ended = self.print_all(&mut cluster, &mut consumer, Some(&mut group), printer, printed).await;
        // What went wrong first is what is told; a group that was never joined has nothing to commit.
        ended?;
        let positions: Vec<_> = consumer.positions().collect();
        group.commit(&mut cluster, positions).await?;
        Ok(group.leave(&mut cluster).await?)
    }

    async fn own_partitions(
        &self,
        cluster: &mut Cluster,
    ) -> Result<Vec<(PartitionIndex, StartAt)>, ToolError> {
        let topic = cluster.topic(&self.topic, false).await?;
        let all = topic.partitions.iter().map(|partition| partition.partition_index);
        let ours: Vec<_> = all.filter(|index| self.partition.is_none_or(|wanted| wanted == *index)).collect();
        if ours.is_empty() {
            return Err(ToolError::Usage(format!("topic {} has no such partition", self.topic)));
        }
        Ok(ours.into_iter().map(|index| (PartitionIndex(index), self.start)).collect())
    }

    async fn print_all(
        &self,
        cluster: &mut Cluster,
        consumer: &mut Consumer,
        mut group: Option<&mut Group>,
        printer: &Printer,
        printed: &mut u64,
    ) -> Result<(), ToolError> {
        let mut output = std::io::BufWriter::new(std::io::stdout().lock());
        let (mut heard, mut committed) = (Instant::now(), Instant::now());
        let mut is_member = false;
        while self.records_max.is_none_or(|max| *printed < max) {
            if let Some(group) = group.as_deref_mut() {
                if !is_member {
                    consumer.assign(self.share(group, cluster).await?);
                }
                is_member = group.stay(cluster).await?;
                if is_member && committed.elapsed() >= COMMIT_INTERVAL {
                    committed = Instant::now();
                    let positions: Vec<_> = consumer.positions().collect();
                    is_member = group.commit(cluster, positions).await?;
                }
            }
            match consumer.poll(cluster, LOOK).await? {
                Some(record) => {
                    printer.print(&record, &mut output).map_err(ToolError::Output)?;
                    *printed += 1;
                    heard = Instant::now();
                    if consumer.is_drained() {
                        output.flush().map_err(ToolError::Output)?;
                    }
                }
                None if self.silence_max.is_some_and(|max| heard.elapsed() >= max) => break,
                None => {}
            }
        }
        output.flush().map_err(ToolError::Output)
    }

    async fn share(
        &self,
        group: &mut Group,
        cluster: &mut Cluster,
    ) -> Result<Vec<(PartitionIndex, StartAt)>, ToolError> {
        let shared = group.join(cluster).await?;
        let start = |(partition, committed): (PartitionIndex, Option<Offset>)| {
            (partition, committed.map_or(self.start, StartAt::Offset))
        };
        Ok(shared.into_iter().map(start).collect())
    }
}

/// Writes records as lines.
///
/// # Source
/// Kafka `DefaultMessageFormatter`: the order of the parts and their names.
#[derive(Debug)]
struct Printer {
    timestamp: bool,
    partition: bool,
    offset: bool,
    headers: bool,
    key: bool,
    value: bool,
    key_separator: String,
    line_separator: String,
    headers_separator: String,
    null_literal: String,
}

impl Printer {
    fn new(given: &KeyValues) -> Self {
        Self {
            timestamp: given.is_true("print.timestamp", false),
            partition: given.is_true("print.partition", false),
            offset: given.is_true("print.offset", false),
            headers: given.is_true("print.headers", false),
            key: given.is_true("print.key", false),
            value: given.is_true("print.value", true),
            key_separator: given.unescaped("key.separator", "\t"),
            line_separator: given.unescaped("line.separator", "\n"),
            headers_separator: given.unescaped("headers.separator", ","),
            null_literal: given.unescaped("null.literal", "null"),
        }
    }

    fn print(&self, record: &Received, output: &mut impl Write) -> std::io::Result<()> {
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
        if self.headers {
            parts.push(self.headers_of(record));
        }
        if self.key {
            parts.push(self.or_null(record.key.as_deref()));
        }
        if self.value {
            parts.push(self.or_null(record.value.as_deref()));
        }
        output.write_all(&parts.join(self.key_separator.as_bytes()))?;
        output.write_all(self.line_separator.as_bytes())
    }

    fn headers_of(&self, record: &Received) -> Vec<u8> {
        if record.headers.is_empty() {
            return b"NO_HEADERS".to_vec();
        }
        let header = |(key, value): &(bytes::Bytes, Option<bytes::Bytes>)| {
            [&key[..], b":", &self.or_null(value.as_deref())].concat()
        };
        let headers: Vec<Vec<u8>> = record.headers.iter().map(header).collect();
        headers.join(self.headers_separator.as_bytes())
    }

    fn or_null(&self, bytes: Option<&[u8]>) -> Vec<u8> {
        bytes.map_or_else(|| self.null_literal.clone().into_bytes(), <[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_record_is_printed_in_kafkas_order() {
        let record = Received {
            partition: PartitionIndex(2),
            offset: Offset(7),
            timestamp_ms: 5,
            dated_by_broker: false,
            key: Some(Bytes::from("k")),
            value: None,
            headers: vec![(Bytes::from("h"), Some(Bytes::from("x"))), (Bytes::from("i"), None)],
        };
        let mut printer = Printer::new(&KeyValues::default());
        let print = |printer: &Printer| {
            let mut line = Vec::new();
            printer.print(&record, &mut line).unwrap();
            String::from_utf8(line).unwrap()
        };
        assert_eq!(print(&printer), "null\n");
        (printer.timestamp, printer.partition, printer.offset, printer.headers, printer.key) =
            (true, true, true, true, true);
        assert_eq!(print(&printer), "CreateTime:5\tPartition:2\tOffset:7\th:x,i:null\tk\tnull\n");
    }
}
