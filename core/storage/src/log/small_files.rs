//! The small files beside the segments: topic id, leader epochs, producer snapshots, aborted transactions.

pub(in crate::log) mod transactions;

use barnabas_base::Offset;

use super::Log;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::disk::small_file;
use crate::disk::{DirEntry, OpenMode};
use crate::error::StorageError;
use crate::partition_files::epoch_file;
use crate::partition_files::partition_metadata;
use crate::partition_files::producer_snapshot::{self, ProducerEntry};
use crate::segment::transaction_index::{self, AbortedTransaction};
use crate::segment::{self, offset_path, parse_offset_name};

/// What a start reads at most to find producers' states again, besides what lies past the recovery point: some
/// milliseconds.
const SNAPSHOT_EVERY_BYTES: u64 = 16 << 20;
/// A snapshot takes no more than this part of what is written.
const SNAPSHOT_PART: u64 = 64;
/// Stands for the leader epochs among files that are named by their segments' bases.
const EPOCHS_BASE: Offset = Offset(i64::MIN);

impl Log {
    /// Written once, in place, and synced with the first records: before them nothing is lost with it.
    pub(super) fn write_partition_metadata(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        if self.place.topic_id.is_zero() {
            return Ok(());
        }
        let path = self.place.dir().join(partition_metadata::FILE_NAME);
        let file = files.disk().open(&path, OpenMode::Truncate)?;
        file.write_at(0, &[partition_metadata::render(self.place.topic_id).as_bytes()])?;
        // No segment's file: kept apart from those by a base that no segment has.
        self.mark_dirty(files, Offset::NONE, FileKind::Log, file);
        Ok(())
    }

    pub(super) fn write_epochs(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let path = self.place.dir().join(epoch_file::FILE_NAME);
        small_file::replace(&**files.disk(), &path, epoch_file::render(&self.epochs).as_bytes())?;
        (self.epochs_changed, self.epochs_unsynced) = (false, None);
        Ok(())
    }

    /// Synced with the other dirty files: when many logs are closed, two syncs for each would take most of the time.
    /// One that a crash tears is rebuilt from the batches.
    pub(super) fn write_epochs_unsynced(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let path = self.place.dir().join(epoch_file::FILE_NAME);
        let text = epoch_file::render(&self.epochs);
        let file = small_file::replace_unsynced(&**files.disk(), &path, text.as_bytes())?;
        // As `partition.metadata`: no segment has this base, and no producer snapshot this place. The file before it
        // has no name any more.
        self.forget_dirty(EPOCHS_BASE);
        self.mark_dirty(files, EPOCHS_BASE, FileKind::Log, file);
        self.dirty.dir = true;
        (self.epochs_changed, self.epochs_unsynced) = (false, Some(self.tickets));
        Ok(())
    }

    /// Whether the leader epochs have changed since they were written down last.
    pub fn has_new_epochs(&self) -> bool {
        self.epochs_changed && self.is_on_disk()
    }

    /// Writes new leader epochs down, to be synced with the next ticket, so that [`Log::checkpoint`] need not wait for
    /// a sync of its own. Returns whether that is durable.
    ///
    /// # Errors
    /// As for any write; after a passing one the log is as it was.
    pub fn note_epochs_ahead(&mut self, files: &mut FilePool) -> Result<bool, StorageError> {
        if self.has_new_epochs() {
            self.attempt(|log| log.write_epochs_unsynced(files))?;
        }
        Ok(self.epochs_unsynced.is_none())
    }

    /// Before the recovery point passes what is written next: the epochs below it are those of their file.
    pub(super) fn note_epochs(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        if self.epochs_changed { self.write_epochs_unsynced(files) } else { Ok(()) }
    }

    /// Whether so much was written back since the newest snapshot of the producers, of whom there are so many, that
    /// another is worth it.
    pub fn snapshot_is_due(&self, producers: usize) -> bool {
        let bytes = producer_snapshot::bytes_of(producers) as u64;
        self.since_snapshot >= SNAPSHOT_EVERY_BYTES.max(bytes * SNAPSHOT_PART)
    }

