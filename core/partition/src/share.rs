//! Share groups (KIP-932): what a partition's leader knows of the records that a group shares.
//!
//! | file | answers |
//! |---|---|
//! | `share_partition` | the state machine: start, end, where to read next, what is written back |
//! | `acquire` | which of what was read a member gets |
//! | `acknowledge` | what becomes of it: by word, by silence, by leaving; what must be written down first |
//! | `aborted` | which records belong to aborted transactions |
//! | `in_flight` | the states themselves |
//! | `types` | the words that go in and out |
//!
//! It does not know who is a member, which groups there are, or how state is written: those are the coordinators
//! (core/coordinator).

mod aborted;
mod acknowledge;
mod acquire;
mod in_flight;
mod share_partition;
#[cfg(test)]
mod tests;
mod types;

pub use share_partition::SharePartition;
pub use types::{
    AckBatch, AckType, Acquire, AcquireMode, Acquired, BadState, DeadLetterCause, FetchedBatch, RecordState,
    ShareEffect, ShareRefusal, ShareSettings, StateBatch, StateEpoch, StateWrite, WriteId, WrittenState,
};
