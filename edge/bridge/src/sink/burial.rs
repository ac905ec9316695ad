//! Dead letters of a sink. One producer writes all of them, each with its own acknowledgement: it is known then which
//! one a topic refuses.

use super::Sink;
use super::in_flight::Dead;
use crate::config::Config;
use crate::dead_letters::{Letter, Origin, is_too_large};
use crate::error::BridgeError;
use crate::session::Alive;
use crate::watch::counters::add;
use crate::watch::log::Seldom;
use barnabas_client::{ClientError, Cluster, Outgoing, Producer, ProducerConfig};

/// The way to the dead-letter topic.
#[derive(Default)]
pub(super) struct Letters {
    /// Made with the first letter.
    producer: Option<Producer>,
    seldom: Seldom,
}

impl Letters {
    /// Writes what cannot be delivered. Only then does its offset count as done.
    ///
    /// # Errors
    /// The dead-letter topic does not take it.
    pub async fn bury(
        &mut self,
        config: &Config,
        (topic, letters): (&str, &str),
        cluster: &mut Cluster,
        session: &mut impl Alive,
        dead: &Dead,
    ) -> Result<(), BridgeError> {
        let record = &dead.record;
        let name = format!("record {topic}-{}@{}", record.partition, record.offset);
        self.seldom.warn(&config.name, &format!("{name} goes to {letters}: {}", dead.why));
        let mut letter = letter(config, topic, dead);
        let mut writing = write(cluster, &mut self.producer, letters, &letter.record);
        while let Err(error) = session.during(writing).await? {
            if !is_too_large(&error) {
                return Err(error.into());
            }
            if !letter.shrink() {
                return Err(BridgeError::DeadLetter { topic: letters.to_owned(), what: name });
            }
            let text = format!("{name} is larger than max.message.bytes of {letters}: a part is left out");
            self.seldom.warn(&config.name, &text);
            writing = write(cluster, &mut self.producer, letters, &letter.record);
        }
        Ok(())
    }
}

impl Sink<'_> {
    pub(super) async fn bury(&mut self) -> Result<(), BridgeError> {
        let Some(letters) = self.config.dead_letters.as_deref() else { return Ok(()) };
        while let Some(dead) = self.held.next_dead() {
            let (cluster, session) = (&mut self.reading.cluster, &mut self.session);
            self.letters.bury(self.config, (self.topic, letters), cluster, session, &dead).await?;
            add(&self.counters.dead_letters, 1);
            self.done(&dead.record);
        }
        Ok(())
    }
}

fn letter(config: &Config, topic: &str, dead: &Dead) -> Letter {
    let record = &dead.record;
    let place = (topic, record.partition.get(), record.offset.get());
    let origin = Origin { connector: &config.name, stage: dead.stage, record: Some(place) };
    let letter = Outgoing {
        partition: None,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.clone(),
        timestamp_ms: Some(record.timestamp_ms),
    };
    Letter::new(letter, config.dead_letter_reasons.then_some((origin, dead.why.as_str())))
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
