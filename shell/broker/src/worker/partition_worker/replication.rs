//! What leaders and followers do with a fetch; what becomes of a replica that is behind or damaged.
//!
//! | file | answers |
//! |---|---|
//! | `replication/apply_fetched.rs` | what did the leader send |
//! | `replication/aside.rs` | how is a replica repaired that has to stay in the ISR |
//! | `replication/followers.rs` | what does a leader know of its followers |
//! | `replication/in_sync.rs` | how the log names those in sync |
//! | `replication/repair.rs` | how is damage repaired |
//! | `replication/truncation.rs` | how is the end cut off |

pub mod apply_fetched;
pub mod aside;
pub mod followers;
pub mod in_sync;
pub mod repair;
pub mod truncation;
