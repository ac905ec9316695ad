//! A unit's transaction, and what becomes of records that a topic refuses as too large.
//!
//! Always true: after each refusal either batches are smaller than before, or a record has left its topic, or has
//! become smaller, so the tries end.

use super::Source;
use super::unit::Unit;
use crate::dead_letters::is_too_large;
use crate::error::BridgeError;
use crate::state::Id;
use barnabas_client::{ClientError, Outgoing};

/// Batches of so few bytes are not made smaller: the next refusal is that of a record.
const BATCH_BYTES_MIN: usize = 1024;

impl Source<'_> {
    /// Commits the unit's records, with the ids of their messages. Returns the ids; `None`: it has no records.
    pub(super) async fn write(&mut self, unit: &mut Unit) -> Result<Option<Vec<Id>>, BridgeError> {
        let (mut is_alone, mut has_refused) = (false, false);
        loop {
            let ids = unit.ids();
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
            let committed = self.session.during(self.producer.commit(&mut self.cluster, &records)).await?;
            let Err(error) = committed else {
                if is_alone && !has_refused {
                    // Each record goes alone: the batch was too large for its topic.
                    self.batch_bytes_max = (self.batch_bytes_max / 2).max(BATCH_BYTES_MIN);
                }
                return Ok(Some(ids));
            };
            let Some(topic) = refused_topic(&error) else { return Err(error.into()) };
            self.session.during(self.producer.abort(&mut self.cluster)).await??;
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
