//! Who votes: the voters at each offset, and how they come and go.
//!
//! | file | answers |
//! |---|---|
//! | `membership/history.rs` | who votes at which offset |
//! | `membership/reconfiguration.rs` | voters are added, removed, updated (KIP-853) |
//! | `membership/upgrade.rs` | from `kraft.version` 0 to 1 |

pub mod history;
pub(crate) mod reconfiguration;
pub(crate) mod upgrade;
