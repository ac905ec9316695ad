//! One replica of one partition on one broker: its state machine and its log, without I/O of its own.
//!
//! core/partition decides offsets, acknowledgements and the ISR; core/storage writes Kafka's files over a `Disk`.
//! Neither knows the other. A [`Replica`] owns one of each and decides what concerns both: which way an append takes to
//! disk, what is written back from the journal and when, how a log is truncated so that no crash undoes it, when a
//! damaged log may give up data.
//!
//! | file | answers |
//! |---|---|
//! | `replica` | the struct, its parts, and what becomes of the partition's decisions |
//! | `replica/round` | the batches that have offsets and are not written yet |
//! | `replica/sync` | what is unsynced, and what a finished sync makes durable |
//! | `replica/readers` | what readers may see by now, and what they were promised |
//! | `replica/producer_snapshot` | when and where producers' state is written down |
//! | `replica/truncation` | in which order a log is truncated |
//! | `replica/repair` | what of a damaged log is mended in place, and when data may be given up |
//! | `replica/repair/damages` | which places are damaged, and what became of each |
//! | `replica/effects` | what the caller has to carry out |
//! | `opening` | how a partition is opened, and what becomes of one that cannot be |
//! | `opening/replay` | what a directory's journal holds after a crash, and what of it is replayed first |
//! | `opening/stays` | which stay of a replica on this broker the entries of a journal belong to |
//! | `append` | which way a batch takes to disk, and what a failed write means |
//! | `append/write_back` | what is written back from the journal, and when the journal is answered |
//! | `append/fetch_append` | what of a leader's answer is appended by a follower |
//! | `append/batch_info` | a batch's header in the words of core/partition |
//! | `append/await_metadata` | which requests are ahead of the metadata |
//! | `append/await_journal` | which appends wait for room in a journal |
//! | `leader` | which role the image gives, what a follower's fetch comes to |
//! | `reads` | what a consumer may read |
//! | `reads/queries` | bounds, offsets by time, ends of epochs, deletion of records |
//! | `retention` | which segments go, what a checkpoint may vouch for |
//! | `moving` | how a replica moves to another log directory |
//! | `shares` | when share partitions are loaded, written and dropped; which answer belongs to which request |
//! | `shares/fetched` | which bytes of what was read a share group's member gets |
//!
//! # The caller's duties
//!
//! The caller keeps one `Replica` for each open partition and hands it one step at a time. A step takes values (the
//! clocks, the image, the configuration, whether there is room) and [`Surroundings`], and pushes [`Effect`]s. A step
//! that pushes decisions only ([`Outbox::decisions`]) is followed by [`Replica::absorb`], which turns them into
//! effects. **All effects of a replica are carried out, in their order, before its next step.** tests/restarts.rs
//! drives a replica over the real journal in 300 lines.
//!
//! **Start of a log directory**, before any partition in it is opened:
//! 1. `LogDir::open`, `LogDir::begin`, `LogDir::set_synced` (whether there will be a journal).
//! 2. [`read_journal`]. Drop what belongs to deleted topics (`Recovered::keep`), and what is of a stay that is over
//!    ([`has_left`], `Recovered::note_left`), or replays the removal of an earlier one ([`has_returned`],
//!    `Recovered::note_returned`). [`note_written_back`].
//! 3. [`replay_log`] for each partition that does not wait for its opening ([`waits_for_opening`]), then
//!    `LogDir::vouch_for` with its end, `LogDir::write_checkpoints`, and `Recovered::keep` for those that wait. What a
//!    log cannot take goes into a file (`quarantine::keep`).
//! 4. `Journal::open` with what was kept. Where it has no room to go on, the rest is replayed as in step 3 first. Its
//!    first rounds, until it `is_open`, are written before anything else in the directory changes.
//!
//! **Opening a partition:** [`Checkpointed::read`], [`Replica::open`] with what waits for it, [`note_gaps`],
//! [`Replica::take_role`]. An error is carried out by its [`OpenError::verdict`].
//!
//! **Steps:**
//!
//! - *A producer's batch arrives:* hold it while a journal is full ([`AwaitJournal`]) or the batch is ahead of the
//!   metadata ([`AwaitMetadata`]). Then call [`Replica::append`], which asks for room in the directory.
//!   A batch that is refused, and will be sent again, and one that is [`Effect::NotWritten`], goes into
//!   [`RefusedBatches`](barnabas_partition::RefusedBatches), which is asked before each append
//!   ([`follows_refused`](barnabas_partition::Append::follows_refused)).
//! - *The mailbox is empty:* call [`Replica::finish_round`] for each replica with batches. Hand
//!   `Surroundings::entries` of all replicas to the journal together, in order.
//! - *A round of the journal is durable:* call [`Replica::journal_durable`].
//! - *[`Effect::Sync`]:* call [`Replica::take_sync`]; sync its files, then its directories; call
//!   [`Replica::synced`]. One sync of a replica at a time. A failed sync fails the directory.
//! - *The journal orders a write-back:* call [`Replica::write_back_as_ordered`]. On [`Effect::WriteBackDone`] call
//!   `Journal::written_back`.
//! - *The leader has answered a follower:* call [`Replica::apply_fetched`], [`Replica::apply_marks`],
//!   [`Replica::finish_round`]. Fetch again after [`Effect::FollowOn`].
//! - *The follower has to truncate:* call [`Replica::truncation_at`], [`Replica::want_truncation`]; its entry
//!   goes to the journal. After the next [`Effect::FollowOn`], if [`Replica::may_truncate`]:
//!   [`Replica::lower_checkpoints`], [`Replica::truncate`], [`Replica::finish_truncation`].
//! - *A new image:* call [`Replica::take_role`] (not during a truncation), [`Replica::repair_step`].
//! - *Housekeeping:* call [`Replica::retain`], [`Replica::checkpoint`]. Set the result in the `LogDir` and
//!   write it; then delete files.
//! - *[`Effect::Reopen`]:* write back all that can be, sync, drop the replica. Open it when a request needs it.
//! - *The image takes the replica from this broker:* [`Leaving::begin`]; close it ([`Replica::fail`], `Log::abandon`).
//!   Rename its directory (`LogDir::rename_to_delete`), then hand the journal an `EntryKind::Remove`. Until the rename
//!   is durable no order to write it back is answered. Until [`Leaving::durable`] the partition is not opened again.
//! - *[`Effect::DirectoryFailed`]:* call [`Replica::fail`] for all replicas of the directory. Write nothing more to it.
//!
//! **The journal** (core/storage's `journal`) takes entries of one partition in the order in which its replica
//! pushed them. A `Range` entry is submitted only once the journal has nothing else of that partition: all before it
//! is synced in the segments, so `Journal::take_write_back` and `Journal::written_back` discharge it. A round's ends
//! are reported after its write has been synced, never before.
//!
//! **A crash** may come between any two calls. After it the start above finds every batch that was acknowledged, and
//! nothing that a durable truncation entry has cut.
//!
//! It does not know: other partitions, connections, threads, the controller. shell/broker's `partition_worker` does.

