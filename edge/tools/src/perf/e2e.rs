//! `e2e-latency`, as Kafka's `kafka-e2e-latency`: one record at a time, from its sending to its arrival.
//!
//! Closed loop by its nature: the next record is sent when the last one has arrived. Ours besides: `--json`,
//! `--histogram`.
//!
//! Source: Kafka 4.3 `EndToEndLatency`.

use super::histogram::Latencies;
use super::java::decimal;
use crate::command_line::args::{number, switch, text, value};
use crate::command_line::connection::addresses;
use crate::command_line::properties::Properties;
use crate::waiting::reached;
use crate::{ToolError, block_on, say, say_trouble};
use barnabas_base::PartitionIndex;
use barnabas_client::{
    Admin, ClientError, Cluster, ClusterConfig, Consumer, ConsumerConfig, NewTopic, PipelineConfig,
    PipelinedProducer, Received, Record, Spread, StartAt,
};
use clap::{Arg, ArgMatches};
use std::time::{Duration, Instant};

const POLL_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks for what keeps a record from coming.
const LOOK: Duration = Duration::from_secs(1);
const REPORT_EVERY: u64 = 1_000;

pub fn flags() -> Vec<Arg> {
    let signed = |name, shown, help| value(name, shown, help).allow_negative_numbers(true);
    vec![
        value("bootstrap-server", "host:port", "A node to begin with; several with commas"),
        value("topic", "name", "The topic to send to and read; made where it is not there"),
        signed("num-records", "n", "How many records"),
        value("producer-acks", "1|all", "When a record counts as sent"),
        signed("record-size", "bytes", "The size of each record's value"),
        value("command-config", "path", "A file with configs of the clients"),
        signed("record-key-size", "bytes", "The size of each record's key (default: 0, no key)"),
        signed("record-header-key-size", "bytes", "The size of each header's key (default: 0)"),
        signed("record-header-size", "bytes", "The size of each header's value; -1: null (default: 0)"),
        signed("num-headers", "n", "Headers of each record (default: 0)"),
        switch("json", "Ours: a last line of JSON with the figures in full"),
        value("histogram", "path", "Ours: write all latencies as an HDR percentile distribution (.hgrm)"),
        Arg::new("positional").num_args(0..).hide(true),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let job = Job::new(matches)?;
    let mut latencies = Latencies::new();
    block_on(job.measure(&mut latencies))?;
    say(&format!("Avg latency: {} ms", decimal(latencies.average_ms(), 4)))?;
    let whole_ms = |quantile| latencies.ms(quantile) as u64;
    let (p50, p99, p999) = (whole_ms(0.5), whole_ms(0.99), whole_ms(0.999));
    say(&format!("Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}"))?;
    if matches.get_flag("json") {
        let line = serde_json::json!({
            "records": latencies.count(),
            "avg_ms": latencies.average_ms(),
            "min_ms": latencies.min_ms(),
            "p50_ms": latencies.ms(0.5),
            "p99_ms": latencies.ms(0.99),
            "p999_ms": latencies.ms(0.999),
            "max_ms": latencies.max_ms(),
        });
        say(&line.to_string())?;
    }
    text(matches, "histogram").map_or(Ok(()), |path| latencies.write(path))
}

/// What must be given, in the order in which the old way names it.
const FLAGS: [&str; 5] = ["bootstrap-server", "topic", "num-records", "producer-acks", "record-size"];

/// The words of the old way, which has no flags; none where there are flags.
fn positional(matches: &ArgMatches) -> Result<Vec<&str>, ToolError> {
    let words: Vec<&str> =
        matches.get_many::<String>("positional").into_iter().flatten().map(String::as_str).collect();
    if FLAGS.iter().any(|flag| text(matches, flag).is_some()) {
        return match words.first() {
            Some(word) => Err(ToolError::Usage(format!("'{word}' belongs to no flag"))),
            None => Ok(words),
        };
    }
    if !(5..=6).contains(&words.len()) {
        return Err(ToolError::Usage(format!(
            "Invalid number of arguments. Expected 5 or 6 positional arguments, but got {}. Usage: bootstrap-server \
             topic num-records producer-acks record-size [optional] command-config",
            words.len()
        )));
    }
    say(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named \
         arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config",
    )?;
    Ok(words)
}

/// `None`: null.
fn header_bytes(matches: &ArgMatches) -> Result<Option<usize>, ToolError> {
    const REFUSAL: &str =
        "Value for --record-header-size must be a non-negative integer or -1 for null header value.";
    match number::<i64>(matches, "record-header-size")?.unwrap_or(0) {
        -1 => Ok(None),
        size => usize::try_from(size).map(Some).map_err(|_| ToolError::Usage(REFUSAL.to_owned())),
    }
}

struct Job {
    bootstrap: String,
    topic: String,
    records: u64,
    record_bytes: usize,
    key_bytes: usize,
    header_key_bytes: usize,
    /// `None`: null.
    header_bytes: Option<usize>,
    headers: usize,
    config: PipelineConfig,
}

/// What one record is made of.
struct Content {
    key: Option<Vec<u8>>,
    value: Vec<u8>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let positional = positional(matches)?;
        let is_old = !positional.is_empty();
        let word = |place: usize| if is_old { Some(positional[place]) } else { text(matches, FLAGS[place]) };
        let needed = |place: usize| {
            word(place)
                .ok_or_else(|| ToolError::Usage(format!("Missing required argument \"[{}]\"", FLAGS[place])))
        };
        let whole = |flag: &str, text: &str| {
            text.parse::<i32>()
                .map_err(|_| ToolError::Usage(format!("--{flag} takes a number, not '{text}'")))
        };
        let records = match whole("num-records", needed(2)?)? {
            records if records > 0 => records.unsigned_abs().into(),
            _ => {
                return Err(ToolError::Usage(
                    "Value for --num-records must be a positive integer.".to_owned(),
                ));
            }
        };
        let acks = needed(3)?;
        if !["1", "all"].contains(&acks) {
            return Err(ToolError::Usage(
                "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' \
                 or 'all'."
                    .to_owned(),
            ));
        }
        let bytes = |flag: &str, value: i32| {
            usize::try_from(value)
                .map_err(|_| ToolError::Usage(format!("Value for --{flag} must be a non-negative integer.")))
        };
        let optional = |flag: &str| bytes(flag, number(matches, flag)?.unwrap_or(0));
        let file = if is_old { positional.get(5).copied() } else { text(matches, "command-config") };
        let bootstrap = addresses("bootstrap-server", needed(0)?)?;
        Ok(Self {
            topic: needed(1)?.to_owned(),
            records,
            record_bytes: bytes("record-size", whole("record-size", needed(4)?)?)?,
            key_bytes: optional("record-key-size")?,
            header_key_bytes: optional("record-header-key-size")?,
            header_bytes: header_bytes(matches)?,
            headers: optional("num-headers")?,
            config: config(file.filter(|path| !path.trim().is_empty()), &bootstrap, acks)?,
            bootstrap,
        })
    }

    async fn measure(&self, latencies: &mut Latencies) -> Result<(), ToolError> {
        let mut cluster = Cluster::new(ClusterConfig {
            security: self.config.security.clone(),
            ..ClusterConfig::new(&self.bootstrap, "barnabas-e2e-latency")
        });
        reached("e2e-latency", cluster.config()).await?;
        self.make_topic(&mut cluster).await?;
        let mut consumer = Consumer::new(&self.topic, ConsumerConfig::default());
        let partitions: Vec<_> =
            cluster.topic(&self.topic, false).await?.partitions.iter().map(|p| p.partition_index).collect();
        let mut starts = Vec::new();
        for partition in partitions.into_iter().map(PartitionIndex) {
            let end = cluster.list_offset(&self.topic, partition, -1).await?;
            starts.push((partition, StartAt::Offset(end)));
        }
        consumer.assign(starts);
        let mut producer = PipelinedProducer::new(&self.topic, self.config.clone(), Spread::Sticky).await?;
        let mut random = 1_u64;
        for number in 0..self.records {
            let content = self.content(&mut random);
            let began = Instant::now();
            self.send(&mut producer, &content).await?;
            let arrived = self.receive(&mut consumer, &mut cluster).await?;
            let took = began.elapsed();
            check(&content, arrived, &consumer)?;
            if number % REPORT_EVERY == 0 {
                say(&format!("{number}\t{:?}", took.as_nanos() as f64 / 1e3 / 1e3))?;
            }
            latencies.record(took.as_micros() as u64, 1);
        }
        Ok(())
    }

    async fn receive(
        &self,
        consumer: &mut Consumer,
        cluster: &mut Cluster,
    ) -> Result<Option<Received>, ToolError> {
        let until = Instant::now() + POLL_TIMEOUT;
        loop {
            let record = consumer.poll(cluster, LOOK).await?;
            while let Some(trouble) = consumer.next_trouble() {
                say_trouble("e2e-latency", &trouble, &self.topic, "read")?;
            }
            if record.is_some() || Instant::now() >= until {
                return Ok(record);
            }
        }
    }

    async fn make_topic(&self, cluster: &mut Cluster) -> Result<(), ToolError> {
        let told = cluster.refresh(None, false).await?;
        if told.topics.iter().any(|topic| topic.name.as_deref() == Some(self.topic.as_str())) {
            return Ok(());
        }
        let topic = &self.topic;
        say(&format!(
            "Topic \"{topic}\" does not exist. Will create topic with 1 partition(s) and replication factor = 1"
        ))?;
        let wanted = NewTopic {
            name: topic.clone(),
            partitions: Some(1),
            replication_factor: Some(1),
            ..NewTopic::default()
        };
        if let Err(error) = Admin::new(cluster).create_topic(&wanted).await {
            say(&format!("Creation of topic {topic} failed"))?;
            return Err(error.into());
        }
        let tries = cluster.tries(format!("finding topic {topic}"));
        while let Err(error) = cluster.topic(topic, false).await {
            tries.after(error).await?;
        }
        Ok(())
    }

    fn content(&self, random: &mut u64) -> Content {
        let mut letters = |count: usize| {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            vec![b'A' + ((*random >> 33) % 26) as u8; count]
        };
        Content {
            key: (self.key_bytes > 0).then(|| letters(self.key_bytes)),
            value: letters(self.record_bytes),
            headers: (0..self.headers)
                .map(|_| (letters(self.header_key_bytes), self.header_bytes.map(&mut letters)))
                .collect(),
        }
    }

    async fn send(&self, producer: &mut PipelinedProducer, content: &Content) -> Result<(), ToolError> {
        let headers: Vec<_> =
            content.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let record = Record {
            key: content.key.as_deref(),
            value: Some(&content.value),
            headers: &headers,
            ..Record::default()
        };
        producer.send(&record, 0)?;
        loop {
            if let Some(delivery) = producer.next_delivery() {
                return delivery.error.map_or(Ok(()), |error| Err(error.into()));
            }
            producer.turn(Duration::from_secs(1)).await?;
            while let Some(trouble) = producer.next_trouble() {
                say_trouble("e2e-latency", &trouble, &self.topic, "written")?;
            }
        }
    }
}

