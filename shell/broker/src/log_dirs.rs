//! What a log directory is made of. It knows nothing of the node.
//!
//! | file | answers |
//! |---|---|
//! | `log_dirs/committer.rs` | when are the bytes of segments on disk |
//! | `log_dirs/directories.rs` | which directories are there, which are online |
//! | `log_dirs/full.rs` | how much may still be written |
//! | `log_dirs/journal_thread.rs` | when are small appends on disk |
//! | `log_dirs/moves.rs` | which partitions move from one to another |

pub mod committer;
pub mod directories;
pub mod full;
pub mod journal_thread;
pub mod moves;
