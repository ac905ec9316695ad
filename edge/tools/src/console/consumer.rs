//! `console-consumer`, as Kafka's `kafka-console-consumer`: a record is a line of standard output.
//!
//! Without a group it reads all partitions by itself and commits nothing. With one it takes its share and commits
//! what it has printed.
//!
//! How it ends, as in Kafka: exit code 0 after `--max-messages`, and after `--timeout-ms` with an error on standard
//! error; 1 where the command line or a record cannot be read. Unlike Kafka's tool, which ends with 0 there, it ends
//! with 1 after an error that no later try can cure. The number of records is the last line on standard error.
//!
//! Source: Kafka 4.3 `ConsoleConsumer`, `ConsoleConsumerOptions`.

use super::printer::Printer;
use crate::asking::signals::stopped;
use crate::command_line::args::{
    exactly_one, excludes, given, number, pairs, properties, renamed, switch, text, texts, value,
};
use crate::command_line::connection::{self, addresses};
use crate::command_line::properties::Properties;
use crate::consuming::member::Member;
use crate::consuming::settings::{Reset, Settings, is_read_committed};
use crate::consuming::source::Source;
use crate::waiting::reached;
use crate::{ToolError, block_on, tell, topic_lookup};
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{Cluster, ClusterConfig, Consumer, Received, StartAt};
use clap::{Arg, ArgMatches};
use regex::Regex;
use std::io::Write;
use std::pin::pin;
use std::time::{Duration, Instant};

const TOOL: &str = "console-consumer";
/// How long one look for records lasts; between two looks it beats, commits and checks the clock.
const LOOK: Duration = Duration::from_millis(500);

