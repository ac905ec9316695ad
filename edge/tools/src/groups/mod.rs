//! The tools for groups of every kind.
//!
//! | file | answers |
//! |---|---|
//! | `consumer_groups.rs`, `consumer_groups/` | `consumer-groups` |
//! | `groups_tool.rs` | `groups` |
//! | `share_groups.rs`, `share_groups/` | `share-groups` |
//! | `actions.rs` | what the tools for consumer and share groups do alike |
//! | `listing.rs` | which groups there are |
//! | `description.rs` | a consumer group, as its coordinator describes it |
//! | `offsets.rs` | committed offsets: fetches, commits, deletions; first and end offsets |
//! | `reset.rs`, `reset/` | the new offsets of `--reset-offsets` |

mod actions;
pub mod consumer_groups;
mod description;
pub mod groups_tool;
mod listing;
mod offsets;
mod reset;
pub mod share_groups;