/// The file's properties, and over them what makes a latency test of it.
fn config(file: Option<&str>, bootstrap: &str, acks: &str) -> Result<PipelineConfig, ToolError> {
    let mut properties = file.map(Properties::load).transpose()?.unwrap_or_default();
    for (name, value) in [("bootstrap.servers", bootstrap), ("linger.ms", "0"), ("acks", acks)] {
        properties.set(name, value);
    }
    // The file serves consumer and producer both: what one does not know may be the other's.
    Ok(PipelineConfig::parse(properties.iter())?.config)
}

fn check(sent: &Content, arrived: Option<Received>, consumer: &Consumer) -> Result<(), ToolError> {
    let wrong = |text: String| Err(ToolError::Client(ClientError::Invalid(text)));
    let Some(arrived) = arrived else {
        let timeout = POLL_TIMEOUT.as_millis();
        return wrong(format!("poll() timed out before finding a result (timeout:[{timeout}ms])"));
    };
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    if arrived.value.as_deref() != Some(&sent.value[..]) {
        let (read, sent) = (text(arrived.value.as_deref()), text(Some(&sent.value)));
        return wrong(format!(
            "The message value read [{read}] did not match the message value sent [{sent}]"
        ));
    }
    if arrived.key.as_deref() != sent.key.as_deref() {
        let (read, sent) = (text(arrived.key.as_deref()), text(sent.key.as_deref()));
        return wrong(format!("The message key read [{read}] did not match the message key sent [{sent}]"));
    }
    let is_same = arrived.headers.len() == sent.headers.len()
        && arrived
            .headers
            .iter()
            .zip(&sent.headers)
            .all(|(read, sent)| read.0 == sent.0 && read.1.as_deref() == sent.1.as_deref());
    if !is_same {
        return wrong("The message headers read did not match the message headers sent".to_owned());
    }
    if !consumer.is_drained() {
        return wrong("Only one result was expected during this test. We found more".to_owned());
    }
    Ok(())
}
