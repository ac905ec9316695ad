//! Reads partitions of one topic from where the caller wants: from every leader at once (`consumer/leader.rs`).
//!
//! Which partitions are read is decided by the caller, or by [`crate::Group`]. Each batch's CRC is checked.
//!
//! A partition that cannot be read waits and is tried again, as in Kafka's client, for as long as the caller polls; the
//! others go on. [`Consumer::next_trouble`] says what keeps a partition. Only what no later try can cure is an error of
//! [`Consumer::poll`].
//!
//! Always true:
//! 1. [`Consumer::positions`] moves only past what was given to the caller
//! 2. nothing is left out and nothing comes twice: where a leader is lost or replaced, reading goes on from the
//!    position
//! 3. at most one task reads a partition
//!
//! Source: Kafka `FetchCollector`, `OffsetFetcher`.

mod finder;
mod leader;
pub mod share;
#[cfg(test)]
mod tests;
pub mod unpack;

use crate::troubles::Troubles;
use crate::{ClientError, Cluster, Trouble};
use barnabas_base::{BrokerId, ErrorCode, Map, Offset, PartitionIndex, TopicPartition};
use barnabas_wire::records::{Records, TimestampType};
use bytes::Bytes;
use finder::{Answer, Finder, Found};
use leader::{Leader, Reading, Told};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Between two tries of a partition: the first, and the longest. Kafka's `retry.backoff.ms`, `retry.backoff.max.ms`.
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// How to read.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    pub bytes_max: i32,
    pub partition_bytes_max: i32,
    pub bytes_min: i32,
    /// What a batch may inflate to. One that inflates to more is an error of [`Consumer::poll`]. Kafka's consumer has
    /// no such limit: it inflates record by record.
    pub inflated_bytes_max: usize,
    /// How long a leader may hold a fetch back that finds less than `bytes_min`.
    pub wait_max: Duration,
    /// −1: what the system gives.
    pub receive_buffer_bytes: i32,
    /// Whether only committed transactions are seen.
    pub read_committed: bool,
    /// Where to go on if the position is no longer, or not yet, in the log. `None`: that is an error.
    pub reset: Option<StartAt>,
    /// How long a partition may be without a leader before [`Consumer::next_trouble`] says so.
    pub patience: Duration,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            bytes_max: 50 * 1024 * 1024,
            partition_bytes_max: 1024 * 1024,
            bytes_min: 1,
            inflated_bytes_max: 1024 * 1024 * 1024,
            wait_max: Duration::from_millis(500),
            receive_buffer_bytes: -1,
            read_committed: false,
            reset: Some(StartAt::Earliest),
            patience: Duration::from_secs(2),
        }
    }
}

/// Where to begin in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    Earliest,
    Latest,
    Offset(Offset),
}

/// One record as it was stored.
#[derive(Debug, Clone)]
pub struct Received {
    pub partition: PartitionIndex,
    pub offset: Offset,
    pub timestamp_ms: i64,
    /// Whether the broker dated the record (LogAppendTime) rather than the producer.
    pub dated_by_broker: bool,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
}

/// Records as they came, inflated: for callers that read them in bulk.
#[derive(Debug)]
pub struct FetchedBatch {
    pub partition: PartitionIndex,
    /// Records below this were not asked for; they come because a batch is whole or not at all.
    pub from: Offset,
    pub records: Records,
    /// Where reading goes on after it.
    next: Offset,
}

#[derive(Debug)]
struct Partition {
    /// Until there is a position.
    start: StartAt,
    position: Option<Offset>,
    place: Place,
    /// Tries that failed in a row.
    failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Until then it is not tried.
    Waiting(Instant),
    Read(BrokerId),
}

impl Partition {
    fn wait(&mut self, now: Instant) {
        let pause = BACKOFF.saturating_mul(1 << self.failures.min(8)).min(BACKOFF_MAX);
        self.failures += 1;
        self.place = Place::Waiting(now + pause);
    }
}

/// Reads partitions of one topic.
#[derive(Debug)]
pub struct Consumer {
    topic: String,
    config: ConsumerConfig,
    partitions: Map<PartitionIndex, Partition>,
    /// How many of them are not read by a leader's task.
    waiting: usize,
    ready: VecDeque<Received>,
    /// Batches that came and were not given out. Empty whenever a leader's report is taken.
    batches: VecDeque<FetchedBatch>,
    leaders: Vec<Leader>,
    finder: Option<Finder>,
    /// Which leader is polled first, so that none starves.
    turn: usize,
    troubles: Troubles,
}

