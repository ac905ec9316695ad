//! The audit log: who did what, from where, and what came of it. Workers hand events in; the writer's thread makes
//! lines of them.
//!
//! Off unless `audit.log.file` names a file or `audit.topic` a topic. Kafka has no audit log, and only
//! `kafka-authorizer.log` with denials, which log4j writes where its own configuration says; a node writes no file that
//! its operator has not named.
//!
//! Always true:
//! 1. handing in an event never waits and never fails. One that the queue does not take is counted
//! 2. changes keep their room: logins and denials, whose number clients choose, fill three quarters of the queue
//! 3. a topic that cannot be written holds up neither the file nor the queue: audit/topic.rs
//! 4. the file is bounded: by `audit.log.file.bytes.max` and `audit.log.files.max`
//!
//! | file | answers |
//! |---|---|
//! | core/api's `audited` | what an event is and which text, which ones are one line with a count |
//! | config/logging/rotated_file.rs | where the line goes, when a new file begins |
//! | `audit/topic.rs` | which lines wait for the topic (routing/audit_topic.rs writes them) |
//! | `audit/writer.rs` | the thread |
//!
//! Before: requests/session/audited.rs (logins), requests/call/audited.rs (changes), node/cluster/callers.rs (denials).

mod topic;
mod writer;

use crate::config::logging::rotated_file::Files;
use barnabas_api::audited::events::{Event, Kind, Kinds, QUEUE_EVENTS_MAX};
use barnabas_api::audited::topic::AuditTopic;
use barnabas_base::BrokerId;
use barnabas_config::ConfigError;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::Meter;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::Notify;
use writer::Writer;

pub use topic::TopicLines;

pub const FILE: &str = "audit.log.file";
const TOPIC: &str = "audit.topic";
const EVENTS: &str = "audit.log.events";

/// `None`: the writer is to end.
type Queued = Option<Box<Event>>;

/// What the operator asks for.
#[derive(Debug, Clone)]
pub struct Settings {
    /// One of the two at least.
    file: Option<FileSettings>,
    topic: Option<AuditTopic>,
    kinds: Kinds,
}

#[derive(Debug, Clone)]
struct FileSettings {
    path: PathBuf,
    bytes_max: u64,
    files_max: u64,
}

/// See the file's header.
#[derive(Debug)]
pub struct Audit {
    kinds: Kinds,
    queue: Option<SyncSender<Queued>>,
    waiting: Arc<AtomicUsize>,
    meter: Arc<Meter>,
    /// Until the thread is started.
    writer: Mutex<Option<(Writer, Receiver<Queued>)>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Until their thread is started.
    topic_lines: Mutex<Option<TopicLines>>,
    topic_thread: Mutex<Option<JoinHandle<()>>>,
    topic_stops: Notify,
}

impl Settings {
    /// `None`: there is no audit log.
    ///
    /// # Errors
    /// A kind of event does not exist, the file cannot be written where it is to be, or the topic cannot be one.
    pub fn read(config: &BrokerConfig, is_broker: bool) -> Result<Option<Self>, ConfigError> {
        let topic = config.value(TOPIC).map(AuditTopic::parse).transpose();
        let topic = topic.map_err(|problem| ConfigError::value(TOPIC, problem, "audit.topic=audit"))?;
        if topic.is_some() && !is_broker {
            let problem =
                "is set, and this node is no broker: controllers note changes in audit.log.file alone";
            return Err(ConfigError::value(TOPIC, problem, "audit.log.file=/var/log/barnabas/audit.log"));
        }
        let file = FileSettings::read(config)?;
        if file.is_none() && topic.is_none() {
            return Ok(None);
        }
        let kinds = Kinds::parse(config.value(EVENTS).unwrap_or_default()).map_err(|problem| {
            ConfigError::value(EVENTS, problem, "audit.log.events=failed-logins,changes")
        })?;
        Ok(Some(Self { file, topic, kinds }))
    }
}

