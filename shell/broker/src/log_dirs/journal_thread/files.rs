//! The journal's files: how large, made how, gone when.

use barnabas_disk::JournalFiles;
use barnabas_metadata::config::BrokerConfig;
use barnabas_storage::journal::{BLOCK_BYTES, JournalConfig, slot_file_name, slot_files};
use barnabas_storage::{Disk, DiskError};
use std::path::Path;

const RING_BYTES: u64 = 256 << 20;
const RING_BYTES_MIN: u64 = 12 << 20;
/// Of the file system, where nothing is set.
const RING_SHARE: u64 = 20;
const FILES_MAX: u64 = 8;
const FILES_MIN: u64 = 3;
/// Record bytes that wait in memory to be written back, at most; less on a small machine.
const STAGED_BYTES_MAX: u64 = 192 << 20;
const STAGED_SHARE: u64 = 16;

/// Files that rounds are written to. Apart from [`JournalFiles`] so that tests can tear and fail them.
pub trait RoundFiles: Send {
    /// Writes a round and makes it durable.
    fn write_durable(&mut self, slot: usize, position: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// The last file is not written any more, and is about to be removed.
    fn forget_last(&mut self);
}

/// Makes [`RoundFiles`].
pub trait JournalDisk: Send {
    fn open(&self, dir: &Path, files: usize, file_bytes: u64) -> Result<Box<dyn RoundFiles>, DiskError>;
}

/// On Linux, past the page cache where the file system allows it.
#[derive(Debug)]
pub struct LinuxJournal;

impl JournalDisk for LinuxJournal {
    fn open(&self, dir: &Path, files: usize, file_bytes: u64) -> Result<Box<dyn RoundFiles>, DiskError> {
        let files = JournalFiles::open(dir, files, file_bytes)?;
        tracing::debug!(directory = %dir.display(), way = ?files.way(), "journal opened");
        Ok(Box::new(files))
    }
}

impl RoundFiles for JournalFiles {
    fn write_durable(&mut self, slot: usize, position: u64, bytes: &[u8]) -> Result<(), DiskError> {
        Self::write_durable(self, slot, position, bytes)
    }

    fn forget_last(&mut self) {
        Self::forget_last(self);
    }
}

/// The bounds of a directory's journal: `total_bytes` is the size of its file system, `memory_bytes` the machine's,
/// `largest` that of a file which this process may write.
pub fn journal_config(
    config: &BrokerConfig,
    total_bytes: u64,
    memory_bytes: u64,
    largest: u64,
) -> JournalConfig {
    let number = |key| u64::try_from(config.long(key)).ok();
    let own_share = RING_BYTES.min(total_bytes / RING_SHARE).max(RING_BYTES_MIN);
    let ring = number("log.journal.bytes").unwrap_or(own_share).max(RING_BYTES_MIN);
    let defaults = JournalConfig::default();
    let smallest = u64::from(defaults.round_bytes_max);
    let files = (ring / smallest).clamp(FILES_MIN, FILES_MAX);
    let block = BLOCK_BYTES as u64;
    let file_bytes = (ring / files).min(1 << 30).min(largest) / block * block;
    // What is in memory need not be more than what the files can hold.
    let staged = STAGED_BYTES_MAX.min(memory_bytes / STAGED_SHARE).min(ring / 4 * 3);
    let write_back_bytes_max = defaults.write_back_bytes_max.min(staged / 8);
    JournalConfig {
        files: files as usize,
        file_bytes: file_bytes as u32,
        linger_us: number("log.journal.linger.us").unwrap_or(0),
        append_bytes_max: number("log.journal.append.bytes.max")
            .and_then(|bytes| u32::try_from(bytes).ok())
            .unwrap_or(defaults.append_bytes_max),
        write_back_bytes: defaults.write_back_bytes.min(write_back_bytes_max),
        write_back_bytes_max,
        staged_bytes_max: staged,
        ..defaults
    }
}

/// Removes a journal that holds nothing; `last` goes last, by itself: it is the file that says so.
///
/// # Errors
/// The file system refuses; what is left says the same.
pub fn remove_files(disk: &dyn Disk, dir: &Path, last: Option<usize>) -> Result<(), DiskError> {
    let last = last.map(|slot| dir.join(slot_file_name(slot)));
    let files = slot_files(disk, dir)?;
    for file in files.iter().filter(|file| Some(*file) != last.as_ref()) {
        disk.remove_file(file)?;
    }
    disk.sync_dir(dir)?;
    if let Some(last) = last {
        disk.remove_file(&last)?;
        disk.sync_dir(dir)?;
    }
    Ok(())
}
