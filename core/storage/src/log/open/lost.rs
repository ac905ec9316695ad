//! A segment that should be there and is not.
//!
//! At the front the leader epochs tell: where the log's start moves up, the first of them moves with it, and their file
//! is written before the segments below go ([`Log::delete_old_segments`]). So below the first segment there is nothing
//! that the file names. Inside, batches follow one another as long as nothing was compacted. At the end the recovery
//! point tells (open.rs).
//!
//! If another program was the last to write here, it may have deleted the missing segment deliberately: the node
//! logs that, and serves the rest.

use barnabas_base::Offset;

use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::{Log, OpenFrom, Opened};
use crate::segment::batch::BatchHeader;
use crate::segment::walker::Step;

/// So many of the newest sealed segments are looked at, as each costs two short reads. The scrub looks at all
/// (scrub.rs).
const LOOKED_AT_MAX: usize = 1000;

impl Log {
    /// Whether a segment whose index was found, but not itself, should be there: it would fill a hole. Deletions take
    /// the segment's file first and may be interrupted, at either end of the log or, by compaction, inside.
    pub(in crate::log) fn is_lost(
        &self,
        files: &mut FilePool,
        base: Offset,
        from: OpenFrom,
    ) -> Result<bool, StorageError> {
        let next = self.segments.iter().map(|segment| segment.base).find(|next| *next > base);
        let Some(before) = self.segment_of(base) else {
            return Ok(from.is_ours && self.lost_front(from).is_some_and(|(_, to)| base < to));
        };
        // Past the recovery point names need not have reached the disk in their order.
        let is_unsure = next.is_some() && self.config.cleanup.compact && !from.clean;
        if is_unsure || base >= from.recovery_point {
            return Ok(false);
        }
        let mut end = self.segments[before].base;
        let mut walker = self.walker(files, before, 0, false)?;
        while let Step::Batch { header, .. } = walker.step()? {
            end = header.next_offset();
        }
        Ok(end < next.unwrap_or(from.recovery_point))
    }

    /// Offsets at the front that were not deleted and have no segment. The epochs are those of the file.
    fn lost_front(&self, from: OpenFrom) -> Option<(Offset, Offset)> {
        let first = self.segments.first()?.base;
        let start = self.epochs.entries().first()?.start.max(from.log_start);
        // What was never synced may be gone for that reason.
        (start < first && start < from.recovery_point).then_some((start, first))
    }

    /// # Errors
    /// [`StorageError::Damaged`]: the log's first segment was lost.
    pub(in crate::log) fn look_for_lost_front(
        &self,
        from: OpenFrom,
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        let Some((start, first)) = self.lost_front(from) else { return Ok(()) };
        if from.is_ours {
            return Err(self.lost(start));
        }
        opened.gaps.push((start, first));
        Ok(())
    }

    /// # Errors
    /// [`StorageError::Damaged`]: a segment inside the log was lost; or a segment's last batch says that it ends
    /// elsewhere ([`Opened::damaged`] names it where the log can be repaired).
    pub(in crate::log) fn look_for_lost_inside(
        &self,
        files: &mut FilePool,
        from: OpenFrom,
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        if !self.has_no_holes(from) {
            return Ok(());
        }
        let sealed = self.segments.len().saturating_sub(1);
        for at in sealed.saturating_sub(LOOKED_AT_MAX)..sealed {
            let next = self.segments[at + 1].base;
            let Some((end, _)) = self.end_of_segment(files, at)?.filter(|(end, _)| *end != next) else {
                continue;
            };
            if let Some(damage) = self.follow_segment(files, at, next)?.damage {
                opened.found(damage, from)?;
                continue;
            }
            if end > next {
                continue;
            }
            if from.is_ours {
                return Err(self.lost(end));
            }
            opened.gaps.push((end, next));
        }
        Ok(())
    }

    /// Batches follow one another, as nothing was compacted.
    pub(in crate::log) fn has_no_holes(&self, from: OpenFrom) -> bool {
        !self.config.cleanup.compact && !from.was_compacted
    }

    /// The offset after a segment's last batch, and that one; `None` where it ends with something else, which a reader
    /// will find.
    pub(in crate::log) fn end_of_segment(
        &self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<Option<(Offset, Option<BatchHeader>)>, StorageError> {
        let position = self.begin_looking(files, at, Offset(i64::MAX))?;
        let mut walker = self.walker(files, at, position, false)?;
        let mut last = None;
        loop {
            match walker.step()? {
                Step::Batch { header, .. } => last = Some(header),
                Step::Bad { .. } => return Ok(None),
                Step::End => {
                    let end = last.map_or(self.segments[at].base, |last: BatchHeader| last.next_offset());
                    return Ok(Some((end, last)));
                }
            }
        }
    }

    fn lost(&self, offset: Offset) -> StorageError {
        let what = "it is missing: nothing deleted it, and the offsets from there on are in no other segment. Put it back; or, to \
                    serve the rest, stop the node, remove barnabas-checkpoints from the log directory and start again";
        StorageError::Damaged { file: self.path(offset, FileKind::Log), position: 0, offset, what }
    }
}
