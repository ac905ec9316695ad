//! Queue of a queue manager → topic, in units of work, exactly once. Experimental.
//!
//! A unit of work of MQ is a unit here: MQGET under syncpoint until a batch is full, until `mq.commit.interval.ms` has
//! passed, or until the queue is empty; then its records and the identities of its messages are one Kafka transaction;
//! then MQCMIT. Any error ends the run and the connection: the queue manager backs the unit out, and its messages come
//! again. Those whose identities were committed are skipped.
//!
//! A message that can be neither a record nor a dead letter goes to `mq.backout.queue` in the unit that got it. Without
//! that key it stays in the queue, and the connector stops at it: nothing is lost.
//!
//! Bounded: a unit by `mq.batch.size` and [`UNIT_BYTES_MAX`], and one message of `mq.message.bytes.max`. While a unit
//! is committed no message is got.
//!
//! Before: core/mq. After: edge/client's transactional producer.

use super::came::Came;
use super::unit::Unit;
use super::write::Writer;
use super::{QUIET, UNIT_BYTES_MAX};
use crate::config::{Config, MqConfig, SourceConfig};
use crate::error::BridgeError;
use crate::session::mq::{MqSession, Purpose};
use crate::stop::Stop;
use crate::watch::counters::Counters;
use crate::watch::log::{Level, line};
use barnabas_amqp::Outcome;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// An MQGET waits so long at most: a stop is looked at between two of them.
const WAIT: Duration = Duration::from_millis(500);

struct Source<'a> {
    writer: Writer<'a>,
    session: MqSession,
    mq: &'a MqConfig,
}

/// As [`super::run`].
///
/// # Errors
/// Whatever ended it: run it again.
pub(super) async fn run(
    config: &Config,
    source: &SourceConfig,
    mq: &MqConfig,
    counters: &Counters,
    stop: &mut Stop,
) -> Result<(), BridgeError> {
    let mut run = tokio::select! {
        connected = Source::connect(config, source, mq, counters) => connected?,
        () = stop.wait() => return Ok(()),
    };
    counters.set_state("running");
    while let Some(unit) = run.collect(stop).await? {
        run.commit(unit).await?;
    }
    counters.set_state("stopped");
    run.session.end().await
}

impl<'a> Source<'a> {
    /// May be dropped at any point: nothing was taken from the queue.
    async fn connect(
        config: &'a Config,
        source: &'a SourceConfig,
        mq: &'a MqConfig,
        counters: &'a Counters,
    ) -> Result<Self, BridgeError> {
        let mut writer = Writer::start(config, source, counters).await?;
        writer.state.doubt(Instant::now());
        let name = format!("barnabas-bridge-{}", config.name);
        let session = MqSession::connect(&config.peer, mq, &name, Purpose::Get).await?;
        let text = format!(
            "from queue {} of queue manager {} to topic {}, exactly once by message id. MQ's client channels are \
             EXPERIMENTAL: no queue manager of IBM's has been met",
            config.peer.queue, session.queue_manager, source.topic
        );
        line(Level::Info, &config.name, &text);
        Ok(Self { writer, session, mq })
    }

    /// The next unit; `None`: it is to stop, and no unit has begun.
    async fn collect(&mut self, stop: &mut Stop) -> Result<Option<Unit>, BridgeError> {
        let mut unit = Unit::default();
        while unit.len() == 0 {
            if stop.is_due() {
                return Ok(None);
            }
            self.get(&mut unit, WAIT).await?;
        }
        let ends_at = Instant::now() + self.writer.config.commit_interval;
        while unit.len() < self.writer.source.batch_max && unit.bytes < UNIT_BYTES_MAX {
            let left = ends_at.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.get(&mut unit, left.min(QUIET)).await? {
                break;
            }
        }
        Ok(Some(unit))
    }

    /// `false`: the queue is empty.
    async fn get(&mut self, unit: &mut Unit, wait: Duration) -> Result<bool, BridgeError> {
        let Some(got) = self.session.get(wait).await? else { return Ok(false) };
        self.writer.take(unit, Came::Mq(Box::new(got)), None);
        Ok(true)
    }

    async fn commit(&mut self, mut unit: Unit) -> Result<(), BridgeError> {
        let counters = self.writer.counters;
        counters.uncommitted.store(unit.len() as u64, Ordering::Relaxed);
        // What cannot be moved away is found before anything is written.
        self.refuse_without_a_place(&unit)?;
        self.writer.write(&mut unit, &mut self.session).await?;
        self.refuse_without_a_place(&unit)?;
        for (came, _) in unit.rejects() {
            if let (Some(queue), Came::Mq(got)) = (&self.mq.backout_queue, came) {
                self.session.put_to(queue, got).await?;
            }
        }
        self.session.commit().await?;
        self.writer.count(&unit, 0, self.session.calls());
        Ok(())
    }

    fn refuse_without_a_place(&self, unit: &Unit) -> Result<(), BridgeError> {
        let rejected = unit.rejects().next().filter(|_| self.mq.backout_queue.is_none());
        let Some((came, outcome)) = rejected else { return Ok(()) };
        let Came::Mq(got) = came else { return Ok(()) };
        let why = match outcome {
            Outcome::Rejected(why) => why.description.clone(),
            _ => String::new(),
        };
        Err(BridgeError::Held {
            queue: self.writer.config.peer.queue.clone(),
            id: barnabas_mq::jms::id_text(&got.md.msg_id),
            why: format!("has no place to go to: {why}"),
            advice: "Set errors.deadletterqueue.topic.name or mq.backout.queue",
        })
    }
}