pub fn flags() -> Vec<Arg> {
    vec![
        connection::bootstrap_server().required(true),
        value("topic", "name", "The topic to read"),
        value("include", "regex", "Read all topics whose name this matches when it begins"),
        switch("from-beginning", "Begin with the oldest record where nothing was committed"),
        value("partition", "n", "Read this partition only, from its end unless --offset is given"),
        value("offset", "earliest|latest|n", "Where to begin (with --partition)"),
        value("group", "id", "Read as a member of this group"),
        value("max-messages", "n", "Stop after so many records"),
        value("timeout-ms", "ms", "Stop after so long without a record"),
        value("isolation-level", "level", "read_uncommitted (default) or read_committed"),
        value(
            "formatter",
            "class",
            "DefaultMessageFormatter (default) or NoOpMessageFormatter, which prints nothing",
        ),
        pairs(
            "formatter-property",
            "What is printed: print.key=true, print.timestamp=true, key.separator=: …",
        ),
        value("formatter-config", "path", "A file with what --formatter-property takes"),
        pairs("property", "The older name of --formatter-property"),
        value("key-deserializer", "class", "What keys are: LongDeserializer …"),
        value("value-deserializer", "class", "What values are: LongDeserializer …"),
        switch("skip-message-on-error", "Skip a record that its deserializer cannot read, instead of ending"),
        pairs("command-property", "A config of the consumer: auto.offset.reset=earliest …"),
        value("command-config", "path", "A file with configs of the consumer"),
        pairs("consumer-property", "The older name of --command-property"),
        value("consumer.config", "path", "The older name of --command-config"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    let mut printed = 0;
    let ended = block_on(job.read(&mut printed));
    if let Ok(End::Silence(max)) = &ended {
        tell(&format!("{TOOL}: no record came within {} ms (--timeout-ms)", max.as_millis()));
    }
    tell(&format!("Processed a total of {printed} messages"));
    match ended? {
        End::Stopped(signal) => Err(ToolError::Stopped(signal)),
        End::Enough | End::Silence(_) => Ok(()),
    }
}

/// Why it ends without an error.
enum End {
    Enough,
    Silence(Duration),
    /// By this signal.
    Stopped(u8),
}

/// Which topics.
#[derive(Debug)]
enum Topics {
    One(String),
    Matching(Regex),
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    cluster: ClusterConfig,
    topics: Topics,
    group: Option<String>,
    partition: Option<i32>,
    /// Without a group.
    start: StartAt,
    /// With a group, and for an offset outside the log.
    reset: Reset,
    records_max: Option<u64>,
    silence_max: Option<Duration>,
    settings: Settings,
    printer: Printer,
    skips: bool,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let topics = match exactly_one(matches, &["topic", "include"])? {
            "topic" => Topics::One(text(matches, "topic").unwrap_or_default().to_owned()),
            _ => Topics::Matching(pattern("include", text(matches, "include").unwrap_or_default())?),
        };
        if text(matches, "partition").is_some() {
            excludes(matches, "partition", &["include", "group"])?;
            excludes(matches, "from-beginning", &["offset"])?;
        } else if text(matches, "offset").is_some() {
            return Err(ToolError::Usage("--offset needs --partition".to_owned()));
        }
        let file = renamed(matches, "command-config", "consumer.config")?;
        let words = renamed(matches, "command-property", "consumer-property")?;
        let mut settings = Settings::read(&properties(matches, file, words)?)?;
        if let Some(level) = text(matches, "isolation-level") {
            settings.consumer.read_committed = is_read_committed(level)?;
        }
        let group = group(matches, &settings)?;
        let reset = reset(matches, &settings)?;
        settings.consumer.reset = reset.start();
        let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
        let words = renamed(matches, "formatter-property", "property")?;
        let formatter = formatter(matches, words)?;
        Ok(Self {
            cluster: settings.cluster(&bootstrap, "console-consumer"),
            topics,
            partition: number(matches, "partition")?,
            start: start(matches, group.is_some(), reset)?,
            group,
            reset,
            records_max: records_max(number(matches, "max-messages")?),
            silence_max: number::<i64>(matches, "timeout-ms")?
                .and_then(|ms| u64::try_from(ms).ok())
                .map(Duration::from_millis),
            settings,
            printer: Printer::new(text(matches, "formatter"), &formatter)?,
            skips: matches.get_flag("skip-message-on-error"),
        })
    }

    async fn read(&self, printed: &mut u64) -> Result<End, ToolError> {
        let mut stop = pin!(stopped());
        let mut cluster = Cluster::new(self.cluster.clone());
        let begun = Instant::now();
        let mut reading = tokio::select! {
            biased;
            signal = &mut stop => return Ok(End::Stopped(signal?)),
            ready = self.prepare(&mut cluster) => ready?,
            max = silence(self.silence_max, begun) => return Ok(End::Silence(max)),
        };
        let mut output = std::io::BufWriter::new(std::io::stdout().lock());
        let mut heard = begun;
        let end = loop {
            if self.records_max.is_some_and(|max| *printed >= max) {
                break End::Enough;
            }
            let record = tokio::select! {
                biased;
                signal = &mut stop => break End::Stopped(signal?),
                record = reading.next(&mut cluster) => record?,
                max = silence(self.silence_max, heard) => break End::Silence(max),
            };
            if let Some(record) = record {
                self.printer.print(&record, self.skips, &mut output)?;
                *printed += 1;
                heard = Instant::now();
                if reading.source.is_drained() {
                    output.flush().map_err(ToolError::Output)?;
                }
            }
        };
        output.flush().map_err(ToolError::Output)?;
        reading.source.report_standing();
        reading.end(&mut cluster).await?;
        Ok(end)
    }

    /// Finds the brokers and the topics.
    async fn prepare(&self, cluster: &mut Cluster) -> Result<Reading, ToolError> {
        reached(TOOL, cluster.config()).await?;
        let topics = match &self.topics {
            Topics::One(topic) => {
                topic_lookup::find(TOOL, cluster, topic, self.settings.auto_create, None).await?;
                vec![topic.clone()]
            }
            Topics::Matching(pattern) => topic_lookup::matching(cluster, pattern).await?,
        };
        if self.group.is_some() && topics.len() > 1 {
            return Err(ToolError::Usage(format!(
                "--include with a group: a member of this tool reads one topic, and it matches {}",
                topics.join(", ")
            )));
        }
        let mut consumers = Vec::new();
        for topic in &topics {
            let mut consumer = Consumer::new(topic, self.settings.consumer.clone());
            if self.group.is_none() {
                consumer.assign(self.own_partitions(cluster, topic).await?);
            }
            consumers.push(consumer);
        }
        let member =
            self.group.as_ref().map(|id| Member::new(TOOL, &self.settings, id, &topics[0], self.reset));
        Ok(Reading { source: Source::new(TOOL, consumers, cluster), member, is_tending: false })
    }

    async fn own_partitions(
        &self,
        cluster: &mut Cluster,
        topic: &str,
    ) -> Result<Vec<(PartitionIndex, StartAt)>, ToolError> {
        let known = cluster.topic(topic, false).await?;
        let all = known.partitions.iter().map(|partition| partition.partition_index);
        let ours: Vec<_> = all.filter(|index| self.partition.is_none_or(|wanted| wanted == *index)).collect();
        match (ours.is_empty(), self.partition) {
            (true, Some(partition)) => {
                Err(ToolError::Usage(format!("topic {topic} has no partition {partition}")))
            }
            _ => Ok(ours.into_iter().map(|index| (PartitionIndex(index), self.start)).collect()),
        }
    }
}

/// What is read, and as which member.
struct Reading {
    source: Source<Received>,
    member: Option<Member>,
    /// The coordinator has been asked, and its answer was not waited for.
    is_tending: bool,
}

impl Reading {
    /// The next record; `None` after a look without one.
    async fn next(&mut self, cluster: &mut Cluster) -> Result<Option<Received>, ToolError> {
        if let (Some(member), Some(consumer)) = (&mut self.member, self.source.consumer()) {
            self.is_tending = true;
            member.tend(cluster, consumer).await?;
            self.is_tending = false;
        }
        Ok(self.source.next(cluster, LOOK).await?)
    }

    async fn end(mut self, cluster: &mut Cluster) -> Result<(), ToolError> {
        let member = self.member.filter(|_| !self.is_tending);
        if let (Some(member), Some(consumer)) = (member, self.source.consumer()) {
            member.leave(cluster, consumer).await?;
        }
        Ok(())
    }
}

/// Ends when nothing has come for `max`. Without one it does not.
async fn silence(max: Option<Duration>, heard: Instant) -> Duration {
    let Some(max) = max else { return std::future::pending().await };
    tokio::time::sleep_until((heard + max).into()).await;
    max
}

/// What the formatter's file says, over it the deserializers' flags, and over them the properties of flag `words`.
pub(super) fn formatter(matches: &ArgMatches, words: &str) -> Result<Properties, ToolError> {
    let mut given = text(matches, "formatter-config").map(Properties::load).transpose()?.unwrap_or_default();
    for (flag, key) in
        [("key-deserializer", "key.deserializer"), ("value-deserializer", "value.deserializer")]
    {
        if let Some(class) = text(matches, flag).filter(|class| !class.is_empty()) {
            given.set(key, class);
        }
    }
    given.add_words(words, texts(matches, words))?;
    Ok(given)
}

/// An expression that a whole name has to match.
fn pattern(flag: &str, text: &str) -> Result<Regex, ToolError> {
    Regex::new(&format!("^(?:{text})$")).map_err(|error| ToolError::Usage(format!("--{flag}: {error}")))
}

fn group(matches: &ArgMatches, settings: &Settings) -> Result<Option<String>, ToolError> {
    let (flag, config) = (text(matches, "group"), settings.group.as_deref());
    match (flag, config) {
        (Some(flag), Some(config)) if flag != config => Err(ToolError::Usage(format!(
            "two groups are given: --group {flag}, and group.id={config} among the configs"
        ))),
        (None, Some(_)) if !given(matches, &["partition"]).is_empty() => {
            Err(ToolError::Usage("--partition cannot be used together with group.id".to_owned()))
        }
        _ => Ok(flag.or(config).map(str::to_owned)),
    }
}

fn reset(matches: &ArgMatches, settings: &Settings) -> Result<Reset, ToolError> {
    match (matches.get_flag("from-beginning"), settings.reset) {
        (true, None | Some(Reset::Earliest)) => Ok(Reset::Earliest),
        (true, Some(_)) => Err(ToolError::Usage(
            "--from-beginning contradicts auto.offset.reset: leave one of them out".to_owned(),
        )),
        (false, reset) => Ok(reset.unwrap_or(Reset::Latest)),
    }
}

/// Where a partition begins that no group has an offset of.
fn start(matches: &ArgMatches, has_group: bool, reset: Reset) -> Result<StartAt, ToolError> {
    let Some(word) = text(matches, "offset") else {
        let start = reset.start().or(has_group.then_some(StartAt::Latest));
        return start.ok_or_else(|| {
            ToolError::Usage("auto.offset.reset=none needs a group that has committed offsets".to_owned())
        });
    };
    match (word.to_ascii_lowercase().as_str(), word.parse::<i64>()) {
        ("earliest", _) => Ok(StartAt::Earliest),
        ("latest", _) => Ok(StartAt::Latest),
        (_, Ok(offset)) if offset >= 0 => Ok(StartAt::Offset(Offset(offset))),
        _ => Err(ToolError::Usage(format!(
            "--offset takes earliest, latest or a number from 0 on, not '{word}'. Example: --offset 42"
        ))),
    }
}

/// −1 is no limit; less is none at all, as in Kafka.
pub(super) fn records_max(given: Option<i64>) -> Option<u64> {
    given.filter(|max| *max != -1).map(|max| u64::try_from(max).unwrap_or(0))
}

#[cfg(test)]
mod tests;
