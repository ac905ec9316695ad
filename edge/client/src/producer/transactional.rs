//! Whole transactions: all records of one call become visible together, or none of them.
//!
//! [`TransactionalProducer::start`] fences an older producer of the same transactional id and aborts what it left
//! open. After an error of [`TransactionalProducer::commit`] it is not known whether the transaction was committed:
//! drop the producer, start another one, and read (`read_committed`) what became of it. The exception is
//! `MESSAGE_TOO_LARGE`: the transaction is open then, and [`TransactionalProducer::abort`] ends it.
//!
//! Transactions of version 1 (KIP-98) are spoken, which every broker since 0.11 understands: partitions are added by
//! AddPartitionsToTxn, and Produce and EndTxn go in versions that do not claim version 2 (KIP-890).
//!
//! Source: Kafka `TransactionManager`.

#[cfg(test)]
mod tests;

use super::{Outgoing, now_ms};
use crate::error::check;
use crate::murmur2::murmur2;
use crate::{ClientError, Cluster, Coordinated};
use barnabas_base::{
    BrokerId, ErrorCode, Map, PartitionIndex, ProducerEpoch, ProducerId, Sequence, TimestampMs,
};
use barnabas_wire::Request;
use barnabas_wire::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, EndTxnRequest, InitProducerIdRequest,
    ProduceRequest, ProduceResponse,
};
use barnabas_wire::records::{BatchBuilder, BatchOptions, Compression};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The newest versions without KIP-890's second part.
const ADD_PARTITIONS_MAX: i16 = 3;
const PRODUCE_MAX: i16 = 11;
const END_TXN_MAX: i16 = 4;
/// Between two tries while the coordinator still ends the transaction before.
const MARKERS_PAUSE: Duration = Duration::from_millis(2);

/// How to send.
#[derive(Debug, Clone)]
pub struct TransactionConfig {
    pub transactional_id: String,
    pub compression: Compression,
    pub batch_bytes_max: usize,
    /// After that the coordinator aborts a transaction that is open.
    pub transaction_timeout_ms: i32,
    /// How long a node may wait for its replicas.
    pub request_timeout_ms: i32,
}

impl TransactionConfig {
    pub fn new(transactional_id: &str) -> Self {
        Self {
            transactional_id: transactional_id.to_owned(),
            compression: Compression::NONE,
            batch_bytes_max: 512 * 1024,
            transaction_timeout_ms: 60_000,
            request_timeout_ms: 30_000,
        }
    }
}

/// One partition's topic and number.
type Place = (String, PartitionIndex);

/// Commits records, one transaction a call.
#[derive(Debug)]
pub struct TransactionalProducer {
    config: TransactionConfig,
    id: ProducerId,
    epoch: ProducerEpoch,
    sequences: Map<Place, Sequence>,
    sticky: i32,
    coordinator: Option<BrokerId>,
}

impl TransactionalProducer {
    /// Fences older producers of the id. When it returns, their transactions have ended.
    ///
    /// # Errors
    /// The coordinator's refusal, `TRANSACTIONAL_ID_AUTHORIZATION_FAILED` for instance.
    pub async fn start(cluster: &mut Cluster, config: TransactionConfig) -> Result<Self, ClientError> {
        let (coordinator, id, epoch) =
            initialize(cluster, &config, ProducerId(-1), ProducerEpoch(-1)).await?;
        let coordinator = Some(coordinator);
        Ok(Self { config, id, epoch, sequences: Map::default(), sticky: 0, coordinator })
    }

