//! A segment that should be there and is not.
//!
//! Before: open.rs, which found an index without its segment.

use barnabas_base::Offset;

use super::{Log, OpenFrom};
use crate::error::StorageError;
use crate::file_pool::FilePool;
use crate::walker::Step;

impl Log {
    /// Whether a segment whose index was found, but not itself, should be there: it would fill a hole. Deletions take the segment's
    /// file first and may be interrupted, at either end of the log or, by compaction, inside.
    pub(super) fn is_lost(
        &self,
        files: &mut FilePool,
        base: Offset,
        from: OpenFrom,
    ) -> Result<bool, StorageError> {
        let next = self.segments.iter().map(|segment| segment.base).find(|next| *next > base);
        // At the front, retention's work and a loss look the same.
        let Some(before) = self.segment_of(base) else { return Ok(false) };
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
}
