//! The audit log: who did what, from where, and what came of it. Workers hand events in; the writer's thread makes
//! lines of them.
//!
//! Off unless `audit.log.file` names a file. Kafka has no audit log, and only `kafka-authorizer.log` with denials,
//! which log4j writes where its own configuration says; a node writes no file that its operator has not named.
//!
//! Always true:
//! 1. handing in an event never waits and never fails. One that the queue does not take is counted
//! 2. changes keep their room: logins and denials, whose number clients choose, fill three quarters of the queue
//! 3. the file is bounded: by `audit.log.file.bytes.max` and `audit.log.files.max`
//!
//! | file | answers |
//! |---|---|
//! | core/api's `audited` | what an event is and which text, which ones are one line with a count |
//! | `audit/file.rs` | where the line goes, when a new file begins |
//! | `audit/writer.rs` | the thread |
//!
//! Before: requests/session/audited.rs (logins), requests/call/audited.rs (changes), node/cluster/callers.rs (denials).

mod file;
mod writer;

use barnabas_api::audited::events::{Event, Kind, Kinds, QUEUE_EVENTS_MAX};
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
use writer::Writer;

pub const FILE: &str = "audit.log.file";
const EVENTS: &str = "audit.log.events";

/// `None`: the writer is to end.
type Queued = Option<Box<Event>>;

/// What the operator asks for.
#[derive(Debug, Clone)]
pub struct Settings {
    file: PathBuf,
    file_bytes_max: u64,
    files_max: u64,
    kinds: Kinds,
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
}

impl Settings {
    /// `None`: there is no audit log.
    ///
    /// # Errors
    /// A kind of event does not exist, or the file cannot be written where it is to be.
    pub fn read(config: &BrokerConfig) -> Result<Option<Self>, ConfigError> {
        let Some(file) = config.value(FILE).map(PathBuf::from) else { return Ok(None) };
        let wrong =
            |problem: String| ConfigError::value(FILE, problem, "audit.log.file=/var/log/barnabas/audit.log");
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.map_or_else(|| PathBuf::from("."), PathBuf::from);
        if !parent.is_dir() {
            return Err(wrong(format!("{} is no directory: create it", parent.display())));
        }
        if file.exists() && !file.is_file() {
            return Err(wrong(format!("{} is no file", file.display())));
        }
        let number = |key: &str| {
            let value = config.value(key).and_then(|value| value.parse().ok());
            value.expect("invariant: the table has checked that it is a number")
        };
        let kinds = Kinds::parse(config.value(EVENTS).unwrap_or_default()).map_err(|problem| {
            ConfigError::value(EVENTS, problem, "audit.log.events=failed-logins,changes")
        })?;
        let (file_bytes_max, files_max) = (number("audit.log.file.bytes.max"), number("audit.log.files.max"));
        Ok(Some(Self { file, file_bytes_max, files_max, kinds }))
    }
}

impl Audit {
    /// Opens the file, if there is to be one.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(settings: Option<Settings>, node: BrokerId, meter: Arc<Meter>) -> Result<Self, ConfigError> {
        let waiting = Arc::new(AtomicUsize::new(0));
        let Some(settings) = settings else {
            let writer = Mutex::new(None);
            return Ok(Self {
                kinds: Kinds::default(),
                queue: None,
                waiting,
                meter,
                writer,
                thread: Mutex::default(),
            });
        };
        let kinds = settings.kinds;
        let (sender, receiver) = sync_channel(QUEUE_EVENTS_MAX);
        let writer = Writer::open(settings, node, meter.clone(), waiting.clone())
            .map_err(|error| ConfigError::value(FILE, error.to_string(), "a file that the node may write"))?;
        let writer = Mutex::new(Some((writer, receiver)));
        Ok(Self { kinds, queue: Some(sender), waiting, meter, writer, thread: Mutex::default() })
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
