//! The questions of this broker's partitions to the controller, until they are answered: who is in sync
//! (AlterPartition).
//!
//! Neighbours: partition_worker/replication/followers.rs, which asks; replica/isr.rs, which carries the questions.

use crate::mailbox::PartitionKey;
use barnabas_base::{DurationMs, MonotonicMs};
use barnabas_partition::{IsrChange, IsrRequests};
#[cfg(test)]
use barnabas_wire::messages::{AlterPartitionRequest, AlterPartitionResponse};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// After an answer that was none. Kafka waits as long.
const BACKOFF: DurationMs = DurationMs(50);

/// See the file's header.
#[derive(Debug)]
pub struct AlterPartitionQueue {
    pub requests: Mutex<IsrRequests>,
    pub changed: Notify,
    #[cfg(test)]
    pub answers: std::sync::OnceLock<Answers>,
}

/// A controller that a test makes up.
#[cfg(test)]
pub struct Answers(
    pub  Box<
        dyn Fn(AlterPartitionRequest) -> tokio::sync::oneshot::Receiver<AlterPartitionResponse> + Send + Sync,
    >,
);

#[cfg(test)]
impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answers")
    }
}

impl Default for AlterPartitionQueue {
    fn default() -> Self {
        Self {
            requests: Mutex::new(IsrRequests::new(BACKOFF)),
            changed: Notify::new(),
            #[cfg(test)]
            answers: std::sync::OnceLock::new(),
        }
    }
}

impl AlterPartitionQueue {
    /// A partition asks, or asks again.
    pub fn ask(&self, key: PartitionKey, change: IsrChange) {
        self.lock().ask(key, change);
        self.changed.notify_one();
    }

    /// As [`AlterPartitionQueue::ask`], after the backoff: the controller has refused for a reason that passes.
    pub fn ask_later(&self, key: PartitionKey, change: IsrChange, now: MonotonicMs) {
        let mut requests = self.lock();
        requests.ask(key, change);
        requests.hold(now);
        drop(requests);
        self.changed.notify_one();
    }

    /// Who answers instead of the controller.
    #[cfg(test)]
    pub fn answer_with(
        &self,
        answer: impl Fn(AlterPartitionRequest) -> tokio::sync::oneshot::Receiver<AlterPartitionResponse>
        + Send
        + Sync
        + 'static,
    ) {
        assert!(self.answers.set(Answers(Box::new(answer))).is_ok(), "said once");
    }

    /// A partition asks nothing any more.
    pub fn withdraw(&self, key: PartitionKey) {
        self.lock().withdraw(key);
    }

    pub fn lock(&self) -> MutexGuard<'_, IsrRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
