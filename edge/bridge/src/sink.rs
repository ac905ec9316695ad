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
//! Bounded: `bridge.in.flight.max` messages are sent and not done.
//!
//! Before: edge/client's group and consumer. After: core/amqp.

mod progress;

use crate::config::{Config, Direction, Duplicates, SinkConfig};
use crate::convert::{self, Marks};
use crate::dead_letters::{Origin, with_reason};
use crate::error::BridgeError;
use crate::session::Session;
use crate::stop::Stop;
use crate::watch::counters::{Counters, add};
use crate::watch::log::{Level, Seldom, line};
use barnabas_amqp::{DeliveryId, Event, LinkId, Outcome, Peer, SenderConfig, encode_message};
use barnabas_client::{
    ClientError, Cluster, Consumer, ConsumerConfig, Group, GroupConfig, Outgoing, Producer, ProducerConfig,
    Received, StartAt,
};
use bytes::Bytes;
use progress::Progress;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The longest wait for a record or an event: heartbeats and commits are looked at between.
const TURN: Duration = Duration::from_millis(100);

struct Sink<'a> {
    config: &'a Config,
    sink: &'a SinkConfig,
    topic: &'a str,
    counters: &'a Counters,
    cluster: Cluster,
    group: Group,
    consumer: Consumer,
    session: Session,
    link: LinkId,
    marks: Marks,
    /// Sent, without an outcome.
    in_flight: HashMap<DeliveryId, Received>,
    /// Given back: to be sent again from this moment on.
    again: VecDeque<(Instant, Received)>,
    /// Could not be converted, or was rejected, and why.
    dead: Vec<(Received, &'static str, String)>,
    progress: Progress,
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
    let mut cluster = Cluster::new(config.kafka.clone());
    let tries = cluster.tries(format!("finding topic {topic}"));
    while let Err(error) = cluster.topic(topic, true).await {
        tries.after(error).await?;
    }
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
    let group = Group::new(GroupConfig::new(&sink.group), topic);
    let consumer = Consumer::new(topic, ConsumerConfig { read_committed: true, ..ConsumerConfig::default() });
    let mut run = Sink {
        config,
        sink,
        topic,
        counters,
        cluster,
        group,
        consumer,
        session,
        link,
        marks,
        in_flight: HashMap::new(),
        again: VecDeque::new(),
        dead: Vec::new(),
        progress: Progress::default(),
        commit_at: None,
        seldom: Seldom::default(),
    };
    run.join().await?;
    counters.set_state("running");
    while !stop.is_due() {
        run.turn(stop).await?;
    }
    run.finish().await
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
    let text = format!(
        "from topic {topic} to queue {} of {} {}, {how}",
        config.peer.queue, peer.product, peer.version
    );
    line(Level::Info, &config.name, &text);
}

