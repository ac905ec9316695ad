//! The files of `__cluster_metadata-0`: the log, `quorum-state`, snapshots, and the room kept for a full disk.
//!
//! core/quorum decides what stands in them, core/storage writes Kafka's files over a `Disk`; this crate connects the
//! two. The quorum worker (shell/broker/src/controller/quorum_worker.rs) owns the files and carries out the quorum's
//! effects with them; a snapshot is written by a thread of its own.
//!
//! | file | answers |
//! |---|---|
//! | `files` | what is appended, read, truncated, made durable, deleted |
//! | `files/snapshot_check` | is a snapshot the one that its name says |
//! | `damage` | is a bad batch a torn tail or damage |
//!
//! Always true: a file that is replaced is the old one or the new one after a crash; nothing that was synced is cut off
//! at a start.
//!
//! It does not know: voters, elections, the image, threads.

mod damage;
mod files;

pub use files::{MetadataFiles, RESERVE_NAME, SnapshotFiles, Truncated, make_dir, write_file};

use barnabas_base::{PartitionIndex, TopicPartition, name};
use barnabas_quorum::QuorumError;
use barnabas_storage::StorageError;
use std::path::PathBuf;

/// Why the metadata log cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error(transparent)]
    Quorum(#[from] QuorumError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// With the file or directory that it was read from.
    #[error("{}: {source}", place.display())]
    At { place: PathBuf, source: QuorumError },
}

/// `__cluster_metadata-0`
pub fn metadata_partition() -> TopicPartition {
    TopicPartition::new(name::CLUSTER_METADATA, PartitionIndex(0))
}
