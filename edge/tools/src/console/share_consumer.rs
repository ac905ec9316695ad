//! `console-share-consumer`, as Kafka's `kafka-console-share-consumer`: a record that its share group acquires is a
//! line of standard output, and is accepted, rejected or released.
//!
//! How it ends, as in Kafka: exit code 0 after `--max-messages` and, with an error on standard error, after
//! `--timeout-ms`; 1 where the command line cannot be read, or a record and `--reject-message-on-error` is not given.
//! The number of records is the last line on standard error.
//!
//! Source: Kafka 4.3 `ConsoleShareConsumer`, `ConsoleShareConsumerOptions`.

use super::consumer::{formatter, records_max};
use super::printer::Printer;
use crate::asking::signals::stopped;
use crate::command_line::args::{number, pairs, properties, renamed, switch, text, value};
use crate::command_line::connection::{self, addresses};
use crate::consuming::settings::Settings;
use crate::waiting::reached;
use crate::{ToolError, block_on, say, tell, topic_lookup};
use barnabas_client::{Acknowledge, Cluster, ClusterConfig, ShareConfig, ShareConsumer, Shared};
use clap::{Arg, ArgMatches};
use std::io::Write;
use std::pin::pin;
use std::time::{Duration, Instant};

const TOOL: &str = "console-share-consumer";
/// How long one look for records lasts; between two looks it beats and checks the clock.
const LOOK: Duration = Duration::from_millis(500);

