//! The tools for groups of every kind.
//!
//! | file | answers |
//! |---|---|
//! | `consumer_groups.rs`, `consumer_groups/` | `consumer-groups` |
//! | `groups_tool.rs` | `groups` |
//! | `share_groups.rs`, `share_groups/` | `share-groups` |
//! | `application_reset.rs` | `streams-application-reset` |
//! | `streams_groups.rs`, `streams_groups/` | `streams-groups` |
//! | `actions.rs` | what the tools for consumer, share and streams groups do alike |
//! | `listing.rs` | which groups there are |
//! | `description.rs` | a consumer group, as its coordinator describes it |
//! | `offsets.rs` | committed offsets: fetches, commits, deletions; first and end offsets |
//! | `offset_deletion.rs` | `--delete-offsets` |
//! | `reset.rs`, `reset/` | the new offsets of `--reset-offsets` |

mod actions;
pub mod application_reset;
pub mod consumer_groups;
mod description;
pub mod groups_tool;
mod listing;
mod offset_deletion;
mod offsets;
mod reset;
pub mod share_groups;
pub mod streams_groups;
