//! The way of units into Kafka, from whatever peer they come: a unit's transaction, and what becomes of records that a
//! topic refuses as too large.
//!
//! Always true: after each refusal either batches are smaller than before, or a record has left its topic, or has
//! become smaller, so the tries end.

use super::came::Came;
use super::unit::Unit;
use crate::config::{Config, SourceConfig};
use crate::dead_letters::is_too_large;
use crate::error::BridgeError;
use crate::session::Alive;
use crate::state::{self, Id, State};
use crate::watch::counters::{Counters, add};
use crate::watch::log::Seldom;
use barnabas_client::{ClientError, Cluster, Outgoing, TransactionConfig, TransactionalProducer};
use std::sync::atomic::Ordering;

/// Batches of so few bytes are not made smaller: the next refusal is that of a record.
const BATCH_BYTES_MIN: usize = 1024;

/// What writes a source's units.
pub(super) struct Writer<'a> {
    pub config: &'a Config,
    pub source: &'a SourceConfig,
    pub counters: &'a Counters,
    pub state: State,
    pub seldom: Seldom,
    cluster: Cluster,
    producer: TransactionalProducer,
    /// Of a batch to a topic; less once a topic has refused that.
    batch_bytes_max: usize,
}

impl<'a> Writer<'a> {
    /// Fences the run before this one, and reads what that one has committed. May be dropped at any point.
    ///
    /// # Errors
    /// The cluster's refusal.
    pub async fn start(
        config: &'a Config,
        source: &'a SourceConfig,
        counters: &'a Counters,
    ) -> Result<Self, BridgeError> {
        let mut cluster = Cluster::new(config.kafka.clone());
        state::create_topic(&mut cluster, &source.state_topic).await?;
        let transaction = TransactionConfig::new(&format!("barnabas-bridge-{}", config.name));
        let batch_bytes_max = transaction.batch_bytes_max;
        let producer = TransactionalProducer::start(&mut cluster, transaction).await?;
        let state = state::read(&mut cluster, &source.state_topic).await?;
        let seldom = Seldom::default();
        Ok(Self { config, source, counters, state, seldom, cluster, producer, batch_bytes_max })
    }

    /// Takes a message into a unit. `cut`: why it is not whole.
    pub fn take(&mut self, unit: &mut Unit, came: Came, cut: Option<String>) {
        let said = unit.take(self.config, self.source, &self.state, came, cut);
        if let Some(why) = said {
            self.seldom.warn(&self.config.name, &why);
        }
    }

    pub fn count(&self, unit: &Unit, waiting: usize, requests: u64) {
        let counters = self.counters;
        add(&counters.messages, unit.len() as u64 - unit.skipped);
        add(&counters.bytes, unit.bytes as u64);
        add(&counters.dead_letters, unit.dead_letters());
        add(&counters.rejected, unit.rejected);
        add(&counters.skipped, unit.skipped);
        add(&counters.without_id, unit.without_id());
        counters.oldest_ms.store(unit.oldest_ms(), Ordering::Relaxed);
        counters.uncommitted.store(waiting as u64, Ordering::Relaxed);
        counters.requests.store(requests, Ordering::Relaxed);
    }

    /// Commits the unit's records, if it has any, with the ids of their messages.
    ///
    /// # Errors
    /// It is not known what became of the unit, or nothing was written: the next run looks.
    pub async fn write(&mut self, unit: &mut Unit, session: &mut impl Alive) -> Result<(), BridgeError> {
        if let Some(ids) = self.transact(unit, session).await? {
            self.state.committed(ids);
            add(&self.counters.commits, 1);
        }
        Ok(())
    }

    /// The ids that were committed; `None`: the unit has no records.
    async fn transact(
        &mut self,
        unit: &mut Unit,
        session: &mut impl Alive,
    ) -> Result<Option<Vec<Id>>, BridgeError> {
        let (mut is_alone, mut has_refused) = (false, false);
        loop {
            let ids = self.state.with_doubted(unit.ids());
            let mut records: Vec<(&str, Outgoing)> = unit
                .records(self.config, self.source)
                .map(|(topic, record)| (topic, record.clone()))
                .collect();
            if records.is_empty() {
                return Ok(None);
            }
            records.push((self.source.state_topic.as_str(), self.state.record(&ids)));
            self.producer.set_batch_bytes_max(if is_alone { 0 } else { self.batch_bytes_max });
            // Where the connection ends meanwhile, the next run looks what became of the transaction.
            let committed = session.during(self.producer.commit(&mut self.cluster, &records)).await?;
            let Err(error) = committed else {
                if is_alone && !has_refused {
                    // Each record goes alone: the batch was too large for its topic.
                    self.batch_bytes_max = (self.batch_bytes_max / 2).max(BATCH_BYTES_MIN);
                }
                return Ok(Some(ids));
            };
            let Some(topic) = refused_topic(&error) else { return Err(error.into()) };
            session.during(self.producer.abort(&mut self.cluster)).await??;
            if !is_alone {
                is_alone = true;
                continue;
            }
            has_refused = true;
            let said = unit.refused(self.config, self.source, topic);
            // The topic of the ids, for instance, has no record that could be left out.
            let Some(said) = said else { return Err(error.into()) };
            self.seldom.warn(&self.config.name, &said);
        }
    }
}

/// The topic that refused a batch as too large: the producer names the partition.
fn refused_topic(error: &ClientError) -> Option<&str> {
    match error {
        ClientError::Refused { what, .. } if is_too_large(error) => {
            what.rsplit_once('-').map(|(topic, _)| topic)
        }
        _ => None,
    }
}
