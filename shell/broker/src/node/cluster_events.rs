//! What the log says of the cluster: keeps core/metadata's lines for all threads, and writes them.
//!
//! Bounded: changes of brokers beyond a number in a minute are counted, since a process that reaches a controller's
//! listener can register brokers.
//!
//! Before: publisher.rs, for each step from image to image, and core/metadata/src/events/lines.rs, which makes the
//! lines. Asked for by quorum_worker.rs, at each of its turns.

use crate::node::log_rate_limit::Burst;
use barnabas_base::{DurationMs, ErrorCode, MonotonicMs};
use barnabas_metadata::Image;
use barnabas_metadata::events::{Event, EventLines, Here, Level, Line};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes a line.
pub fn write(line: &Line) {
    match line.level {
        Level::Error => tracing::error!("{}", line.text),
        Level::Warn => tracing::warn!("{}", line.text),
        Level::Info => tracing::info!("{}", line.text),
    }
}

/// Changes that were not written yet. The lock is held for a few names, but for the moment in which an alarm is looked
/// for.
#[derive(Debug, Default)]
pub struct ClusterEvents {
    lines: Mutex<EventLines>,
    /// Those that are written at once.
    burst: Burst,
}

impl ClusterEvents {
    fn lock(&self) -> MutexGuard<'_, EventLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`EventLines::watch_leaders`].
    pub fn watch_leaders(&self, image: &Arc<Image>) {
        self.lock().watch_leaders(image);
    }

    /// As [`EventLines::happened`], unless there are too many.
    pub fn happened(&self, event: &Event, me: Here) -> Option<Line> {
        let Line { level, text } = self.lock().happened(event, me)?;
        let unsaid = self.burst.happened(barnabas_clock::now())?;
        Some(Line { level, text: format!("{text}{unsaid}") })
    }

    /// As [`EventLines::created`].
    pub fn created(&self, topic: &str) {
        self.lock().created(topic);
    }

    /// As [`EventLines::not_created`].
    pub fn not_created(&self, topic: &str, code: ErrorCode, why: &str) {
        self.lock().not_created(topic, code, why);
    }

    /// As [`EventLines::are_waiting`].
    pub fn are_waiting(&self) -> bool {
        self.lock().are_waiting()
    }

    /// As [`EventLines::due`].
    pub fn due(&self, now: MonotonicMs, image: &Arc<Image>, patience: DurationMs) -> Vec<Line> {
        self.lock().due(now, image, patience)
    }
}
