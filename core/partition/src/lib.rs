//! One partition: which offset comes next, what is safe, who may be told.
//!
//! It knows neither storage nor wire: the partition worker turns a batch's header into a [`BatchInfo`], hands it to
//! [`Partition::append`] and writes the batch where [`Placed`] says.
//!
//! | file | answers |
//! |---|---|
//! | `partition` | the state machine: offsets, ends, roles, answers |
//! | `producers` | is this batch a retry, a gap, a zombie's; which transactions are open |
//! | `leading` | how far have the in-sync replicas come |
//! | `waits` | who waits for what, until when |
//! | `types` | the words that go in and out |
//!
//! It does not know which replicas fall out of or into the in-sync set: that comes with replication.

mod leading;
mod partition;
mod producers;
mod types;
mod waits;

pub use partition::Partition;
pub use types::{
    AbortedTxn, Acked, Acks, Append, BatchInfo, BatchKind, Bounds, Effect, FollowerState, Isolation,
    LastBatch, Leadership, LogEnds, Marker, Origin, Outcome, Placed, ProducerState, Refusal, Ticket,
};
