//! `share-consumer-perf-test`, as Kafka's `kafka-share-consumer-perf-test`: its flags, its lines.
//!
//! Each of `--threads` is a member of the share group with connections of its own; all run on one thread of this
//! process.
//!
//! Source: Kafka 4.3 `ShareConsumerPerformance`.

use super::consumer::{MB, old_name};
use super::java::{DateFormat, decimal};
use super::metric_lines;
use crate::command_line::args::{exactly_one, number, pairs, properties, switch, text, value};
use crate::command_line::connection::{self, addresses};
use crate::consuming::settings::Settings;
use crate::waiting::reached;
use crate::{ToolError, block_on, now_ms, say, topic_lookup};
use barnabas_client::{Acknowledge, Cluster, ClusterConfig, ShareConfig, ShareConsumer};
use clap::{Arg, ArgMatches};
use std::cell::Cell;
use std::time::{Duration, Instant};

const TOOL: &str = "share-consumer-perf-test";
/// One look for records, after which the clock is looked at.
const LOOK: Duration = Duration::from_millis(100);

pub fn flags() -> Vec<Arg> {
    vec![
        connection::bootstrap_server().required(true),
        value("topic", "name", "The topic to read").required(true),
        value("num-records", "n", "How many records"),
        value("messages", "n", "The older name of --num-records"),
        value("group", "id", "The share group (default: perf-share-consumer)"),
        value("fetch-size", "bytes", "At most so much in one answer (default: 1048576)"),
        value("socket-buffer-size", "bytes", "The socket's receive buffer (default: as the system has it)"),
        pairs("command-property", "A config of the consumer: fetch.min.bytes=100000 …"),
        value("command-config", "path", "A file with configs of the consumer"),
        value("consumer.config", "path", "The older name of --command-config"),
        switch("print-metrics", "Print what the client counted"),
        switch("show-detailed-stats", "A line for each --reporting-interval too"),
        value("timeout", "ms", "Stop after so long without a record (default: 10000)")
            .num_args(0..=1)
            .default_missing_value("10000"),
        value("reporting-interval", "ms", "Between two lines (default: 5000)"),
        value(
            "date-format",
            "pattern",
            "How times are written (default: yyyy-MM-dd HH:mm:ss:SSS); they are UTC",
        ),
        switch("hide-header", "No header line"),
        value("threads", "n", "How many members read (default: 1)"),
        switch("show-consumer-stats", "A line for each member at the end"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    if !matches.get_flag("hide-header") {
        say(
            "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms",
        )?;
    }
    let total = Total { records: Cell::new(0), started_ms: now_ms() };
    let counts = block_on(job.read(&total))?;
    let ended_ms = now_ms();
    if matches.get_flag("show-consumer-stats") {
        for (place, count) in counts.iter().enumerate() {
            let (number, client) = (place + 1, job.client_id(place));
            say(&format!(
                "Share consumer {number} having client id {client} consumption metrics- {}",
                job.stats(count, total.started_ms, ended_ms)
            ))?;
        }
    }
    if total.records.get() < job.records {
        say(&format!(
            "WARNING: Exiting before consuming the expected number of records: timeout ({} ms) exceeded. You can use the \
             --timeout option to increase the timeout.",
            job.timeout.as_millis()
        ))?;
    }
    let sum = counts.iter().fold(Count::default(), |sum, one| Count {
        records: sum.records + one.records,
        bytes: sum.bytes + one.bytes,
    });
    say(&job.stats(&sum, total.started_ms, ended_ms))?;
    if matches.get_flag("print-metrics") {
        let seconds = (ended_ms - total.started_ms).max(1) as f64 / 1e3;
        for (place, count) in counts.iter().enumerate() {
            metrics(&job.client_id(place), count, seconds).iter().try_for_each(|line| say(line))?;
        }
    }
    Ok(())
}

fn metrics(client: &str, count: &Count, seconds: f64) -> Vec<String> {
    let name = |name: &str| format!("consumer-share-fetch-manager-metrics:{name}:{{client-id={client}}}");
    metric_lines(vec![
        (name("bytes-consumed-rate"), count.bytes as f64 / seconds),
        (name("bytes-consumed-total"), count.bytes as f64),
        (name("records-consumed-rate"), count.records as f64 / seconds),
        (name("records-consumed-total"), count.records as f64),
    ])
}

/// What all members have read, and since when.
struct Total {
    records: Cell<u64>,
    started_ms: i64,
}

/// What one member has read. Bytes of keys and values.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    records: u64,
    bytes: u64,
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    cluster: ClusterConfig,
    topic: String,
    share: ShareConfig,
    records: u64,
    members: usize,
    timeout: Duration,
    interval: Duration,
    is_detailed: bool,
    dates: DateFormat,
    auto_create: bool,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        exactly_one(matches, &["num-records", "messages"])?;
        let records = old_name(matches, "num-records", "messages")?;
        let file = old_name(matches, "command-config", "consumer.config")?;
        let settings = Settings::read(&properties(matches, file, "command-property")?)?;
        let interval: u64 = number(matches, "reporting-interval")?.unwrap_or(5_000);
        if interval == 0 {
            return Err(ToolError::Usage("Reporting interval must be greater than 0.".to_owned()));
        }
        let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
        let mut share = settings.share(text(matches, "group").unwrap_or("perf-share-consumer"));
        share.bytes_max = number(matches, "fetch-size")?.unwrap_or(1024 * 1024);
        Ok(Self {
            cluster: settings.cluster(&bootstrap, "perf-share-consumer-client"),
            topic: text(matches, "topic").unwrap_or_default().to_owned(),
            share,
            records: number(matches, records)?.unwrap_or_default(),
            members: number::<usize>(matches, "threads")?.unwrap_or(1).max(1),
            timeout: Duration::from_millis(number(matches, "timeout")?.unwrap_or(10_000)),
            interval: Duration::from_millis(interval),
            is_detailed: matches.get_flag("show-detailed-stats"),
            dates: DateFormat::new(text(matches, "date-format").unwrap_or("yyyy-MM-dd HH:mm:ss:SSS"))
                .map_err(ToolError::Usage)?,
            auto_create: settings.auto_create,
        })
    }

    fn client_id(&self, place: usize) -> String {
        let id = &self.cluster.client_id;
        if self.members == 1 { id.clone() } else { format!("{id}-{}", place + 1) }
    }

    async fn read(&self, total: &Total) -> Result<Vec<Count>, ToolError> {
        let mut cluster = Cluster::new(self.cluster.clone());
        reached(TOOL, cluster.config()).await?;
        let deadline = Some(Instant::now() + self.cluster.deadline);
        topic_lookup::find(TOOL, &mut cluster, &self.topic, self.auto_create, deadline).await?;
        let members = (0..self.members).map(|place| self.member(place, total));
        join_all(members).await.into_iter().collect()
    }

    async fn member(&self, place: usize, total: &Total) -> Result<Count, ToolError> {
        let mut cluster =
            Cluster::new(ClusterConfig { client_id: self.client_id(place), ..self.cluster.clone() });
        let mut consumer = ShareConsumer::new(self.share.clone(), &self.topic)?;
        let (mut count, mut told, mut told_ms) = (Count::default(), Count::default(), now_ms());
        let mut heard = Instant::now();
        while total.records.get() < self.records && heard.elapsed() <= self.timeout {
            let Some(shared) = consumer.poll(&mut cluster, LOOK).await? else { continue };
            let record = &shared.record;
            consumer.acknowledge(record, Acknowledge::Accept);
            let length = |bytes: Option<&bytes::Bytes>| bytes.map_or(0, |bytes| bytes.len() as u64);
            count.records += 1;
            count.bytes += length(record.key.as_ref()) + length(record.value.as_ref());
            total.records.set(total.records.get() + 1);
            heard = Instant::now();
            let now = now_ms();
            if now - told_ms >= self.interval.as_millis() as i64 {
                if self.is_detailed {
                    say(&self.progress(&count, &told, (told_ms, now), place + 1))?;
                }
                (told, told_ms) = (count, now);
            }
        }
        consumer.commit(&mut cluster).await?;
        consumer.close(&mut cluster).await?;
        Ok(count)
    }

    fn progress(&self, count: &Count, told: &Count, (from_ms, to_ms): (i64, i64), number: usize) -> String {
        let ms = (to_ms - from_ms) as f64;
        let mb = (count.bytes - told.bytes) as f64 / MB;
        let records = (count.records - told.records) as f64;
        format!(
            "{}, {}, {}, {}, {}, {}, {} for share consumer {number}",
            self.dates.format(from_ms),
            self.dates.format(to_ms),
            decimal(count.bytes as f64 / MB, 4),
            decimal(1000.0 * mb / ms, 4),
            decimal(records / ms * 1000.0, 4),
            count.records,
            to_ms - from_ms,
        )
    }

    fn stats(&self, count: &Count, started_ms: i64, ended_ms: i64) -> String {
        let (mb, seconds) = (count.bytes as f64 / MB, (ended_ms - started_ms) as f64 / 1e3);
        format!(
            "{}, {}, {}, {}, {}, {}, {}",
            self.dates.format(started_ms),
            self.dates.format(ended_ms),
            decimal(mb, 4),
            decimal(mb / seconds, 4),
            decimal(count.records as f64 / seconds, 4),
            count.records,
            ended_ms - started_ms,
        )
    }
}

