//! Checks segments batch by batch, a bounded piece at a time, and says what is damaged, and what is missing between one
//! segment and the next. Changes nothing, ever.
//!
//! Of the newest segment, which may be written to, only what lies below the recovery point is looked at: past it, what
//! is not whole may be a write under way, or a tail that the next opening cuts.
//!
//! Works on files alone: the log's owner goes on meanwhile, and a segment may be deleted, truncated or replaced under
//! the walk. What looks damaged is therefore asked for again, by its name, before it is reported
//! ([`SegmentScrub::step`]): a file that is gone or has another length was given up, not damaged.
//!
//! A start looks first at what was written to after the last process vouched for it ([`vouched_at`],
//! [`changed_segments`]): another program has written there, or a crash came between. Those are few, and the likeliest
//! to be damaged.
//!
//! Who decides when and how fast: shell/broker/src/upkeep/scrub.rs. What else is checked when: docs/DAMAGE.md.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset, TimestampMs};

use crate::checkpoints::clean_shutdown;
use crate::checkpoints::offset_checkpoint;
use crate::disk::small_file;
use crate::disk::{Disk, DiskError, OpenMode};
use crate::error::StorageError;
use crate::partition_files::epoch_file;
use crate::segment::batch::BatchHeader;
use crate::segment::walker::{NOT_NEXT, Step, WRONG_CHECKSUM, WRONG_EPOCH, Walked, Walker};
use crate::segment::{LOG, offset_path, parse_offset_name};

/// One segment as a look at the directory found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    pub base: Offset,
    /// Where the next one begins. `None`: it is the newest.
    pub next: Option<Offset>,
}

/// The segments of a partition's directory, by base offset.
pub fn segments(disk: &dyn Disk, dir: &Path) -> Result<Vec<Listed>, DiskError> {
    let names = match disk.list(dir) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        names => names?,
    };
    let parsed = names.iter().filter_map(|entry| parse_offset_name(&entry.name));
    let mut bases: Vec<Offset> = parsed.filter(|(_, suffix)| *suffix == LOG).map(|(base, _)| base).collect();
    bases.sort_unstable();
    Ok(bases
        .iter()
        .enumerate()
        .map(|(at, &base)| Listed { base, next: bases.get(at + 1).copied() })
        .collect())
}

/// A segment, and when it was last written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    pub segment: Listed,
    pub modified: TimestampMs,
}

/// The segments that were written to after `since`, by base offset.
///
/// # Errors
/// The directory cannot be read.
pub fn changed_segments(disk: &dyn Disk, dir: &Path, since: TimestampMs) -> Result<Vec<Changed>, DiskError> {
    let mut changed = Vec::new();
    for segment in segments(disk, dir)? {
        match disk.stat(&offset_path(dir, segment.base, LOG))? {
            Some(stat) if stat.modified > since => changed.push(Changed { segment, modified: stat.modified }),
            _ => {}
        }
    }
    Ok(changed)
}

/// When the last process vouched for the files of a log directory: with its clean stop, or with its last checkpoint of
/// recovery points. `None`: no process has done either. To be asked before this one begins to write
/// ([`crate::LogDir::begin`]).
///
/// # Errors
/// The directory cannot be read.
pub fn vouched_at(disk: &dyn Disk, log_dir: &Path) -> Result<Option<TimestampMs>, DiskError> {
    for name in [clean_shutdown::FILE_NAME, offset_checkpoint::RECOVERY_POINT] {
        if let Some(stat) = disk.stat(&log_dir.join(name))? {
            return Ok(Some(stat.modified));
        }
    }
    Ok(None)
}

/// Which leader epochs the batches of a log are of, below an offset.
#[derive(Debug, Clone, Default)]
pub struct KnownEpochs {
    epochs: LeaderEpochs,
    below: Offset,
}

impl KnownEpochs {
    /// `checkpointed`: the log's recovery point in the checkpoint file, which was read before. The epochs that it rests
    /// on are written down by then.
    ///
    /// # Errors
    /// The file cannot be read. One that is not there, or damaged, says nothing.
    pub fn read(disk: &dyn Disk, dir: &Path, checkpointed: Offset) -> Result<Self, StorageError> {
        let text = small_file::read(disk, &dir.join(epoch_file::FILE_NAME))?;
        let epochs = text.and_then(|text| epoch_file::parse(&text).ok()).unwrap_or_default();
        Ok(Self { epochs, below: checkpointed })
    }

    /// As the log itself knows them.
    pub(crate) fn of(epochs: LeaderEpochs, below: Offset) -> Self {
        Self { epochs, below }
    }

