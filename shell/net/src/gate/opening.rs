//! A connection that has sent no request yet, and may have to give its place to another one.

use super::Gate;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

const SILENT: u8 = 0;
/// Its first request came, or it has ended.
const DONE: u8 = 1;
const GAVE_WAY: u8 = 2;

/// It leaves `SILENT` once.
#[derive(Debug)]
pub(super) struct Opening {
    since: Instant,
    state: AtomicU8,
    gave_way: Notify,
}

impl Opening {
    pub fn new(since: Instant) -> Self {
        Self { since, state: AtomicU8::new(SILENT), gave_way: Notify::new() }
    }

    pub fn since(&self) -> Instant {
        self.since
    }

    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    pub fn is_silent(&self) -> bool {
        self.state.load(Ordering::Acquire) == SILENT
    }

    /// Another connection gets its place, unless its first request has come.
    pub fn give_way(&self) -> bool {
        let gives_way = self.leave(GAVE_WAY);
        if gives_way {
            self.gave_way.notify_one();
        }
        gives_way
    }

    /// The connection ends. Returns whether it has given its place away.
    pub fn ends(&self) -> bool {
        !self.leave(DONE) && self.state.load(Ordering::Acquire) == GAVE_WAY
    }

    fn leave(&self, to: u8) -> bool {
        self.state.compare_exchange(SILENT, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What the reader of a connection knows of its place. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FirstRequest {
    pub(super) gate: Gate,
    pub(super) opening: Arc<Opening>,
}

impl FirstRequest {
    /// When the connection was accepted.
    pub fn accepted_at(&self) -> Instant {
        self.opening.since()
    }

    /// Whether places are short.
    pub fn is_crowded(&self) -> bool {
        self.gate.is_crowded()
    }

    /// It has come: the connection keeps its place. `false`: it comes too late.
    pub fn came(&self) -> bool {
        self.opening.leave(DONE) || self.opening.state.load(Ordering::Acquire) == DONE
    }

    /// Returns when another connection has got the place.
    pub async fn gave_way(&self) {
        self.opening.gave_way.notified().await;
    }
}
