//! The journal of one log directory: small appends of all its partitions become durable with one write, and are
//! written back into their segments later, in large pieces.
//!
//! | file | answers |
//! |---|---|
//! | `types.rs` | inputs and outputs of a journal |
//! | `format.rs` | rounds and entries ↔ bytes; drawn in docs/format/journal.md |
//! | `buffer.rs` | a round's bytes, aligned as O_DIRECT wants them |
//! | `ring.rs` | which file a round goes to, and which file may be reused |
//! | `tails.rs` | what each partition has in the journal and not yet in its segments; what to write back next |
//! | `inline_write.rs` | whether a worker writes its round by itself |
//! | `machine.rs` | [`Journal`]: ties these together |
//! | `scan.rs` | after a crash: which rounds count |
//! | `replay.rs` | after a crash: what each partition's log lacks |
//! | `stays.rs` | after a crash: which stays ended or began before the journal could note it |
//!
//! Pure but for `scan.rs`, which reads through [`crate::Disk`]. No clock, thread or lock: the committer of the
//! directory owns the only [`Journal`], hands it what partition workers submit and carries out what it answers.
//!
//! Always true (tried by crashes at random in `tests/crashes.rs`, and each shown to matter by a planted bug):
//! 1. at most one round is on its way to the disk, and a round is never written over a block that another one counts on
//! 2. an entry is called durable only after the write of its round has returned
//! 3. a file is reused only after a *durable* round says that replay begins behind it; and one file is always kept
//!    free, so that a crash in the middle of that leaves the older files intact
//! 4. replay never begins behind an entry that is not yet written back to its segment **and** synced there
//! 5. bytes are taken for a round only where directory, opening, life of the file, position, number, checksum and the
//!    checksum of the round before are all what they must be
//! 6. an opening takes no entry before it has said which stays ended, and which began, without a word in the journal
//!
//! Produce path, behind core/storage/src/log.rs. Before: shell/broker/src/worker/partition_worker.rs. After:
//! shell/disk/src/journal_file.rs.

mod error;
mod format;
mod inline_write;
mod machine;
mod replay;
mod ring;
mod scan;
mod stays;
mod tails;
mod types;

#[cfg(test)]
mod tests;

pub use crate::disk::block_buffer::BLOCK_BYTES;
pub use error::JournalError;
pub use inline_write::{BYTES_MAX as INLINE_BYTES_MAX, InlineWrites};
pub use machine::Journal;
pub use replay::{PartitionReplay, ReplayItem};
pub use scan::{Recovered, recover, slot_file_name, slot_files};
pub use types::{
    DurableEnd, Entry, EntryKind, Figures, JournalConfig, JournalPartition, Micros, Place, Refused, Round,
    RoundDone, Take, WriteBack, WriteBackOp, WriteBackTicket,
};
