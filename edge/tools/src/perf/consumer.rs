//! `consumer-perf-test`, as Kafka's `kafka-consumer-perf-test`: its flags, its lines.
//!
//! Without `--group` no other consumer shares the partitions, so the tool assigns them to itself;
//! `rebalance.time.ms` is then the time it took to find them. `--include` reads every topic whose
//! name it matches when the test begins.
//!
//! Source: Kafka 4.3 `ConsumerPerformance`.

use super::java::{DateFormat, decimal};
use super::{cpu_time, metric_lines};
use crate::command_line::args::{
    exactly_one, excludes, is_given, number, pairs, properties, switch, text, value,
};
use crate::command_line::connection::{self, addresses};
use crate::consuming::member::Member;
use crate::consuming::settings::{Reset, Settings};
use crate::consuming::source::Source;
use crate::waiting::reached;
use crate::{ToolError, block_on, say, topic_lookup};
use barnabas_base::PartitionIndex;
use barnabas_client::{Cluster, ClusterConfig, Consumer, FetchedBatch, StartAt};
use clap::{Arg, ArgMatches};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One look for records, after which the clock is looked at: as long as the tool of Kafka polls.
const LOOK: Duration = Duration::from_millis(100);
const TOOL: &str = "consumer-perf-test";
pub(super) const MB: f64 = 1024.0 * 1024.0;
pub fn flags() -> Vec<Arg> {
    vec![
        connection::bootstrap_server().required(true),
        value("topic", "name", "The topic to read"),
        value("include", "regex", "Read all topics whose name this matches"),
        value("num-records", "n", "How many records"),
        value("messages", "n", "The older name of --num-records"),
        value("group", "id", "Read as a member of this group"),
        value("fetch-size", "bytes", "At most so much of one partition at once (default: 1048576)"),
        switch("from-latest", "Begin at the end where nothing was committed"),
        value("socket-buffer-size", "bytes", "The socket's receive buffer (default: 2097152)"),
        pairs("command-property", "A config of the consumer: fetch.min.bytes=100000 …"),
        value("command-config", "path", "A file with configs of the consumer"),
        value("consumer.config", "path", "The older name of --command-config"),
        switch("print-metrics", "Print what the client counted"),
        switch("show-detailed-stats", "A line for each --reporting-interval instead of one for all"),
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
        switch("json", "Ours: a last line of JSON with the figures in full"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    if !matches.get_flag("hide-header") {
        let first = if job.is_detailed { "time, threadId" } else { "start.time, end.time" };
        say(&format!(
            "{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, \
             fetch.MB.sec, fetch.nMsg.sec"
        ))?;
    }
    let (cpu, started) = (cpu_time(), Clock::now());
    let mut count = Count::new(started);
    block_on(job.read(&mut count))?;
    let (cpu, ended) = (cpu_time() - cpu, Clock::now());
    let elapsed_ms = ended.ms_since(started);
    let mb = count.bytes as f64 / MB;
    let fetch_ms = elapsed_ms - count.join_ms;
    if !job.is_detailed {
        say(&format!(
            "{}, {}, {}, {}, {}, {}, {}, {fetch_ms}, {}, {}",
            job.dates.format(started.unix_ms),
            job.dates.format(ended.unix_ms),
            decimal(mb, 4),
            decimal(mb / (elapsed_ms as f64 / 1e3), 4),
            count.records,
            decimal(count.records as f64 / (elapsed_ms as f64 / 1e3), 4),
            count.join_ms,
            decimal(mb / (fetch_ms as f64 / 1e3), 4),
            decimal(count.records as f64 / (fetch_ms as f64 / 1e3), 4),
        ))?;
    }
    let seconds = elapsed_ms as f64 / 1e3;
    if matches.get_flag("print-metrics") {
        let name =
            |name: &str| format!("consumer-fetch-manager-metrics:{name}:{{client-id={}}}", job.client_id);
        let metrics = vec![
            (name("bytes-consumed-rate"), count.bytes as f64 / seconds),
            (name("bytes-consumed-total"), count.bytes as f64),
            (name("records-consumed-rate"), count.records as f64 / seconds),
            (name("records-consumed-total"), count.records as f64),
        ];
        for line in metric_lines(metrics) {
            say(&line)?;
        }
    }
    if matches.get_flag("json") {
        let line = serde_json::json!({
            "records": count.records,
            "bytes": count.bytes,
            "batches": count.batches,
            "elapsed_s": seconds,
            "rebalance_ms": count.join_ms,
            "records_per_s": count.records as f64 / seconds,
            "mb_per_s": mb / seconds,
            "client_cpu_us_per_record": cpu.as_secs_f64() * 1e6 / count.records.max(1) as f64,
        });
        say(&line.to_string())?;
    }
    Ok(())
}

/// The same moment by the wall and by a clock that only goes forward.
#[derive(Debug, Clone, Copy)]
struct Clock {
    at: Instant,
    unix_ms: i64,
}

impl Clock {
    fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Self { at: Instant::now(), unix_ms: unix.map_or(0, |since| since.as_millis() as i64) }
    }

    fn ms_since(self, earlier: Self) -> i64 {
        self.at.duration_since(earlier.at).as_millis() as i64
    }
}

/// What was read so far, and when a line was told last.
#[derive(Debug)]
struct Count {
    records: u64,
    bytes: u64,
    batches: u64,
    join_ms: i64,
    join_ms_of_round: i64,
    told: Clock,
    told_records: u64,
    told_bytes: u64,
}

impl Count {
    fn new(started: Clock) -> Self {
        Self {
            records: 0,
            bytes: 0,
            batches: 0,
            join_ms: 0,
            join_ms_of_round: 0,
            told: started,
            told_records: 0,
            told_bytes: 0,
        }
    }

    fn joined(&mut self, took: Duration) {
        self.join_ms += took.as_millis() as i64;
        self.join_ms_of_round += took.as_millis() as i64;
    }

    /// Counts a batch, up to `records_max` records in all.
    fn take(&mut self, batch: &FetchedBatch, records_max: u64) -> Result<(), ToolError> {
        self.batches += 1;
        for record in &batch.records {
            let unreadable = |error: barnabas_wire::records::BatchError| {
                ToolError::Usage(format!("a record of partition {} cannot be read: {error}", batch.partition))
            };
            let record = record.map_err(unreadable)?;
            if self.records >= records_max {
                break;
            }
            if record.offset >= batch.from {
                self.records += 1;
                self.bytes +=
                    (record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)) as u64;
            }
        }
        Ok(())
    }

    fn line(&mut self, now: Clock, dates: &DateFormat) -> String {
        let ms = now.ms_since(self.told) as f64;
        let fetch_ms = now.ms_since(self.told) - self.join_ms_of_round;
        let mb = (self.bytes - self.told_bytes) as f64 / MB;
        let records = (self.records - self.told_records) as f64;
        let per_fetch = |amount: f64| if fetch_ms <= 0 { 0.0 } else { 1000.0 * amount / fetch_ms as f64 };
        format!(
            "{}, 0, {}, {}, {}, {}, {}, {fetch_ms}, {}, {}",
            dates.format(now.unix_ms),
            decimal(self.bytes as f64 / MB, 4),
            decimal(1000.0 * mb / ms, 4),
            self.records,
            decimal(records / ms * 1000.0, 4),
            self.join_ms_of_round,
            decimal(per_fetch(mb), 4),
            decimal(per_fetch(records), 4),
        )
    }

    fn tell(&mut self, now: Clock, job: &Job) -> Result<(), ToolError> {
        if job.is_detailed {
            let line = self.line(now, &job.dates);
            say(&line)?;
        }
        self.join_ms_of_round = 0;
        (self.told, self.told_records, self.told_bytes) = (now, self.records, self.bytes);
        Ok(())
    }
}

