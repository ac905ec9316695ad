//! The metadata quorum and its controller: requests in, records into a replicated log, an image out.
//!
//! - [`raft`]: KRaft, sans I/O: elections, followers, voters, what is committed
//! - [`controller`]: request → (records, response), a function of the image
//! - [`snapshot`], [`batches`]: the log's and the snapshots' bytes
//! - [`bootstrap`]: what a freshly formatted directory holds
//! - [`broker_probe`]: whether a broker whose connection has closed is gone
//! - [`node`]: the four together; what the shell's quorum worker drives
//!
//! It touches no file: batches and state are handed out as [`node::Effect`]s, and the shell says when they are on disk.
//!
//! Metadata path 2 of 4. Before: core/api (forwards a request). After: core/metadata (replays the records).

pub mod batches;
pub mod bootstrap;
pub mod broker_probe;
pub mod controller;
mod error;
pub mod node;
mod now;
pub mod raft;
pub mod snapshot;
mod snapshot_id;
pub mod voters;

#[cfg(test)]
#[path = "../tests/sim/mod.rs"]
mod sim;

pub use error::QuorumError;
pub use node::{Effect, Node, Repair, Settings, Starting, Stored};
pub use now::Now;
pub use snapshot::SnapshotTask;
pub use snapshot_id::SnapshotId;
pub use voters::{Voter, VoterEndpoint, Voters};
