//! Topic → queue of a queue manager, in units of work, at least once. Experimental.
//!
//! Records are put under syncpoint until a unit is full, until `mq.commit.interval.ms` has passed, or until the
//! consumer has no more; then MQCMIT; then the group's offsets are committed. After a crash between the last two a unit
//! is put twice: its messages have the same ids.
//!
//! A record that the queue manager refuses for itself (too large, a header that is none) goes to the dead-letter topic.
//! Any other refusal ends the run: the queue manager backs the unit out, and its records are put again.
//!
//! Bounded: a unit by `bridge.in.flight.max` records and by [`UNIT_BYTES_MAX`], and one message. Each put waits for its
//! answer.
//!
//! Before: edge/client's group and consumer. After: core/mq.

mod message;

use super::burial::Letters;
use super::in_flight::Dead;
use super::reading::Reading;
use crate::config::{Config, MqConfig, SinkConfig};
use crate::error::BridgeError;
use crate::session::Alive;
use crate::session::mq::{MqSession, Purpose};
use crate::stop::Stop;
use crate::watch::counters::{Counters, add};
use crate::watch::log::{Level, line};
use barnabas_client::Received;
use barnabas_mq::Advice;
use bytes::Bytes;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest wait for a record: heartbeats and commits are looked at between.
const TURN: Duration = Duration::from_millis(100);
/// Bytes of messages after which a unit is full.
const UNIT_BYTES_MAX: usize = 4 << 20;

struct Sink<'a> {
    config: &'a Config,
    sink: &'a SinkConfig,
    topic: &'a str,
    counters: &'a Counters,
    reading: Reading,
    session: MqSession,
    letters: Letters,
}

/// What was put and is not committed.
#[derive(Default)]
struct Unit {
    records: Vec<Received>,
    bytes: usize,
    /// Of the records' values.
    value_bytes: usize,
}

/// As [`super::run`].
///
/// # Errors
/// Whatever ended it: run it again.
pub(super) async fn run(
    config: &Config,
    sink: &SinkConfig,
    mq: &MqConfig,
    topic: &str,
    counters: &Counters,
    stop: &mut Stop,
) -> Result<(), BridgeError> {
    let mut run = tokio::select! {
        connected = Sink::connect(config, sink, mq, topic, counters) => connected?,
        () = stop.wait() => return Ok(()),
    };
    run.reading.join(stop, &mut run.session).await?;
    if !stop.is_due() {
        counters.set_state("running");
    }
    while !stop.is_due() {
        run.turn(stop).await?;
    }
    run.finish(stop).await
}

impl<'a> Sink<'a> {
    /// May be dropped at any point: the group was not joined.
    async fn connect(
        config: &'a Config,
        sink: &'a SinkConfig,
        mq: &'a MqConfig,
        topic: &'a str,
        counters: &'a Counters,
    ) -> Result<Self, BridgeError> {
        let reading = Reading::start(config, sink, topic).await?;
        let name = format!("barnabas-bridge-{}", config.name);
        let session = MqSession::connect(&config.peer, mq, &name, Purpose::Put).await?;
        let text = format!(
            "from topic {topic} to queue {} of queue manager {}, AT LEAST ONCE: what is put again after a crash has \
             the same message id. MQ's client channels are EXPERIMENTAL: no queue manager of IBM's has been met",
            config.peer.queue, session.queue_manager
        );
        line(Level::Info, &config.name, &text);
        Ok(Self { config, sink, topic, counters, reading, session, letters: Letters::default() })
    }

    /// One unit, or a wait without a record.
    async fn turn(&mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        let unit = self.collect(stop).await?;
        while let Some(trouble) = self.reading.consumer.next_trouble() {
            line(Level::Warn, &self.config.name, &trouble.words(self.topic, "read"));
        }
        self.commit(unit, stop).await?;
        let staying = self.reading.group.stay(&mut self.reading.cluster);
        if !self.session.during(staying).await?? {
            self.reading.join(stop, &mut self.session).await?;
        }
        Ok(())
    }

