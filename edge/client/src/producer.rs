//! Sends records: one batch per partition, filled while the one before is under way, each exactly once.
//!
//! Records without a key go to one partition until its batch is full, then to the next (KIP-480).
//! Records with a key go to `murmur2(key) mod partitions`, as in Kafka's own clients, so that equal
//! keys from any client share a partition.
//!
//! With `acks=all` every batch carries a producer id and a sequence: a batch that is sent again after a lost answer is
//! stored once. One batch per partition is under way at a time, so order holds.

mod transactional;

pub use transactional::{TransactionConfig, TransactionalProducer};

use crate::error::check;
use crate::murmur2::murmur2;
use crate::{ClientError, Cluster};
use barnabas_base::{ErrorCode, Map, PartitionIndex, ProducerEpoch, ProducerId, Sequence, TimestampMs};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{InitProducerIdRequest, ProduceRequest};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Compression};
use bytes::Bytes;
use std::time::{SystemTime, UNIX_EPOCH};

/// How to send.
#[derive(Debug, Clone)]
pub struct ProducerConfig {
    /// 0, 1 or −1 (all).
    pub acks: i16,
    pub compression: Compression,
    pub batch_bytes_max: usize,
    /// How long the node may wait for its replicas.
    pub timeout_ms: i32,
}

impl Default for ProducerConfig {
    fn default() -> Self {
        Self { acks: -1, compression: Compression::NONE, batch_bytes_max: 16 * 1024, timeout_ms: 30_000 }
    }
}

/// One record to be sent.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    pub partition: Option<i32>,
    pub key: Option<Bytes>,
    pub value: Option<Bytes>,
    pub headers: Vec<(Bytes, Option<Bytes>)>,
    /// Now, where `None`.
    pub timestamp_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Identity {
    id: ProducerId,
    epoch: ProducerEpoch,
}

/// Sends to one topic. After a refusal that no later try cures ([`ErrorCode::MessageTooLarge`] for instance) it can be
/// used on: the refused batch is dropped, and its sequences are the next batch's.
#[derive(Debug)]
pub struct Producer {
    topic: String,
    config: ProducerConfig,
    identity: Option<Identity>,
    open: Map<PartitionIndex, BatchBuilder>,
    sequences: Map<PartitionIndex, Sequence>,
    sticky: i32,
}

impl Producer {
    /// Finds the topic, which may create it, and, with `acks=all`, gets a producer id.
    ///
    /// # Errors
    /// The topic's error once the deadline has passed.
    pub async fn new(
        cluster: &mut Cluster,
        topic: &str,
        config: ProducerConfig,
    ) -> Result<Self, ClientError> {
        let tries = cluster.tries(format!("finding topic {topic}"));
        while let Err(error) = cluster.topic(topic, true).await {
            tries.after(error).await?;
        }
        let identity = if config.acks == -1 { Some(new_identity(cluster).await?) } else { None };
        Ok(Self {
            topic: topic.to_owned(),
            config,
            identity,
            open: Map::default(),
            sequences: Map::default(),
            sticky: 0,
        })
    }

    /// Takes one record; sends its partition's batch if that is full.
    ///
    /// # Errors
    /// What sending a full batch ended with. The record is lost then, as is its batch.
    pub async fn send(&mut self, cluster: &mut Cluster, record: &Outgoing) -> Result<(), ClientError> {
        let partition = self.choose(cluster, record).await?;
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let timestamp = TimestampMs(record.timestamp_ms.unwrap_or_else(now_ms));
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let is_full = self.open.get(&partition).is_some_and(|batch| {
            !batch.is_empty()
                && batch.size_bytes_with(timestamp, key, value, &headers) > self.config.batch_bytes_max
        });
        if is_full {
            self.send_batch(cluster, partition).await?;
            if record.key.is_none() && record.partition.is_none() {
                self.sticky = self.sticky.wrapping_add(1);
            }
        }
        let options = self.options(partition);
        self.open
            .entry(partition)
            .or_insert_with(|| BatchBuilder::new(options))
            .push(timestamp, key, value, &headers);
        Ok(())
    }

