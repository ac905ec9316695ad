//! Giving up records: from the end (another leader's word), from the start (DeleteRecords), all of them.

use std::path::{Path, PathBuf};

use barnabas_base::{Offset, TimestampMs};

use crate::disk::OpenMode;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::{Active, Log};
use crate::partition_files::epoch_file;
use crate::segment::DelayedDelete;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::{self, LargestTimestamp, offset_path};

impl Log {
    /// Drops every record at or past `offset`. Returns whether anything was dropped, and the files that go later.
    ///
    /// Batches go as a whole: where `offset` lies within one, the log ends where that batch began ([`Log::end`] says),
    /// so that no hole is left.
    ///
    /// Where [`Log::truncation_end`] lies below [`Log::recovery_point`], the directory's recovery-point checkpoint must
    /// name that or less *before* the call: a checkpoint that names more than the log holds reads as lost data.
    ///
    /// # Source
    /// Kafka `UnifiedLog.truncateTo`.
    pub fn truncate_to(
        &mut self,
        files: &mut FilePool,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<(bool, Option<DelayedDelete>), StorageError> {
        if offset >= self.end() {
            // A leader that fell before it wrote anything may have noted its epoch.
            self.epochs_changed |= self.epochs.truncate_from_end(self.end());
            return Ok((false, None));
        }
        if offset >= self.segment_end {
            self.change(|log| log.cut_staged(files, offset))?;
            return Ok((true, None));
        }
        if self.segments.first().is_none_or(|first| first.base > offset) {
            return Ok((true, self.truncate_fully_and_start_at(files, offset, now)?));
        }
        let delete = self.change(|log| log.cut_segments(files, offset, now))?;
        self.attempt(|log| log.cut_at(files, offset, now))?;
        Ok((true, delete))
    }

    /// Where the log would end after [`Log::truncate_to`] `offset`: there, or where the batch begins that holds it.
    /// Beside it what is damaged around that place ([`StorageError::Damaged`]): it stays, if it is not truncated.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]: it cannot be found out where batches begin there.
    pub fn truncation_end(
        &self,
        files: &mut FilePool,
        offset: Offset,
    ) -> Result<(Offset, Option<StorageError>), StorageError> {
        match self.segment_of(offset) {
            _ if offset >= self.segment_end => {
                let staged = self.staged().map(|tail| tail.cut_end(offset)).next();
                Ok((staged.unwrap_or(offset), None))
            }
            Some(at) => {
                let (found, damage) = self.find_cut(files, at, offset)?;
                Ok((found.map_or(offset, |(_, header)| header.base_offset.min(offset)), damage))
            }
            None => Ok((offset, None)),
        }
    }

    /// Where the segment begins that holds `offset`, or would: where the log ends after [`Log::give_up_segments`].
    pub fn segment_base_of(&self, offset: Offset) -> Offset {
        self.segment_of(offset).map_or(self.start, |at| self.segments[at].base)
    }

    /// Drops the segment that begins at `base` and all that follow, unread, because they are damaged: the log ends at
    /// `base`. They are set aside as a whole, and go later. The same holds of checkpoints as for [`Log::truncate_to`].
    pub fn give_up_segments(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        now: TimestampMs,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        let keep = self.segments.partition_point(|segment| segment.base < base);
        if keep == 0 {
            return self.truncate_fully_and_start_at(files, base, now);
        }
        self.attempt(|log| {
            log.given_up_from(base);
            // From the end, so that a crash in between leaves no hole.
            let gone: Vec<Offset> = log.segments[keep..].iter().rev().map(|segment| segment.base).collect();
            let delete = log.set_aside(files, &gone, now)?;
            log.segments.truncate(keep);
            log.read_active(files, keep - 1)?;
            log.remove_snapshots(files, |snapshot| snapshot > base)?;
            log.note_epochs(files)?;
            log.sync_cut(files)?;
            log.segment_end = base;
            log.start = log.start.min(base);
            if let Some(tail) = &mut log.tail {
                tail.cut_at(base);
            }
            log.drop_empty_tail();
            Ok(delete)
        })
    }

    /// Gives up staged batches from the one on that holds `offset`.
    fn cut_staged(&mut self, files: &mut FilePool, offset: Offset) -> Result<(), StorageError> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        let end = tail.cut_end(offset);
        tail.cut_at(offset);
        if tail.staged_end().is_none() {
            // It may have begun with a gap: the log ends there all the same.
            self.segment_end = end;
        }
        self.drop_empty_tail();
        self.epochs_changed |= self.epochs.truncate_from_end(end);
        self.start = self.start.min(end);
        if self.is_on_disk() {
            self.remove_snapshots(files, |snapshot| snapshot > end)?;
            files.disk().sync_dir(&self.place.dir())?;
        }
        Ok(())
    }