impl FileSettings {
    fn read(config: &BrokerConfig) -> Result<Option<Self>, ConfigError> {
        let Some(path) = config.value(FILE).map(PathBuf::from) else { return Ok(None) };
        let wrong =
            |problem: String| ConfigError::value(FILE, problem, "audit.log.file=/var/log/barnabas/audit.log");
        Files::check(&path).map_err(wrong)?;
        let number = |key: &str| {
            let value = config.value(key).and_then(|value| value.parse().ok());
            value.expect("invariant: the table has checked that it is a number")
        };
        let (bytes_max, files_max) = (number("audit.log.file.bytes.max"), number("audit.log.files.max"));
        Ok(Some(Self { path, bytes_max, files_max }))
    }
}

impl Audit {
    /// Opens the file, if there is to be one, and the way to the topic.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(settings: Option<Settings>, node: BrokerId, meter: Arc<Meter>) -> Result<Self, ConfigError> {
        let waiting = Arc::new(AtomicUsize::new(0));
        let Some(settings) = settings else {
            return Ok(Self::of(Kinds::default(), waiting, meter));
        };
        let mut audit = Self::of(settings.kinds, waiting.clone(), meter.clone());
        let (sender, receiver) = sync_channel(QUEUE_EVENTS_MAX);
        let (to_topic, topic_lines) = settings.topic.map(|topic| topic::queue(topic, meter.clone())).unzip();
        let writer = Writer::open(settings.file, to_topic, node, meter, waiting)
            .map_err(|error| ConfigError::value(FILE, error.to_string(), "a file that the node may write"))?;
        audit.queue = Some(sender);
        audit.writer = Mutex::new(Some((writer, receiver)));
        audit.topic_lines = Mutex::new(topic_lines);
        Ok(audit)
    }

    fn of(kinds: Kinds, waiting: Arc<AtomicUsize>, meter: Arc<Meter>) -> Self {
        Self {
            kinds,
            queue: None,
            waiting,
            meter,
            writer: Mutex::default(),
            thread: Mutex::default(),
            topic_lines: Mutex::default(),
            topic_thread: Mutex::default(),
            topic_stops: Notify::new(),
        }
    }

    /// What is to be written to the topic, for the thread that does. `None`: there is no topic.
    pub fn topic_lines(&self) -> Option<TopicLines> {
        self.topic_lines.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The thread that writes to the topic has begun.
    pub fn follow_topic(&self, thread: JoinHandle<()>) {
        *self.topic_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Returns once [`Self::stop_topic`] is called.
    pub async fn topic_stops(&self) {
        self.topic_stops.notified().await;
    }

    /// Ends the writing to the topic, within seconds: before the node's partitions are closed.
    pub fn stop_topic(&self) {
        let thread = self.topic_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            self.topic_stops.notify_one();
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }

    /// Whether such events are wanted: if not, none need be made.
    pub fn wants(&self, kind: Kind) -> bool {
        self.queue.is_some() && self.kinds.has(kind)
    }

    /// Hands in an event. Never waits.
    pub fn note(&self, event: Event) {
        let Some(queue) = self.queue.as_ref().filter(|_| self.kinds.has(event.kind)) else { return };
        if self.waiting.load(Ordering::Relaxed) >= event.kind.room() {
            self.meter.audit.dropped.one();
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if queue.try_send(Some(Box::new(event))).is_ok() {
            self.meter.audit.taken.one();
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            self.meter.audit.dropped.one();
        }
    }

    /// Starts the writer, if there is an audit log.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(&self) -> io::Result<()> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((writer, events)) = writer {
            let thread = std::thread::Builder::new().name("audit".to_owned());
            let thread = thread.spawn(move || writer.run(&events))?;
            *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        }
        Ok(())
    }

    /// Ends the writer once it has written what was handed in.
    pub fn stop(&self) {
        if let Some(queue) = &self.queue {
            // The writer may have ended with its thread.
            let _ = queue.send(None);
        }
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread that panicked has said so.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests;
