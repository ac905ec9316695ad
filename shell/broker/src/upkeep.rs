//! What keeps the log directories in order besides the requests of clients: on threads of low priority, at a start,
//! and in heartbeats.
//!
//! | file | answers |
//! |---|---|
//! | `upkeep/checkpoints.rs` | what do the checkpoint files say |
//! | `upkeep/cleaner.rs` | which log is compacted when |
//! | `upkeep/failed_directories.rs` | who learns that a directory failed |
//! | `upkeep/impairments.rs` | from where must this broker not lead |
//! | `upkeep/housekeeping.rs` | what is due every second, every minute |
//! | `upkeep/in_force.rs` | which settings does this machine allow |
//! | `upkeep/last_life.rs` | does this node have all that its last process acknowledged |
//! | `upkeep/mover.rs` | copies partitions from one directory to another |
//! | `upkeep/placement.rs` | in which directory does a replica lie |
//! | `upkeep/put_aside.rs` | when do the files of deleted partitions go |
//! | `upkeep/replay.rs` | what does a journal hold that the segments lack |
//! | `upkeep/scrub.rs` | which bytes have changed by themselves |

pub mod checkpoints;
pub mod cleaner;
pub mod failed_directories;
pub mod housekeeping;
pub mod impairments;
pub mod in_force;
pub mod last_life;
pub mod mover;
pub mod placement;
pub mod put_aside;
pub mod replay;
pub mod scrub;
