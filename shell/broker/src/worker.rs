//! What one worker does for the partitions that it owns.
//!
//! | file | answers |
//! |---|---|
//! | `worker/partition_worker.rs` | what is next for each of them |
//! | `worker/replica.rs` | what of this machine is attached to an open replica |
//! | `worker/tickets.rs` | when is a request complete that names several |

pub mod partition_worker;
pub mod replica;
pub mod tickets;
