//! Partitions are opened, change their role or directory, and go.
//!
//! | file | answers |
//! |---|---|
//! | `lifecycle/changes.rs` | what did the cluster decide |
//! | `lifecycle/deleting.rs` | when is a deleted partition closed |
//! | `lifecycle/moves.rs` | how does it move between directories |
//! | `lifecycle/opening.rs` | how is it opened |
//! | `lifecycle/waiting.rs` | what does the journal of an earlier process hold of it |

pub mod changes;
pub mod deleting;
pub mod moves;
pub mod opening;
pub mod waiting;
