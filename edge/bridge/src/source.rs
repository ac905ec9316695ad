//! Queue → topic, in units of work, exactly once.
//!
//! A unit ends when it has as many messages as a batch, when `mq.commit.interval.ms` has passed since its first
//! message, or when the queue has nothing more to give for [`QUIET`]. Its records and the ids of its messages are
//! one Kafka transaction; after the commit its messages are settled. While a unit is committed the next one
//! arrives.
//!
//! Any error ends the run: the connection closes, the peer delivers again what was not settled, and the next run
//! fences this one's transaction, reads which ids were committed, and skips those. A crash takes the same way, so
//! there is one.
//!
//! Bounded: by the link's credit, twice a batch, and in bytes by the session's window (core/amqp).
//!
//! A topic that refuses a batch as too large (`MESSAGE_TOO_LARGE`) gets the unit again with each record alone. A record
//! that is refused alone is taken out of its way (`source/unit.rs`), so no message comes back for ever.
//!
//! The same from a queue manager: `source/mq.rs`.
//!
//! Before: core/amqp. After: edge/client's transactional producer.

mod came;
mod mq;
mod unit;
mod write;

use crate::config::{Config, Direction, SourceConfig};
use crate::error::BridgeError;
use crate::session::{Alive, Session};
use crate::stop::Stop;
use crate::watch::counters::Counters;
use crate::watch::log::{Level, line};
use barnabas_amqp::{Delivery, DeliveryId, Event, Filter, LinkId, Outcome, ReceiverConfig};
use came::Came;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use unit::Unit;
use write::Writer;

/// A queue that gives nothing for so long is empty.
const QUIET: Duration = Duration::from_millis(2);
/// Bytes of bodies after which a unit is full.
const UNIT_BYTES_MAX: usize = 8 << 20;

struct Source<'a> {
    writer: Writer<'a>,
    session: Session,
    link: LinkId,
    /// What arrived and is in no unit yet.
    waiting: VecDeque<Delivery>,
    /// Of the unit's messages, in their order.
    deliveries: Vec<DeliveryId>,
}

/// Runs until it is to stop (`Ok`), or until something ends it.
///
/// # Errors
/// Whatever ended it: run it again.
pub async fn run(config: &Config, counters: &Counters, stop: &mut Stop) -> Result<(), BridgeError> {
    let Direction::Source(source) = &config.direction else { return Ok(()) };
    if let Some(peer) = &config.peer.mq {
        return mq::run(config, source, peer, counters, stop).await;
    }
    let mut run = tokio::select! {
        connected = Source::connect(config, source, counters) => connected?,
        () = stop.wait() => return Ok(()),
    };
    counters.set_state("running");
    run.grant();
    while let Some(unit) = run.collect(stop).await? {
        run.commit(unit).await?;
    }
    run.release().await
}

impl<'a> Source<'a> {
    /// May be dropped at any point: nothing was taken from the queue.
    async fn connect(
        config: &'a Config,
        source: &'a SourceConfig,
        counters: &'a Counters,
    ) -> Result<Self, BridgeError> {
        let writer = Writer::start(config, source, counters).await?;
        // Only now is anything taken from the queue: while Kafka is away no message is delivered in vain.
        let container = format!("barnabas-bridge-{}", config.name);
        let (mut session, peer) = Session::connect(&config.peer, &container).await?;
        let receiver = ReceiverConfig {
            name: container,
            address: config.peer.queue.clone(),
            capabilities: config.peer.capabilities.clone(),
            filter: config.peer.selector.clone().map(Filter::Selector),
        };
        let link = session.receiver(&receiver).await?;
        let text = format!(
            "from queue {} of {} to topic {}, exactly once by message-id",
            config.peer.queue,
            Session::name_of(&peer),
            source.topic
        );
        line(Level::Info, &config.name, &text);
        Ok(Self { writer, session, link, waiting: VecDeque::new(), deliveries: Vec::new() })
    }