    fn contradict(&self, walked: &Walked, behind: Option<LeaderEpoch>) -> bool {
        walked.header.last_offset < self.below && walked.has_wrong_epoch(&self.epochs, behind)
    }
}

/// The walk over one segment.
#[derive(Debug)]
pub struct SegmentScrub {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    walker: Walker,
    len: u64,
    /// Offsets that follow lie in `next..reach`.
    next: Offset,
    reach: Offset,
    /// In the newest segment: how far it is looked at.
    until: Option<Offset>,
    /// Nothing was compacted: where the next segment begins, the last batch ends, unless something is missing.
    has_no_holes: bool,
    /// The next segment was synced, too, so that it can be said to be missing.
    may_miss_next: bool,
    /// Where a batch left a gap before it that the one behind it has not borne out yet: its position, and the offset
    /// that was expected.
    left_gap: Option<(u64, Offset)>,
    epochs: KnownEpochs,
    /// The newest batch, whose leader epoch the next one bears out.
    walked: Option<Walked>,
    is_damaged: bool,
    ended: bool,
}

/// What looks damaged.
#[derive(Debug)]
struct Found {
    position: u64,
    offset: Offset,
    what: &'static str,
    /// It is whole, and the one behind it does not follow.
    left_gap: bool,
    /// It is of this leader epoch, and should be of another one.
    epoch: Option<LeaderEpoch>,
}

/// What a step came to.
#[derive(Debug)]
pub enum Scrubbed {
    /// So many bytes were read and are sound; there is more.
    Sound(u64),
    /// [`StorageError::Damaged`], with file, byte and offset; so many bytes were read. The walk goes on behind it where
    /// it can.
    Damage(u64, StorageError),
    /// That was all; so many bytes were read.
    End(u64),
}

