//! `verifiable-consumer`, as Kafka's `kafka-verifiable-consumer`: reads a topic as a member of a group, and prints what
//! it was assigned, what it read and what it committed.
//!
//! Events: `startup_complete`, `partitions_revoked`, `partitions_assigned`, `record_data` (with `--verbose`),
//! `records_consumed`, `offsets_committed`, `shutdown_complete`, `shutdown_requested`. A poll of Kafka's consumer is
//! here what has come, 500 records at the most (Kafka's `max.poll.records`).
//!
//! Source: Kafka 4.3 `VerifiableConsumer`.

use super::event::{Object, event, partition};
use crate::asking::signals::stopped;
use crate::command_line::args::{number, renamed, switch, text, value};
use crate::command_line::connection::{self, addresses};
use crate::command_line::properties::Properties;
use crate::consuming::member::Member;
use crate::consuming::settings::{Reset, Settings};
use crate::consuming::source::Source;
use crate::output::kafka_errors::class_and_message;
use crate::{ToolError, block_on, tell, topic_lookup};
use barnabas_base::{Offset, PartitionIndex};
use barnabas_client::{Cluster, ClusterConfig, Consumer, Received};
use clap::{Arg, ArgMatches};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

const TOOL: &str = "verifiable-consumer";
/// How long one look for records lasts; between two looks it beats and commits.
const LOOK: Duration = Duration::from_millis(500);
/// The records of one `records_consumed`: Kafka's `max.poll.records`.
const POLL_RECORDS_MAX: usize = 500;
const RANGE: &str = "org.apache.kafka.clients.consumer.RangeAssignor";

