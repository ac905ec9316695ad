//! What members say to each other, on its way between the shell and the quorum.

use barnabas_base::{BrokerId, Offset};

use super::{Node, Now, Ticket};
use crate::QuorumError;
use crate::raft::message::{Request, Response};
use crate::snapshot_id::SnapshotId;

impl Node {
    /// Takes another member's request. The answer is an [`super::Effect::Answer`] with this ticket, now or later.
    ///
    /// # Errors
    /// What stops the node.
    pub fn peer_asked(&mut self, ticket: Ticket, request: Request, now: Now) -> Result<(), QuorumError> {
        self.raft.request(ticket, request, now)?;
        self.collect(now)
    }

    /// Takes the answer to what was sent with `number`; `None`: there will be none.
    ///
    /// # Errors
    /// What stops the node.
    pub fn peer_answered(
        &mut self,
        from: BrokerId,
        number: u64,
        response: Option<Response>,
        now: Now,
    ) -> Result<(), QuorumError> {
        self.raft.response(from, number, response, now)?;
        self.collect(now)
    }

    /// A peer closed its connection, and its listener refuses new ones. If it led, the election need not wait for a
    /// timeout.
    ///
    /// # Errors
    /// What stops the node.
    pub fn peer_is_gone(&mut self, peer: BrokerId, now: Now) -> Result<(), QuorumError> {
        self.raft.leader_is_gone(peer, now)?;
        self.collect(now)
    }

    /// Gives up leadership, so that another leads soon: before a clean stop.
    ///
    /// # Errors
    /// What stops the node.
    pub fn resign(&mut self, now: Now) -> Result<(), QuorumError> {
        self.raft.resign(now)?;
        self.collect(now)
    }

    /// A snapshot that was fetched is on disk under its name, `size` bytes of it; `None`: it could not be stored.
    ///
    /// # Errors
    /// What stops the node.
    pub fn snapshot_stored(
        &mut self,
        id: SnapshotId,
        size: Option<u64>,
        now: Now,
    ) -> Result<(), QuorumError> {
        if size.is_some() {
            self.snapshots.stored(id, now);
        }
        self.raft.snapshot_stored(id, size, now)?;
        self.collect(now)?;
        if size.is_some() {
            self.forget_old_snapshots();
        }
        Ok(())
    }

    /// Up to where the log is known to be safe by this node: what it may serve.
    pub fn log_start(&self) -> Offset {
        self.raft.log_start()
    }
}