    /// Writes `entries` as the state of producers when the log ended at `at`. Where that is the end of the segments,
    /// the index entries up to there are written as well, to be synced with it: an unclean start goes on from there
    /// (known.rs).
    ///
    /// Not waited for: a snapshot that a crash tears fails its checksum, and an older one and more of the log are
    /// read instead. The next ticket covers it, but the current one does not reach past `at`: call
    /// [`Log::take_dirty`] again after it.
    pub fn write_producer_snapshot(
        &mut self,
        files: &mut FilePool,
        at: Offset,
        entries: &[ProducerEntry],
    ) -> Result<(), StorageError> {
        if !self.is_on_disk() {
            return Ok(());
        }
        let path = offset_path(&self.place.dir(), at, segment::SNAPSHOT);
        self.attempt(|log| {
            if at == log.segment_end {
                log.write_entries(files)?;
                log.note_indexes(files)?;
            }
            let file = files.disk().open(&path, OpenMode::Truncate)?;
            file.write_at(0, &[&producer_snapshot::encode(entries)])?;
            // One snapshot per offset: the key only keeps the handle apart from the segments' own.
            log.mark_dirty(files, Offset(-2 - at.get()), FileKind::Log, file);
            log.dirty.dir = true;
            log.since_snapshot = 0;
            log.vouched.write(at);
            log.remove_passed_snapshots(files, at)
        })
    }

    /// Those at segments' bases stay, as in Kafka. Of the others an unclean start may need the newest that lies below
    /// what the directory's checkpoint names, and none before it.
    fn remove_passed_snapshots(&mut self, files: &FilePool, newest: Offset) -> Result<(), StorageError> {
        let is_base = |at: &Offset| self.segments.binary_search_by_key(at, |segment| segment.base).is_ok();
        let mut between = self.snapshot_offsets(files)?;
        between.retain(|at| *at < newest && !is_base(at));
        // The checkpoint file may still say what was handed out before.
        let synced = self.checkpointed[1];
        let needed = between.iter().rposition(|at| *at <= synced).unwrap_or(0);
        for at in &between[..needed] {
            files.disk().remove_file(&offset_path(&self.place.dir(), *at, segment::SNAPSHOT))?;
        }
        Ok(())
    }

    /// The newest readable snapshot at or below `at`: rebuild from it with [`Log::scan`]. Unreadable ones are removed.
    /// One below the first segment does not count: what producers wrote between it and that segment is gone, and they
    /// would seem to be behind.
    pub fn read_producer_snapshot(
        &mut self,
        files: &mut FilePool,
        at: Offset,
    ) -> Result<Option<(Offset, Vec<ProducerEntry>)>, StorageError> {
        if !self.is_on_disk() {
            return Ok(None);
        }
        let mut offsets = self.snapshot_offsets(files)?;
        let first = self.first_segment_base();
        offsets.retain(|offset| *offset >= first && *offset <= at);
        while let Some(offset) = offsets.pop() {
            let path = offset_path(&self.place.dir(), offset, segment::SNAPSHOT);
            let bytes = small_file::read(&**files.disk(), &path)?.unwrap_or_default();
            if let Some(entries) = producer_snapshot::decode(&bytes) {
                return Ok(Some((offset, entries)));
            }
            files.disk().remove_file(&path)?;
        }
        Ok(None)
    }

    fn snapshot_offsets(&self, files: &FilePool) -> Result<Vec<Offset>, StorageError> {
        let names = files.disk().list(&self.place.dir())?;
        let mut offsets: Vec<Offset> = names.iter().filter_map(snapshot_offset).collect();
        offsets.sort_unstable();
        Ok(offsets)
    }

    pub(super) fn newest_snapshot(
        &self,
        files: &FilePool,
        at: Offset,
    ) -> Result<Option<Offset>, StorageError> {
        Ok(self.snapshot_offsets(files)?.into_iter().rfind(|offset| *offset <= at))
    }

    /// Removes the snapshots of offsets that `gone` names.
    pub(super) fn remove_snapshots(
        &mut self,
        files: &mut FilePool,
        gone: impl Fn(Offset) -> bool,
    ) -> Result<(), StorageError> {
        for offset in self.snapshot_offsets(files)? {
            if gone(offset) {
                let path = offset_path(&self.place.dir(), offset, segment::SNAPSHOT);
                files.disk().remove_file(&path)?;
                // Back from the dead, it would speak of records that were given up.
                self.dirty.dir = true;
            }
        }
        Ok(())
    }