pub fn flags() -> Vec<Arg> {
    vec![
        connection::bootstrap_server().required(true),
        value("topic", "name", "The topic to read").required(true),
        value("group-protocol", "classic", "How it joins its group: classic (default)"),
        value("group-id", "id", "The group that it joins").required(true),
        value("group-instance-id", "id", "Join as this static member"),
        value("max-messages", "n", "Stop after so many records; -1: when it is stopped (default: -1)"),
        value("session-timeout", "ms", "The session timeout of the member (default: 45000)"),
        switch("verbose", "Print an event for each record"),
        switch("enable-autocommit", "Commit by time, not after each look"),
        value(
            "reset-policy",
            "earliest|latest|none",
            "Where a partition without a committed offset begins (default: earliest)",
        ),
        value("assignment-strategy", "class", "RangeAssignor"),
        value("consumer.config", "path", "The older name of --command-config"),
        value("command-config", "path", "A file with configs of the consumer; the flags prevail over them"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    event("startup_complete").print()?;
    let ended = block_on(job.read());
    if let Err(error) = &ended {
        // As in Kafka an error goes to the log, and the events say that it ends.
        tell(&format!("{TOOL}: {error}"));
    }
    event("shutdown_complete").print()?;
    event("shutdown_requested").print()?;
    match ended {
        Ok(Some(signal)) => Err(ToolError::Stopped(signal)),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    cluster: ClusterConfig,
    topic: String,
    group: String,
    /// `None`: until it is stopped.
    records_max: Option<u64>,
    is_verbose: bool,
    reset: Reset,
    settings: Settings,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        check_protocol(matches)?;
        let file = renamed(matches, "command-config", "consumer.config")?;
        let mut given = text(matches, file).map(Properties::load).transpose()?.unwrap_or_default();
        let group = text(matches, "group-id").unwrap_or_default().to_owned();
        for (flag, key) in [
            ("group-id", "group.id"),
            ("group-instance-id", "group.instance.id"),
            ("session-timeout", "session.timeout.ms"),
        ] {
            if let Some(value) = text(matches, flag) {
                given.set(key, value);
            }
        }
        given.set("auto.offset.reset", text(matches, "reset-policy").unwrap_or("earliest"));
        given.set("enable.auto.commit", if matches.get_flag("enable-autocommit") { "true" } else { "false" });
        let mut settings = Settings::read(&given)?;
        let reset = settings.reset.unwrap_or(Reset::Earliest);
        settings.consumer.reset = reset.start();
        let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
        Ok(Self {
            cluster: settings.cluster(&bootstrap, TOOL),
            topic: text(matches, "topic").unwrap_or_default().to_owned(),
            group,
            records_max: number::<i32>(matches, "max-messages")?.and_then(|max| u64::try_from(max).ok()),
            is_verbose: matches.get_flag("verbose"),
            reset,
            settings,
        })
    }

    /// Returns the signal that ended it.
    async fn read(&self) -> Result<Option<u8>, ToolError> {
        let mut stop = pin!(stopped());
        let mut cluster = Cluster::new(self.cluster.clone());
        tokio::select! {
            biased;
            signal = &mut stop => return Ok(Some(signal?)),
            found = topic_lookup::find(TOOL, &mut cluster, &self.topic, self.settings.auto_create, None) => found?,
        }
        let consumer = Consumer::new(&self.topic, self.settings.consumer.clone());
        let mut reading = Reading {
            job: self,
            source: Source::new(TOOL, vec![consumer], &cluster),
            member: Member::new(TOOL, &self.settings, &self.group, &self.topic, self.reset),
            consumed: 0,
        };
        let ended = tokio::select! {
            biased;
            signal = &mut stop => signal.map(Some),
            read = reading.read(&mut cluster) => read.map(|()| None),
        };
        reading.end(&mut cluster).await?;
        ended
    }
}

fn check_protocol(matches: &ArgMatches) -> Result<(), ToolError> {
    if let Some(protocol) =
        text(matches, "group-protocol").filter(|word| !word.eq_ignore_ascii_case("classic"))
    {
        return Err(ToolError::Usage(format!("--group-protocol takes classic, not '{protocol}'")));
    }
    match text(matches, "assignment-strategy").filter(|class| *class != RANGE) {
        Some(class) => Err(ToolError::Usage(format!("--assignment-strategy takes {RANGE}, not '{class}'"))),
        None => Ok(()),
    }
}

struct Reading<'a> {
    job: &'a Job,
    source: Source<Received>,
    member: Member,
    consumed: u64,
}

impl Reading<'_> {
    async fn read(&mut self, cluster: &mut Cluster) -> Result<(), ToolError> {
        while self.job.records_max.is_none_or(|max| self.consumed < max) {
            self.tend(cluster).await?;
            let records = self.poll(cluster).await?;
            if records.is_empty() {
                continue;
            }
            let left = self.job.records_max.map_or(usize::MAX, |max| (max - self.consumed) as usize);
            let wanted = &records[..records.len().min(left)];
            self.consumed += wanted.len() as u64;
            let offsets = self.report(wanted, records.len())?;
            if !self.job.settings.auto_commit {
                self.commit(cluster, &offsets).await?;
            }
        }
        Ok(())
    }

    /// Beats, and joins where it has to.
    async fn tend(&mut self, cluster: &mut Cluster) -> Result<(), ToolError> {
        let Some(consumer) = self.source.consumer() else { return Ok(()) };
        if self.member.stay(cluster, consumer).await? {
            return Ok(());
        }
        self.revoked()?;
        let Some(consumer) = self.source.consumer() else { return Ok(()) };
        self.member.join(cluster, consumer).await?;
        self.partitions("partitions_assigned").print()
    }

    fn revoked(&self) -> Result<(), ToolError> {
        if self.member.shared().is_empty() {
            return Ok(());
        }
        self.partitions("partitions_revoked").print()
    }

    fn partitions(&self, name: &str) -> Object {
        let partitions = self.member.shared().iter();
        event(name).list("partitions", partitions.map(|index| partition(&self.job.topic, index.get())))
    }

    /// What has come.
    async fn poll(&mut self, cluster: &mut Cluster) -> Result<Vec<Received>, ToolError> {
        let mut records = Vec::new();
        while records.len() < POLL_RECORDS_MAX {
            let wait = if records.is_empty() { LOOK } else { Duration::ZERO };
            if !records.is_empty() && self.source.is_drained() {
                break;
            }
            let Some(record) = self.source.next(cluster, wait).await? else { break };
            records.push(record);
        }
        Ok(records)
    }

    /// Prints what was read of `polled` records: with `--max-messages` it may be less. Returns the offsets to commit.
    fn report(
        &self,
        records: &[Received],
        polled: usize,
    ) -> Result<Vec<(PartitionIndex, Offset)>, ToolError> {
        if self.job.is_verbose {
            records.iter().try_for_each(|record| self.record(record).print())?;
        }
        let summaries = summaries(records);
        let rows = summaries.iter().map(|(index, summary)| summary.object(&self.job.topic, *index));
        event("records_consumed").field("count", polled).list("partitions", rows).print()?;
        let next = |(index, summary): (&i32, &Summary)| (PartitionIndex(*index), Offset(summary.last + 1));
        Ok(summaries.iter().map(next).collect())
    }

    fn record(&self, record: &Received) -> Object {
        event("record_data")
            .field("key", words(record.key.as_deref()))
            .field("value", words(record.value.as_deref()))
            .field("topic", self.job.topic.as_str())
            .field("partition", record.partition.get())
            .field("offset", record.offset.get())
    }

    async fn commit(
        &mut self,
        cluster: &mut Cluster,
        offsets: &[(PartitionIndex, Offset)],
    ) -> Result<(), ToolError> {
        let committed = self.member.commit(cluster, offsets).await;
        let told = event("offsets_committed").list(
            "offsets",
            offsets
                .iter()
                .map(|(index, offset)| partition(&self.job.topic, index.get()).field("offset", offset.get())),
        );
        match committed {
            Ok(true) => told.field("success", true).print(),
            Ok(false) => told.field("error", "the group is rebalancing").field("success", false).print(),
            Err(ToolError::Client(error)) => {
                told.field("error", class_and_message(&error).1).field("success", false).print()
            }
            Err(error) => Err(error),
        }
    }

    async fn end(mut self, cluster: &mut Cluster) -> Result<(), ToolError> {
        self.revoked()?;
        self.source.report_standing();
        match self.source.consumer() {
            Some(consumer) => self.member.leave(cluster, consumer).await,
            None => Ok(()),
        }
    }
}

