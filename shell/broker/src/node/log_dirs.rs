//! The log directories of this node, and what is under way in them: deletions, moves, compaction, damage.

pub mod compaction;
pub mod damages;
pub mod deleted;
pub mod deletions;
pub mod impaired_partitions;
pub mod lost;
pub mod unreplayed;
pub mod written;

use crate::log_dirs::directories::Directories;
use crate::log_dirs::moves::Moves;
use barnabas_metadata::config::BrokerConfig;
use compaction::Compaction;
use damages::Damages;
use deleted::DeletedTopics;
use deletions::Deletions;
use impaired_partitions::ImpairedPartitions;
use lost::Lost;
use unreplayed::Unreplayed;
use written::WrittenPartitions;

/// See the file's header.
#[derive(Debug)]
pub struct LogDirs {
    pub directories: Directories,
    pub deletions: Deletions,
    pub deleted: DeletedTopics,
    pub damages: Damages,
    pub compaction: Compaction,
    pub written: WrittenPartitions,
    pub unreplayed: Unreplayed,
    pub moves: Moves,
    pub impaired: ImpairedPartitions,
    pub lost: Lost,
    /// `log.ack.durability=synced`: an ack means on disk.
    pub acks_are_synced: bool,
    /// What one partition appends at once goes through the journal up to so many bytes.
    pub journal_append_bytes_max: u64,
    /// Recent batches that are in segments and in memory: so many bytes in all.
    pub cache_bytes_max: u64,
    /// Of a file that this process may write.
    pub file_bytes_max: u64,
    pub open_files_max: usize,
}

impl LogDirs {
    pub fn new(
        config: &BrokerConfig,
        directories: Directories,
        deletions: Deletions,
        (memory_bytes, file_bytes_max, open_files_max): (u64, u64, usize),
    ) -> Self {
        Self {
            unreplayed: Unreplayed::new(directories.len()),
            directories,
            deletions,
            deleted: DeletedTopics::default(),
            damages: Damages::default(),
            compaction: Compaction::default(),
            written: WrittenPartitions::default(),
            moves: Moves::default(),
            impaired: ImpairedPartitions::default(),
            lost: Lost::default(),
            acks_are_synced: config.value("log.ack.durability") != Some("written"),
            journal_append_bytes_max: u64::try_from(config.long("log.journal.append.bytes.max")).unwrap_or(0),
            cache_bytes_max: cache_bytes_max(config, memory_bytes),
            file_bytes_max,
            open_files_max,
        }
    }
}

/// `log.cache.bytes`, or a share of the memory.
///
/// Memory that goes round slowly has left the processor's caches: a larger cache makes writing slower. The bound is
/// to keep a node at full speed within 512 MiB (lab/bench/JOURNAL.md, *Memory*).
fn cache_bytes_max(config: &BrokerConfig, memory_bytes: u64) -> u64 {
    const SHARE: u64 = 16;
    const MOST: u64 = 224 << 20;
    let set = u64::try_from(config.long("log.cache.bytes")).ok();
    set.unwrap_or((memory_bytes / SHARE).min(MOST))
}
