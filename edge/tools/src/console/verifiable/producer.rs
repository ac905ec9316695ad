//! `verifiable-producer`, as Kafka's `kafka-verifiable-producer`: sends 0, 1, 2 … to a topic, and says of each whether
//! it was acknowledged.
//!
//! Events: `startup_complete`, `producer_send_success`, `producer_send_error`, `shutdown_complete`, `tool_data`. SIGINT
//! and SIGTERM end it as Kafka's: what was sent is waited for first.
//!
//! Source: Kafka 4.3 `VerifiableProducer`, `ThroughputThrottler`.

use super::event::event;
use crate::asking::signals::stopped;
use crate::command_line::args::{number, renamed, text, value};
use crate::command_line::connection::{self, addresses};
use crate::command_line::properties::Properties;
use crate::output::kafka_errors::class_and_message;
use crate::{ToolError, block_on, now_ms};
use barnabas_client::{ClientError, Delivery, PipelineConfig, PipelinedProducer, Record, Spread, Taken};
use clap::{Arg, ArgMatches};
use std::pin::pin;
use std::time::{Duration, Instant};

/// One wait for what was sent.
const TURN: Duration = Duration::from_millis(500);

pub fn flags() -> Vec<Arg> {
    vec![
        value("topic", "name", "The topic to send to").required(true),
        connection::bootstrap_server().required(true),
        value("max-messages", "n", "How many records to send; -1: until it is stopped (default: -1)"),
        value("throughput", "n", "Records a second at the most; -1: no limit (default: -1)"),
        value("acks", "-1|0|1", "The acknowledgements of each record (default: -1, all)")
            .value_parser(["-1", "0", "1"]),
        value("producer.config", "path", "The older name of --command-config"),
        value("message-create-time", "ms", "The timestamp of the first record, in ms since 1970"),
        value("value-prefix", "n", "Put this number and a dot in front of each value"),
        value("repeating-keys", "n", "Give the records the keys 0 to n-1, over and over"),
        value("command-config", "path", "A file with configs of the producer; they prevail over the flags"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    event("startup_complete").print()?;
    let mut sending = Sending { started: Instant::now(), sent: 0, acked: 0 };
    let ended = block_on(sending.send_all(&job));
    event("shutdown_complete").print()?;
    sending.summary(&job).print()?;
    match ended? {
        Some(signal) => Err(ToolError::Stopped(signal)),
        None => Ok(()),
    }
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    topic: String,
    config: PipelineConfig,
    /// `None`: until it is stopped.
    records: Option<u64>,
    throughput: i64,
    prefix: Option<i32>,
    keys: Option<u64>,
    first_timestamp_ms: Option<i64>,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let file = renamed(matches, "command-config", "producer.config")?;
        let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
        let mut given = Properties::default();
        for (key, value) in [
            ("bootstrap.servers", bootstrap.as_str()),
            ("client.id", "verifiable-producer"),
            ("acks", text(matches, "acks").unwrap_or("-1")),
            // A record that is sent again would count twice.
            ("retries", "0"),
        ] {
            given.set(key, value);
        }
        if let Some(path) = text(matches, file) {
            Properties::load(path)?.iter().for_each(|(key, value)| given.set(key, value));
        }
        let parsed = PipelineConfig::parse(given.iter())?;
        given.warn_of_unknown("producer", |key| !parsed.unknown.iter().any(|unknown| unknown == key));
        let keys: Option<i32> = number(matches, "repeating-keys")?;
        Ok(Self {
            topic: text(matches, "topic").unwrap_or_default().to_owned(),
            config: parsed.config,
            records: number::<i32>(matches, "max-messages")?.and_then(|max| u64::try_from(max).ok()),
            throughput: number::<i32>(matches, "throughput")?.unwrap_or(-1).into(),
            prefix: number(matches, "value-prefix")?,
            // As in Kafka, a count below 1 is never reached: keys go on for ever.
            keys: keys.map(|count| u64::try_from(count).ok().filter(|count| *count > 0).unwrap_or(u64::MAX)),
            first_timestamp_ms: number(matches, "message-create-time")?.filter(|ms| *ms != -1),
        })
    }

    fn value(&self, record: u64) -> String {
        self.prefix.map_or_else(|| record.to_string(), |prefix| format!("{prefix}.{record}"))
    }

    fn key(&self, record: u64) -> Option<String> {
        self.keys.map(|count| (record % count).to_string())
    }

    /// When a record is due, counted from the start. `None`: never.
    fn due(&self, record: u64) -> Option<Duration> {
        match self.throughput {
            0 => (record == 0).then_some(Duration::ZERO),
            ..0 => Some(Duration::ZERO),
            rate => Some(Duration::from_secs_f64(record as f64 / rate as f64)),
        }
    }
}

struct Sending {
    started: Instant,
    sent: u64,
    acked: u64,
}

impl Sending {
    /// Returns the signal that ended it early.
    async fn send_all(&mut self, job: &Job) -> Result<Option<u8>, ToolError> {
        let mut stop = pin!(stopped());
        let mut producer = None;
        let ended = tokio::select! {
            biased;
            signal = &mut stop => Some(signal?),
            sent = self.send(job, &mut producer) => {
                sent?;
                None
            }
        };
        if let Some(producer) = &mut producer {
            producer.close_batches()?;
            while producer.outstanding() > 0 {
                producer.turn(TURN).await?;
            }
            self.report(job, producer)?;
        }
        Ok(ended)
    }

    async fn send(&mut self, job: &Job, made: &mut Option<PipelinedProducer>) -> Result<(), ToolError> {
        let started_ms = now_ms();
        let mut timestamp_ms = job.first_timestamp_ms;
        while job.records.is_none_or(|max| self.sent < max) {
            self.wait_until_due(job, made).await?;
            let record = self.sent;
            self.sent += 1;
            let producer = match made {
                Some(producer) => producer,
                None => match PipelinedProducer::new(&job.topic, job.config.clone(), Spread::Sticky).await {
                    Ok(producer) => made.insert(producer),
                    Err(error) => {
                        self.refused(job, record, &error)?;
                        continue;
                    }
                },
            };
            self.offer(job, producer, record, timestamp_ms).await?;
            timestamp_ms = timestamp_ms.map(|at| at + now_ms() - started_ms);
        }
        Ok(())
    }

    async fn wait_until_due(
        &mut self,
        job: &Job,
        made: &mut Option<PipelinedProducer>,
    ) -> Result<(), ToolError> {
        let due = job.due(self.sent).map(|due| self.started + due);
        loop {
            let now = Instant::now();
            let wait = due.map_or(TURN, |due| due.saturating_duration_since(now).min(TURN));
            match made {
                Some(producer) => {
                    producer.turn(wait).await?;
                    self.report(job, producer)?;
                }
                None => tokio::time::sleep(wait).await,
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                return Ok(());
            }
        }
    }

    async fn offer(
        &mut self,
        job: &Job,
        producer: &mut PipelinedProducer,
        record: u64,
        timestamp_ms: Option<i64>,
    ) -> Result<(), ToolError> {
        let (key, value) = (job.key(record), job.value(record));
        let key = key.as_ref().map(String::as_bytes);
        let offered = Record { key, value: Some(value.as_bytes()), timestamp_ms, ..Record::default() };
        loop {
            match producer.send(&offered, record) {
                Ok(Taken::Yes) => return Ok(()),
                Ok(Taken::Full) => {
                    producer.turn(TURN).await?;
                    self.report(job, producer)?;
                }
                Err(error) => return self.refused(job, record, &error),
            }
        }
    }

    /// Prints what became of the records that were answered.
    fn report(&mut self, job: &Job, producer: &mut PipelinedProducer) -> Result<(), ToolError> {
        while let Some(delivery) = producer.next_delivery() {
            for (record, offset) in offsets(&delivery) {
                match &delivery.error {
                    Some(error) => self.refused(job, record, error)?,
                    None => {
                        self.acked += 1;
                        event("producer_send_success")
                            .field("key", job.key(record))
                            .field("value", job.value(record))
                            .field("topic", job.topic.as_str())
                            .field("partition", delivery.partition)
                            .field("offset", offset)
                            .print()?;
                    }
                }
            }
        }
        Ok(())
    }

    fn refused(&self, job: &Job, record: u64, error: &ClientError) -> Result<(), ToolError> {
        let (class, message) = class_and_message(error);
        event("producer_send_error")
            .field("topic", job.topic.as_str())
            .field("key", job.key(record))
            .field("value", job.value(record))
            .field("exception", format!("class {class}"))
            .field("message", message)
            .print()
    }

    fn summary(&self, job: &Job) -> super::event::Object {
        let elapsed_ms = self.started.elapsed().as_secs_f64() * 1_000.0;
        event("tool_data")
            .field("sent", self.sent)
            .field("acked", self.acked)
            .field("target_throughput", job.throughput)
            .field("avg_throughput", 1_000.0 * self.acked as f64 / elapsed_ms)
    }
}

/// The records of a delivery by number, each with its offset; −1 where the broker gave none.
fn offsets(delivery: &Delivery) -> impl Iterator<Item = (u64, i64)> + '_ {
    let records = delivery.marks.iter().map(|mark| mark.0);
    records.zip(0..).map(|(record, place)| {
        (record, if delivery.base_offset < 0 { -1 } else { delivery.base_offset + place })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &str) -> Result<Job, String> {
        let words = format!("verifiable-producer --bootstrap-server h:1 --topic t {words}");
        let command = clap::Command::new("verifiable-producer").args(flags());
        let matches =
            command.try_get_matches_from(words.split_whitespace()).map_err(|error| error.to_string())?;
        Job::new(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read_as_kafkas() {
        let read = job("--max-messages 3 --value-prefix 7 --repeating-keys 2 --acks 1").expect("a job");
        assert_eq!((read.records, read.config.acks, read.config.retries), (Some(3), 1, 0));
        let records: Vec<_> = (0..3).map(|record| (read.key(record), read.value(record))).collect();
        let expected = [("0", "7.0"), ("1", "7.1"), ("0", "7.2")];
        assert_eq!(records, expected.map(|(key, value)| (Some(key.to_owned()), value.to_owned())));
        let read = job("").expect("a job");
        assert_eq!((read.records, read.key(0), read.value(5)), (None, None, "5".to_owned()));
        assert_eq!(job("--max-messages -1").expect("a job").records, None);
    }

    #[test]
    fn values_that_kafkas_tool_refuses_are_refused() {
        assert!(job("--acks 5").expect_err("no acks").contains("--acks"));
        assert_eq!(
            job("--max-messages x").expect_err("no number"),
            "--max-messages takes a number, not 'x'. Example: --max-messages 3"
        );
        assert_eq!(
            job("--producer.config a --command-config b").expect_err("two files"),
            "--command-config cannot be used together with --producer.config"
        );
    }

    #[test]
    fn records_are_due_by_the_throughput() {
        assert_eq!(job("--throughput 4").expect("a job").due(2), Some(Duration::from_millis(500)));
        assert_eq!(job("").expect("a job").due(1_000), Some(Duration::ZERO));
        // As with Kafka's tool, the second record never comes.
        let stands = job("--throughput 0").expect("a job");
        assert_eq!((stands.due(0), stands.due(1)), (Some(Duration::ZERO), None));
    }

    #[test]
    fn records_of_a_delivery_have_offsets_in_a_row() {
        let marks = vec![(4, 1), (9, 1)];
        let delivery =
            Delivery { partition: 0, base_offset: 7, records: 2, content_bytes: 0, marks, error: None };
        assert_eq!(offsets(&delivery).collect::<Vec<_>>(), [(4, 7), (9, 8)]);
        let unknown = Delivery { base_offset: -1, ..delivery };
        assert_eq!(offsets(&unknown).collect::<Vec<_>>(), [(4, -1), (9, -1)]);
    }
}
