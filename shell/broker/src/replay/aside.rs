//! What the journal held of a partition whose log could not take it: kept in a file, and taken in once the log can.
//!
//! `barnabas-unreplayed-TOPIC-PARTITION.ID` in the log directory (a long topic's name is cut short there, and the id tells which it is): whole record batches as they would stand in the segment, or, where
//! the journal only said how far the segments reach, the line `log end OFFSET`. While it is there the partition has no new
//! records, so what a later start finds in the journal is in it as well.
//!
//! Always true:
//! 1. the file is whole and durable before the journal may forget what is in it
//! 2. it goes once the log holds all of it, durably
//! 3. nothing is put behind a log that ends before it, or that holds something else in its place

use super::ReplayError;
use crate::directories::Directory;
use barnabas_base::{Offset, TimestampMs, TopicId, TopicPartition};
use barnabas_storage::journal::PartitionReplay;
use barnabas_storage::{Disk, FilePool, Log, OpenMode, StorageError, partition_file_name};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;
use std::path::{Path, PathBuf};

const LOG_END: &str = "log end ";
const UNFINISHED: &str = ".tmp";
const REMEDY: &str = "put the partition's files back and start again; or, to serve what the log has, move that file away and start again; or \
                      delete the topic";

/// Where it is kept. A topic that is made anew under the same name has nothing to do with it.
pub fn path(directory: &Directory, name: &TopicPartition, topic: TopicId) -> PathBuf {
    let id = format!(".{topic}");
    directory.path.join(partition_file_name("barnabas-unreplayed-", name, &id, UNFINISHED.len()))
}

/// The partition's log cannot take what the journal holds. It is kept, as the journal goes on.
///
/// # Errors
/// The file system refuses: nothing may be forgotten.
pub fn keep(directory: &Directory, replay: &PartitionReplay, why: &ReplayError) -> Result<(), StorageError> {
    let name = &replay.partition.topic_partition;
    let path = path(directory, name, replay.partition.topic_id);
    if directory.disk.stat(&path)?.is_none() {
        write(directory, replay, &path)?;
    }
    let (bytes, path) = (replay.bytes(), path.display());
    tracing::error!(
        partition = %name,
        error = %why,
        "partition stays offline; the {bytes} bytes of record batches that the journal held of it are kept in {path}. Once its files \
         are back, the next start takes them in"
    );
    Ok(())
}

fn write(directory: &Directory, replay: &PartitionReplay, path: &Path) -> Result<(), StorageError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let file = directory.disk.open(&unfinished, OpenMode::Truncate)?;
    let mut position = 0;
    for item in &replay.items {
        file.write_at(position, &[&item.records])?;
        position += item.records.len() as u64;
    }
    if let Some(end) = replay.synced_end.filter(|_| replay.items.is_empty()) {
        file.write_at(0, &[format!("{LOG_END}{end}\n").as_bytes()])?;
    }
    file.sync()?;
    directory.disk.rename(&unfinished, path)?;
    Ok(directory.disk.sync_dir(&directory.path)?)
}

/// Brings `log`, which has just been opened and is synced, together with what is kept at `path`, if there is something.
///
/// # Errors
/// The log cannot take it, and is as it was; or the machine refuses.
pub fn take_in(
    log: &mut Log,
    files: &mut FilePool,
    path: &Path,
    now: TimestampMs,
) -> Result<(), StorageError> {
    if files.disk().stat(path)?.is_none() {
        return Ok(());
    }
    let kept = read(&**files.disk(), path)?;
    let name = log.place().topic_partition.clone();
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
    tracing::info!(partition = %name, end = %log.end(), "took in {}", path.display());
    Ok(())
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

/// The topic is deleted, and with it what was kept of it.
pub fn forget(directories: &[Directory], name: &TopicPartition, topic: TopicId) {
    for directory in directories.iter().filter(|directory| directory.is_online()) {
        let path = path(directory, name, topic);
        if !matches!(directory.disk.stat(&path), Ok(None))
            && let Err(error) = directory.disk.remove_file(&path)
        {
            tracing::warn!(%error, "{} stays behind", path.display());
        }
    }
}
