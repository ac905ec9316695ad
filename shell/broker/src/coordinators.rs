//! The coordinators of groups, transactions and share state, and the markers with which transactions end.
//!
//! | file | answers |
//! |---|---|
//! | `coordinators/coordinator_worker.rs` | which shards are loaded, and what do they append |
//! | `coordinators/markers.rs` | how do markers reach the partitions whose transactions they end |

pub mod coordinator_worker;
pub mod markers;
