//! `consumer-perf-test`, as Kafka's `kafka-consumer-perf-test`: same flags, same lines.
//!
//! Without `--group` nobody else shares the partitions, so they are read without a group; `rebalance.time.ms` is then the
//! time it took to find them. `--include` reads every topic whose name it matches when the test begins.
//!
//! Source: Kafka 4.3 `ConsumerPerformance`.

use super::java::{DateFormat, decimal};
use super::{cpu_time, metric_lines, read_properties};
use crate::waiting::reached;
use crate::{ToolError, block_on, number, pairs, say, switch, tell, text, value};
use barnabas_base::PartitionIndex;
use barnabas_client::{
    ClientError, Cluster, ClusterConfig, Consumer, ConsumerConfig, FetchedBatch, Group, GroupConfig, StartAt,
};
use clap::{Arg, ArgMatches};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// One look for records, after which the clock is looked at: as long as the tool of Kafka polls.
const LOOK: Duration = Duration::from_millis(100);
/// Batches of several topics that wait to be counted.
const BATCHES_AHEAD: usize = 16;
const COMMIT_INTERVAL: Duration = Duration::from_secs(5);
const CLIENT_ID: &str = "perf-consumer-client";
const MB: f64 = 1024.0 * 1024.0;
/// Names of Kafka's that mean nothing here, or that a flag decides.
const WITHOUT_EFFECT: &[&str] = &[
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "bootstrap.servers",
    "check.crcs",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "default.api.timeout.ms",
    "enable.auto.commit",
    "enable.metrics.push",
    "exclude.internal.topics",
    "group.id",
    "group.protocol",
    "heartbeat.interval.ms",
    "key.deserializer",
    "max.partition.fetch.bytes",
    "max.poll.interval.ms",
    "max.poll.records",
    "metadata.max.age.ms",
    "metric.reporters",
    "partition.assignment.strategy",
    "receive.buffer.bytes",
    "reconnect.backoff.ms",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "value.deserializer",
];

