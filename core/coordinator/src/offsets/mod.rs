//! Committed offsets: who has read how far. See the files for each request.
//!
//! # Source
//! Kafka 4.4 `OffsetMetadataManager`.

mod commit;
mod delete;
mod expire;
mod fetch;
mod late;
mod store;
mod transactional;

pub(crate) use commit::commit;
pub(crate) use delete::{delete, tombstones_of_topics};
pub(crate) use expire::expire;
pub(crate) use fetch::{fetch, fetched_bytes};
pub(crate) use late::Heard;
pub(crate) use store::{OffsetEntry, Offsets};
pub(crate) use transactional::{Transactional, commit_in_transaction};
