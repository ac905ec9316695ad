//! What the journal held of a partition whose log could not take it: kept in a file, and appended once the log can take
//! it.
//!
//! `barnabas-unreplayed-TOPIC-PARTITION.ID` in the log directory: whole record batches as they would stand in the
//! segment. Where the journal only said how far the segments reach, it is the line `log end OFFSET`. A long topic's
//! name is cut short in the file's name, and the id tells which topic it is. While the file is there the partition has
//! no new records, so a later start finds nothing in the journal that is not in the file.
//!
//! Always true:
//! 1. the file is whole and durable before the journal may forget what is in it
//! 2. it is removed once the log holds all of it, durably
//! 3. nothing is appended to a log that ends before it, or that holds something else in its place
//!
//! Neighbours: core/replica/src/opening.rs, which takes it in; shell/broker/src/upkeep/replay.rs and
//! shell/broker/src/worker/partition_worker/lifecycle/waiting.rs, which write it.

use std::path::{Path, PathBuf};

use barnabas_base::{Offset, TimestampMs, TopicId, TopicPartition};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

use crate::disk::file_pool::FilePool;
use crate::disk::{Disk, OpenMode};
use crate::error::StorageError;
use crate::journal::PartitionReplay;
use crate::log::Log;
use crate::partition_files::dir_name::partition_file_name;

const LOG_END: &str = "log end ";
const UNFINISHED: &str = ".tmp";
const REMEDY: &str = "put the partition's files back and start again; or, to serve what the log has, move that file away and start again; or \
                      delete the topic";

/// The file of a partition in the log directory `root`. A topic that is created again under the same name has another
/// one.
pub fn path(root: &Path, name: &TopicPartition, topic: TopicId) -> PathBuf {
    let id = format!(".{topic}");
    root.join(partition_file_name("barnabas-unreplayed-", name, &id, UNFINISHED.len()))
}

/// Keeps what the journal holds of a partition whose log cannot take it. Returns where.
///
/// # Errors
/// The file system refuses: nothing may be forgotten.
pub fn keep(disk: &dyn Disk, root: &Path, replay: &PartitionReplay) -> Result<PathBuf, StorageError> {
    let path = path(root, &replay.partition.topic_partition, replay.partition.topic_id);
    if disk.stat(&path)?.is_none() {
        write(disk, root, replay, &path)?;
    }
    Ok(path)
}

fn write(disk: &dyn Disk, root: &Path, replay: &PartitionReplay, path: &Path) -> Result<(), StorageError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let file = disk.open(&unfinished, OpenMode::Truncate)?;
    let mut position = 0;
    for item in &replay.items {
        file.write_at(position, &[&item.records])?;
        position += item.records.len() as u64;
    }
    // A truncation that no records follow says it as well.
    let synced = replay.synced_below();
    if replay.items.is_empty() && synced > Offset::ZERO {
        file.write_at(0, &[format!("{LOG_END}{synced}\n").as_bytes()])?;
    }
    file.sync()?;
    disk.rename(&unfinished, path)?;
    Ok(disk.sync_dir(root)?)
}

/// Where what is kept at `path` goes on: the log's segments were synced up to there. `None`: nothing is kept.
///
/// # Errors
/// The file cannot be read.
pub fn goes_on_at(disk: &dyn Disk, path: &Path) -> Result<Option<Offset>, StorageError> {
    if disk.stat(path)?.is_none() {
        return Ok(None);
    }
    Ok(Some(match read(disk, path)? {
        Kept::End(end) => end,
        Kept::Batches(batches) => {
            BatchHeader::parse(&batches).map_or(Offset::ZERO, |first| first.base_offset)
        }
    }))
}

/// Appends what is kept at `path`, if there is something, to `log`, which has just been opened and is synced. Returns
/// whether there was.
///
/// # Errors
/// The log cannot take it, and is as it was; or the machine refuses.
pub fn take_in(
    log: &mut Log,
    files: &mut FilePool,
    path: &Path,
    now: TimestampMs,
) -> Result<bool, StorageError> {
    if files.disk().stat(path)?.is_none() {
        return Ok(false);
    }
    let kept = read(&**files.disk(), path)?;
    match kept {
        Kept::End(end) if log.end() < end => return Err(gap(path, log.end(), end)),
        Kept::End(_) => {}
        Kept::Batches(batches) => {
            let lacking = lacking(log, files, path, &batches)?;
            if !lacking.is_empty() {
                let indexed = log.end();
                log.append(files, &[lacking.into()], now)?;
                log.find_aborted(files, indexed)?;
                if let Some(dirty) = log.take_dirty() {
                    dirty.sync(&**files.disk(), files.file_system())?;
                    log.mark_synced(dirty.ticket);
                }
            }
        }
    }
    files.disk().remove_file(path)?;
    files.disk().sync_dir(&log.place().root)?;
    Ok(true)
}

enum Kept {
    /// Nothing but how far the segments reach.
    End(Offset),
    Batches(Bytes),
}

fn read(disk: &dyn Disk, path: &Path) -> Result<Kept, StorageError> {
    let file = disk.open(path, OpenMode::Read)?;
    let bytes = file.read_bytes(0, usize::try_from(file.len()?).unwrap_or(usize::MAX))?;
    let line = std::str::from_utf8(&bytes).ok().and_then(|text| text.strip_prefix(LOG_END));
    if let Some(end) = line.and_then(|end| end.trim_end().parse().ok()) {
        return Ok(Kept::End(Offset(end)));
    }
    Ok(if bytes.is_empty() { Kept::End(Offset::ZERO) } else { Kept::Batches(bytes) })
}

/// What of `batches` lies behind the log's end. What lies before it is compared.
fn lacking(log: &mut Log, files: &mut FilePool, path: &Path, batches: &Bytes) -> Result<Bytes, StorageError> {
    let bad = |what: &str| StorageError::BadFile {
        file: path.to_path_buf(),
        what: what.to_owned(),
        remedy: REMEDY,
    };
    let mut at = 0;
    while at < batches.len() {
        let header = BatchHeader::parse(&batches[at..]).map_err(|_| bad("it holds no record batches"))?;
        if at == 0 && header.base_offset > log.end() {
            return Err(gap(path, log.end(), header.base_offset));
        }
        if header.base_offset >= log.end() {
            break;
        }
        let size = header.size_bytes();
        let batch = batches.get(at..at + size).ok_or_else(|| bad("it is cut off"))?;
        // What was deleted since is not looked for.
        if header.base_offset >= log.start() {
            let found = log.read(files, header.base_offset, size, log.end(), true)?;
            if !found.records.starts_with(batch) {
                return Err(bad("the log holds other records in the place of its own"));
            }
        }
        at += size;
    }
    Ok(batches.slice(at..))
}

fn gap(path: &Path, end: Offset, from: Offset) -> StorageError {
    StorageError::BadFile {
        file: path.to_path_buf(),
        what: format!("the log ends at offset {end}, and what is kept there goes on at {from}"),
        remedy: REMEDY,
    }
}