/// Runs all of them at once, on this thread.
async fn join_all<T>(works: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut works: Vec<_> = works.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = works.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (work, done) in works.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = work.as_mut().poll(cx)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(words: &str) -> Result<Job, String> {
        let words = format!("share-consumer-perf-test --bootstrap-server h:1 --topic t {words}");
        let command = clap::Command::new("share-consumer-perf-test").args(flags());
        let matches = command.try_get_matches_from(words.split_whitespace()).expect("flags");
        Job::new(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_those_of_kafkas_tool() {
        let job = job("--num-records 10 --threads 2").expect("a job");
        let count = Count { records: 3_000, bytes: 3 * 1024 * 1024 };
        assert_eq!(
            job.stats(&count, 0, 1_500),
            "1970-01-01 00:00:00:000, 1970-01-01 00:00:01:500, 3.0000, 2.0000, 2000.0000, 3000, 1500"
        );
        let told = Count { records: 2_000, bytes: 2 * 1024 * 1024 };
        assert_eq!(
            job.progress(&count, &told, (500, 1_500), 2),
            "1970-01-01 00:00:00:500, 1970-01-01 00:00:01:500, 3.0000, 1.0000, 1000.0000, 3000, 1000 for share consumer 2"
        );
        assert_eq!((job.client_id(0), job.members), ("perf-share-consumer-client-1".to_owned(), 2));
    }

    #[test]
    fn flags_are_read_as_kafkas() {
        let read = job("--num-records 10 --fetch-size 7 --command-property client.id=c").expect("a job");
        assert_eq!((read.records, read.share.bytes_max, read.client_id(0)), (10, 7, "c".to_owned()));
        assert_eq!(read.share.group, "perf-share-consumer");
        assert_eq!(job("").expect_err("no count"), "give exactly one of --num-records and --messages");
        let refused = job("--num-records 1 --reporting-interval 0").expect_err("no interval");
        assert_eq!(refused, "Reporting interval must be greater than 0.");
    }

    #[tokio::test]
    async fn works_run_at_once_and_answer_in_their_order() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let first: std::pin::Pin<Box<dyn Future<Output = u8>>> =
            Box::pin(async { receiver.await.expect("sent") });
        let second: std::pin::Pin<Box<dyn Future<Output = u8>>> = Box::pin(async {
            sender.send(1).expect("taken");
            2
        });
        assert_eq!(join_all([first, second].into_iter()).await, [1, 2]);
    }
}
