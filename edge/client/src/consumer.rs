//! Reads partitions from where it is told to: one fetch after another, each leader in turn.
//!
//! Who reads which partition is not decided here: by the caller, or by [`crate::Group`].

use crate::error::check;
use crate::{ClientError, Cluster};
use barnabas_base::{BrokerId, ErrorCode, Map, Offset, PartitionIndex, TopicPartition};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::messages::{FetchRequest, FetchResponse};
use barnabas_wire::records::{Entry, Records, entries};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// ListOffsets' sentinels.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// How to read.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    pub bytes_max: i32,
    pub partition_bytes_max: i32,
    /// Whether only committed transactions are seen.
    pub read_committed: bool,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self { bytes_max: 50 * 1024 * 1024, partition_bytes_max: 1024 * 1024, read_committed: false }
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

/// Reads partitions of one topic.
#[derive(Debug)]
pub struct Consumer {
    topic: String,
    config: ConsumerConfig,
    positions: Map<PartitionIndex, Offset>,
    starts: Map<PartitionIndex, StartAt>,
    ready: VecDeque<Received>,
    /// Which leader is asked next, so that none starves.
    turn: usize,
}

impl Consumer {
    pub fn new(topic: &str, config: ConsumerConfig) -> Self {
        Self {
            topic: topic.to_owned(),
            config,
            positions: Map::default(),
            starts: Map::default(),
            ready: VecDeque::new(),
            turn: 0,
        }
    }

