//! What the coordinators of a node hold in memory, over all workers.
//!
//! Each shard knows what it holds itself ([`Room`]). Its host adds that to the node's count, and tells a shard before a
//! request what all others hold.
//!
//! Always true: the node's count is the sum of what its shards held when each last said something; a shard that goes
//! gives back its own.

use crate::node::Node;
use barnabas_base::MonotonicMs;
use barnabas_coordinator::{Now, Room};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static WARNED_AT: Cell<Option<MonotonicMs>> = const { Cell::new(None) };
}

/// What is counted of one shard.
#[derive(Debug)]
pub(super) struct Counted {
    node: Arc<Node>,
    bytes: usize,
}

impl Counted {
    pub fn new(node: &Arc<Node>) -> Self {
        Self { node: node.clone(), bytes: 0 }
    }

    /// What the shard holds now.
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.node.workers.coordinator_memory.change(self.bytes, bytes);
            self.bytes = bytes;
        }
    }

    /// What the node's other shards hold.
    pub fn others(&self) -> usize {
        self.node.workers.coordinator_memory.besides(self.bytes)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Says that a request was refused because coordinators hold all the memory that they may; once a minute for each
/// worker.
pub(super) fn warn_of_refusal(room: &Room, now: Now) {
    const EVERY_MS: u64 = 60_000;
    let is_due = WARNED_AT.with(|at| {
        let is_due = at.get().is_none_or(|at: MonotonicMs| now.mono.0 >= at.0 + EVERY_MS);
        if is_due {
            at.set(Some(now.mono));
        }
        is_due
    });
    if is_due {
        tracing::warn!(
            why = room.why(),
            "a coordinator refused a request because its memory limit is reached; raise the limit if its \
             groups and transactional ids are legitimate"
        );
    }
}
