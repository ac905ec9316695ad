//! Topic → queue: transfers, and offsets that are committed after the peer accepted.
//!
//! After a crash the records since the last committed offset are sent again. Each message carries the same mark then
//! (`connector:topic:partition:offset`), so a peer that detects duplicates drops it: Artemis by `_AMQ_DUPL_ID`, Azure
//! Service Bus by message-id. At any other peer the sink is at least once, and says so when it starts.
//!
//! A message that the peer rejects goes to the dead-letter topic; one that it gives back (`released`, `modified`)
//! is sent again after `mq.retry.backoff.ms`. Neither holds up the others; a partition's offset waits for all
//! before it.
//!
//! A message that is larger than the link's max-message-size is not sent: it goes to the dead-letter topic.
//!
//! Bounded: see `sink/in_flight.rs`.
//!
//! The same to a queue manager: `sink/mq.rs`.
//!
//! Before: edge/client's group and consumer. After: core/amqp.

mod burial;
mod in_flight;
mod mq;
mod progress;
mod reading;

use crate::config::{Config, Direction, Duplicates, SinkConfig};
use crate::error::BridgeError;
use crate::session::{Alive, Session};
use crate::stop::Stop;
use crate::watch::counters::{Counters, add};
use crate::watch::log::{Level, Seldom, line};
use barnabas_amqp::{DeliveryId, Event, LinkId, NotSent, Outcome, Peer, SenderConfig, encode_message};
use barnabas_amqp_records::{self as convert, Marks};
use barnabas_client::Received;
use burial::Letters;
use bytes::Bytes;
use in_flight::{Dead, InFlight};
use reading::Reading;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest wait for a record or an event: heartbeats and commits are looked at between.
const TURN: Duration = Duration::from_millis(100);

struct Sink<'a> {
    config: &'a Config,
    sink: &'a SinkConfig,
    topic: &'a str,
    counters: &'a Counters,
    reading: Reading,
    session: Session,
    link: LinkId,
    marks: Marks,
    held: InFlight,
    letters: Letters,
    commit_at: Option<Instant>,
    seldom: Seldom,
}

/// Runs one topic until it is to stop (`Ok`), or until something ends it.
///
/// # Errors
/// Whatever ended it: run it again.
pub async fn run(
    config: &Config,
    topic: &str,
    counters: &Counters,
    stop: &mut Stop,
) -> Result<(), BridgeError> {
    let Direction::Sink(sink) = &config.direction else { return Ok(()) };
    if let Some(peer) = &config.peer.mq {
        return mq::run(config, sink, peer, topic, counters, stop).await;
    }
    let mut run = tokio::select! {
        connected = Sink::connect(config, sink, topic, counters) => connected?,
        () = stop.wait() => return Ok(()),
    };
    run.join(stop).await?;
    if !stop.is_due() {
        counters.set_state("running");
    }
    while !stop.is_due() {
        run.turn(stop).await?;
    }
    run.finish(stop).await
}

fn marks(sink: &SinkConfig, peer: &Peer) -> Marks {
    match sink.duplicates {
        Duplicates::Artemis => Marks::Artemis,
        Duplicates::MessageId => Marks::MessageId,
        Duplicates::None => Marks::None,
        Duplicates::Auto if peer.product.to_lowercase().contains("artemis") => Marks::Artemis,
        Duplicates::Auto => Marks::None,
    }
}

fn announce(config: &Config, topic: &str, peer: &Peer, marks: Marks) {
    let how = match marks {
        Marks::Artemis => "exactly once: Artemis drops what comes twice by _AMQ_DUPL_ID",
        Marks::MessageId => "exactly once where the peer's queue drops what comes twice by message-id",
        Marks::None => {
            "AT LEAST ONCE: nothing is known of duplicate detection at this peer (amqp.duplicate.detection)"
        }
    };
    let text =
        format!("from topic {topic} to queue {} of {}, {how}", config.peer.queue, Session::name_of(peer));
    line(Level::Info, &config.name, &text);
}

impl<'a> Sink<'a> {
    /// May be dropped at any point: the group was not joined.
    async fn connect(
        config: &'a Config,
        sink: &'a SinkConfig,
        topic: &'a str,
        counters: &'a Counters,
    ) -> Result<Self, BridgeError> {
        let reading = Reading::start(config, sink, topic).await?;
        let container = format!("barnabas-bridge-{}", config.name);
        let (mut session, peer) = Session::connect(&config.peer, &container).await?;
        let sender = SenderConfig {
            name: format!("{container}-{topic}"),
            address: config.peer.queue.clone(),
            capabilities: config.peer.capabilities.clone(),
        };
        let link = session.sender(&sender).await?;
        let marks = marks(sink, &peer);
        announce(config, topic, &peer, marks);
        Ok(Self {
            config,
            sink,
            topic,
            counters,
            reading,
            session,
            link,
            marks,
            held: InFlight::default(),
            letters: Letters::default(),
            commit_at: None,
            seldom: Seldom::default(),
        })
    }

    /// Joins the group (again) and reads on at what is committed. What is in flight is of the membership before.
    /// Where it is to stop meanwhile, nothing is assigned.
    async fn join(&mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        self.held = InFlight::default();
        self.reading.join(stop, &mut self.session).await
    }

    fn can_take(&self) -> bool {
        self.held.has_room(self.sink.in_flight_max, self.session.unsettled())
            && self.session.can_send(self.link)
    }