    /// Sets the segments aside that lie above `offset` as a whole.
    fn cut_segments(
        &mut self,
        files: &mut FilePool,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        self.given_up_from(offset);
        let keep = self.segment_of(offset).map_or(0, |at| at + 1);
        // From the end, so that a crash in between leaves no hole.
        let gone: Vec<Offset> = self.segments[keep..].iter().rev().map(|segment| segment.base).collect();
        let delete = self.set_aside(files, &gone, now)?;
        let was_active = self.segments.len() == keep;
        self.segments.truncate(keep);
        if !was_active {
            self.read_active(files, keep - 1)?;
        }
        Ok(delete)
    }

    /// Truncates the last segment at `offset`. Done again after a full disk, it does what is left of it.
    fn cut_at(&mut self, files: &mut FilePool, offset: Offset, now: TimestampMs) -> Result<(), StorageError> {
        let at = self.segments.len() - 1;
        let mut end = offset;
        if let Some((position, header)) = self.find_cut(files, at, offset)?.0 {
            if header.base_offset < offset {
                end = header.base_offset;
                self.given_up_from(end);
            }
            // First, and at once: were a process killed after this, the next one would not know that it is not synced,
            // and power that goes later would bring back what speaks of the records that were given up.
            self.remove_snapshots(files, |snapshot| snapshot > end)?;
            self.cut_indexes(files, self.segments[at].base, end)?;
            self.note_epochs(files)?;
            self.sync_cut(files)?;
            self.cut_segment(files, end, position, now)?;
        } else {
            self.remove_snapshots(files, |snapshot| snapshot > end)?;
            self.note_epochs(files)?;
            self.sync_cut(files)?;
        }
        self.segment_end = end;
        self.start = self.start.min(end);
        if let Some(tail) = &mut self.tail {
            tail.cut_at(end);
        }
        self.drop_empty_tail();
        Ok(())
    }

    fn sync_cut(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        if let Some(base) = self.segments.last().map(|segment| segment.base) {
            for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
                if let Some(file) = self.existing_file(files, base, kind)? {
                    file.sync()?;
                }
            }
        }
        let epochs = self.place.dir().join(epoch_file::FILE_NAME);
        match files.disk().open(&epochs, OpenMode::Write) {
            Ok(file) => file.sync()?,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(files.disk().sync_dir(&self.place.dir())?)
    }

    /// What every truncation does to what is remembered.
    fn given_up_from(&mut self, offset: Offset) {
        self.generation += 1;
        self.hints = [None; 2];
        self.forget_sound();
        self.recovery_point = self.recovery_point.min(offset);
        self.vouched.cut(offset);
        self.epochs_changed |= self.epochs.truncate_from_end(offset);
    }

    /// Cuts the active segment, its indexes and what is remembered of it.
    fn cut_segment(
        &mut self,
        files: &mut FilePool,
        offset: Offset,
        position: u32,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        let at = self.segments.len() - 1;
        let base = self.segments[at].base;
        let file = self.file(files, base, FileKind::Log)?;
        file.set_len(position.into())?;
        // At once: a process that is killed after this leaves a log that ends where its recovery point lies, in which
        // the next one finds nothing to sync; and power that goes later would bring back what was given up.
        file.sync()?;
        self.mark_dirty(files, base, FileKind::Log, file);
        self.cut_indexes(files, base, offset)?;
        let segment = &mut self.segments[at];
        segment.size = position;
        if position == 0 {
            segment.first_timestamp = None;
            segment.created = now;
        }
        self.read_active(files, at)
    }

    fn cut_indexes(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        offset: Offset,
    ) -> Result<(), StorageError> {
        let file = self.existing_file(files, base, FileKind::OffsetIndex)?;
        let below = |entry: &[u8; 8]| OffsetEntry::decode(*entry, base).offset < offset;
        let count = self.active.offsets.count_while(file.as_deref(), below)?;
        self.active.offsets.cut_to(count);
        let file = self.existing_file(files, base, FileKind::TimeIndex)?;
        let below = |entry: &[u8; 12]| LargestTimestamp::decode(*entry, base).offset < offset;
        let count = self.active.times.count_while(file.as_deref(), below)?;
        self.active.times.cut_to(count);
        // So that what is read back below is what counts; synced, so that no entry of what was given up comes back.
        self.trim_indexes(files)?;
        self.note_indexes(files)?;
        self.cut_transaction_index(files, base, offset)
    }

