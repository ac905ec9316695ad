//! What keeps the log directories in order besides the requests of clients: on threads of low priority, at a start,
//! and in heartbeats.
//!
//! | file | answers |
//! |---|---|
//! | `upkeep/checkpoints.rs` | what do the checkpoint files say |
//! | `upkeep/cleaner.rs` | which log is compacted when |
//! | `upkeep/hindrances.rs` | from where must this broker not lead |
//! | `upkeep/in_force.rs` | which settings does this machine allow |
//! | `upkeep/replay.rs` | what does a journal hold that the segments lack |

pub mod checkpoints;
pub mod cleaner;
pub mod hindrances;
pub mod in_force;
pub mod replay;