    /// Waits for one thing, then does what is due.
    async fn turn(&mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        self.send_again();
        let can_take = self.can_take();
        let wait = self.commit_at.map_or(TURN, |at| at.saturating_duration_since(Instant::now()).min(TURN));
        let mut record = None;
        tokio::select! {
            event = self.session.next() => self.hear(event?)?,
            polled = self.reading.consumer.poll(&mut self.reading.cluster, TURN), if can_take => record = polled?,
            () = tokio::time::sleep(wait) => {}
            () = stop.wait() => {}
        }
        if let Some(record) = record {
            self.send(record);
            self.send_buffered().await?;
        }
        while let Some(trouble) = self.reading.consumer.next_trouble() {
            line(Level::Warn, &self.config.name, &trouble.words(self.topic, "read"));
        }
        while let Some(event) = self.session.next_within(Duration::ZERO).await? {
            self.hear(event)?;
        }
        self.bury().await?;
        self.commit_if_due(stop).await?;
        if !self.session.during(self.reading.group.stay(&mut self.reading.cluster)).await?? {
            self.join(stop).await?;
        }
        self.counters.uncommitted.store(self.held.len() as u64, Ordering::Relaxed);
        self.counters.requests.store(self.session.frames_written(), Ordering::Relaxed);
        Ok(())
    }

    /// Sends what the consumer has without waiting for a broker.
    async fn send_buffered(&mut self) -> Result<(), BridgeError> {
        while !self.reading.consumer.is_drained() && self.can_take() {
            let Some(record) = self.reading.consumer.poll(&mut self.reading.cluster, TURN).await? else {
                break;
            };
            self.send(record);
        }
        Ok(())
    }

    fn send(&mut self, record: Received) {
        self.reading.progress.begin(record.partition, record.offset);
        self.held.begin(&record);
        self.transfer(record);
    }

    fn transfer(&mut self, record: Received) {
        let made = convert::message(
            &self.sink.rules,
            self.config.is_jms,
            self.marks,
            &self.config.name,
            self.topic,
            &record,
        );
        let message = match made {
            Ok(message) => encode_message(&message),
            Err(why) => {
                self.held.bury(Dead { record, stage: "VALUE_CONVERTER", why });
                return;
            }
        };
        let bytes = message.len();
        match self.session.send(self.link, message) {
            Ok(id) => self.held.sent(id, record),
            // The credit is gone: it goes with the next.
            Err(NotSent::NotNow) => self.held.first(Instant::now(), record),
            Err(NotSent::TooLarge { bytes_max }) => {
                let why = format!(
                    "its message of {bytes} bytes is larger than the peer takes: max-message-size {bytes_max}"
                );
                self.held.bury(Dead { record, stage: "TASK_PUT", why });
            }
        }
    }

    fn send_again(&mut self) {
        while self.session.can_send(self.link)
            && let Some(record) = self.held.next_again(Instant::now())
        {
            self.transfer(record);
        }
    }

    fn hear(&mut self, event: Event) -> Result<(), BridgeError> {
        match event {
            Event::Outcome(_, id, outcome) => self.ended(id, outcome),
            Event::Detached(_, why) => {
                let (queue, why) = (self.config.peer.queue.clone(), why.unwrap_or_default().to_string());
                return Err(BridgeError::Link { queue, why });
            }
            _ => {}
        }
        Ok(())
    }

    fn ended(&mut self, id: DeliveryId, outcome: Outcome) {
        // Of a membership before this one: the group's offsets decide.
        let Some(record) = self.held.outcome(id) else { return };
        let why = match outcome {
            Outcome::Accepted => {
                add(&self.counters.messages, 1);
                add(&self.counters.bytes, record.value.as_ref().map_or(0, Bytes::len) as u64);
                self.done(&record);
                return;
            }
            Outcome::Rejected(why) => format!("the peer rejects it: {why}"),
            Outcome::Modified { undeliverable_here: true, .. } => {
                "the peer says that it cannot be delivered there".to_owned()
            }
            // A peer says something of transactions only where one was begun.
            Outcome::Released
            | Outcome::Modified { .. }
            | Outcome::Received
            | Outcome::Declared { .. }
            | Outcome::Transactional { .. }
            | Outcome::Other(_) => {
                let text = format!("offset {} is given back; it is sent again", record.offset);
                self.seldom.warn(&self.config.name, &text);
                self.held.later(Instant::now() + self.sink.retry_backoff, record);
                return;
            }
        };
        self.held.bury(Dead { record, stage: "TASK_PUT", why });
    }

    fn done(&mut self, record: &Received) {
        self.reading.progress.done(record.partition, record.offset);
        self.held.end(record);
    }

    async fn commit_if_due(&mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        self.reading.reach();
        if self.reading.progress.is_ahead() {
            self.commit_at.get_or_insert_with(|| Instant::now() + self.config.commit_interval);
        }
        if self.commit_at.is_some_and(|at| at <= Instant::now()) {
            self.commit(stop).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        self.commit_at = None;
        let offsets = self.reading.progress.take();
        if offsets.is_empty() {
            return Ok(());
        }
        add(&self.counters.commits, 1);
        if !self.session.during(self.reading.group.commit(&mut self.reading.cluster, offsets)).await?? {
            self.join(stop).await?;
        }
        Ok(())
    }

    /// Waits for the outcomes of what was sent, commits, and leaves.
    async fn finish(mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        let until = Instant::now() + Duration::from_secs(5);
        while self.held.is_waiting() && Instant::now() < until {
            if let Some(event) = self.session.next_within(TURN).await? {
                self.hear(event)?;
            }
        }
        self.bury().await?;
        self.commit(stop).await?;
        self.reading.group.leave(&mut self.reading.cluster).await?;
        self.counters.set_state("stopped");
        self.session.close(self.link).await
    }
}