    /// Writes `records`, each to its topic, as one transaction.
    ///
    /// # Errors
    /// See the file's header: start again and look.
    pub async fn commit(
        &mut self,
        cluster: &mut Cluster,
        records: &[(&str, Outgoing)],
    ) -> Result<(), ClientError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut batches = self.batches(cluster, records).await?;
        self.add_partitions(cluster, batches.keys()).await?;
        while !batches.is_empty() {
            // One batch of each partition at a time: order holds.
            let mut round: BTreeMap<Place, Bytes> = BTreeMap::new();
            batches.retain(|place, waiting| {
                if !waiting.is_empty() {
                    round.insert(place.clone(), waiting.remove(0));
                }
                !waiting.is_empty()
            });
            self.produce(cluster, round).await?;
        }
        self.end(cluster, true).await
    }

    /// Aborts what a refused [`Self::commit`] left open, and begins a new epoch: sequences start again. A newer
    /// producer of the id is not fenced by this.
    ///
    /// # Errors
    /// The coordinator's refusal, `PRODUCER_FENCED` for instance.
    ///
    /// # Source
    /// KIP-360.
    pub async fn abort(&mut self, cluster: &mut Cluster) -> Result<(), ClientError> {
        self.end(cluster, false).await?;
        let asked = initialize(cluster, &self.config, self.id, self.epoch).await?;
        (self.coordinator, self.id, self.epoch) = (Some(asked.0), asked.1, asked.2);
        self.sequences.clear();
        Ok(())
    }

    /// From the next transaction on. 0: each record is a batch of its own.
    pub fn set_batch_bytes_max(&mut self, bytes: usize) {
        self.config.batch_bytes_max = bytes;
    }

    /// Every partition's batches, with sequences that follow the last ones.
    async fn batches(
        &mut self,
        cluster: &mut Cluster,
        records: &[(&str, Outgoing)],
    ) -> Result<BTreeMap<Place, Vec<Bytes>>, ClientError> {
        let mut open: BTreeMap<Place, BatchBuilder> = BTreeMap::new();
        let mut done: BTreeMap<Place, Vec<Bytes>> = BTreeMap::new();
        self.sticky = self.sticky.wrapping_add(1);
        for (topic, record) in records {
            let place = ((*topic).to_owned(), self.choose(cluster, topic, record).await?);
            let headers: Vec<_> =
                record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
            let timestamp = TimestampMs(record.timestamp_ms.unwrap_or_else(now_ms));
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            let is_full = open.get(&place).is_some_and(|batch| {
                batch.size_bytes_with(timestamp, key, value, &headers) > self.config.batch_bytes_max
            });
            if is_full && let Some(full) = open.remove(&place) {
                let bytes = self.built(&place, full)?;
                done.entry(place.clone()).or_default().push(bytes);
            }
            let options = self.options(&place);
            open.entry(place)
                .or_insert_with(|| BatchBuilder::new(options))
                .push(timestamp, key, value, &headers);
        }
        for (place, batch) in open {
            let bytes = self.built(&place, batch)?;
            done.entry(place).or_default().push(bytes);
        }
        Ok(done)
    }

    async fn choose(
        &self,
        cluster: &mut Cluster,
        topic: &str,
        record: &Outgoing,
    ) -> Result<PartitionIndex, ClientError> {
        if let Some(partition) = record.partition {
            return Ok(PartitionIndex(partition));
        }
        let tries = cluster.tries(format!("finding topic {topic}"));
        let count = loop {
            match cluster.topic(topic, true).await {
                Ok(found) => break i32::try_from(found.partitions.len()).unwrap_or(i32::MAX).max(1),
                Err(error) => tries.after(error).await?,
            }
        };
        Ok(PartitionIndex(match &record.key {
            Some(key) => (murmur2(key) & i32::MAX) % count,
            None => (self.sticky & i32::MAX) % count,
        }))
    }

    fn options(&self, place: &Place) -> BatchOptions {
        BatchOptions {
            compression: self.config.compression,
            producer_id: self.id,
            producer_epoch: self.epoch,
            base_sequence: self.sequences.get(place).copied().unwrap_or(Sequence(0)),
            transactional: true,
            ..Default::default()
        }
    }

    fn built(&mut self, place: &Place, batch: BatchBuilder) -> Result<Bytes, ClientError> {
        let count = batch.record_count();
        let bytes =
            batch.build().map_err(|error| ClientError::Records(place.0.clone(), error.to_string()))?;
        let sequence = self.sequences.entry(place.clone()).or_insert(Sequence(0));
        *sequence = sequence.plus(count);
        Ok(bytes)
    }

    async fn add_partitions(
        &mut self,
        cluster: &mut Cluster,
        places: impl Iterator<Item = &Place>,
    ) -> Result<(), ClientError> {
        let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in places {
            topics.entry(topic).or_default().push(partition.get());
        }
        let topic = |(name, partitions): (&str, Vec<i32>)| AddPartitionsToTxnTopic {
            name: name.into(),
            partitions,
            ..Default::default()
        };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.config.transactional_id.as_str().into(),
            v3_and_below_producer_id: self.id.get(),
            v3_and_below_producer_epoch: self.epoch.get(),
            v3_and_below_topics: topics.into_iter().map(topic).collect(),
            ..Default::default()
        };
        let what = format!("adding partitions to a transaction of {}", self.config.transactional_id);
        self.ask(cluster, &what, ADD_PARTITIONS_MAX, &request, first_code).await
    }

    /// Asks the coordinator until it answers with a code that no later try cures.
    async fn ask<R: Request + Clone>(
        &mut self,
        cluster: &mut Cluster,
        what: &str,
        newest: i16,
        request: &R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<(), ClientError> {
        let tries = cluster.tries(what);
        let until = Instant::now() + cluster.config().deadline;
        loop {
            let error = match self.ask_once(cluster, newest, request).await {
                Ok(answer) => match check(what, code(&answer), None) {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            // The markers of the transaction before this one are still being written: that takes milliseconds.
            if error.code() == Some(ErrorCode::ConcurrentTransactions) && Instant::now() < until {
                tokio::time::sleep(MARKERS_PAUSE).await;
                continue;
            }
            self.coordinator = None;
            tries.after(error).await?;
        }
    }

    async fn ask_once<R: Request + Clone>(
        &mut self,
        cluster: &mut Cluster,
        newest: i16,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        let coordinator = match self.coordinator {
            Some(known) => known,
            None => cluster.coordinator(Coordinated::Transaction(&self.config.transactional_id)).await?,
        };
        self.coordinator = Some(coordinator);
        cluster.ask_up_to(coordinator, newest, |_| request.clone()).await
    }

    /// Sends one batch of each of these partitions until each is written.
    async fn produce(
        &self,
        cluster: &mut Cluster,
        mut round: BTreeMap<Place, Bytes>,
    ) -> Result<(), ClientError> {
        let tries = cluster.tries(format!("producing for {}", self.config.transactional_id));
        while !round.is_empty() {
            let mut trouble = None;
            for (leader, places) in leaders(cluster, &round, &mut trouble).await {
                match self.produce_to(cluster, leader, &places, &round).await {
                    Ok(answer) => take(&answer, &mut round, &mut trouble),
                    Err(error) => trouble = Some(error),
                }
            }
            if !round.is_empty() && trouble.is_none() {
                return Err(ClientError::Invalid(
                    "the answer to a produce request leaves partitions out".to_owned(),
                ));
            }
            if let Some(error) = trouble {
                round.keys().for_each(|(topic, _)| cluster.forget(topic));
                tries.after(error).await?;
            }
        }
        Ok(())
    }

    async fn produce_to(
        &self,
        cluster: &mut Cluster,
        leader: BrokerId,
        places: &[Place],
        round: &BTreeMap<Place, Bytes>,
    ) -> Result<ProduceResponse, ClientError> {
        let mut topics: BTreeMap<&str, Vec<PartitionProduceData>> = BTreeMap::new();
        for place in places {
            topics.entry(&place.0).or_default().push(PartitionProduceData {
                index: place.1.get(),
                records: round.get(place).cloned(),
                ..Default::default()
            });
        }
        let topic = |(name, partition_data): (&str, Vec<PartitionProduceData>)| TopicProduceData {
            name: name.into(),
            partition_data,
            ..Default::default()
        };
        let request = ProduceRequest {
            transactional_id: Some(self.config.transactional_id.as_str().into()),
            acks: -1,
            timeout_ms: self.config.request_timeout_ms,
            topic_data: topics.into_iter().map(topic).collect(),
            ..Default::default()
        };
        cluster.ask_up_to(leader, PRODUCE_MAX, |_| request.clone()).await
    }

    async fn end(&mut self, cluster: &mut Cluster, committed: bool) -> Result<(), ClientError> {
        let id = self.config.transactional_id.clone();
        let request = EndTxnRequest {
            transactional_id: id.as_str().into(),
            producer_id: self.id.get(),
            producer_epoch: self.epoch.get(),
            committed,
            ..Default::default()
        };
        let doing = if committed { "committing" } else { "aborting" };
        let what = format!("{doing} a transaction of {id}");
        self.ask(cluster, &what, END_TXN_MAX, &request, |answer| answer.error_code).await
    }
}

/// The producer's next id and epoch. −1 and −1: fences any producer that has the id.
async fn initialize(
    cluster: &mut Cluster,
    config: &TransactionConfig,
    producer_id: ProducerId,
    epoch: ProducerEpoch,
) -> Result<(BrokerId, ProducerId, ProducerEpoch), ClientError> {
    let id = config.transactional_id.as_str();
    let request = InitProducerIdRequest {
        transactional_id: Some(id.into()),
        transaction_timeout_ms: config.transaction_timeout_ms,
        producer_id: producer_id.get(),
        producer_epoch: epoch.get(),
        ..Default::default()
    };
    let of = Coordinated::Transaction(id);
    let (coordinator, asked) = cluster.ask_coordinator(of, &request, |answer| answer.error_code).await?;
    check(format!("starting transactional id {id}"), asked.error_code, None)?;
    Ok((coordinator, ProducerId(asked.producer_id), ProducerEpoch(asked.producer_epoch)))
}

fn first_code(answer: &AddPartitionsToTxnResponse) -> i16 {
    let told = answer.results_by_topic_v3_and_below.iter().flat_map(|topic| &topic.results_by_partition);
    told.map(|partition| partition.partition_error_code).find(|code| *code != 0).unwrap_or(0)
}

/// The partitions by their leaders. Why a partition has none is left in `trouble`.
async fn leaders(
    cluster: &mut Cluster,
    round: &BTreeMap<Place, Bytes>,
    trouble: &mut Option<ClientError>,
) -> Map<BrokerId, Vec<Place>> {
    let mut by_leader: Map<BrokerId, Vec<Place>> = Map::default();
    for place in round.keys() {
        match cluster.leader(&place.0, place.1).await {
            Ok(leader) => by_leader.entry(leader).or_default().push(place.clone()),
            Err(error) => *trouble = Some(error),
        }
    }
    by_leader
}

/// Takes out of the round what was written.
fn take(answer: &ProduceResponse, round: &mut BTreeMap<Place, Bytes>, trouble: &mut Option<ClientError>) {
    for topic in &answer.responses {
        for told in &topic.partition_responses {
            let place = (topic.name.to_string(), PartitionIndex(told.index));
            let what = format!("{}-{}", place.0, place.1);
            if told.error_code == ErrorCode::DuplicateSequenceNumber.code() || told.error_code == 0 {
                round.remove(&place);
            } else if let Err(error) = check(what, told.error_code, told.error_message.as_deref()) {
                // An error that no later try cures is the one to report.
                let is_final = trouble.as_ref().is_some_and(|trouble| !trouble.is_retriable());
                if !is_final {
                    *trouble = Some(error);
                }
            }
        }
    }
}