impl Sink<'_> {
    /// Joins the group (again) and reads on at what is committed. What is in flight is of the membership before.
    async fn join(&mut self) -> Result<(), BridgeError> {
        let assigned = self.session.during(self.group.join(&mut self.cluster)).await??;
        self.progress = Progress::new(&assigned);
        // The positions of what was not done are forgotten: the group's offsets say where to go on.
        self.consumer.assign([]);
        self.again.clear();
        self.dead.clear();
        self.in_flight.clear();
        let start = |offset| Option::map_or(offset, StartAt::Earliest, StartAt::Offset);
        self.consumer.assign(assigned.into_iter().map(|(partition, offset)| (partition, start(offset))));
        Ok(())
    }

    /// Waits for one thing, then does what is due.
    async fn turn(&mut self, stop: &mut Stop) -> Result<(), BridgeError> {
        self.send_again();
        let held = self.in_flight.len() + self.again.len();
        let can_send = held < self.sink.in_flight_max && self.session.can_send(self.link);
        let wait = self.commit_at.map_or(TURN, |at| at.saturating_duration_since(Instant::now()).min(TURN));
        let mut record = None;
        tokio::select! {
            event = self.session.next() => self.hear(event?)?,
            polled = self.consumer.poll(&mut self.cluster, TURN), if can_send => record = polled?,
            () = tokio::time::sleep(wait) => {}
            () = stop.wait() => {}
        }
        if let Some(record) = record {
            self.send(record);
            self.send_buffered().await?;
        }
        while let Some(event) = self.session.next_within(Duration::ZERO).await? {
            self.hear(event)?;
        }
        self.bury().await?;
        self.commit_if_due().await?;
        if !self.session.during(self.group.stay(&mut self.cluster)).await?? {
            self.join().await?;
        }
        let held = (self.in_flight.len() + self.again.len()) as u64;
        self.counters.uncommitted.store(held, Ordering::Relaxed);
        self.counters.requests.store(self.session.frames_written(), Ordering::Relaxed);
        Ok(())
    }

    /// Sends what the consumer has without waiting for a broker.
    async fn send_buffered(&mut self) -> Result<(), BridgeError> {
        while !self.consumer.is_drained()
            && self.in_flight.len() + self.again.len() < self.sink.in_flight_max
            && self.session.can_send(self.link)
        {
            let Some(record) = self.consumer.poll(&mut self.cluster, TURN).await? else { break };
            self.send(record);
        }
        Ok(())
    }

    fn send(&mut self, record: Received) {
        self.progress.begin(record.partition, record.offset);
        self.transfer(record);
    }

    fn transfer(&mut self, record: Received) {
        let made = convert::message(
            self.sink,
            self.config.is_jms,
            self.marks,
            &self.config.name,
            self.topic,
            &record,
        );
        let message = match made {
            Ok(message) => encode_message(&message),
            Err(why) => {
                self.dead.push((record, "VALUE_CONVERTER", why));
                return;
            }
        };
        let tag =
            [record.partition.get().to_be_bytes().as_slice(), &record.offset.get().to_be_bytes()].concat();
        match self.session.send(self.link, Bytes::from(tag), message) {
            Some(id) => {
                self.in_flight.insert(id, record);
            }
            // The credit is gone: it goes with the next.
            None => self.again.push_front((Instant::now(), record)),
        }
    }

    fn send_again(&mut self) {
        while self.session.can_send(self.link)
            && self.again.front().is_some_and(|(at, _)| *at <= Instant::now())
            && let Some((_, record)) = self.again.pop_front()
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
        let Some(record) = self.in_flight.remove(&id) else { return };
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
            Outcome::Released | Outcome::Modified { .. } | Outcome::Received | Outcome::Other(_) => {
                let text = format!("offset {} is given back; it is sent again", record.offset);
                self.seldom.warn(&self.config.name, &text);
                self.again.push_back((Instant::now() + self.sink.retry_backoff, record));
                return;
            }
        };
        self.dead.push((record, "TASK_PUT", why));
    }

    fn done(&mut self, record: &Received) {
        self.progress.done(record.partition, record.offset);
    }

    /// Writes what cannot be delivered to the dead-letter topic; only then does its offset count as done.
    async fn bury(&mut self) -> Result<(), BridgeError> {
        let Some(topic) = self.config.dead_letters.as_deref().filter(|_| !self.dead.is_empty()) else {
            return Ok(());
        };
        let dead = std::mem::take(&mut self.dead);
        let mut letters = Vec::new();
        for (record, stage, why) in &dead {
            let place = (self.topic, record.partition.get(), record.offset.get());
            let text = format!("record {}-{}@{} goes to {topic}: {why}", place.0, place.1, place.2);
            self.seldom.warn(&self.config.name, &text);
            let mut letter = Outgoing {
                partition: None,
                key: record.key.clone(),
                value: record.value.clone(),
                headers: record.headers.clone(),
                timestamp_ms: Some(record.timestamp_ms),
            };
            if self.config.dead_letter_reasons {
                let origin = Origin { connector: &self.config.name, stage, record: Some(place) };
                letter = with_reason(letter, origin, why);
            }
            letters.push(letter);
        }
        self.session.during(write(&mut self.cluster, topic, &letters)).await??;
        add(&self.counters.dead_letters, dead.len() as u64);
        for (record, _, _) in &dead {
            self.done(record);
        }
        Ok(())
    }

    async fn commit_if_due(&mut self) -> Result<(), BridgeError> {
        for (partition, position) in self.consumer.positions() {
            self.progress.reach(partition, position);
        }
        if self.progress.is_ahead() {
            self.commit_at.get_or_insert_with(|| Instant::now() + self.config.commit_interval);
        }
        if self.commit_at.is_some_and(|at| at <= Instant::now()) {
            self.commit().await?;
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), BridgeError> {
        self.commit_at = None;
        let offsets = self.progress.take();
        if offsets.is_empty() {
            return Ok(());
        }
        add(&self.counters.commits, 1);
        if !self.session.during(self.group.commit(&mut self.cluster, offsets)).await?? {
            self.join().await?;
        }
        Ok(())
    }

    /// Waits for the outcomes of what was sent, commits, and leaves.
    async fn finish(mut self) -> Result<(), BridgeError> {
        let until = Instant::now() + Duration::from_secs(5);
        while !self.in_flight.is_empty() && Instant::now() < until {
            if let Some(event) = self.session.next_within(TURN).await? {
                self.hear(event)?;
            }
        }
        self.bury().await?;
        self.commit().await?;
        self.group.leave(&mut self.cluster).await?;
        self.counters.set_state("stopped");
        self.session.close(self.link).await
    }
}

async fn write(cluster: &mut Cluster, topic: &str, letters: &[Outgoing]) -> Result<(), ClientError> {
    let mut producer = Producer::new(cluster, topic, ProducerConfig::default()).await?;
    for letter in letters {
        producer.send(letter).await?;
    }
    producer.flush().await
}