    async fn collect(&mut self, stop: &mut Stop) -> Result<Unit, BridgeError> {
        let mut unit = Unit::default();
        let polling = async {
            tokio::select! {
                polled = self.reading.consumer.poll(&mut self.reading.cluster, TURN) => polled,
                () = stop.wait() => Ok(None),
            }
        };
        let mut next = self.session.during(polling).await??;
        let ends_at = Instant::now() + self.config.commit_interval;
        while let Some(record) = next {
            self.put(&mut unit, record).await?;
            let is_full = unit.records.len() >= self.sink.in_flight_max || unit.bytes >= UNIT_BYTES_MAX;
            if is_full || self.reading.consumer.is_drained() || Instant::now() >= ends_at {
                break;
            }
            // What the consumer has already: no broker is waited for.
            next = self.reading.consumer.poll(&mut self.reading.cluster, TURN).await?;
        }
        Ok(unit)
    }

    async fn put(&mut self, unit: &mut Unit, record: Received) -> Result<(), BridgeError> {
        self.reading.progress.begin(record.partition, record.offset);
        let made =
            message::message(&self.sink.rules, self.config.is_jms, &self.config.name, self.topic, &record);
        let (md, data) = match made {
            Ok(made) => made,
            Err(why) => return self.bury(Dead { record, stage: "VALUE_CONVERTER", why }).await,
        };
        let (bytes, most) = (data.len(), self.session.message_bytes_max());
        if bytes > most {
            let why = format!("its message of {bytes} bytes is larger than the channel takes: {most}");
            return self.bury(Dead { record, stage: "TASK_PUT", why }).await;
        }
        match self.session.put(&md, &data).await? {
            Ok(()) => {
                unit.bytes += bytes;
                unit.value_bytes += record.value.as_ref().map_or(0, Bytes::len);
                unit.records.push(Received { key: None, value: None, headers: Vec::new(), ..record });
                Ok(())
            }
            Err(why) if why.advice() == Advice::Message => {
                let why = format!("the queue manager refuses it: {why}");
                self.bury(Dead { record, stage: "TASK_PUT", why }).await
            }
            Err(why) => {
                let object = format!("{} at {}", self.config.peer.queue, self.session.queue_manager);
                Err(BridgeError::Call { call: "MQPUT", object, why })
            }
        }
    }

    /// Before the unit's commit: a letter may come twice, and is not lost.
    async fn bury(&mut self, dead: Dead) -> Result<(), BridgeError> {
        let Some(letters) = self.config.dead_letters.as_deref() else { return Ok(()) };
        let (cluster, session) = (&mut self.reading.cluster, &mut self.session);
        self.letters.bury(self.config, (self.topic, letters), cluster, session, &dead).await?;
        add(&self.counters.dead_letters, 1);
        self.reading.progress.done(dead.record.partition, dead.record.offset);
        Ok(())
    }

    /// MQCMIT, then the group's offsets.
    async fn commit(&mut self, unit: Unit, stop: &mut Stop) -> Result<(), BridgeError> {
        self.counters.uncommitted.store(unit.records.len() as u64, Ordering::Relaxed);
        if !unit.records.is_empty() {
            self.session.commit().await?;
        }
        for record in &unit.records {
            self.reading.progress.done(record.partition, record.offset);
        }
        add(&self.counters.messages, unit.records.len() as u64);
        add(&self.counters.bytes, unit.value_bytes as u64);
        self.counters.uncommitted.store(0, Ordering::Relaxed);
        self.counters.requests.store(self.session.calls(), Ordering::Relaxed);
        self.reading.reach();
        let offsets = self.reading.progress.take();
        if offsets.is_empty() {
            return Ok(());
        }
        add(&self.counters.commits, 1);
        let committing = self.reading.group.commit(&mut self.reading.cluster, offsets);
        if !self.session.during(committing).await?? {
            self.reading.join(stop, &mut self.session).await?;
        }
        Ok(())
    }

    async fn finish(mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        self.commit(Unit::default(), stop).await?;
        self.reading.group.leave(&mut self.reading.cluster).await?;
        self.counters.set_state("stopped");
        self.session.end().await
    }
}
