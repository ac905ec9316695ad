//! Partitions on disk, in Kafka's files: segments, indexes, checkpoints, recovery, retention.
//!
//! Knows nothing of leaders, replicas or requests: the partition worker says what to append (validated and numbered),
//! which high watermark bounds retention, and when to sync. All access to the machine goes through [`Disk`]; nothing
//! here has a clock, a thread or a lock. A [`Log`] has one owner.
//!
//! | file | answers |
//! |---|---|
//! | `disk.rs`, `memory_disk.rs` | what is asked of the machine, and a machine that tears and forgets |
//! | `file_pool.rs` | which files are open, under a bound |
//! | `batch.rs` | the header of a record batch; batches to append |
//! | `block_buffer.rs` | memory that O_DIRECT can write from |
//! | `log.rs`, `log/` | one partition: append, read, roll, truncate, retain, recover |
//! | `segment.rs`, `offset_index.rs`, `time_index.rs`, `transaction_index.rs` | one segment's files |
//! | `cleaner/` | compaction: which records of a log stay, and the segments that hold them |
//! | `producer_snapshot.rs`, `epoch_file.rs`, `partition_metadata.rs` | the small files beside segments |
//! | `room.rs` | how full a directory's file system is, and who may still write |
//! | `log_dir.rs`, `dir_name.rs`, `offset_checkpoint.rs`, `meta_properties.rs`, … | a log directory as a whole |
//! | `placement.rs`, `placement/locate.rs` | which directory a new partition goes to; where a partition lies |
//! | `sweep.rs` | what becomes of folders that no partition has opened |
//! | `quarantine.rs` | what the journal held of a partition whose log cannot take it |
//!
//! Produce path 5 of 5. Before: core/partition/src/partition.rs, by way of shell/broker/src/worker/partition_worker.rs.

mod batch;
mod block_buffer;
mod checkpoint_guard;
mod checkpoint_text;
mod clean_shutdown;
pub mod cleaner;
mod dir_name;
mod disk;
mod epoch_file;
mod error;
mod file_pool;
mod index_file;
pub mod journal;
mod last_life;
mod log;
mod log_config;
mod log_dir;
mod memory_disk;
mod meta_properties;
mod offset_checkpoint;
mod offset_index;
mod partition_metadata;
pub mod placement;
mod producer_snapshot;
pub mod quarantine;
mod room;
pub mod scrub;
mod segment;
mod small_file;
pub mod sweep;
mod time_index;
mod transaction_index;
mod walker;

pub use batch::{AppendBytes, BatchHeader};
pub use dir_name::{DirKind, NAME_BYTES_MAX, PartitionDir, partition_file_name};
pub use disk::{
    DirEntry, Disk, DiskError, DiskErrorKind, DiskFile, DiskLock, DiskSpace, FileStat, FileSystem, OpenMode,
    write_zeros,
};
pub use error::StorageError;
pub use file_pool::{FilePool, HeldFile};
pub use last_life::LastLife;
pub use log::{
    Appended, BatchesRead, CleanBounds, CompactionDebt, DamagedPlace, Dirty, FoundTimestamp, Log, LogPlace,
    LogPosition, Mend, OpenFrom, Opened, Staged, StagedRecords, SyncTicket, TailCut, TailMemory, TimedBatch,
    WrittenBack,
};
pub use log_config::{CleanupPolicy, CompactionConfig, LogConfig};
pub use log_dir::{LOCK, LogDir, read_meta, remove_dir};
pub use memory_disk::{Faults, MemoryDisk};
pub use meta_properties::MetaProperties;
pub use producer_snapshot::ProducerEntry;
pub use room::{Level, Watermarks, Writer};
pub use segment::DelayedDelete;
pub use transaction_index::AbortedTransaction;
