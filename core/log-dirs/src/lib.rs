//! What a broker decides about its log directories and the partitions in them. Pure: figures, times and images come in.
//!
//! | file | answers |
//! |---|---|
//! | `figures` | how free and how busy is each directory, and where does a new partition begin |
//! | `compaction` | which partition is compacted next |
//! | `departures` | which deleted partitions may still be open, and whose name is free again |
//! | `impaired` | which replicas must not lead, although their broker is alive |
//! | `reports` | what does the controller hear of the directories, and does the metadata log show it |
//! | `lost` | what becomes of replicas whose directory is gone |
//! | `abandon` | how does an operator abandon a partition, and what does that cost |
//! | `scrubbing` | when is a round of checks due, and where does it go on |
//! | `copy_pace` | how long does a move between directories sleep before its next piece |
//!
//! It does not know: files, locks, threads. shell/broker's `log_dirs`, `node/log_dirs` and `upkeep` hold these values
//! behind their locks, measure, and do what is decided. Whether a directory has room is core/storage's `room`; where a
//! partition may lie is its `placement`.

pub mod abandon;
mod compaction;
mod copy_pace;
mod departures;
mod figures;
mod impaired;
pub mod lost;
pub mod reports;
pub mod scrubbing;

pub use compaction::CompactionCandidates;
pub use copy_pace::CopyPace;
pub use departures::{Closed, Departures, Then};
pub use figures::{Measured, PlacementFigures};
pub use impaired::ImpairedReplicas;

#[cfg(test)]
mod testing;
