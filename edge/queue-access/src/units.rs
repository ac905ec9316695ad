//! The records of a unit of work (MQ) or of a transaction (AMQP): written whole or not at all.
//!
//! Records that go to one partition are one batch, which Kafka writes whole or not at all; others are one Kafka
//! transaction, over all their topics. A batch costs one request; a transaction three and its markers, and readers wait
//! for those.
//!
//! Kafka has no transaction over records and a share group's acknowledgements. So records are written first, then gets
//! are accepted: a node that is killed between the two delivers the gets again after their records were written.
//!
//! Bounded: [`PUTS_MAX`] records of [`PUT_BYTES_MAX`] bytes in a unit, which its owner counts; [`PRODUCERS_MAX`]
//! producers of a writer.
//!
//! Before: edge/mq-queues/src/conversation/unit.rs, edge/queues/src/discharge.rs.

mod slots;

pub use slots::{Slot, Slots};

use crate::address::is_temporary;
use barnabas_base::ErrorCode;
use barnabas_client::{
    ClientError, Cluster, Outgoing, Producer, ProducerConfig, TransactionConfig, TransactionalProducer,
};
use std::collections::BTreeMap;

pub const PUTS_MAX: usize = 10_000;
pub const PUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Of a record's headers, beside the message's data.
pub const RECORD_BYTES: usize = 1024;
/// Topics that a writer has a producer for at a time.
const PRODUCERS_MAX: usize = 64;
/// What goes in one batch: less than what a topic takes by default (1 MiB).
const TOGETHER_BYTES_MAX: usize = 512 * 1024;
/// A transaction lasts as long as its commit. One that a killed node left open is aborted after that, and holds up the
/// queue's getters until then, unless its transactional id is used again before.
const TRANSACTION_MS: i32 = 10_000;

/// Records of a unit and their topics, in the order in which they were put.
pub type Puts = Vec<(String, Outgoing)>;

/// Why a unit was not written.
#[derive(Debug)]
pub struct NotWritten {
    /// Whether it is sure that nothing was written.
    pub is_definite: bool,
    pub error: ClientError,
}

/// Writes the units of one conversation or coordinator, one at a time.
#[derive(Debug)]
pub struct UnitWriter {
    slots: Slots,
    producers: BTreeMap<String, Producer>,
    /// Its own transactional id, from the first transaction on.
    slot: Option<Slot>,
    transactional: Option<TransactionalProducer>,
}

impl UnitWriter {
    pub fn new(slots: Slots) -> Self {
        Self { slots, producers: BTreeMap::new(), slot: None, transactional: None }
    }

    /// Writes all records, and waits until they are on disk.
    ///
    /// # Errors
    /// [`NotWritten`]; where it is not definite, the records may be there.
    pub async fn write(&mut self, cluster: &mut Cluster, puts: &Puts) -> Result<(), NotWritten> {
        let Some((topic, _)) = puts.first() else { return Ok(()) };
        for (topic, _) in puts.iter().filter(|(topic, _)| is_temporary(topic)) {
            // What comes late does not make its queue again.
            let found = cluster.topic(topic, false).await;
            found.map_err(|error| NotWritten { is_definite: true, error })?;
        }
        if puts.iter().all(|(of, _)| of == topic) {
            let records: Vec<_> = puts.iter().map(|(_, record)| record).collect();
            let written = self.write_batch(cluster, topic, &records).await;
            if written.map_err(|error| NotWritten { is_definite: is_definite(&error), error })? {
                return Ok(());
            }
        }
        self.transact(cluster, puts).await
    }

    /// Writes records as one batch. `false`, and nothing is written: they do not go into one.
    ///
    /// # Errors
    /// What keeps the records from being written.
    pub async fn write_batch(
        &mut self,
        cluster: &mut Cluster,
        topic: &str,
        records: &[&Outgoing],
    ) -> Result<bool, ClientError> {
        if !self.producers.contains_key(topic) {
            if self.producers.len() >= PRODUCERS_MAX {
                self.producers.pop_first();
            }
            let config = ProducerConfig { batch_bytes_max: TOGETHER_BYTES_MAX, ..ProducerConfig::default() };
            let producer = Producer::new(cluster, topic, config).await?;
            self.producers.insert(topic.to_owned(), producer);
        }
        let Some(producer) = self.producers.get_mut(topic) else { return Ok(false) };
        let written = producer.send_together(cluster, records).await;
        if written.is_err() {
            // Its sequences may be uncertain now.
            self.producers.remove(topic);
        }
        written
    }

    async fn transact(&mut self, cluster: &mut Cluster, puts: &Puts) -> Result<(), NotWritten> {
        if self.transactional.is_none() {
            let slot = self.slot.get_or_insert_with(|| self.slots.take());
            let config = TransactionConfig {
                transaction_timeout_ms: TRANSACTION_MS,
                ..TransactionConfig::new(&slot.transactional_id())
            };
            let started = TransactionalProducer::start(cluster, config).await;
            self.transactional = Some(started.map_err(|error| NotWritten { is_definite: true, error })?);
        }
        let Some(producer) = &mut self.transactional else { return Ok(()) };
        let records: Vec<_> = puts.iter().map(|(topic, record)| (topic.as_str(), record.clone())).collect();
        let Err(error) = producer.commit(cluster, &records).await else { return Ok(()) };
        // The next one fences this one, and aborts what it left open.
        let mut producer = self.transactional.take();
        let aborted = match &mut producer {
            Some(producer) if is_definite(&error) => producer.abort(cluster).await.is_ok(),
            _ => false,
        };
        Err(NotWritten { is_definite: aborted, error })
    }
}

/// Whether a refusal says that nothing was written.
fn is_definite(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Refused {
            code: ErrorCode::TopicAuthorizationFailed
                | ErrorCode::TransactionalIdAuthorizationFailed
                | ErrorCode::ClusterAuthorizationFailed
                | ErrorCode::UnknownTopicOrPartition
                | ErrorCode::InvalidTopicException
                | ErrorCode::MessageTooLarge
                | ErrorCode::RecordListTooLarge
                | ErrorCode::InvalidRecord
                | ErrorCode::InvalidTimestamp
                | ErrorCode::PolicyViolation,
            ..
        }
    )
}