impl SegmentScrub {
    /// `synced`: the recovery point of the log. `has_no_holes`: nothing was ever compacted in it.
    ///
    /// `None`: it is gone.
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        listed: Listed,
        synced: Offset,
        has_no_holes: bool,
    ) -> Result<Option<Self>, DiskError> {
        let Listed { base, next } = listed;
        let path = offset_path(dir, base, LOG);
        let file = match disk.open(&path, OpenMode::Read) {
            Err(error) if error.is_not_found() => return Ok(None),
            file => file?,
        };
        let len = file.len()?;
        let walker = Walker::new(file, 0, len, true);
        Ok(Some(Self {
            disk: disk.clone(),
            path,
            walker,
            len,
            next: base,
            reach: next.unwrap_or(Offset(i64::MAX)),
            until: next.is_none().then_some(synced),
            has_no_holes,
            may_miss_next: has_no_holes && next.is_some_and(|next| next <= synced),
            left_gap: None,
            epochs: KnownEpochs::default(),
            walked: None,
            is_damaged: false,
            ended: false,
        }))
    }

    /// Compares the leader epochs of batches, too, which their checksums do not cover.
    pub fn with_epochs(self, epochs: KnownEpochs) -> Self {
        Self { epochs, ..self }
    }

    /// Checks batches until about `bytes_max` were read, or one is damaged.
    pub fn step(&mut self, bytes_max: u64) -> Result<Scrubbed, DiskError> {
        let mut read = 0;
        while !self.ended && read < bytes_max {
            let is_past = self.until.is_some_and(|until| self.next >= until);
            let (found, is_last) = if is_past && self.left_gap.is_none() {
                (self.wrong_epoch(None), true)
            } else {
                self.look(is_past, &mut read)?
            };
            if is_last {
                self.ended = true;
            }
            if let Some(found) = found {
                if !self.is_damaged_still(&found)? {
                    self.ended = true;
                    break;
                }
                self.is_damaged = true;
                self.left_gap = None;
                let Found { position, offset, what, .. } = found;
                let file = self.path.clone();
                return Ok(Scrubbed::Damage(read, StorageError::Damaged { file, position, offset, what }));
            }
            if is_last
                && !is_past
                && let Some(hole) = self.hole()?
            {
                return Ok(Scrubbed::Damage(read, hole));
            }
        }
        Ok(if self.ended { Scrubbed::End(read) } else { Scrubbed::Sound(read) })
    }

    /// The next batch: what is damaged, and whether nothing can be read behind it.
    fn look(&mut self, is_past: bool, read: &mut u64) -> Result<(Option<Found>, bool), DiskError> {
        Ok(match self.walker.step()? {
            Step::Batch { position, header, bytes } => {
                *read += bytes.len() as u64;
                let found = self.judge(position, &header, &bytes, is_past);
                let found = found.or_else(|| self.wrong_epoch((!is_past).then_some(header.leader_epoch)));
                if found.as_ref().is_none_or(|found| found.left_gap || found.epoch.is_some()) {
                    self.left_gap = (header.base_offset > self.next).then_some((position, self.next));
                    self.next = header.next_offset();
                    let first = || Walked::first(position as u32, header, header.base_offset);
                    let walked = self.walked.as_ref();
                    self.walked =
                        Some(walked.map_or_else(first, |before| before.then(position as u32, header)));
                }
                (found, false)
            }
            Step::End => (self.wrong_epoch(None), true),
            Step::Bad { .. } if is_past => (self.wrong_epoch(None), true),
            // Nothing says where the next batch begins.
            Step::Bad { position, why } => {
                (Some(Found { position, offset: self.next, what: why, left_gap: false, epoch: None }), true)
            }
        })
    }

    /// The newest batch, where its leader epoch is wrong. `behind`: that of the next one.
    fn wrong_epoch(&mut self, behind: Option<LeaderEpoch>) -> Option<Found> {
        let walked = self.walked.take_if(|walked| self.epochs.contradict(walked, behind))?;
        let (position, offset) = (walked.position.into(), walked.header.base_offset);
        let epoch = Some(walked.header.leader_epoch);
        Some(Found { position, offset, what: WRONG_EPOCH, left_gap: false, epoch })
    }

    /// At the segment's end: the segment that should come next, where neither it nor its deletion is to be seen.
    fn hole(&self) -> Result<Option<StorageError>, DiskError> {
        let missing = offset_path(self.dir(), self.next, LOG);
        if !self.may_miss_next || self.is_damaged || self.next >= self.reach {
            return Ok(None);
        }
        // A log that is cut, or given up, takes its newest segments first; and the name may have come since.
        let after = offset_path(self.dir(), self.reach, LOG);
        let is_there = |path: &Path| Ok(self.disk.stat(path)?.is_some());
        if is_there(&missing)? || !is_there(&after)? {
            return Ok(None);
        }
        match self.disk.stat(&self.path)? {
            Some(stat) if stat.len == self.len => {}
            _ => return Ok(None),
        }
        let what = "it is missing: nothing deleted it, and the offsets from there on are in no other segment";
        Ok(Some(StorageError::Damaged { file: missing, position: 0, offset: self.next, what }))
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Offsets lie outside the checksum: of two batches that do not follow, the one that left a gap before it is the
    /// wrong one. `is_past`: this one may be a write under way, and speaks of the one before it alone.
    fn judge(&self, position: u64, header: &BatchHeader, bytes: &[u8], is_past: bool) -> Option<Found> {
        // Behind a damaged one it is not known what comes next.
        let is_sure = self.has_no_holes && !self.is_damaged;
        // Where compaction leaves gaps, too, the later one is to overlap it whole.
        let overlaps = if is_sure { header.base_offset } else { header.last_offset };
        if let Some((position, offset)) = self.left_gap
            && overlaps < self.next
        {
            return Some(Found { position, offset, what: NOT_NEXT, left_gap: true, epoch: None });
        }
        let (offset, left_gap, epoch) = (self.next, false, None);
        if is_past {
            return None;
        }
        if !header.checksum_is_right(bytes) {
            return Some(Found { position, offset, what: WRONG_CHECKSUM, left_gap, epoch });
        }
        let is_misplaced = |until| is_sure && header.is_misplaced(self.next, until);
        let follows = header.base_offset >= self.next
            && header.last_offset < self.reach
            && !self.until.is_some_and(is_misplaced);
        (!follows).then_some(Found { position, offset, what: NOT_NEXT, left_gap, epoch })
    }

    /// Whether the segment is still there as it was, and still damaged.
    fn is_damaged_still(&self, found: &Found) -> Result<bool, DiskError> {
        let file = match self.disk.open(&self.path, OpenMode::Read) {
            Err(error) if error.is_not_found() => return Ok(false),
            file => file?,
        };
        if file.len()? != self.len {
            return Ok(false);
        }
        let mut walker = Walker::new(file, found.position, self.len, true);
        match walker.step()? {
            Step::Batch { header: first, .. } if found.left_gap => {
                let behind = walker.step()?;
                Ok(matches!(behind, Step::Batch { header, .. } if header.last_offset < first.next_offset()))
            }
            Step::Batch { header, .. } if found.epoch.is_some() => {
                Ok(found.epoch == Some(header.leader_epoch))
            }
            Step::Batch { position, header, bytes } => {
                Ok(self.judge(position, &header, &bytes, false).is_some())
            }
            Step::Bad { .. } => Ok(true),
            Step::End => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests;