    /// Raises the credit once half of it is used.
    fn grant(&mut self) {
        let most = 2 * self.writer.source.batch_max;
        let left = self.session.credit(self.link) as usize;
        if left + self.waiting.len() <= most - self.writer.source.batch_max.div_ceil(2) {
            self.session.grant(self.link, (most - self.waiting.len()) as u32);
        }
    }

    /// The next unit; `None`: it is to stop, and no unit has begun.
    async fn collect(&mut self, stop: &mut Stop) -> Result<Option<Unit>, BridgeError> {
        // Deliveries that wait already would never let it look.
        if stop.is_due() {
            return Ok(None);
        }
        let mut unit = Unit::default();
        let mut ends_at = None;
        while unit.len() < self.writer.source.batch_max && unit.bytes < UNIT_BYTES_MAX {
            if let Some(delivery) = self.waiting.pop_front() {
                ends_at.get_or_insert_with(|| Instant::now() + self.writer.config.commit_interval);
                self.take(&mut unit, delivery);
                continue;
            }
            self.grant();
            let event = match ends_at {
                None => tokio::select! {
                    event = self.session.next() => Some(event?),
                    () = stop.wait() => return Ok(None),
                },
                Some(at) => match self.session.ready() {
                    Some(event) => Some(event),
                    None => {
                        let left = at.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            break;
                        }
                        self.session.nap(left.min(QUIET)).await?;
                        self.session.ready()
                    }
                },
            };
            match event {
                Some(event) => self.hear(event)?,
                None => break,
            }
        }
        Ok(Some(unit))
    }

    fn hear(&mut self, event: Event) -> Result<(), BridgeError> {
        match event {
            Event::Message(delivery) => self.waiting.push_back(delivery),
            Event::Available(_, count) => self.writer.counters.depth.store(count.into(), Ordering::Relaxed),
            Event::Detached(_, why) => {
                let (queue, why) =
                    (self.writer.config.peer.queue.clone(), why.unwrap_or_default().to_string());
                return Err(BridgeError::Link { queue, why });
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, unit: &mut Unit, delivery: Delivery) {
        let is_cut = delivery.size_bytes > delivery.payload.len() as u64;
        let cut = is_cut.then(|| {
            format!("a message of {} bytes is larger than amqp.message.bytes.max", delivery.size_bytes)
        });
        self.deliveries.push(delivery.id);
        self.writer.take(unit, Came::Amqp(delivery.payload), cut);
    }

    /// Commits a unit, while the session goes on, and settles it.
    async fn commit(&mut self, mut unit: Unit) -> Result<(), BridgeError> {
        let in_flight = (unit.len() + self.waiting.len()) as u64;
        self.writer.counters.uncommitted.store(in_flight, Ordering::Relaxed);
        self.writer.write(&mut unit, &mut self.session).await?;
        self.settle(&unit);
        while let Some(event) = self.session.ready() {
            self.hear(event)?;
        }
        self.writer.count(&unit, self.waiting.len(), self.session.frames_written());
        let held = unit.bytes;
        drop(unit);
        self.session.release(held);
        self.grant();
        self.session.flush().await
    }

    /// One disposition for each run of deliveries that end alike.
    fn settle(&mut self, unit: &Unit) {
        let mut runs: Vec<(DeliveryId, DeliveryId, &Outcome)> = Vec::new();
        for (id, outcome) in self.deliveries.drain(..).zip(&unit.outcomes) {
            match runs.last_mut() {
                Some((_, last, of)) if last.0.wrapping_add(1) == id.0 && *of == outcome => *last = id,
                _ => runs.push((id, id, outcome)),
            }
        }
        for (first, last, outcome) in runs {
            self.session.settle(first, last, outcome.clone());
        }
    }

    /// Gives back what is in no unit, and ends in order.
    async fn release(mut self) -> Result<(), BridgeError> {
        for delivery in std::mem::take(&mut self.waiting) {
            self.session.settle(delivery.id, delivery.id, Outcome::Released);
        }
        self.writer.counters.set_state("stopped");
        self.session.close(self.link).await
    }
}
