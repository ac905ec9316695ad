//! The thread that makes the audit log's lines, writes them to the files of config/logging/rotated_file.rs, and hands
//! them on for the topic: audit/topic.rs.

use super::topic::ToTopic;
use super::{FileSettings, Queued};
use crate::config::logging::rotated_file::Files;
use crate::node::log_rate_limit::LogRateLimit;
use barnabas_api::audited::events::Event;
use barnabas_api::audited::gathered::Gathered;
use barnabas_api::audited::line::notice;
use barnabas_base::BrokerId;
use barnabas_clock::Clock;
use barnabas_metrics::Meter;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How often what happened again is looked through.
const TICK: Duration = Duration::from_secs(1);
/// Lines that are written in one go, in the order of their events' times.
const LINES_MAX: usize = 1024;

/// See the file's header.
#[derive(Debug)]
pub(super) struct Writer {
    files: Option<Files>,
    to_topic: Option<ToTopic>,
    node: BrokerId,
    meter: Arc<Meter>,
    waiting: Arc<AtomicUsize>,
    clock: Clock,
    gathered: Gathered,
    lines: Vec<String>,
    /// How many events were dropped when that was last written.
    dropped_said: u64,
    complaints: LogRateLimit<()>,
}

impl Writer {
    /// # Errors
    /// The file cannot be opened.
    pub(super) fn open(
        file: Option<FileSettings>,
        to_topic: Option<ToTopic>,
        node: BrokerId,
        meter: Arc<Meter>,
        waiting: Arc<AtomicUsize>,
    ) -> io::Result<Self> {
        let open = |file: FileSettings| Files::open(file.path, 0o600, file.bytes_max, file.files_max);
        Ok(Self {
            files: file.map(open).transpose()?,
            to_topic,
            node,
            meter,
            waiting,
            clock: Clock::start(),
            gathered: Gathered::default(),
            lines: Vec::new(),
            dropped_said: 0,
            complaints: LogRateLimit::default(),
        })
    }

    pub(super) fn run(mut self, events: &Receiver<Queued>) {
        let mut ticked = barnabas_clock::now();
        loop {
            let mut goes_on = true;
            let mut taken: Vec<Box<Event>> = Vec::new();
            match events.recv_timeout(TICK) {
                Ok(Some(event)) => taken.push(event),
                Ok(None) | Err(RecvTimeoutError::Disconnected) => goes_on = false,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let mut expected = taken.iter().map(|event| event.what.len().max(1)).sum::<usize>();
            while goes_on && expected < LINES_MAX {
                match events.try_recv() {
                    Ok(Some(event)) => {
                        expected += event.what.len().max(1);
                        taken.push(event);
                    }
                    Ok(None) => goes_on = false,
                    Err(_) => break,
                }
            }
            // Workers hand in events side by side. Those that were decided in one millisecond keep their order.
            taken.sort_by_key(|event| event.at);
            taken.iter().for_each(|event| self.take(event));
            if !goes_on || barnabas_clock::since(ticked) >= TICK {
                ticked = barnabas_clock::now();
                self.tick(!goes_on);
            }
            self.flush();
            if !goes_on {
                return;
            }
        }
    }

    fn take(&mut self, event: &Event) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.gathered.take(event, self.node, self.clock.monotonic(), &mut self.lines);
    }

    fn tick(&mut self, is_last: bool) {
        self.files.as_mut().into_iter().for_each(Files::look_again);
        let wall = self.clock.wall();
        self.lines.extend(self.gathered.due(self.node, wall, self.clock.monotonic(), is_last));
        let dropped = self.meter.audit.dropped.get();
        if dropped > self.dropped_said {
            let count = dropped - self.dropped_said;
            self.lines.push(notice(wall, self.node, "dropped", "the queue of the audit log was full", count));
            self.dropped_said = dropped;
        }
    }

    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        if let Some(to_topic) = &self.to_topic {
            to_topic.hand_in(&self.lines);
        }
        let written = self.files.as_mut().map_or(Ok(()), |files| files.write(&self.lines));
        if let Err((lost, error)) = written {
            self.meter.audit.failed.add(lost as u64);
            if let Some(unsaid) = self.complaints.happened(&(), barnabas_clock::now()) {
                tracing::warn!(%error, lines = lost, "lines of the audit log were not written: check the space and \
                    the permissions at {}{unsaid}", super::FILE);
            }
        }
        self.lines.clear();
    }
}