pub fn flags() -> Vec<Arg> {
    vec![
        value("bootstrap-server", "host:port", "A node to begin with; several with commas").required(true),
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

/// Where batches come from: one topic's consumer, or the tasks of several.
enum Source {
    One(Box<Consumer>),
    Many(mpsc::Receiver<Result<FetchedBatch, ClientError>>),
}

impl Source {
    /// The next batch, or `None` after one look.
    async fn next(&mut self, cluster: &mut Cluster) -> Result<Option<FetchedBatch>, ClientError> {
        match self {
            Self::One(consumer) => consumer.poll_batch(cluster, LOOK).await,
            Self::Many(batches) => match tokio::time::timeout(LOOK, batches.recv()).await {
                Ok(Some(told)) => told.map(Some),
                // All tasks have ended, each with its error told.
                Ok(None) => Err(ClientError::Invalid("no topic can be read any more".to_owned())),
                Err(_) => Ok(None),
            },
        }
    }
}

/// What was asked for.
struct Job {
    bootstrap: String,
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
    config: ConsumerConfig,
    request_timeout: Duration,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let usage = |text: &str| ToolError::Usage(text.to_owned());
        let (topic, include) = (text(matches, "topic"), text(matches, "include"));
        if topic.is_some() == include.is_some() {
            return Err(usage("exactly one of --topic and --include is needed"));
        }
        let (now, old) = (number::<u64>(matches, "num-records")?, number::<u64>(matches, "messages")?);
        let records = match (now, old) {
            (Some(records), None) | (None, Some(records)) => records,
            _ => return Err(usage("exactly one of --num-records and --messages is needed")),
        };
        let (file, old_file) = (text(matches, "command-config"), text(matches, "consumer.config"));
        if file.is_some() && old_file.is_some() {
            return Err(usage("--command-config and --consumer.config cannot be specified together."));
        }
        for (is_given, was, is) in [
            (old.is_some(), "messages", "num-records"),
            (old_file.is_some(), "consumer.config", "command-config"),
        ] {
            if is_given {
                say(&format!("Warning: --{was} is deprecated. Use --{is} instead."))?;
            }
        }
        let interval: u64 = number(matches, "reporting-interval")?.unwrap_or(5_000);
        if interval == 0 {
            return Err(usage("Reporting interval must be greater than 0."));
        }
        let include = include.map(|pattern| regex::Regex::new(&format!("^(?:{pattern})$"))).transpose();
        let mut job = Self {
            bootstrap: text(matches, "bootstrap-server").unwrap_or_default().to_owned(),
            client_id: CLIENT_ID.to_owned(),
            topic: topic.map(str::to_owned),
            include: include.map_err(|error| ToolError::Usage(format!("--include: {error}")))?,
            group: text(matches, "group").map(str::to_owned),
            records,
            timeout: Duration::from_millis(number(matches, "timeout")?.unwrap_or(10_000)),
            interval: Duration::from_millis(interval),
            is_detailed: matches.get_flag("show-detailed-stats"),
            dates: DateFormat::new(text(matches, "date-format").unwrap_or("yyyy-MM-dd HH:mm:ss:SSS"))
                .map_err(ToolError::Usage)?,
            start: if matches.get_flag("from-latest") { StartAt::Latest } else { StartAt::Earliest },
            config: ConsumerConfig {
                partition_bytes_max: number(matches, "fetch-size")?.unwrap_or(1024 * 1024),
                receive_buffer_bytes: number(matches, "socket-buffer-size")?.unwrap_or(2 * 1024 * 1024),
                ..Default::default()
            },
            request_timeout: Duration::from_secs(30),
        };
        if job.include.is_some() && job.group.is_some() {
            return Err(usage("--include and --group exclude each other here: a member reads one topic"));
        }
        job.read_properties(matches, file.or(old_file))?;
        Ok(job)
    }

    fn read_properties(&mut self, matches: &ArgMatches, file: Option<&str>) -> Result<(), ToolError> {
        let mut properties = file.map(read_properties).transpose()?.unwrap_or_default();
        for word in matches.get_many::<String>("command-property").into_iter().flatten() {
            let pair =
                word.split_once('=').ok_or_else(|| ToolError::Usage(format!("Invalid property: {word}")))?;
            properties.push((pair.0.to_owned(), pair.1.to_owned()));
        }
        let mut unknown = Vec::new();
        for (name, value) in &properties {
            let bad = || ToolError::Usage(format!("{name} cannot be '{value}'"));
            match name.as_str() {
                "client.id" => self.client_id.clone_from(value),
                "fetch.min.bytes" => self.config.bytes_min = value.parse().map_err(|_| bad())?,
                "fetch.max.bytes" => self.config.bytes_max = value.parse().map_err(|_| bad())?,
                "fetch.max.wait.ms" => {
                    self.config.wait_max =
                        Duration::from_millis(value.parse::<u32>().map_err(|_| bad())?.into());
                }
                "request.timeout.ms" => {
                    self.request_timeout = Duration::from_millis(value.parse().map_err(|_| bad())?);
                }
                "isolation.level" if value == "read_committed" => self.config.read_committed = true,
                "isolation.level" if value == "read_uncommitted" => self.config.read_committed = false,
                "isolation.level" => return Err(bad()),
                "security.protocol" if value.eq_ignore_ascii_case("PLAINTEXT") => {}
                "security.protocol" => return Err(bad()),
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => unknown.push(name.to_owned()),
            }
        }
        if !unknown.is_empty() {
            tell(&format!(
                "WARN no consumer knows these properties, they change nothing: {}",
                unknown.join(", ")
            ));
        }
        Ok(())
    }

    fn cluster(&self) -> Cluster {
        let config = ClusterConfig::new(&self.bootstrap, &self.client_id);
        Cluster::new(ClusterConfig { request_timeout: self.request_timeout, ..config })
    }

    async fn read(&self, count: &mut Count) -> Result<(), ToolError> {
        let mut cluster = self.cluster();
        reached("consumer-perf-test", cluster.config()).await?;
        let joining = Instant::now();
        let topics = self.topics(&mut cluster).await?;
        let mut group = self.group.as_ref().map(|id| Group::new(GroupConfig::new(id), &topics[0]));
        let mut consumers = Vec::new();
        for topic in &topics {
            let mut consumer = Consumer::new(topic, self.config.clone());
            match &mut group {
                Some(group) => self.join(group, &mut cluster, &mut consumer).await?,
                None => {
                    let known = &cluster.topic(topic, false).await?.partitions;
                    consumer
                        .assign(known.iter().map(|one| (PartitionIndex(one.partition_index), self.start)));
                }
            }
            consumers.push(consumer);
        }
        count.joined(joining.elapsed());
        let mut source = match consumers.len() {
            1 => Source::One(Box::new(consumers.remove(0))),
            _ => self.read_all(consumers),
        };
        self.count_all(&mut cluster, &mut source, group.as_mut(), count).await?;
        if let (Some(mut group), Source::One(consumer)) = (group, source) {
            let positions: Vec<_> = consumer.positions().collect();
            group.commit(&mut cluster, positions).await?;
            group.leave(&mut cluster).await?;
        }
        Ok(())
    }

    /// Each topic gets a task, so that one that is silent holds up no other.
    fn read_all(&self, consumers: Vec<Consumer>) -> Source {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        for mut consumer in consumers {
            let (sender, mut cluster) = (sender.clone(), self.cluster());
            tokio::spawn(async move {
                while !sender.is_closed() {
                    let told = match consumer.poll_batch(&mut cluster, LOOK).await.transpose() {
                        Some(told) => told,
                        None => continue,
                    };
                    let is_last = told.is_err();
                    if sender.send(told).await.is_err() || is_last {
                        break;
                    }
                }
            });
        }
        Source::Many(batches)
    }

    async fn topics(&self, cluster: &mut Cluster) -> Result<Vec<String>, ToolError> {
        if let Some(topic) = &self.topic {
            let tries = cluster.tries(format!("finding topic {topic}"));
            while let Err(error) = cluster.topic(topic, true).await {
                tries.after(error).await?;
            }
            return Ok(vec![topic.clone()]);
        }
        let told = cluster.refresh(None, false).await?;
        let names = told.topics.iter().filter_map(|topic| topic.name.as_ref()).map(|name| name.to_string());
        let wanted = names.filter(|name| self.include.as_ref().is_some_and(|pattern| pattern.is_match(name)));
        let topics: Vec<String> = wanted.collect();
        if topics.is_empty() {
            return Err(ToolError::Usage("--include matches no topic".to_owned()));
        }
        Ok(topics)
    }

    async fn join(
        &self,
        group: &mut Group,
        cluster: &mut Cluster,
        consumer: &mut Consumer,
    ) -> Result<(), ToolError> {
        let shared = group.join(cluster).await?;
        consumer.assign(
            shared
                .into_iter()
                .map(|(partition, committed)| (partition, committed.map_or(self.start, StartAt::Offset))),
        );
        Ok(())
    }

    async fn count_all(
        &self,
        cluster: &mut Cluster,
        source: &mut Source,
        mut group: Option<&mut Group>,
        count: &mut Count,
    ) -> Result<(), ToolError> {
        let (mut heard, mut committed) = (Instant::now(), Instant::now());
        while count.records < self.records && heard.elapsed() <= self.timeout {
            if let (Some(group), Source::One(consumer)) = (group.as_deref_mut(), &mut *source) {
                let mut is_member = group.stay(cluster).await?;
                if is_member && committed.elapsed() >= COMMIT_INTERVAL {
                    committed = Instant::now();
                    let positions: Vec<_> = consumer.positions().collect();
                    is_member = group.commit(cluster, positions).await?;
                }
                if !is_member {
                    let joining = Instant::now();
                    self.join(group, cluster, consumer).await?;
                    count.joined(joining.elapsed());
                }
            }
            if let Some(batch) = source.next(cluster).await? {
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
        }
        Ok(())
    }
}