    /// Sends `records` as one batch: it is written whole or not at all. `false`, and none is sent: they go to several
    /// partitions, or take more than a batch.
    ///
    /// # Errors
    /// What the batch ended with, or one that was open before it.
    pub async fn send_together(
        &mut self,
        cluster: &mut Cluster,
        records: &[&Outgoing],
    ) -> Result<bool, ClientError> {
        self.flush(cluster).await?;
        let [first, rest @ ..] = records else { return Ok(true) };
        let partition = self.choose(cluster, first).await?;
        for record in rest {
            if self.choose(cluster, record).await? != partition {
                return Ok(false);
            }
        }
        let mut batch = BatchBuilder::new(self.options(partition));
        for record in records {
            let headers: Vec<_> =
                record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
            let timestamp = TimestampMs(record.timestamp_ms.unwrap_or_else(now_ms));
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            let size = batch.size_bytes_with(timestamp, key, value, &headers);
            if !batch.is_empty() && size > self.config.batch_bytes_max {
                return Ok(false);
            }
            batch.push(timestamp, key, value, &headers);
        }
        self.open.insert(partition, batch);
        self.send_batch(cluster, partition).await.map(|()| true)
    }

    /// Sends the buffered records.
    ///
    /// # Errors
    /// What the first batch that could not be sent ended with.
    pub async fn flush(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        let mut partitions: Vec<_> = self.open.keys().copied().collect();
        partitions.sort();
        for partition in partitions {
            self.send_batch(cluster, partition).await?;
        }
        Ok(())
    }

    async fn choose(&self, cluster: &mut Cluster, record: &Outgoing) -> Result<PartitionIndex, ClientError> {
        if let Some(partition) = record.partition {
            return Ok(PartitionIndex(partition));
        }
        let topic = cluster.topic(&self.topic, false).await?;
        let count = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX).max(1);
        Ok(PartitionIndex(match &record.key {
            Some(key) => (murmur2(key) & i32::MAX) % count,
            None => (self.sticky & i32::MAX) % count,
        }))
    }

    async fn send_batch(
        &mut self,
        cluster: &mut Cluster,
        partition: PartitionIndex,
    ) -> Result<(), ClientError> {
        let Some(batch) = self.open.remove(&partition) else { return Ok(()) };
        let count = batch.record_count();
        let bytes =
            batch.build().map_err(|error| ClientError::Records(self.topic.clone(), error.to_string()))?;
        let tries = cluster.tries(format!("sending to {}-{partition}", self.topic));
        loop {
            match self.send_once(cluster, partition, bytes.clone()).await {
                Ok(()) => {
                    let sequence = self.sequences.entry(partition).or_insert(Sequence(0));
                    *sequence = sequence.plus(count);
                    return Ok(());
                }
                Err(error) => {
                    cluster.forget(&self.topic);
                    tries.after(error).await?;
                }
            }
        }
    }

    /// The next batch of a partition. The one before it has been sent, so its sequence is known.
    fn options(&self, partition: PartitionIndex) -> BatchOptions {
        let plain = BatchOptions { compression: self.config.compression, ..Default::default() };
        let Some(identity) = self.identity else { return plain };
        BatchOptions {
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            base_sequence: self.sequences.get(&partition).copied().unwrap_or(Sequence(0)),
            ..plain
        }
    }

    async fn send_once(
        &self,
        cluster: &mut Cluster,
        partition: PartitionIndex,
        records: Bytes,
    ) -> Result<(), ClientError> {
        let leader = cluster.leader(&self.topic, partition).await?;
        let data =
            PartitionProduceData { index: partition.get(), records: Some(records), ..Default::default() };
        let topic = TopicProduceData {
            name: self.topic.as_str().into(),
            topic_id: cluster.topic_id(&self.topic).unwrap_or_default(),
            partition_data: vec![data],
            ..Default::default()
        };
        let request = ProduceRequest {
            acks: self.config.acks,
            timeout_ms: self.config.timeout_ms,
            topic_data: vec![topic],
            ..Default::default()
        };
        if self.config.acks == 0 {
            return cluster.tell(leader, &request).await;
        }
        let answer = cluster.ask(leader, &request).await?;
        let told = answer.responses.first().and_then(|topic| topic.partition_responses.first());
        let told = told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
        if told.error_code == ErrorCode::DuplicateSequenceNumber.code() {
            return Ok(());
        }
        check(format!("{}-{partition}", self.topic), told.error_code, told.error_message.as_deref())
    }
}

async fn new_identity(cluster: &mut Cluster) -> Result<Identity, ClientError> {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..Default::default()
    };
    let tries = cluster.tries("getting a producer id");
    loop {
        let asked = cluster.ask_any(&request).await;
        let told =
            asked.and_then(|answer| check("getting a producer id", answer.error_code, None).map(|()| answer));
        match told {
            Ok(answer) => {
                return Ok(Identity {
                    id: ProducerId(answer.producer_id),
                    epoch: ProducerEpoch(answer.producer_epoch),
                });
            }
            Err(error) => tries.after(error).await?,
        }
    }
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
