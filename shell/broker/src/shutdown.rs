//! How a node ends: asked to by a signal, or since it cannot go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
}

impl Shutdown {
    /// The node cannot go on. It still closes what it can.
    pub fn failed(&self, why: &str) {
        if !self.shared.failed.swap(true, Ordering::AcqRel) {
            tracing::error!("the node stops: {why}");
        }
        self.ask();
    }

    /// Somebody wants the node to stop.
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
}
