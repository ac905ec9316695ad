//! What a log directory is made of. It knows nothing of the node.
//!
//! | file | answers |
//! |---|---|
//! | `log_dirs/committer.rs` | when are the bytes of segments on disk |
//! | `log_dirs/journal_thread.rs` | when are small appends on disk |

pub mod committer;
pub mod journal_thread;
