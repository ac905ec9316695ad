//! `replica-verification`, as Kafka's `kafka-replica-verification`: fetches the same offsets from all replicas of
//! topics, and says where their batches differ, until it is stopped.
//!
//! Each round fetches from every broker, one after the other, then compares batch by batch up to the high watermark, as
//! far as all replicas answered. Exit code 1 after offsets that differ, as in Kafka.
//!
//! Source: Kafka 4.3 `ReplicaVerificationTool`.

use crate::asking::signals::stopped;
use crate::command_line::args::{number, text, value};
use crate::command_line::connection::addresses;
use crate::perf::java::DateFormat;
use crate::waiting::reached;
use crate::{ToolError, block_on, now_ms, say, tell};
use barnabas_base::{BrokerId, ErrorCode, Map, Offset, PartitionIndex, TopicId};
use barnabas_client::{Cluster, ClusterConfig, check};
use barnabas_wire::messages::FetchRequest;
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};
use barnabas_wire::records::{BatchHeader, Entry, entries};
use clap::{Arg, ArgMatches};
use regex::Regex;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

const TOOL: &str = "replica-verification";
/// `FetchRequest.DEBUGGING_CONSUMER_ID`: followers answer it too.
const DEBUGGING_CONSUMER: i32 = -2;
/// From this version on the replica's id is in a struct of its own, and topics have ids.
const REPLICA_STATE_SINCE: i16 = 15;
const TOPIC_IDS_SINCE: i16 = 13;
/// A fetch that opens no session.
const NO_SESSION: i32 = -1;
const LATEST: i64 = -1;

