//! What an unclean start does with segments that were sealed before the recovery point, and with what it found past it.

use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::{Log, Opened};
use crate::segment::offset_index::OffsetEntry;
use crate::segment::walker::Step;
use barnabas_base::Offset;

impl Log {
    /// Segments below `first` lie below the recovery point: they are left alone, but for what may be missing of the
    /// newest.
    pub(in crate::log) fn recover_sealed(
        &mut self,
        files: &mut FilePool,
        first: usize,
        unindexed: &[Offset],
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        for at in 0..first {
            // The newest sealed segment may have been sealed after the last sync.
            let is_newest = at + 1 == first;
            if is_newest {
                self.cut_padding(files, at)?;
            }
            let is_unsure = is_newest && !self.index_reaches_end(files, at)?;
            if is_unsure || unindexed.contains(&self.segments[at].base) {
                self.rebuild_indexes(files, at, opened)?;
            }
        }
        Ok(())
    }

    /// Whether a sealed segment's offset index ends where it should.
    fn index_reaches_end(&self, files: &mut FilePool, at: usize) -> Result<bool, StorageError> {
        let segment = self.segments[at];
        let entries = self.sealed_entries::<8>(files, segment.base, FileKind::OffsetIndex)?;
        let mut last = OffsetEntry { offset: segment.base, position: 0 };
        if let Some(newest) = entries.count().checked_sub(1) {
            let file = self.existing_file(files, segment.base, FileKind::OffsetIndex)?;
            let Some(entry) = entries.get(file.as_deref(), newest)? else { return Ok(false) };
            last = OffsetEntry::decode(entry, segment.base);
            if last.position == 0 || last.position >= segment.size {
                return Ok(false);
            }
        }
        let mut walker = self.walker(files, at, last.position, false)?;
        let mut since = 0;
        while let Step::Batch { header, .. } = walker.step()? {
            let names_another = since == 0 && last.position > 0 && header.last_offset > last.offset;
            if names_another || since > self.config.index_interval_bytes {
                return Ok(false);
            }
            since += header.size;
        }
        Ok(true)
    }

    /// What is past the recovery point was read, and need not be on disk: it is synced before anything rests on it.
    pub(in crate::log) fn note_unsynced(
        &mut self,
        files: &mut FilePool,
        first: usize,
        was_cut: bool,
    ) -> Result<(), StorageError> {
        // A segment that begins where the last sync ended may have got its name after it, from a process that was
        // killed.
        let last_is_unsure = self.segments.last().is_some_and(|segment| segment.base >= self.recovery_point);
        if self.recovery_point == self.segment_end && !last_is_unsure && !was_cut {
            return Ok(());
        }
        for at in first..self.segments.len() {
            let base = self.segments[at].base;
            let file = self.file(files, base, FileKind::Log)?;
            self.mark_dirty(files, base, FileKind::Log, file);
        }
        self.dirty.dir = true;
        self.dirty.root = true;
        Ok(())
    }
}