pub fn flags() -> Vec<Arg> {
    vec![
        connection::bootstrap_server().required(true),
        value("topic", "name", "The topic to read").required(true),
        value("group", "id", "The share group (default: console-share-consumer)"),
        value("max-messages", "n", "Stop after so many records"),
        value("timeout-ms", "ms", "Stop after so long without a record"),
        switch("reject", "Reject the records instead of accepting them"),
        switch("release", "Release the records, so that they are delivered again"),
        switch("reject-message-on-error", "Reject a record that cannot be printed, instead of ending"),
        value(
            "formatter",
            "class",
            "DefaultMessageFormatter (default) or NoOpMessageFormatter, which prints nothing",
        ),
        pairs(
            "formatter-property",
            "What is printed: print.key=true, print.delivery=true, key.separator=: …",
        ),
        value("formatter-config", "path", "A file with what --formatter-property takes"),
        pairs("property", "The older name of --formatter-property"),
        value("key-deserializer", "class", "What keys are: LongDeserializer …"),
        value("value-deserializer", "class", "What values are: LongDeserializer …"),
        pairs("command-property", "A config of the consumer: fetch.max.bytes=1000000 …"),
        value("command-config", "path", "A file with configs of the consumer"),
        pairs("consumer-property", "The older name of --command-property"),
        value("consumer-config", "path", "The older name of --command-config"),
        switch("enable-systest-events", "Print shutdown_complete at the end, for system tests"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    let mut printed = 0;
    let ended = block_on(job.read(&mut printed));
    if let (Ok(End::Silence), Some(max)) = (&ended, job.silence_max) {
        tell(&format!("{TOOL}: no record came within {} ms (--timeout-ms)", max.as_millis()));
    }
    tell(&format!("Processed a total of {printed} messages"));
    if matches.get_flag("enable-systest-events") {
        say("shutdown_complete")?;
    }
    match ended? {
        End::Stopped(signal) => Err(ToolError::Stopped(signal)),
        End::Enough | End::Silence => Ok(()),
    }
}

/// Why it ends without an error.
enum End {
    Enough,
    Silence,
    /// By this signal.
    Stopped(u8),
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    cluster: ClusterConfig,
    topic: String,
    share: ShareConfig,
    acknowledge: Acknowledge,
    records_max: Option<u64>,
    silence_max: Option<Duration>,
    printer: Printer,
    rejects_errors: bool,
    auto_create: bool,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let acknowledge = match (matches.get_flag("reject"), matches.get_flag("release")) {
            (true, true) => {
                return Err(ToolError::Usage(
                    "At most one of --reject and --release may be specified.".to_owned(),
                ));
            }
            (true, false) => Acknowledge::Reject,
            (false, true) => Acknowledge::Release,
            (false, false) => Acknowledge::Accept,
        };
        let file = renamed(matches, "command-config", "consumer-config")?;
        let words = renamed(matches, "command-property", "consumer-property")?;
        let settings = Settings::read(&properties(matches, file, words)?)?;
        let group = group(text(matches, "group"), settings.group.as_deref())?;
        let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
        let words = renamed(matches, "formatter-property", "property")?;
        Ok(Self {
            cluster: settings.cluster(&bootstrap, TOOL),
            topic: text(matches, "topic").unwrap_or_default().to_owned(),
            share: settings.share(&group),
            acknowledge,
            records_max: records_max(number(matches, "max-messages")?),
            silence_max: number::<i64>(matches, "timeout-ms")?
                .and_then(|ms| u64::try_from(ms).ok())
                .map(Duration::from_millis),
            printer: Printer::new(text(matches, "formatter"), &formatter(matches, words)?)?,
            rejects_errors: matches.get_flag("reject-message-on-error"),
            auto_create: settings.auto_create,
        })
    }

    async fn read(&self, printed: &mut u64) -> Result<End, ToolError> {
        let mut stop = pin!(stopped());
        let mut cluster = Cluster::new(self.cluster.clone());
        tokio::select! {
            biased;
            signal = &mut stop => return Ok(End::Stopped(signal?)),
            ready = self.prepare(&mut cluster) => ready?,
        }
        let mut consumer = ShareConsumer::new(self.share.clone(), &self.topic)?;
        let ended = tokio::select! {
            biased;
            signal = &mut stop => signal.map(End::Stopped),
            read = self.print_all(&mut cluster, &mut consumer, printed) => read,
        };
        // A request may have been left in the middle: its connection stays open, as the share session goes with it, and
        // is not used again.
        let mut closing = cluster.with_new_connections();
        let is_stopped = matches!(ended, Ok(End::Stopped(_)));
        consumer.close(if is_stopped { &mut closing } else { &mut cluster }).await?;
        ended
    }

    async fn prepare(&self, cluster: &mut Cluster) -> Result<(), ToolError> {
        reached(TOOL, cluster.config()).await?;
        topic_lookup::find(TOOL, cluster, &self.topic, self.auto_create, None).await
    }

    async fn print_all(
        &self,
        cluster: &mut Cluster,
        consumer: &mut ShareConsumer,
        printed: &mut u64,
    ) -> Result<End, ToolError> {
        let mut output = std::io::BufWriter::new(std::io::stdout());
        let mut heard = Instant::now();
        while self.records_max.is_none_or(|max| *printed < max) {
            let left = self.silence_max.map(|max| max.saturating_sub(heard.elapsed()));
            match consumer.poll(cluster, left.map_or(LOOK, |left| left.min(LOOK))).await? {
                Some(shared) => {
                    *printed += 1;
                    self.print(consumer, &shared, &mut output)?;
                    heard = Instant::now();
                }
                None if self.silence_max.is_some_and(|max| heard.elapsed() >= max) => {
                    output.flush().map_err(ToolError::Output)?;
                    return Ok(End::Silence);
                }
                None => {}
            }
            if consumer.is_drained() {
                output.flush().map_err(ToolError::Output)?;
            }
        }
        output.flush().map_err(ToolError::Output)?;
        Ok(End::Enough)
    }

    fn print(
        &self,
        consumer: &mut ShareConsumer,
        shared: &Shared,
        output: &mut impl Write,
    ) -> Result<(), ToolError> {
        let record = &shared.record;
        match self.printer.delivered(record, shared.delivery) {
            Ok(line) => output.write_all(&line).map_err(ToolError::Output)?,
            Err(error) if self.rejects_errors => {
                let (partition, offset) = (record.partition, record.offset);
                tell(&format!("ERROR partition {partition}, offset {offset} is rejected: {error}"));
                consumer.acknowledge(record, Acknowledge::Reject);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        consumer.acknowledge(record, self.acknowledge);
        Ok(())
    }
}

/// The group of the flag and that of the configs, where both are given the same one.
fn group(flag: Option<&str>, config: Option<&str>) -> Result<String, ToolError> {
    match (flag, config) {
        (Some(flag), Some(config)) if flag != config => Err(ToolError::Usage(format!(
            "two groups are given: --group {flag}, and group.id={config} among the configs"
        ))),
        _ => Ok(flag.or(config).unwrap_or(TOOL).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &str) -> Result<Job, String> {
        let words = format!("console-share-consumer --bootstrap-server h:1 --topic t {words}");
        let command = clap::Command::new("console-share-consumer").args(flags());
        let matches = command.try_get_matches_from(words.split_whitespace()).expect("flags");
        Job::new(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn records_are_accepted_unless_another_way_is_asked_for() {
        let of = |words| job(words).expect("a job").acknowledge;
        assert_eq!(of(""), Acknowledge::Accept);
        assert_eq!(of("--reject"), Acknowledge::Reject);
        assert_eq!(of("--release --reject-message-on-error"), Acknowledge::Release);
        let refused = job("--reject --release").expect_err("both");
        assert_eq!(refused, "At most one of --reject and --release may be specified.");
    }

    #[test]
    fn group_is_kafkas_default_unless_one_is_given() {
        let of = |words| job(words).map(|job| job.share.group);
        assert_eq!(of("").as_deref(), Ok("console-share-consumer"));
        assert_eq!(of("--group g").as_deref(), Ok("g"));
        assert_eq!(of("--command-property group.id=h").as_deref(), Ok("h"));
        assert!(of("--group g --command-property group.id=h").expect_err("two").starts_with("two groups"));
    }

    #[test]
    fn limits_are_read_as_kafkas() {
        let job =
            job("--max-messages 3 --timeout-ms 500 --command-property max.poll.records=7").expect("a job");
        assert_eq!((job.records_max, job.silence_max), (Some(3), Some(Duration::from_millis(500))));
        assert_eq!(job.share.records_max, 7);
    }
}
