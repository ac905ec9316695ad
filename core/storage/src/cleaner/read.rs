//! The batches of a sealed segment, each checked before anything is concluded from it.

use std::path::PathBuf;

use barnabas_base::Offset;
use bytes::Bytes;

use super::types::{CleanError, LogToClean, Pace, SegmentToClean};
use crate::disk::{Disk, OpenMode};
use crate::segment::batch::BatchHeader;
use crate::segment::walker::{Step, Walker};
use crate::segment::{self, offset_path};

/// A segment being read from front to back.
#[derive(Debug)]
pub(super) struct SegmentReader {
    walker: Walker,
    path: PathBuf,
    next: Offset,
    reach: Offset,
}

/// One batch, or one message (or compressed set) of an old format.
#[derive(Debug)]
pub(super) struct FoundBatch {
    pub position: u64,
    pub header: BatchHeader,
    pub bytes: Bytes,
}

impl SegmentReader {
    pub fn open(disk: &dyn Disk, log: &LogToClean, segment: SegmentToClean) -> Result<Self, CleanError> {
        let path = offset_path(&log.dir, segment.base, segment::LOG);
        let file = disk.open(&path, OpenMode::Read)?;
        let walker = Walker::new(file, 0, segment.size.into(), true);
        Ok(Self { walker, path, next: segment.base, reach: segment.next_base })
    }

    /// The next batch, whose checksum is right and whose offsets follow.
    pub fn next(&mut self, pace: &mut dyn Pace) -> Result<Option<FoundBatch>, CleanError> {
        let (position, header, bytes) = match self.walker.step()? {
            Step::End => return Ok(None),
            Step::Bad { position, why } => return Err(self.damaged(position, why)),
            Step::Batch { position, header, bytes } => (position, header, bytes),
        };
        if pace.take(bytes.len()).is_break() {
            return Err(CleanError::Stopped);
        }
        if !header.checksum_is_right(&bytes) {
            return Err(self.damaged(position, "its checksum is wrong"));
        }
        if header.base_offset < self.next || header.last_offset >= self.reach {
            return Err(self.damaged(position, "its offsets do not follow"));
        }
        self.next = header.next_offset();
        Ok(Some(FoundBatch { position, header, bytes }))
    }

    /// A batch that [`Self::next`] gave, and whose records make no sense.
    pub fn unreadable(&self, position: u64, what: impl ToString) -> CleanError {
        CleanError::Unreadable { file: self.path.clone(), position, what: what.to_string() }
    }

    fn damaged(&self, position: u64, what: impl ToString) -> CleanError {
        CleanError::Damaged { file: self.path.clone(), position, what: what.to_string() }
    }
}
