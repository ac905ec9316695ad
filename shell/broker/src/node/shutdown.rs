//! How a node ends: by a signal, or because it cannot go on. And how far its stop has come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Shared by all threads. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicBool,
    failed: AtomicBool,
    notify: Notify,
    /// When the stop began, and what it waits for now.
    progress: Mutex<Option<(Instant, &'static str)>>,
}

impl Shutdown {
    /// The node cannot go on. It still closes what it can.
    pub fn failed(&self, why: &str) {
        if !self.shared.failed.swap(true, Ordering::AcqRel) {
            tracing::error!("the node stops: {why}");
        }
        self.ask();
    }

    /// The node is to stop.
    pub fn ask(&self) {
        self.shared.wanted.store(true, Ordering::Release);
        self.shared.notify.notify_one();
    }

    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    pub fn is_wanted(&self) -> bool {
        self.shared.wanted.load(Ordering::Acquire)
    }

    pub async fn wanted(&self) {
        while !self.shared.wanted.load(Ordering::Acquire) {
            self.shared.notify.notified().await;
        }
    }

    /// The stop waits for `what` from now on.
    pub fn waits_for(&self, what: &'static str) {
        let mut progress = self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = progress.map_or_else(barnabas_clock::now, |(begun, _)| begun);
        *progress = Some((begun, what));
    }

    /// What the stop waits for, and since when it goes on; `None`: the node does not stop.
    pub fn progress(&self) -> Option<(&'static str, Duration)> {
        let progress = self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.map(|(begun, what)| (what, barnabas_clock::since(begun)))
    }
}