    /// Synced as well: an entry that came back would hide what is written there next.
    pub(in crate::log) fn cut_transaction_index(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        offset: Offset,
    ) -> Result<(), StorageError> {
        let aborted = self.read_transaction_index(files, base)?;
        if let Some(file) = self.existing_file(files, base, FileKind::TransactionIndex)? {
            let kept = aborted.iter().take_while(|aborted| aborted.last_offset < offset).count();
            file.set_len((kept * crate::segment::transaction_index::ENTRY_BYTES) as u64)?;
            self.mark_dirty(files, base, FileKind::TransactionIndex, file);
        }
        Ok(())
    }

    /// Makes the last segment, at `at`, the active one: reads what is remembered of it from its files.
    pub(in crate::log) fn read_active(
        &mut self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<(), StorageError> {
        let base = self.segments[at].base;
        let size = self.segments[at].size;
        let offsets = self.sealed_entries::<8>(files, base, FileKind::OffsetIndex)?;
        let times = self.sealed_entries::<12>(files, base, FileKind::TimeIndex)?;
        let mut last_position = 0;
        let mut last_time = TimestampMs::NONE;
        if let (Some(file), Some(last)) =
            (self.existing_file(files, base, FileKind::OffsetIndex)?, offsets.count().checked_sub(1))
            && let Some(entry) = offsets.get(Some(&*file), last)?
        {
            last_position = OffsetEntry::decode(entry, base).position.min(size);
        }
        if let (Some(file), Some(last)) =
            (self.existing_file(files, base, FileKind::TimeIndex)?, times.count().checked_sub(1))
            && let Some(entry) = times.get(Some(&*file), last)?
        {
            last_time = LargestTimestamp::decode(entry, base).timestamp;
        }
        self.active =
            Active { offsets, times, last_time, since_entry: size - last_position, ..Active::default() };
        self.segments[at].largest = None;
        let largest = self.largest_timestamp(files, at)?;
        self.segments[at].largest = Some(largest);
        Ok(())
    }

    /// Drops everything; the log begins and ends at `offset`. The same holds of checkpoints as for
    /// [`Log::truncate_to`].
    pub fn truncate_fully_and_start_at(
        &mut self,
        files: &mut FilePool,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        self.check_writable()?;
        self.given_up_from(offset);
        self.epochs_changed |= !self.epochs.entries().is_empty();
        self.epochs.clear();
        self.start = offset;
        self.segment_end = offset;
        self.tail = None;
        self.recovery_point = offset;
        if !self.is_on_disk() {
            if offset > Offset::ZERO {
                // Checkpoints name a log that ends there: there must be one.
                self.attempt(|log| log.begin_segment(files, offset, now))?;
            }
            return Ok(None);
        }
        // Each step finds done what an attempt before it did: that one may have met a full disk.
        self.attempt(|log| {
            log.say_what_goes(files, log.first_segment_base(), offset)?;
            // From the end, so that a crash in between leaves no hole.
            let gone: Vec<Offset> = log.segments.iter().rev().map(|segment| segment.base).collect();
            let delete = log.set_aside(files, &gone, now)?;
            log.segments.clear();
            log.remove_snapshots(files, |_| true)?;
            log.begin_segment(files, offset, now)?;
            log.sync_cut(files)?;
            Ok(delete)
        })
    }

    /// Moves the start up to `offset` (DeleteRecords; at most the high watermark, which the caller has checked).
    /// Returns whether it moved; the bytes go with the next [`Log::delete_old_segments`], and the directory's log-start
    /// checkpoint has to name it.
    pub fn advance_start(&mut self, offset: Offset) -> bool {
        let offset = offset.min(self.end());
        if offset <= self.start {
            return false;
        }
        self.start = offset;
        self.epochs_changed |= self.epochs.truncate_from_start(offset);
        true
    }

    /// Renames the files of segments to `.deleted`, snapshots at their bases included.
    pub(in crate::log) fn set_aside(
        &mut self,
        files: &mut FilePool,
        bases: &[Offset],
        now: TimestampMs,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        let mut gone = Vec::new();
        let dir = self.place.dir();
        for &base in bases {
            files.close_segment(self.id, base);
            self.forget_dirty(base);
            for kind in FileKind::ALL {
                gone.extend(set_file_aside(files, &offset_path(&dir, base, kind.suffix()))?);
            }
            gone.extend(set_file_aside(files, &offset_path(&dir, base, segment::SNAPSHOT))?);
        }
        if gone.is_empty() {
            return Ok(None);
        }
        self.dirty.dir = true;
        Ok(Some(DelayedDelete { due: now.plus(self.config.file_delete_delay_ms), files: gone }))
    }
}

fn set_file_aside(files: &FilePool, path: &Path) -> Result<Option<PathBuf>, StorageError> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(segment::DELETED);
    let aside = PathBuf::from(aside);
    match files.disk().rename(path, &aside) {
        Ok(()) => Ok(Some(aside)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
