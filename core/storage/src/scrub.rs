//! Checks sealed segments batch by batch, a bounded piece at a time, and says what is damaged. Changes nothing, ever.
//!
//! Works on files alone: the log's owner goes on meanwhile, and a segment may be deleted, truncated or replaced under the walk. What
//! looks damaged is therefore asked for again, by its name, before it is said ([`SegmentScrub::step`]): a file that is gone or has
//! another length was given up, not damaged.
//!
//! Who decides when and how fast: shell/broker/src/scrub.rs. What else is checked when: docs/DAMAGE.md.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::Offset;

use crate::batch::BatchHeader;
use crate::disk::{Disk, DiskError, OpenMode};
use crate::error::StorageError;
use crate::segment::{LOG, offset_path, parse_offset_name};
use crate::walker::{Step, Walker};

/// The sealed segments of a partition's directory, by base offset: all but the newest. Each with the base of the next.
pub fn sealed_segments(disk: &dyn Disk, dir: &Path) -> Result<Vec<(Offset, Offset)>, DiskError> {
    let names = match disk.list(dir) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        names => names?,
    };
    let parsed = names.iter().filter_map(|entry| parse_offset_name(&entry.name));
    let mut bases: Vec<Offset> = parsed.filter(|(_, suffix)| *suffix == LOG).map(|(base, _)| base).collect();
    bases.sort_unstable();
    Ok(bases.windows(2).map(|pair| (pair[0], pair[1])).collect())
}

/// The walk over one sealed segment.
#[derive(Debug)]
pub struct SegmentScrub {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    walker: Walker,
    len: u64,
    /// Offsets that follow lie in `next..reach`.
    next: Offset,
    reach: Offset,
    ended: bool,
}

/// What a step came to.
#[derive(Debug)]
pub enum Scrubbed {
    /// So many bytes were read and are sound; there is more.
    Sound(u64),
    /// [`StorageError::Damaged`], with file, byte and offset; so many bytes were read. The walk goes on behind it where it can.
    Damage(u64, StorageError),
    /// That was all; so many bytes were read.
    End(u64),
}

impl SegmentScrub {
    /// `None`: it is gone.
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        (base, reach): (Offset, Offset),
    ) -> Result<Option<Self>, DiskError> {
        let path = offset_path(dir, base, LOG);
        let file = match disk.open(&path, OpenMode::Read) {
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        let len = file.len()?;
        let walker = Walker::new(file, 0, len, true);
        Ok(Some(Self { disk: disk.clone(), path, walker, len, next: base, reach, ended: false }))
    }

    /// Checks batches until about `bytes_max` were read, or one is damaged.
    pub fn step(&mut self, bytes_max: u64) -> Result<Scrubbed, DiskError> {
        let mut read = 0;
        while !self.ended && read < bytes_max {
            let (position, what) = match self.walker.step()? {
                Step::Batch { position, header, bytes } => {
                    read += bytes.len() as u64;
                    let verdict = self.judge(&header, &bytes);
                    let Some(what) = verdict else {
                        self.next = header.next_offset();
                        continue;
                    };
                    (position, what)
                }
                Step::End => break,
                // Nothing says where the next batch begins.
                Step::Bad { position, why } => {
                    self.ended = true;
                    (position, why)
                }
            };
            if !self.is_damaged_still(position)? {
                break;
            }
            let (file, offset) = (self.path.clone(), self.next);
            return Ok(Scrubbed::Damage(read, StorageError::Damaged { file, position, offset, what }));
        }
        if read < bytes_max {
            self.ended = true;
        }
        Ok(if self.ended { Scrubbed::End(read) } else { Scrubbed::Sound(read) })
    }

    fn judge(&self, header: &BatchHeader, bytes: &[u8]) -> Option<&'static str> {
        if !header.checksum_is_right(bytes) {
            return Some("its checksum is wrong");
        }
        let follows = header.base_offset >= self.next && header.last_offset < self.reach;
        (!follows).then_some("its offset does not follow")
    }

    /// Whether the segment is still there as it was, and still damaged.
    fn is_damaged_still(&self, position: u64) -> Result<bool, DiskError> {
        let file = match self.disk.open(&self.path, OpenMode::Read) {
            Err(error) if error.is_not_found() => return Ok(false),
            file => file?,
        };
        if file.len()? != self.len {
            return Ok(false);
        }
        match Walker::new(file, position, self.len, true).step()? {
            Step::Batch { header, bytes, .. } => Ok(self.judge(&header, &bytes).is_some()),
            Step::Bad { .. } => Ok(true),
            Step::End => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests;