enum Event {
    Found(Answer),
    Told(BrokerId, Told),
}

impl Consumer {
    pub fn new(topic: &str, config: ConsumerConfig) -> Self {
        Self {
            topic: topic.to_owned(),
            troubles: Troubles::new(config.patience),
            config,
            partitions: Map::default(),
            waiting: 0,
            ready: VecDeque::new(),
            batches: VecDeque::new(),
            leaders: Vec::new(),
            finder: None,
            turn: 0,
        }
    }

    /// Assigns exactly these partitions. Buffered records of others are dropped; partitions that were
    /// assigned before continue from their position.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = (PartitionIndex, StartAt)>) {
        self.leaders.clear();
        self.batches.clear();
        let now = Instant::now();
        let mut before = std::mem::take(&mut self.partitions);
        for (index, start) in partitions {
            let position = before.remove(&index).and_then(|partition| partition.position);
            let place = Place::Waiting(now);
            self.partitions.insert(index, Partition { start, position, place, failures: 0 });
        }
        for gone in before.into_keys() {
            self.troubles.forget(Some(gone));
        }
        self.waiting = self.partitions.len();
        self.ready.retain(|record| self.partitions.contains_key(&record.partition));
    }

    /// The offset after the last record that was given out, of each partition whose position is known.
    pub fn positions(&self) -> impl Iterator<Item = (PartitionIndex, Offset)> + '_ {
        let mut pending: Map<PartitionIndex, Offset> = Map::default();
        for record in &self.ready {
            pending.entry(record.partition).or_insert(record.offset);
        }
        self.partitions.iter().filter_map(move |(index, partition)| {
            Some((*index, pending.get(index).copied().or(partition.position)?))
        })
    }

    /// Whether the next [`Self::poll`] has to wait for a broker.
    pub fn is_drained(&self) -> bool {
        self.ready.is_empty() && self.batches.is_empty()
    }

    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// What has kept partitions from being read since the last call, once for each partition and reason; and which of
    /// them are read again.
    pub fn next_trouble(&mut self) -> Option<Trouble> {
        self.troubles.next(Instant::now())
    }

    /// What keeps partitions from being read now, reported before or not.
    pub fn standing_troubles(&self) -> Vec<Trouble> {
        self.troubles.standing()
    }

    /// The next record, or `None` when `wait` has passed without one.
    ///
    /// # Errors
    /// What no later try can cure: `TOPIC_AUTHORIZATION_FAILED` for instance, or [`ClientError::TooLarge`].
    pub async fn poll(
        &mut self,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> Result<Option<Received>, ClientError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            let left = until.saturating_duration_since(Instant::now());
            let Some(batch) = self.poll_batch(cluster, left).await? else { return Ok(None) };
            self.push(&batch);
        }
    }

    /// The next batch of records, or `None` when `wait` has passed without one. Not to be mixed with [`Self::poll`].
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub async fn poll_batch(
        &mut self,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> Result<Option<FetchedBatch>, ClientError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(batch) = self.batches.pop_front() {
                if let Some(partition) = self.partitions.get_mut(&batch.partition) {
                    partition.position = Some(batch.next);
                }
                return Ok(Some(batch));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.read_on(cluster, left).await?;
        }
    }

    /// Asks for leaders where partitions wait, and takes in one thing that has happened.
    async fn read_on(&mut self, cluster: &Cluster, wait: Duration) -> Result<(), ClientError> {
        let wait = self.look_for_leaders(cluster, Instant::now()).map_or(wait, |pause| pause.min(wait));
        let Ok(event) = tokio::time::timeout(wait, poll_fn(|cx| self.poll_event(cx))).await else {
            return Ok(());
        };
        match event {
            Event::Found(found) => self.found(cluster, found, Instant::now()),
            Event::Told(broker, told) => self.take(broker, told, Instant::now()),
        }
    }

    /// Returns how long it is until a partition is to be tried again.
    fn look_for_leaders(&mut self, cluster: &Cluster, now: Instant) -> Option<Duration> {
        let finder = self
            .finder
            .get_or_insert_with(|| Finder::start(cluster.with_new_connections(), self.topic.clone()));
        if self.waiting == 0 || finder.is_asked {
            return None;
        }
        let times = self.partitions.values().filter_map(|partition| match partition.place {
            Place::Waiting(until) => Some(until),
            Place::Read(_) => None,
        });
        let next = times.min()?;
        if next <= now {
            finder.ask();
            return None;
        }
        Some(next - now)
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(finder) = &mut self.finder
            && let Poll::Ready(answer) = finder.poll(cx)
        {
            return Poll::Ready(Event::Found(answer));
        }
        let count = self.leaders.len();
        for step in 0..count {
            let leader = &mut self.leaders[(self.turn.wrapping_add(step)) % count];
            if let Poll::Ready(told) = leader.poll(cx) {
                self.turn = self.turn.wrapping_add(1);
                return Poll::Ready(Event::Told(leader.reading.broker, told));
            }
        }
        Poll::Pending
    }

    /// Begins the partitions that wait, each at its leader.
    fn found(&mut self, cluster: &Cluster, found: Answer, now: Instant) -> Result<(), ClientError> {
        let found = match found {
            Ok(found) => found,
            Err(error) if is_curable(&error) => {
                self.troubles.note([None], None, &error, now);
                for partition in self.partitions.values_mut() {
                    if matches!(partition.place, Place::Waiting(until) if until <= now) {
                        partition.wait(now);
                    }
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.troubles.end(None);
        self.drop_leaders_elsewhere(&found, now);
        let mut begins: Map<BrokerId, Vec<(PartitionIndex, StartAt)>> = Map::default();
        for (index, partition) in &mut self.partitions {
            if !matches!(partition.place, Place::Waiting(until) if until <= now) {
                continue;
            }
            match found.leader(*index) {
                Ok((broker, _)) => {
                    let start = partition.position.map_or(partition.start, StartAt::Offset);
                    begins.entry(broker).or_default().push((*index, start));
                }
                Err(code) => {
                    let error = ClientError::refused(self.topic.as_str(), code.code(), None);
                    if !is_curable(&error) {
                        return Err(error);
                    }
                    self.troubles.note([Some(*index)], None, &error, now);
                    partition.wait(now);
                }
            }
        }
        for (broker, begins) in begins {
            self.begin(cluster, &found, broker, begins, now);
        }
        Ok(())
    }

    /// Tasks of a topic that was made again, or of a broker that has moved, end.
    fn drop_leaders_elsewhere(&mut self, found: &Found, now: Instant) {
        let is_elsewhere = |leader: &Leader| {
            let reading = &leader.reading;
            let address = found.address(reading.broker);
            reading.topic_id != found.topic_id || address.is_some_and(|address| address != reading.address)
        };
        let brokers: Vec<BrokerId> =
            self.leaders.iter().filter(|one| is_elsewhere(one)).map(|one| one.reading.broker).collect();
        for broker in brokers {
            self.drop_leader(broker, now);
        }
    }

    /// Ends a leader's task; its partitions are begun elsewhere, or there again. Returns them.
    fn drop_leader(&mut self, broker: BrokerId, now: Instant) -> Vec<PartitionIndex> {
        self.leaders.retain(|leader| leader.reading.broker != broker);
        let mut dropped = Vec::new();
        for (index, partition) in &mut self.partitions {
            if partition.place == Place::Read(broker) {
                partition.place = Place::Waiting(now);
                dropped.push(*index);
            }
        }
        self.waiting += dropped.len();
        dropped
    }

    fn begin(
        &mut self,
        cluster: &Cluster,
        found: &Found,
        broker: BrokerId,
        begins: Vec<(PartitionIndex, StartAt)>,
        now: Instant,
    ) {
        let Some(address) = found.address(broker) else { return };
        let at = self.leaders.iter().position(|leader| leader.reading.broker == broker);
        let at = at.unwrap_or_else(|| {
            self.leaders.push(Leader::start(Reading {
                broker,
                address: address.to_owned(),
                dial: cluster.config().dial((-1, self.config.receive_buffer_bytes)),
                topic: self.topic.clone(),
                topic_id: found.topic_id,
                config: self.config.clone(),
            }));
            self.leaders.len() - 1
        });
        let indexes: Vec<PartitionIndex> = begins.iter().map(|begin| begin.0).collect();
        let is_taken = self.leaders[at].begin(begins);
        for index in indexes {
            let Some(partition) = self.partitions.get_mut(&index) else { continue };
            if is_taken {
                partition.place = Place::Read(broker);
                self.waiting -= 1;
            } else {
                // The task is busy with others.
                partition.wait(now);
            }
        }
    }

    fn take(&mut self, broker: BrokerId, told: Told, now: Instant) -> Result<(), ClientError> {
        assert!(self.batches.is_empty(), "a report is taken only after all batches were given out");
        match told {
            Told::Working(partitions) => {
                for index in partitions {
                    self.troubles.end(Some(index));
                    self.partitions.entry(index).and_modify(|partition| partition.failures = 0);
                }
            }
            Told::Position(index, offset) => self.set_position(index, offset),
            Told::Data { partition, batches, next } if batches.is_empty() => {
                self.set_position(partition, next)
            }
            Told::Data { batches, .. } => self.batches.extend(batches),
            Told::Failed(index, error) => self.failed(broker, index, &error, now)?,
            Told::Ended(error) => {
                if !is_curable(&error) {
                    return Err(error);
                }
                let dropped = self.drop_leader(broker, now);
                self.troubles.note(dropped.iter().map(|index| Some(*index)), Some(broker), &error, now);
                for index in dropped {
                    self.partitions.entry(index).and_modify(|partition| partition.wait(now));
                }
            }
        }
        Ok(())
    }

    fn set_position(&mut self, index: PartitionIndex, offset: Offset) {
        self.partitions.entry(index).and_modify(|partition| partition.position = Some(offset));
    }

    fn failed(
        &mut self,
        broker: BrokerId,
        index: PartitionIndex,
        error: &ClientError,
        now: Instant,
    ) -> Result<(), ClientError> {
        let Some(partition) = self.partitions.get_mut(&index) else { return Ok(()) };
        match error.code() {
            Some(ErrorCode::OffsetOutOfRange) if self.config.reset.is_some() => {
                // Retention has passed the position, or the log was truncated.
                partition.start = self.config.reset.unwrap_or(StartAt::Earliest);
                partition.position = None;
            }
            _ if is_curable(error) => {}
            _ => return Err(error.repeated()),
        }
        self.troubles.note([Some(index)], Some(broker), error, now);
        partition.wait(now);
        self.waiting += 1;
        Ok(())
    }

    /// Unpacks a batch into records. One that cannot be read keeps its partition from going on.
    fn push(&mut self, batch: &FetchedBatch) {
        let dated_by_broker =
            batch.records.header().attributes.timestamp_type() == TimestampType::LogAppendTime;
        let mut next = batch.from.max(batch.records.header().base_offset);
        for record in batch.records.iter() {
            let record = match record {
                Ok(record) => record,
                Err(error) => return self.refuse(batch.partition, next, &error.to_string()),
            };
            if record.offset < batch.from {
                continue;
            }
            next = Offset(record.offset.get() + 1);
            let copy = |slice: Option<&[u8]>| slice.map(Bytes::copy_from_slice);
            self.ready.push_back(Received {
                partition: batch.partition,
                offset: record.offset,
                timestamp_ms: record.timestamp.0,
                dated_by_broker,
                key: copy(record.key),
                value: copy(record.value),
                headers: record
                    .headers()
                    .map(|(key, value)| (Bytes::copy_from_slice(key), copy(value)))
                    .collect(),
            });
        }
    }

    /// A record whose batch has the right CRC cannot be read: its partition waits at the record.
    fn refuse(&mut self, index: PartitionIndex, next: Offset, why: &str) {
        let now = Instant::now();
        self.batches.retain(|batch| batch.partition != index);
        let place = TopicPartition::new(self.topic.as_str(), index).to_string();
        let error = ClientError::Records(place, format!("at offset {next}: {why}"));
        let broker = match self.partitions.get(&index).map(|partition| partition.place) {
            Some(Place::Read(broker)) => {
                // The task has gone on behind the record. Its other partitions are begun there again at once.
                self.drop_leader(broker, now);
                Some(broker)
            }
            _ => None,
        };
        self.troubles.note([Some(index)], broker, &error, now);
        if let Some(partition) = self.partitions.get_mut(&index) {
            partition.position = Some(next);
            partition.wait(now);
        }
    }
}

/// Whether a later try may succeed.
///
/// # Source
/// Kafka `FetchCollector.handleInitializeErrors`. Kafka's client ends at CORRUPT_MESSAGE and at records it cannot read;
/// this one waits for a replica to be repaired, while other partitions go on.
fn is_curable(error: &ClientError) -> bool {
    error.is_retriable()
        || matches!(error, ClientError::Records(..) | ClientError::TimedOut { .. })
        || matches!(
            error.code(),
            Some(
                ErrorCode::UnknownTopicId
                    | ErrorCode::FencedLeaderEpoch
                    | ErrorCode::InconsistentTopicId
                    | ErrorCode::UnknownServerError
            )
        )
}
