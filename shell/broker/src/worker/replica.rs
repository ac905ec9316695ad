//! A replica that is open on this worker: core/replica's state machine, and what of the machine is attached to it.
//!
//! Decides nothing: whom to wake, which sync request is under way, which lists of the worker it stands in.
//!
//! In replica/: what brokers say to each other about their replicas.

pub mod aside;
pub mod behind;
pub mod bulk;
pub mod fetch_connection;
pub mod fetch_settings;
pub mod isr;
#[cfg(test)]
mod tests;

pub use barnabas_replica::{Replica, registered};

use crate::log_dirs::committer::{Covers, SyncRequest};
use crate::mailbox::PartitionKey;
use crate::mailbox::fetch_wait::Waiters;
use crate::mailbox::share::ShareWaiters;
use crate::node::peers::replication::throttles::Throttled;
use barnabas_base::Offset;
use barnabas_replica::Committed;
use std::ops::{Deref, DerefMut};

/// An open replica on this worker. Stands for the [`Replica`] in it wherever that is enough.
#[derive(Debug)]
pub struct Hosted {
    pub replica: Replica,
    pub waiters: Waiters,
    /// Fetches of followers: they wait for what is appended, durable here or not.
    pub follower_waiters: Waiters,
    /// Of share groups.
    pub share_waiters: ShareWaiters,
    /// As its topic says.
    pub throttled: Throttled,
    /// How far the sync request that is under way reaches, as long as no new segment was begun.
    covers: Option<Covers>,
    /// Stands in the list of those in which producers wait for `acks=all`.
    pub is_awaited: bool,
    /// Stands in the list of those that are synced when no producer waits for it.
    pub is_lazy: bool,
}

impl Deref for Hosted {
    type Target = Replica;

    fn deref(&self) -> &Replica {
        &self.replica
    }
}

impl DerefMut for Hosted {
    fn deref_mut(&mut self) -> &mut Replica {
        &mut self.replica
    }
}

impl Hosted {
    pub fn new(replica: Replica) -> Self {
        Self {
            replica,
            waiters: Waiters::default(),
            follower_waiters: Waiters::default(),
            share_waiters: ShareWaiters::default(),
            throttled: Throttled::default(),
            covers: None,
            is_awaited: false,
            is_lazy: false,
        }
    }

    pub fn partition_key(&self) -> PartitionKey {
        self.replica.key
    }

    /// What the committer has to sync for this partition; `None` where nothing is unsynced or a request is out already.
    pub fn take_request(&mut self, worker: usize) -> Option<SyncRequest> {
        let (dirty, batches) = self.replica.take_sync()?;
        let covers = Covers::new(dirty.ticket.end());
        self.covers = Some(covers.clone());
        Some(SyncRequest { worker, partition: self.partition_key(), dirty, covers, batches })
    }

    /// The request that is out reaches up to `end` now.
    pub fn extend_request(&self, end: Offset) {
        if let Some(covers) = &self.covers {
            covers.extend(end);
        }
    }

    /// The request that is out reaches no further than it did when it was handed in.
    pub fn end_request(&mut self) {
        self.covers = None;
    }

    /// Lets everybody who waits look again: it leads no more, or is led otherwise.
    pub fn wake_all(&mut self) {
        self.waiters.wake_all();
        self.follower_waiters.wake_all();
        self.share_waiters.wake_all();
    }

    /// Passes on to waiting fetches that more can be read.
    pub fn arrived(&mut self, bytes: i64, committed: Committed) {
        if !self.waiters.is_empty() {
            self.waiters.arrived(bytes, committed);
        }
        if !self.share_waiters.is_empty() {
            self.share_waiters.wake_one_each();
        }
    }
}