mod append;
mod leader;
mod moving;
mod opening;
mod reads;
mod replica;
mod retention;
mod shares;
#[cfg(test)]
mod tests;

pub use append::await_journal::AwaitJournal;
pub use append::await_metadata::{APPEND_TIMEOUT, AwaitMetadata, READ_TIMEOUT};
pub use append::batch_info::{batch_info, batch_sequence};
pub use append::fetch_append::{Misfit, NotApplied};
pub use append::write_back::FlushStep;
pub use append::{Appended, TxnVerification, Verified};
pub use leader::{RoleChange, RoleView, registered};
pub use moving::{CopyVerdict, Fits, LeftBehind, LogCopy, LogPiece, MoveBegins};
pub use opening::replay::{Checkpoints, note_written_back, read_journal, replay_log, waits_for_opening};
pub use opening::stays::{Found, Leaving, Standing, forget_left, has_left, has_returned, is_checkpointed};
pub use opening::{Checkpointed, OpenError, OpenReport, OpenVerdict, Opening, note_gaps};
pub use reads::queries::{ListBounds, QueryError, Search};
pub use reads::{Read, ReadRequest};
pub use replica::effects::{
    Committed, Durability, Effect, LogEvent, Moment, Outbox, RequestError, Surroundings,
};
pub use replica::producer_snapshot::producer_entry;
pub use replica::readers::Readers;
pub use replica::repair::{BothDamaged, LOOK_AGAIN, Repair, RepairStep, RepairView};
pub use replica::round::{BatchLists, Round};
pub use replica::sync::{Flush, SyncState};
pub use replica::truncation::{Truncated, Truncation, TruncationVerdict};
pub use replica::{JournalState, LeaderHistory, Replica, Upkeep};
pub use retention::Checkpoint;
pub use shares::fetched::{Fetched, ShareRead};
pub use shares::{
    GivenUp, ShareAckItem, ShareAckOutcome, ShareDeclined, ShareKey, SharePartitions, SharesEffect,
};