    /// Reads exactly these partitions from now on. What is held of others is dropped.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = (PartitionIndex, StartAt)>) {
        let wanted: Map<PartitionIndex, StartAt> = partitions.into_iter().collect();
        self.positions.retain(|partition, _| wanted.contains_key(partition));
        self.ready.retain(|record| wanted.contains_key(&record.partition));
        self.starts = wanted;
    }

    /// The offset after the last record that [`Self::poll`] gave of each partition.
    pub fn positions(&self) -> impl Iterator<Item = (PartitionIndex, Offset)> + '_ {
        let pending =
            |partition: &PartitionIndex| self.ready.iter().find(|record| record.partition == *partition);
        self.positions.iter().map(move |(partition, offset)| {
            (*partition, pending(partition).map_or(*offset, |record| record.offset))
        })
    }

    /// Whether the next [`Self::poll`] has to ask a node.
    pub fn is_drained(&self) -> bool {
        self.ready.is_empty()
    }

    /// The next record, or `None` when `wait` has passed without one.
    ///
    /// # Errors
    /// What trying again does not cure, or has not within the cluster's deadline.
    pub async fn poll(
        &mut self,
        cluster: &mut Cluster,
        wait: Duration,
    ) -> Result<Option<Received>, ClientError> {
        let until = std::time::Instant::now() + wait;
        let tries = cluster.tries(format!("reading {}", self.topic));
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if let Err(error) = self.fetch(cluster, left).await {
                if !is_curable(&error) {
                    return Err(error);
                }
                cluster.forget(&self.topic);
                tries.after(error).await?;
            }
        }
    }

    async fn fetch(&mut self, cluster: &mut Cluster, wait: Duration) -> Result<(), ClientError> {
        self.find_positions(cluster).await?;
        let mut by_leader: Vec<(BrokerId, Vec<PartitionIndex>)> = Vec::new();
        let mut partitions: Vec<_> = self.positions.keys().copied().collect();
        partitions.sort();
        for partition in partitions {
            let leader = cluster.leader(&self.topic, partition).await?;
            match by_leader.iter_mut().find(|entry| entry.0 == leader) {
                Some(entry) => entry.1.push(partition),
                None => by_leader.push((leader, vec![partition])),
            }
        }
        if by_leader.is_empty() {
            tokio::time::sleep(wait.min(Duration::from_millis(100))).await;
            return Ok(());
        }
        self.turn = (self.turn + 1) % by_leader.len();
        let (leader, partitions) = &by_leader[self.turn];
        let wait = wait.min(Duration::from_millis(500));
        let request = self.request(cluster, partitions, wait);
        let answer = cluster.ask_patiently(*leader, &request, wait).await?;
        self.take(answer)
    }

    async fn find_positions(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        let missing: Vec<_> = self
            .starts
            .iter()
            .filter(|(partition, _)| !self.positions.contains_key(partition))
            .map(|(p, s)| (*p, *s))
            .collect();
        for (partition, start) in missing {
            let offset = match start {
                StartAt::Offset(offset) => offset,
                StartAt::Earliest => cluster.list_offset(&self.topic, partition, EARLIEST).await?,
                StartAt::Latest => cluster.list_offset(&self.topic, partition, LATEST).await?,
            };
            self.positions.insert(partition, offset);
        }
        Ok(())
    }

    fn request(&self, cluster: &Cluster, partitions: &[PartitionIndex], wait: Duration) -> FetchRequest {
        let asked = |partition: &PartitionIndex| FetchPartition {
            partition: partition.get(),
            fetch_offset: self.positions[partition].get(),
            partition_max_bytes: self.config.partition_bytes_max,
            ..Default::default()
        };
        let topic = FetchTopic {
            topic: self.topic.as_str().into(),
            topic_id: cluster.topic_id(&self.topic).unwrap_or_default(),
            partitions: partitions.iter().map(asked).collect(),
            ..Default::default()
        };
        FetchRequest {
            max_wait_ms: wait.as_millis() as i32,
            min_bytes: 1,
            max_bytes: self.config.bytes_max,
            isolation_level: i8::from(self.config.read_committed),
            topics: vec![topic],
            ..Default::default()
        }
    }

    fn take(&mut self, answer: FetchResponse) -> Result<(), ClientError> {
        check(format!("fetching {}", self.topic), answer.error_code, None)?;
        for partition in answer.responses.into_iter().flat_map(|topic| topic.partitions) {
            let index = PartitionIndex(partition.partition_index);
            if partition.error_code == ErrorCode::OffsetOutOfRange.code() && self.starts.contains_key(&index)
            {
                // Retention has passed us by: go on with what there is.
                self.positions.remove(&index);
                self.starts.insert(index, StartAt::Earliest);
                continue;
            }
            check(TopicPartition::new(self.topic.as_str(), index).to_string(), partition.error_code, None)?;
            self.unpack(index, partition)?;
        }
        Ok(())
    }

    fn unpack(&mut self, partition: PartitionIndex, data: PartitionData) -> Result<(), ClientError> {
        let Some(position) = self.positions.get(&partition).copied() else { return Ok(()) };
        let place = format!("{}-{partition}", self.topic);
        let unreadable = |error: String| ClientError::Records(place.clone(), error);
        let mut next = position;
        let mut aborted = AbortedTransactions::new(&data);
        for entry in entries(data.records.unwrap_or_default()) {
            let Entry::Batch(batch) = entry.map_err(|error| unreadable(error.to_string()))? else {
                return Err(unreadable("the node sent an old record format".to_owned()));
            };
            batch.check_crc().map_err(|error| unreadable(error.to_string()))?;
            let header = *batch.header();
            next = next.max(header.next_offset());
            let records = batch.records().map_err(|error| unreadable(error.to_string()))?;
            if header.attributes.is_control() {
                aborted.marker(header.producer_id.get());
                continue;
            }
            if self.config.read_committed
                && header.attributes.is_transactional()
                && aborted.holds(header.producer_id.get(), header.base_offset.get())
            {
                continue;
            }
            self.push(partition, position, &records).map_err(unreadable)?;
        }
        self.positions.insert(partition, next);
        Ok(())
    }

    fn push(&mut self, partition: PartitionIndex, from: Offset, records: &Records) -> Result<(), String> {
        let dated_by_broker = records.header().attributes.timestamp_type()
            == barnabas_wire::records::TimestampType::LogAppendTime;
        for record in records.iter() {
            let record = record.map_err(|error| error.to_string())?;
            if record.offset < from {
                continue;
            }
            let share = |slice: Option<&[u8]>| slice.map(Bytes::copy_from_slice);
            self.ready.push_back(Received {
                partition,
                offset: record.offset,
                timestamp_ms: record.timestamp.0,
                dated_by_broker,
                key: share(record.key),
                value: share(record.value),
                headers: record
                    .headers()
                    .map(|(key, value)| (Bytes::copy_from_slice(key), share(value)))
                    .collect(),
            });
        }
        Ok(())
    }
}

fn is_curable(error: &ClientError) -> bool {
    // A fetch may also be told that the leader knows a newer epoch or that the topic was made again.
    error.is_retriable()
        || matches!(
            error.code(),
            Some(ErrorCode::UnknownTopicId | ErrorCode::FencedLeaderEpoch | ErrorCode::InconsistentTopicId)
        )
}

/// Which producers' records are to be skipped from where on: the fetch answer's own list.
struct AbortedTransactions {
    /// (first offset, producer id), in the order of the offsets.
    coming: VecDeque<(i64, i64)>,
    open: Vec<i64>,
}

impl AbortedTransactions {
    fn new(data: &PartitionData) -> Self {
        let listed = data.aborted_transactions.iter().flatten();
        let mut coming: Vec<_> = listed.map(|aborted| (aborted.first_offset, aborted.producer_id)).collect();
        coming.sort_unstable();
        Self { coming: coming.into(), open: Vec::new() }
    }

    fn holds(&mut self, producer: i64, offset: i64) -> bool {
        while let Some((_, begun)) = self.coming.pop_front_if(|entry| entry.0 <= offset) {
            self.open.push(begun);
        }
        self.open.contains(&producer)
    }

    fn marker(&mut self, producer: i64) {
        self.open.retain(|open| *open != producer);
    }
}