pub fn flags() -> Vec<Arg> {
    vec![
        value("broker-list", "host:port", "A broker to begin with; several with commas").required(true),
        value("fetch-size", "bytes", "At most so much of one partition at once (default: 1048576)"),
        value("max-wait-ms", "ms", "How long a broker may hold a fetch back (default: 1000)"),
        value("topics-include", "regex", "The topics whose whole name this matches (default: .*)"),
        value("time", "ms", "Where to begin: a time, -1 for the end, -2 for the first offset (default: -1)"),
        value("report-interval-ms", "ms", "Between two lines with the largest lag (default: 30000)"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    tell("WARN This tool is deprecated and may be removed in a future major release.");
    let job = Job::new(matches)?;
    block_on(async {
        let mut stop = pin!(stopped());
        tokio::select! {
            biased;
            signal = &mut stop => Err(ToolError::Stopped(signal?)),
            ended = job.verify() => ended,
        }
    })
}

/// What was asked for.
#[derive(Debug)]
struct Job {
    cluster: ClusterConfig,
    topics: Regex,
    fetch_bytes: i32,
    wait_ms: i32,
    time: i64,
    interval: Duration,
    dates: DateFormat,
}

/// A topic's name and a partition.
type Partition = (String, i32);

/// A partition whose replicas are compared.
#[derive(Debug)]
struct Compared {
    topic_id: TopicId,
    replicas: Vec<BrokerId>,
    /// Up to here the replicas are the same.
    offset: i64,
}

/// What one replica answered.
#[derive(Debug, Default)]
struct Answer {
    high_watermark: i64,
    batches: Vec<BatchHeader>,
}

impl Job {
    fn new(matches: &ArgMatches) -> Result<Self, ToolError> {
        let pattern = text(matches, "topics-include").unwrap_or(".*");
        let topics = Regex::new(&format!("^(?:{pattern})$"));
        let bootstrap = addresses("broker-list", text(matches, "broker-list").unwrap_or_default())?;
        Ok(Self {
            cluster: ClusterConfig::new(&bootstrap, TOOL),
            topics: topics.map_err(|_| ToolError::Usage(format!("{pattern} is an invalid regex")))?,
            fetch_bytes: number(matches, "fetch-size")?.unwrap_or(1024 * 1024),
            wait_ms: number(matches, "max-wait-ms")?.unwrap_or(1_000),
            time: number(matches, "time")?.unwrap_or(LATEST),
            interval: Duration::from_millis(number(matches, "report-interval-ms")?.unwrap_or(30_000)),
            dates: DateFormat::new("yyyy-MM-dd HH:mm:ss,SSS").map_err(ToolError::Usage)?,
        })
    }

    fn stamped(&self, words: &str) -> Result<(), ToolError> {
        say(&format!("{}: {words}", self.dates.format(now_ms())))
    }

    async fn verify(&self) -> Result<(), ToolError> {
        let mut cluster = Cluster::new(self.cluster.clone());
        reached(TOOL, cluster.config()).await?;
        let mut partitions = self.find(&mut cluster).await?;
        self.stamped("verification process is started")?;
        let mut reported = Instant::now();
        let mut troubles = Vec::new();
        loop {
            let answers = self.fetch_all(&mut cluster, &partitions, &mut troubles).await;
            for ((topic, index), compared) in &mut partitions {
                let of = |replica: &BrokerId| {
                    let answer = answers.get(&(*replica, topic.clone(), *index));
                    (
                        *replica,
                        answer.map_or(&[][..], |answer| &answer.batches),
                        answer.map_or(0, |of| of.high_watermark),
                    )
                };
                let replicas: Vec<_> = compared.replicas.iter().map(of).collect();
                let found = compare(&format!("{topic}-{index}"), &replicas);
                found.lines.iter().try_for_each(|line| self.stamped(line))?;
                if found.is_fatal {
                    return Err(ToolError::Code(1));
                }
                compared.offset = found.next.unwrap_or(compared.offset);
            }
            if reported.elapsed() > self.interval {
                self.stamped(&report(&partitions, &answers))?;
                reported = Instant::now();
            }
        }
    }

    async fn find(&self, cluster: &mut Cluster) -> Result<BTreeMap<Partition, Compared>, ToolError> {
        let known = cluster.refresh(None, false).await?;
        let mut partitions = BTreeMap::new();
        for topic in &known.topics {
            let name = topic.name.as_deref().unwrap_or_default();
            if !self.topics.is_match(name) {
                continue;
            }
            for partition in &topic.partitions {
                let index = partition.partition_index;
                let offset = cluster.list_offset(name, PartitionIndex(index), self.time).await?;
                let offset = match offset {
                    // Nothing is so young.
                    Offset(..0) => cluster.list_offset(name, PartitionIndex(index), LATEST).await?,
                    offset => offset,
                };
                let replicas = partition.replica_nodes.iter().map(|node| BrokerId(*node)).collect();
                let compared = Compared { topic_id: topic.topic_id, replicas, offset: offset.get() };
                partitions.insert((name.to_owned(), index), compared);
            }
        }
        if partitions.is_empty() {
            return Err(ToolError::Usage(
                "No topics found. --topics-include, if specified, is either filtering out all topics or there is no topic."
                    .to_owned(),
            ));
        }
        Ok(partitions)
    }

    /// What each replica answers. One that does not answer is reported once, and has no batches.
    async fn fetch_all(
        &self,
        cluster: &mut Cluster,
        partitions: &BTreeMap<Partition, Compared>,
        troubles: &mut Vec<String>,
    ) -> Map<(BrokerId, String, i32), Answer> {
        let mut answers = Map::default();
        let mut brokers: Vec<BrokerId> = partitions.values().flat_map(|one| one.replicas.clone()).collect();
        brokers.sort();
        brokers.dedup();
        for broker in brokers {
            if let Err(error) = self.fetch(cluster, broker, partitions, &mut answers, troubles).await {
                trouble(troubles, format!("broker {broker}: {error}"));
                tokio::time::sleep(self.cluster.retry_backoff).await;
            }
        }
        answers
    }

    fn request(
        &self,
        version: i16,
        broker: BrokerId,
        partitions: &BTreeMap<Partition, Compared>,
    ) -> FetchRequest {
        let mut topics: Vec<FetchTopic> = Vec::new();
        for ((topic, index), compared) in partitions.iter().filter(|one| one.1.replicas.contains(&broker)) {
            if topics.last().is_none_or(|last| *last.topic != **topic) {
                topics.push(FetchTopic {
                    topic: topic.as_str().into(),
                    topic_id: compared.topic_id,
                    ..Default::default()
                });
            }
            let partition = FetchPartition {
                partition: *index,
                fetch_offset: compared.offset,
                partition_max_bytes: self.fetch_bytes,
                ..Default::default()
            };
            topics.last_mut().expect("it was put there just now").partitions.push(partition);
        }
        for topic in &mut topics {
            match version {
                TOPIC_IDS_SINCE.. => topic.topic = Default::default(),
                _ => topic.topic_id = TopicId::default(),
            }
        }
        let mut request = FetchRequest {
            max_wait_ms: self.wait_ms,
            min_bytes: 1,
            max_bytes: i32::MAX,
            session_epoch: NO_SESSION,
            topics,
            ..Default::default()
        };
        match version {
            REPLICA_STATE_SINCE.. => {
                request.replica_state = ReplicaState { replica_id: DEBUGGING_CONSUMER, ..Default::default() };
            }
            _ => request.replica_id = DEBUGGING_CONSUMER,
        }
        request
    }

    async fn fetch(
        &self,
        cluster: &mut Cluster,
        broker: BrokerId,
        partitions: &BTreeMap<Partition, Compared>,
        answers: &mut Map<(BrokerId, String, i32), Answer>,
        troubles: &mut Vec<String>,
    ) -> Result<(), ToolError> {
        let answer = cluster.ask_with(broker, |version| self.request(version, broker, partitions)).await?;
        check(format!("fetching from broker {broker}"), answer.error_code, None)?;
        for topic in answer.responses {
            let by_id =
                || partitions.iter().find(|one| one.1.topic_id == topic.topic_id).map(|one| one.0.0.clone());
            let name = if topic.topic.is_empty() { by_id() } else { Some(topic.topic.to_string()) };
            let Some(name) = name else { continue };
            for data in topic.partitions {
                let index = data.partition_index;
                if data.error_code != 0 {
                    let code = ErrorCode::from_code(data.error_code).name();
                    trouble(troubles, format!("{name}-{index} on broker {broker}: {code}"));
                }
                let batch = |entry| match entry {
                    Ok(Entry::Batch(batch)) => Some(*batch.header()),
                    Ok(Entry::Message(_)) | Err(_) => None,
                };
                let batches = entries(data.records.unwrap_or_default()).map_while(batch).collect();
                let answer = Answer { high_watermark: data.high_watermark, batches };
                answers.insert((broker, name.clone(), index), answer);
            }
        }
        Ok(())
    }
}

fn trouble(troubles: &mut Vec<String>, words: String) {
    if !troubles.contains(&words) {
        tell(&format!("{TOOL}: {words}"));
        troubles.push(words);
    }
}

/// What a comparison gave.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    lines: Vec<String>,
    /// The offset after the last batch that all replicas have.
    next: Option<i64>,
    /// Offsets differ: it ends.
    is_fatal: bool,
}

/// Compares the batches of a partition's replicas, one of each at a time, up to their high watermarks.
fn compare(place: &str, replicas: &[(BrokerId, &[BatchHeader], i64)]) -> Found {
    let mut found = Found::default();
    for at in 0.. {
        let mut first: Option<(BrokerId, &BatchHeader)> = None;
        for (replica, batches, high_watermark) in replicas {
            let Some(batch) = batches.get(at).filter(|batch| batch.last_offset().get() < *high_watermark)
            else {
                return found;
            };
            let Some((other, known)) = first else {
                first = Some((*replica, batch));
                continue;
            };
            let (offset, theirs) = (batch.last_offset(), known.last_offset());
            if offset != theirs {
                found.lines.push(format!(
                    "partition {place}: replica {other}'s offset {theirs} doesn't match replica {replica}'s offset {offset}"
                ));
                found.is_fatal = true;
                return found;
            }
            if batch.crc != known.crc {
                found.lines.push(format!(
                    "partition {place} has unmatched checksum at offset {offset}; replica {other}'s checksum {}; replica \
                     {replica}'s checksum {}",
                    known.crc, batch.crc
                ));
            }
        }
        match first {
            Some((_, batch)) => found.next = Some(batch.next_offset().get()),
            None => return found,
        }
    }
    found
}

/// The largest distance between a high watermark and what was compared.
fn report(
    partitions: &BTreeMap<Partition, Compared>,
    answers: &Map<(BrokerId, String, i32), Answer>,
) -> String {
    let lag = |((topic, index), compared): (&Partition, &Compared)| {
        let answer = |replica: &BrokerId| answers.get(&(*replica, topic.clone(), *index));
        let marks = compared.replicas.iter().filter_map(answer).map(|answer| answer.high_watermark);
        (marks.max().unwrap_or(-1) - compared.offset, format!("{topic}-{index}"), compared.offset)
    };
    let mut largest = (-1, "null".to_owned(), -1);
    for lag in partitions.iter().map(lag) {
        if lag.0 > largest.0 {
            largest = lag;
        }
    }
    let (lag, place, offset) = largest;
    format!("max lag is {lag} for partition {place} at offset {offset} among {} partitions", partitions.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::TimestampMs;
    use barnabas_wire::records::{BatchBuilder, BatchOptions};

    fn header(base: i64, value: &[u8]) -> BatchHeader {
        let options = BatchOptions { base_offset: Offset(base), ..BatchOptions::default() };
        let mut batch = BatchBuilder::new(options);
        batch.push(TimestampMs(0), None, Some(value), &[]);
        let bytes = batch.build().expect("a batch");
        match entries(bytes).next() {
            Some(Ok(Entry::Batch(batch))) => *batch.header(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replicas_that_are_alike_move_on_to_the_high_watermark() {
        let batches = [header(0, b"a"), header(1, b"b"), header(2, b"c")];
        let (one, two) = (BrokerId(1), BrokerId(2));
        let found = compare("t-0", &[(one, &batches, 2), (two, &batches, 3)]);
        assert_eq!(found, Found { next: Some(2), ..Found::default() });
        let behind = compare("t-0", &[(one, &batches, 3), (two, &batches[..1], 3)]);
        assert_eq!(behind.next, Some(1));
        assert_eq!(compare("t-0", &[(one, &batches, 3), (two, &[], 0)]), Found::default());
    }

    #[test]
    fn differences_are_worded_as_kafkas() {
        let (one, two) = (BrokerId(1), BrokerId(2));
        let (a, b) = ([header(0, b"a")], [header(0, b"b")]);
        let found = compare("t-0", &[(one, &a, 1), (two, &b, 1)]);
        let expected = format!(
            "partition t-0 has unmatched checksum at offset 0; replica 1's checksum {}; replica 2's checksum {}",
            a[0].crc, b[0].crc
        );
        assert_eq!((found.lines, found.next, found.is_fatal), (vec![expected], Some(1), false));
        let later = [header(4, b"a")];
        let found = compare("t-0", &[(one, &a, 9), (two, &later, 9)]);
        assert_eq!(found.lines, ["partition t-0: replica 1's offset 0 doesn't match replica 2's offset 4"]);
        assert!(found.is_fatal);
    }

    #[test]
    fn largest_lag_is_reported() {
        let compared =
            |offset| Compared { topic_id: TopicId::default(), replicas: vec![BrokerId(1)], offset };
        let partitions =
            BTreeMap::from([(("t".to_owned(), 0), compared(5)), (("t".to_owned(), 1), compared(1))]);
        let mut answers = Map::default();
        for index in 0..2 {
            let answer = Answer { high_watermark: 7, batches: Vec::new() };
            answers.insert((BrokerId(1), "t".to_owned(), index), answer);
        }
        let line = report(&partitions, &answers);
        assert_eq!(line, "max lag is 6 for partition t-1 at offset 1 among 2 partitions");
    }
}
