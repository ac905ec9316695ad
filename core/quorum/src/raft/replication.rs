//! The metadata log from its leader to the other members.
//!
//! | file | answers |
//! |---|---|
//! | `replication/following.rs` | what a follower fetches, and does with the answer |
//! | `replication/known.rs` | how new the committed log is |
//! | `replication/leading.rs` | how Fetch is answered, and what is committed |
//! | `replication/snapshots.rs` | snapshots from the leader (KIP-630) |

pub(crate) mod following;
pub(crate) mod known;
pub(crate) mod leading;
pub(crate) mod snapshots;
