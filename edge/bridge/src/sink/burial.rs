//! Dead letters of a sink. One producer writes all of them, each with its own acknowledgement: it is known then which
//! one a topic refuses.

use super::Sink;
use super::in_flight::Dead;
use crate::dead_letters::{Letter, Origin, is_too_large};
use crate::error::BridgeError;
use crate::watch::counters::add;
use barnabas_client::{ClientError, Cluster, Outgoing, Producer, ProducerConfig};

impl Sink<'_> {
    /// Writes what cannot be delivered to the dead-letter topic; only then does its offset count as done.
    pub(super) async fn bury(&mut self) -> Result<(), BridgeError> {
        let Some(topic) = self.config.dead_letters.as_deref() else { return Ok(()) };
        while let Some(dead) = self.held.next_dead() {
            let record = &dead.record;
            let name = format!("record {}-{}@{}", self.topic, record.partition, record.offset);
            self.seldom.warn(&self.config.name, &format!("{name} goes to {topic}: {}", dead.why));
            let mut letter = self.letter(&dead);
            let mut writing = write(&mut self.cluster, &mut self.letters, topic, &letter.record);
            while let Err(error) = self.session.during(writing).await? {
                if !is_too_large(&error) {
                    return Err(error.into());
                }
                if !letter.shrink() {
                    return Err(BridgeError::DeadLetter { topic: topic.to_owned(), what: name });
                }
                let text = format!("{name} is larger than max.message.bytes of {topic}: a part is left out");
                self.seldom.warn(&self.config.name, &text);
                writing = write(&mut self.cluster, &mut self.letters, topic, &letter.record);
            }
            add(&self.counters.dead_letters, 1);
            self.done(&dead.record);
        }
        Ok(())
    }

    fn letter(&self, dead: &Dead) -> Letter {
        let record = &dead.record;
        let place = (self.topic, record.partition.get(), record.offset.get());
        let origin = Origin { connector: &self.config.name, stage: dead.stage, record: Some(place) };
        let letter = Outgoing {
            partition: None,
            key: record.key.clone(),
            value: record.value.clone(),
            headers: record.headers.clone(),
            timestamp_ms: Some(record.timestamp_ms),
        };
        Letter::new(letter, self.config.dead_letter_reasons.then_some((origin, dead.why.as_str())))
    }
}

/// Writes one letter with the producer that is there, or with a new one.
async fn write(
    cluster: &mut Cluster,
    letters: &mut Option<Producer>,
    topic: &str,
    letter: &Outgoing,
) -> Result<(), ClientError> {
    if letters.is_none() {
        *letters = Some(Producer::new(cluster, topic, ProducerConfig::default()).await?);
    }
    let Some(producer) = letters else { return Ok(()) };
    producer.send(cluster, letter).await?;
    producer.flush(cluster).await
}