    /// Notes an aborted transaction whose marker has just been appended or staged; where it is staged, the index gets
    /// it with the marker.
    pub fn append_aborted(
        &mut self,
        files: &mut FilePool,
        aborted: AbortedTransaction,
    ) -> Result<(), StorageError> {
        let marker = aborted.last_offset;
        if marker >= self.segment_end
            && let Some(tail) = &mut self.tail
        {
            tail.aborted.push(aborted);
            return Ok(());
        }
        let Some(base) = self.segment_of(marker).map(|at| self.segments[at].base) else {
            return Err(StorageError::OutOfOrder { found: marker, end: self.segment_end });
        };
        self.change(|log| log.index_aborted(files, base, &aborted))
    }

    fn index_aborted(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        aborted: &AbortedTransaction,
    ) -> Result<(), StorageError> {
        let file = self.file(files, base, FileKind::TransactionIndex)?;
        let len = file.len()?;
        let at = len - len % transaction_index::ENTRY_BYTES as u64;
        file.write_at(at, &[&aborted.encode()])?;
        self.mark_dirty(files, base, FileKind::TransactionIndex, file);
        self.dirty.dir = true;
        Ok(())
    }

    /// Indexes the aborted transactions whose markers have just been written back.
    pub(super) fn index_written_back_aborted(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let Some(tail) = self.tail.as_ref().filter(|tail| !tail.aborted.is_empty()) else { return Ok(()) };
        let written_back = tail.aborted.iter().take_while(|aborted| aborted.last_offset < self.segment_end);
        for aborted in written_back.copied().collect::<Vec<_>>() {
            let at = self
                .segment_of(aborted.last_offset)
                .expect("a marker that was written back lies in a segment");
            self.index_aborted(files, self.segments[at].base, &aborted)?;
        }
        Ok(())
    }

    /// The aborted transactions that a reader of `[from, upper)` has to skip. A damaged index is rebuilt from the
    /// batches.
    ///
    /// # Source
    /// Kafka `TransactionIndex.collectAbortedTxns`: an entry whose last stable offset is at or past `upper` ends the
    /// search.
    pub fn aborted_transactions(
        &mut self,
        files: &mut FilePool,
        from: Offset,
        upper: Offset,
    ) -> Result<Vec<AbortedTransaction>, StorageError> {
        let mut found = Vec::new();
        for at in self.segment_of(from).unwrap_or(0)..self.segments.len() {
            let base = self.segments[at].base;
            let index = match self.read_transaction_index(files, base) {
                Err(StorageError::Damaged { .. }) => self.rebuild_transaction_index(files, at)?,
                index => index?,
            };
            for aborted in index {
                if aborted.last_offset >= from && aborted.first_offset < upper {
                    found.push(aborted);
                }
                if aborted.last_stable_offset >= upper {
                    return Ok(found);
                }
            }
        }
        for aborted in self.staged().flat_map(|tail| &tail.aborted) {
            if aborted.last_offset >= from && aborted.first_offset < upper {
                found.push(*aborted);
            }
            if aborted.last_stable_offset >= upper {
                break;
            }
        }
        Ok(found)
    }

    pub(super) fn read_transaction_index(
        &self,
        files: &mut FilePool,
        base: Offset,
    ) -> Result<Vec<AbortedTransaction>, StorageError> {
        let Some(file) = self.existing_file(files, base, FileKind::TransactionIndex)? else {
            return Ok(Vec::new());
        };
        let bytes = file.read_bytes(0, file.len()? as usize)?;
        let (entries, whole) = transaction_index::decode_front(&bytes, base);
        // Less than an entry at the end is one that was being written, as in Kafka.
        if bytes.len() - whole >= transaction_index::ENTRY_BYTES {
            return Err(StorageError::Damaged {
                file: self.path(base, FileKind::TransactionIndex),
                position: whole as u64,
                offset: base,
                what: "this is no aborted transaction",
            });
        }
        Ok(entries)
    }
}

pub(super) fn snapshot_offset(entry: &DirEntry) -> Option<Offset> {
    let (offset, suffix) = parse_offset_name(&entry.name)?;
    (suffix == segment::SNAPSHOT && !entry.is_dir).then_some(offset)
}