/// The flag under its new name or, with Kafka's warning on standard output, under its old one.
pub(super) fn old_name(
    matches: &ArgMatches,
    new: &'static str,
    old: &'static str,
) -> Result<&'static str, ToolError> {
    excludes(matches, new, &[old])?;
    if !is_given(matches, old) {
        return Ok(new);
    }
    say(&format!("Warning: --{old} is deprecated. Use --{new} instead."))?;
    Ok(old)
}

/// What was asked for.
struct Job {
    cluster: ClusterConfig,
    client_id: String,
    topic: Option<String>,
    include: Option<regex::Regex>,
    group: Option<String>,
    records: u64,
    timeout: Duration,
    interval: Duration,
    is_detailed: bool,
    dates: DateFormat,
    start: StartAt,
    settings: Settings,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let usage = |text: &str| ToolError::Usage(text.to_owned());
        exactly_one(matches, &["topic", "include"])?;
        exactly_one(matches, &["num-records", "messages"])?;
        let records = old_name(matches, "num-records", "messages")?;
        let file = old_name(matches, "command-config", "consumer.config")?;
        let mut settings = Settings::read(&properties(matches, file, "command-property")?)?;
        settings.consumer.partition_bytes_max = number(matches, "fetch-size")?.unwrap_or(1024 * 1024);
        settings.consumer.receive_buffer_bytes =
            number(matches, "socket-buffer-size")?.unwrap_or(2 * 1024 * 1024);
        let reset = if matches.get_flag("from-latest") { Reset::Latest } else { Reset::Earliest };
        settings.reset = Some(reset);
        settings.consumer.reset = reset.start();
        let interval: u64 = number(matches, "reporting-interval")?.unwrap_or(5_000);
        if interval == 0 {
            return Err(usage("Reporting interval must be greater than 0."));
        }
        let include = text(matches, "include");
        let include = include.map(|pattern| regex::Regex::new(&format!("^(?:{pattern})$"))).transpose();
        let bootstrap = addresses("bootstrap-server", text(matches, "bootstrap-server").unwrap_or_default())?;
        let cluster = settings.cluster(&bootstrap, "perf-consumer-client");
        let job = Self {
            client_id: cluster.client_id.clone(),
            cluster,
            topic: text(matches, "topic").map(str::to_owned),
            include: include.map_err(|error| ToolError::Usage(format!("--include: {error}")))?,
            group: text(matches, "group").map(str::to_owned),
            records: number(matches, records)?.unwrap_or_default(),
            timeout: Duration::from_millis(number(matches, "timeout")?.unwrap_or(10_000)),
            interval: Duration::from_millis(interval),
            is_detailed: matches.get_flag("show-detailed-stats"),
            dates: DateFormat::new(text(matches, "date-format").unwrap_or("yyyy-MM-dd HH:mm:ss:SSS"))
                .map_err(ToolError::Usage)?,
            start: if reset == Reset::Latest { StartAt::Latest } else { StartAt::Earliest },
            settings,
        };
        if job.include.is_some() && job.group.is_some() {
            return Err(usage("--include and --group exclude each other here: a member reads one topic"));
        }
        Ok(job)
    }

    async fn read(&self, count: &mut Count) -> Result<(), ToolError> {
        let mut cluster = Cluster::new(self.cluster.clone());
        reached(TOOL, cluster.config()).await?;
        let joining = Instant::now();
        let topics = match (&self.topic, &self.include) {
            (None, Some(pattern)) => topic_lookup::matching(&mut cluster, pattern).await?,
            (topic, _) => {
                let topic = topic.clone().unwrap_or_default();
                let deadline = Some(Instant::now() + self.cluster.deadline);
                topic_lookup::find(TOOL, &mut cluster, &topic, self.settings.auto_create, deadline).await?;
                vec![topic]
            }
        };
        let mut consumers = Vec::new();
        for topic in &topics {
            let mut consumer = Consumer::new(topic, self.settings.consumer.clone());
            if self.group.is_none() {
                let known = &cluster.topic(topic, false).await?.partitions;
                let indexes = known.iter().map(|one| PartitionIndex(one.partition_index));
                consumer.assign(indexes.map(|index| (index, self.start)).collect::<Vec<_>>());
            }
            consumers.push(consumer);
        }
        let reset = self.settings.reset.unwrap_or(Reset::Earliest);
        let member = self.group.as_ref().map(|id| Member::new(TOOL, &self.settings, id, &topics[0], reset));
        if member.is_none() {
            count.joined(joining.elapsed());
        }
        let source = Source::new(TOOL, consumers, &cluster);
        self.count_all(&mut cluster, source, member, count).await
    }

    async fn count_all(
        &self,
        cluster: &mut Cluster,
        mut source: Source<FetchedBatch>,
        mut member: Option<Member>,
        count: &mut Count,
    ) -> Result<(), ToolError> {
        let mut heard = Instant::now();
        while count.records < self.records && heard.elapsed() <= self.timeout {
            if let (Some(member), Some(consumer)) = (&mut member, source.consumer())
                && let Some(took) = member.tend(cluster, consumer).await?
            {
                count.joined(took);
            }
            if let Some(batch) = source.next(cluster, LOOK).await? {
                count.take(&batch, self.records)?;
                heard = Instant::now();
            }
            if count.told.at.elapsed() >= self.interval {
                count.tell(Clock::now(), self)?;
            }
        }
        if count.records < self.records {
            say(&format!(
                "WARNING: Exiting before consuming the expected number of records: timeout ({} ms) exceeded. You can use \
                 the --timeout option to increase the timeout.",
                self.timeout.as_millis()
            ))?;
            source.report_standing();
        }
        if let (Some(member), Some(consumer)) = (member, source.consumer()) {
            member.leave(cluster, consumer).await?;
        }
        Ok(())
    }
}
