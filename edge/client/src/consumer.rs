//! Reads partitions from where it is told to: from every leader at once, one fetch after another (`consumer/leader.rs`).
//!
//! Who reads which partition is not decided here: by the caller, or by [`crate::Group`]. Each batch's CRC is checked.
//!
//! Always true: [`Consumer::positions`] moves only past what was given out. Where a leader is lost or replaced, reading
//! begins anew from there: nothing is left out and nothing comes twice.

mod leader;

use crate::error::check;
use crate::{ClientError, Cluster};
use barnabas_base::{BrokerId, ErrorCode, Map, Offset, PartitionIndex, TopicPartition};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::records::{Entry, Records, entries};
use bytes::Bytes;
use leader::{Leader, Reading, Told};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// ListOffsets' sentinels.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

/// How to read.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    pub bytes_max: i32,
    pub partition_bytes_max: i32,
    pub bytes_min: i32,
    /// How long a leader may hold a fetch back that finds less than `bytes_min`.
    pub wait_max: Duration,
    /// −1: what the system gives.
    pub receive_buffer_bytes: i32,
    /// Whether only committed transactions are seen.
    pub read_committed: bool,
}

impl Default for ConsumerConfig {
    fn default() -> Self {
        Self {
            bytes_max: 50 * 1024 * 1024,
            partition_bytes_max: 1024 * 1024,
            bytes_min: 1,
            wait_max: Duration::from_millis(500),
            receive_buffer_bytes: -1,
            read_committed: false,
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

/// Reads partitions of one topic.
#[derive(Debug)]
pub struct Consumer {
    topic: String,
    config: ConsumerConfig,
    positions: Map<PartitionIndex, Offset>,
    starts: Map<PartitionIndex, StartAt>,
    ready: VecDeque<Received>,
    /// Batches that came and were not given out: (partition, from which offset on, records, the offset after them).
    batches: VecDeque<FetchedBatch>,
    leaders: Vec<Leader>,
    /// Which leader is looked at first, so that none starves.
    turn: usize,
}

/// Records as they came, inflated: for whoever reads them in bulk.
#[derive(Debug)]
pub struct FetchedBatch {
    pub partition: PartitionIndex,
    /// Records below this were asked for by nobody; they come because a batch is whole or not at all.
    pub from: Offset,
    pub records: Records,
}

impl Consumer {
    pub fn new(topic: &str, config: ConsumerConfig) -> Self {
        Self {
            topic: topic.to_owned(),
            config,
            positions: Map::default(),
            starts: Map::default(),
            ready: VecDeque::new(),
            batches: VecDeque::new(),
            leaders: Vec::new(),
            turn: 0,
        }
    }

    /// Reads exactly these partitions from now on. What is held of others is dropped.
    pub fn assign(&mut self, partitions: impl IntoIterator<Item = (PartitionIndex, StartAt)>) {
        let wanted: Map<PartitionIndex, StartAt> = partitions.into_iter().collect();
        self.stop();
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
        self.ready.is_empty() && self.batches.is_empty()
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
        let until = Instant::now() + wait;
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            let left = until.saturating_duration_since(Instant::now());
            let Some(batch) = self.poll_batch(cluster, left).await? else { return Ok(None) };
            self.push(&batch).map_err(|error| ClientError::Records(self.place(batch.partition), error))?;
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
        let tries = cluster.tries(format!("reading {}", self.topic));
        loop {
            if let Some(batch) = self.batches.pop_front() {
                let next = batch.records.header().next_offset();
                self.positions.insert(batch.partition, next);
                return Ok(Some(batch));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if let Err(error) = self.read_on(cluster, left).await {
                self.stop();
                if !is_curable(&error) {
                    return Err(error);
                }
                cluster.forget(&self.topic);
                tries.after(error).await?;
            }
        }
    }

    /// Drops what came and was not given out; reading begins anew from the positions.
    fn stop(&mut self) {
        self.leaders.clear();
        self.batches.clear();
    }

    async fn read_on(&mut self, cluster: &mut Cluster, wait: Duration) -> Result<(), ClientError> {
        if self.leaders.is_empty() {
            self.begin(cluster).await?;
        }
        if self.leaders.is_empty() {
            tokio::time::sleep(wait.min(Duration::from_millis(100))).await;
            return Ok(());
        }
        match tokio::time::timeout(wait, self.next_answer()).await {
            Ok(told) => self.take(told?),
            Err(_) => Ok(()),
        }
    }

    /// The next answer of any leader.
    async fn next_answer(&mut self) -> Told {
        let turn = self.turn;
        self.turn = self.turn.wrapping_add(1);
        poll_fn(|cx| {
            let count = self.leaders.len();
            for step in 0..count {
                if let Poll::Ready(told) = self.leaders[(turn + step) % count].answers.poll_recv(cx) {
                    let ended =
                        || Err(ClientError::Invalid("a leader's task ended without a word".to_owned()));
                    return Poll::Ready(told.unwrap_or_else(ended));
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn begin(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        self.find_positions(cluster).await?;
        let mut by_leader: Vec<(BrokerId, Map<PartitionIndex, i64>)> = Vec::new();
        let positions: Vec<_> =
            self.positions.iter().map(|(partition, offset)| (*partition, offset.get())).collect();
        for (partition, offset) in positions {
            let leader = cluster.leader(&self.topic, partition).await?;
            match by_leader.iter_mut().find(|entry| entry.0 == leader) {
                Some(entry) => drop(entry.1.insert(partition, offset)),
                None => by_leader.push((leader, [(partition, offset)].into_iter().collect())),
            }
        }
        for (leader, offsets) in by_leader {
            let address = cluster.addresses().find(|(node, _)| *node == leader).map(|(_, address)| address);
            let unknown =
                || ClientError::refused(format!("node {leader}"), ErrorCode::BrokerNotAvailable.code(), None);
            self.leaders.push(leader::read(Reading {
                address: address.ok_or_else(unknown)?,
                client_id: cluster.config().client_id.clone(),
                connect_timeout: cluster.config().request_timeout,
                topic: self.topic.clone(),
                topic_id: cluster.topic_id(&self.topic).unwrap_or_default(),
                config: self.config.clone(),
                offsets,
            }));
        }
        Ok(())
    }

    fn place(&self, partition: PartitionIndex) -> String {
        TopicPartition::new(self.topic.as_str(), partition).to_string()
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

    fn take(&mut self, data: PartitionData) -> Result<(), ClientError> {
        let index = PartitionIndex(data.partition_index);
        if data.error_code == ErrorCode::OffsetOutOfRange.code() && self.starts.contains_key(&index) {
            // Retention has passed us by: go on with what there is.
            self.stop();
            self.positions.remove(&index);
            self.starts.insert(index, StartAt::Earliest);
            return Ok(());
        }
        check(self.place(index), data.error_code, None)?;
        self.unpack(index, data)
    }

    fn unpack(&mut self, partition: PartitionIndex, data: PartitionData) -> Result<(), ClientError> {
        let Some(from) = self.positions.get(&partition).copied() else { return Ok(()) };
        let place = self.place(partition);
        let unreadable = |error: String| ClientError::Records(place.clone(), error);
        let mut aborted = AbortedTransactions::new(&data);
        for entry in entries(data.records.unwrap_or_default()) {
            let Entry::Batch(batch) = entry.map_err(|error| unreadable(error.to_string()))? else {
                return Err(unreadable("the node sent an old record format".to_owned()));
            };
            batch.check_crc().map_err(|error| unreadable(error.to_string()))?;
            let header = *batch.header();
            let producer = header.producer_id.get();
            if header.attributes.is_control() {
                aborted.marker(producer);
                self.skip(partition, header.next_offset());
                continue;
            }
            let is_aborted = self.config.read_committed
                && header.attributes.is_transactional()
                && aborted.holds(producer, header.base_offset.get());
            if is_aborted || header.next_offset() <= from {
                self.skip(partition, header.next_offset());
                continue;
            }
            let records = batch.records().map_err(|error| unreadable(error.to_string()))?;
            self.batches.push_back(FetchedBatch { partition, from, records });
        }
        Ok(())
    }

    /// Nobody is given what is below `next`; where records before it still wait, they take the position there.
    fn skip(&mut self, partition: PartitionIndex, next: Offset) {
        if !self.batches.iter().any(|batch| batch.partition == partition) {
            let position = self.positions.entry(partition).or_insert(next);
            *position = next.max(*position);
        }
    }

    fn push(&mut self, batch: &FetchedBatch) -> Result<(), String> {
        let dated_by_broker = batch.records.header().attributes.timestamp_type()
            == barnabas_wire::records::TimestampType::LogAppendTime;
        for record in batch.records.iter() {
            let record = record.map_err(|error| error.to_string())?;
            if record.offset < batch.from {
                continue;
            }
            let share = |slice: Option<&[u8]>| slice.map(Bytes::copy_from_slice);
            self.ready.push_back(Received {
                partition: batch.partition,
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
