//! Partitions on disk, in Kafka's files: segments, indexes, checkpoints, recovery, retention.
//!
//! Knows nothing of leaders, replicas or requests: the partition worker says what to append (validated and numbered),
//! which high watermark bounds retention, and when to sync. All access to the machine goes through [`Disk`]; nothing
//! here has a clock, a thread or a lock. A [`Log`] has one owner.
//!
//! | file | answers |
//! |---|---|
//! | `disk.rs`, `disk/` | what is asked of the machine, a machine that tears and forgets, open files, free room |
//! | `log_config.rs` | the topic settings that a log obeys |
//! | `log.rs`, `log/` | one partition: append, read, roll, truncate, retain, recover |
//! | `segment.rs`, `segment/` | one segment's files: names, indexes, headers of batches, a walk over them |
//! | `partition_files.rs`, `partition_files/` | a partition's directory: its name, the small files beside segments |
//! | `cleaner/` | compaction: which records of a log stay, and the segments that hold them |
//! | `scrub.rs`, `scrub/` | reading everything again, to find damage |
//! | `segment_reader.rs` | reading everything in order, beside the log's owner |
//! | `journal/` | the journal that a directory's partitions share |
//! | `checkpoints.rs`, `checkpoints/` | offset checkpoints of a directory, the mark of a clean stop |
//! | `log_dir.rs`, `log_dir/` | a log directory as a whole: identity, placement, sweep, quarantine |
//!
//! Produce path 5 of 5. Before: core/partition/src/partition.rs, by way of shell/broker/src/worker/partition_worker.rs.

mod checkpoints;
pub mod cleaner;
mod disk;
mod error;
pub mod journal;
mod log;
mod log_config;
mod log_dir;
mod partition_files;
pub mod scrub;
mod segment;
mod segment_reader;

pub use disk::file_pool::{FilePool, HeldFile};
pub use disk::memory_disk::{Faults, MemoryDisk};
pub use disk::room::{Level, Watermarks, Writer};
pub use disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskSpace, FileStat, FileSystem, OpenMode,
    write_zeros,
};
pub use error::StorageError;
pub use log::{
    Appended, BatchesRead, CleanBounds, CompactionDebt, DamagedPlace, Dirty, FoundTimestamp, Log, LogPlace,
    LogPosition, Mend, OpenFrom, Opened, Staged, StagedRecords, SyncTicket, TailCut, TailMemory, TimedBatch,
    WrittenBack,
};
pub use log_config::{CleanupPolicy, CompactionConfig, LogConfig};
pub use log_dir::last_life::LastLife;
pub use log_dir::meta_properties::MetaProperties;
pub use log_dir::{LOCK, LogDir, placement, quarantine, read_meta, remove_dir, sweep};
pub use partition_files::dir_name::{DirKind, NAME_BYTES_MAX, PartitionDir, partition_file_name};
pub use partition_files::producer_snapshot::ProducerEntry;
pub use segment::DelayedDelete;
pub use segment::batch::{AppendBytes, BatchHeader};
pub use segment::transaction_index::AbortedTransaction;
pub use segment_reader::SegmentReader;