/// Of one partition's records.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    count: u64,
    first: i64,
    last: i64,
}

impl Summary {
    fn object(&self, topic: &str, index: i32) -> Object {
        partition(topic, index)
            .field("count", self.count)
            .field("minOffset", self.first)
            .field("maxOffset", self.last)
    }
}

fn summaries(records: &[Received]) -> BTreeMap<i32, Summary> {
    let mut summaries = BTreeMap::new();
    for record in records {
        let offset = record.offset.get();
        let new = Summary { count: 0, first: offset, last: offset };
        let summary = summaries.entry(record.partition.get()).or_insert(new);
        summary.count += 1;
        summary.last = offset;
    }
    summaries
}

/// As Kafka's `StringDeserializer` reads them.
fn words(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &str) -> Result<Job, String> {
        let words = format!("verifiable-consumer --bootstrap-server h:1 --topic t --group-id g {words}");
        let command = clap::Command::new("verifiable-consumer").args(flags());
        let matches = command.try_get_matches_from(words.split_whitespace()).expect("flags");
        Job::new(&matches).map_err(|error| error.to_string())
    }

    fn received(partition: i32, offset: i64) -> Received {
        Received {
            partition: PartitionIndex(partition),
            offset: Offset(offset),
            timestamp_ms: 0,
            dated_by_broker: false,
            key: None,
            value: None,
            headers: Vec::new(),
        }
    }

    #[test]
    fn flags_stand_over_the_file() {
        let read = job("").expect("a job");
        assert_eq!((read.reset, read.records_max, read.settings.auto_commit), (Reset::Earliest, None, false));
        let read = job("--reset-policy none --max-messages 7 --enable-autocommit --group-instance-id one")
            .expect("a job");
        assert_eq!((read.reset, read.records_max, read.settings.auto_commit), (Reset::None, Some(7), true));
        assert_eq!(read.settings.group("g").instance.as_deref(), Some("one"));
    }

    #[test]
    fn what_it_cannot_be_is_refused() {
        assert_eq!(
            job("--group-protocol consumer").expect_err("refused"),
            "--group-protocol takes classic, not 'consumer'"
        );
        assert!(job("--assignment-strategy x.RoundRobinAssignor").expect_err("refused").contains(RANGE));
        assert!(job("--reset-policy middle").expect_err("refused").contains("earliest, latest or none"));
    }

    #[test]
    fn records_of_a_look_are_summed_up_by_partition() {
        let records = [received(1, 4), received(0, 9), received(1, 7)];
        let expected =
            [(0, Summary { count: 1, first: 9, last: 9 }), (1, Summary { count: 2, first: 4, last: 7 })];
        assert_eq!(summaries(&records).into_iter().collect::<Vec<_>>(), expected);
        let text = expected[1].1.object("t", 1).text();
        assert_eq!(text, r#"{"topic":"t","partition":1,"count":2,"minOffset":4,"maxOffset":7}"#);
    }
}
