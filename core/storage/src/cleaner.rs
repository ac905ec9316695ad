//! Compaction: of records with the same key the newest stays. Reads sealed segments and rewrites them without the
//! others.
//!
//! ```text
//! log       │ 0        │ 90       │ 200      │ 310      │ 400 (active)
//! clean up to ─────────────────▲ 200         ▲ first uncleanable: 310
//!           1. read [200, 310) and remember every key's newest offset (OffsetMap)
//!           2. group [0, 310) into segments of `segment.bytes`
//!           3. rewrite each group: a record stays if no newer one of its key is remembered  → `.cleaned`
//!           4. the log's owner swaps the group in (Log::replace_segments)                      → `.swap` → final names
//!           5. once the renames are synced, `cleaner-offset-checkpoint` says 310
//! ```
//!
//! Works beside the log's owner, on another thread: sealed segments do not change, and what was read is compared with
//! the log again when it is swapped in. Memory is bounded by the map and one batch. It does not choose which log is
//! cleaned when, does not swap, and has no clock: `now` is passed in, and a [`Pace`] is asked before each piece of
//! reading and writing.
//!
//! Always true, for every record below `first_uncleanable`:
//! 1. the newest record of a key stays, unless it is a tombstone whose delete horizon has passed
//! 2. a record keeps its offset, timestamp, key, value and headers, and its batch keeps first and last offset and
//!    producer fields
//! 3. a transaction's marker goes after all of its records, and its aborted records are never taken for the newest of
//!    their key
//! 4. nothing is dropped on the word of bytes whose checksum is wrong: the log is not cleaned then
//! 5. a producer's last sequence stays readable (its last batch stays, empty if need be)
//!
//! Source: Kafka `Cleaner`, `CleanedTransactionMetadata`, `MemoryRecords.filterTo`; KIP-58, KIP-98, KIP-354, KIP-534.

mod cleaning;
mod filter;
mod groups;
mod key_hash;
mod offset_map;
mod read;
mod segment_writer;
mod transactions;
mod types;

#[cfg(test)]
mod tests;

pub use cleaning::Cleaning;
pub use offset_map::MapMemory;
pub use types::{
    CleanError, CleanStats, CleanTicket, CleanedSegment, LastRecord, LogToClean, Pace, Replaced, Replacement,
    SegmentToClean,
};
