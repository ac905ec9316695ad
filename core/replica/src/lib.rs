//! One replica of one partition on one broker: its state machine and its log, without I/O of its own.
//!
//! core/partition decides offsets, acknowledgements and the ISR; core/storage writes Kafka's files over a `Disk`. Neither knows the
//! other. A [`Replica`] owns one of each and decides what concerns both: which way an append takes to disk, what is written back from
//! the journal and when, how a log is truncated so that no crash undoes it, when a damaged log may give up data.
//!
//! | file | answers |
//! |---|---|
//! | `replica` | the struct, its parts, and what becomes of the partition's decisions |
//! | `opening` | what a log says to the state machine when it is opened, or was truncated |
//! | `append` | which way a batch takes to disk, and what a failed write means |
//! | `write_back` | what is written back from the journal, and when the journal is answered |
//! | `fetch_append` | what of a leader's answer is appended by a follower |
//! | `leader` | which role the image gives, what a follower's fetch comes to |
//! | `reads` | what a consumer may read |
//! | `retention` | which segments go, what a checkpoint may vouch for |
//! | `round` | the batches that have offsets and are not written yet |
//! | `sync` | what is unsynced, and what a finished sync makes durable |
//! | `readers` | what readers may see by now, and what they were promised |
//! | `producer_snapshot` | when and where producers' state is written down |
//! | `batch_info` | a batch's header in the words of core/partition |
//! | `truncation` | in which order a log is truncated |
//! | `repair` | when a damaged log may give up data |
//! | `await_metadata` | which requests are ahead of the metadata |
//! | `effects` | what the caller has to carry out |
//!
//! How to drive it. The caller keeps one `Replica` for each open partition and hands it one step at a time. A step takes values (the
//! clocks, the image, the configuration, whether there is room) and [`Surroundings`], and pushes [`Effect`]s. The caller turns the
//! partition's decisions into effects ([`Replica::absorb`]) and carries them out before the next step of that replica.
//!
//! 1. Open: recover the log and sync it, then [`Replica::open`], then [`Replica::take_role`].
//! 2. Produced batch: admit its bytes, then [`Replica::append`]. Give the room back unless the batch is [`Appended::InRound`].
//! 3. End of a round: [`Replica::finish_round`] for each replica with batches. Then the entries of all replicas go to the journal together.
//! 4. The journal's round is durable: [`Replica::journal_durable`]. Files are synced: [`Replica::synced`].
//! 5. The journal wants a file back: [`Replica::write_back_as_ordered`]; [`Effect::WriteBackDone`] answers it.
//! 6. Leader's answer: [`Replica::apply_fetched`], then [`Replica::apply_marks`]. Fetch again after [`Effect::FollowOn`].
//! 7. Truncation: [`Replica::truncation_at`], [`Replica::want_truncation`], and once [`Replica::may_truncate`]:
//!    [`Replica::lower_checkpoints`], [`Replica::truncate`], [`Replica::finish_truncation`].
//! 8. New image: [`Replica::take_role`], then [`Replica::repair_step`].
//! 9. [`Effect::Reopen`]: drop the replica and open it again when it is asked for. [`Effect::DirectoryFailed`]: fail all replicas of the
//!    directory.
//!
//! It does not know: other partitions, connections, threads, the controller. shell/broker's `partition_worker` does.

mod append;
mod await_metadata;
mod batch_info;
mod effects;
mod fetch_append;
mod leader;
mod opening;
mod producer_snapshot;
mod readers;
mod reads;
mod repair;
mod replica;
mod retention;
mod round;
mod sync;
#[cfg(test)]
mod tests;
mod truncation;
mod write_back;

pub use append::{Appended, TxnVerification, Verified};
pub use await_metadata::{APPEND_TIMEOUT, AwaitMetadata, READ_TIMEOUT};
pub use batch_info::batch_info;
pub use effects::{Committed, Durability, Effect, LogEvent, Moment, Outbox, RequestError, Surroundings};
pub use fetch_append::{Misfit, NotApplied};
pub use leader::{RoleChange, RoleView, registered};
pub use opening::{OpenError, Opening};
pub use producer_snapshot::producer_entry;
pub use readers::Readers;
pub use reads::{Read, ReadRequest};
pub use repair::{Repair, RepairStep, RepairView};
pub use replica::{JournalState, LeaderHistory, Replica, Upkeep};
pub use retention::Checkpoint;
pub use round::{BatchLists, Round};
pub use sync::{Flush, SyncState};
pub use truncation::{Truncated, Truncation, is_of_the_log_alone};
pub use write_back::FlushStep;
