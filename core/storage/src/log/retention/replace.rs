//! What compaction asks of a log, and its segments giving way to compacted ones.
//!
//! The cleaner (`crate::cleaner`) reads sealed segments by itself, on another thread, while the log continues.
//! [`Log::log_to_clean`] names what it may clean, and [`Log::replace_segments`] puts its segments in place: only
//! renames, so that the log's owner is not blocked.
//!
//! The renames, each of which may be the last before a crash (names within one directory survive in their order):
//! 1. `.cleaned` → `.swap`, the newest segment first. As long as one `.cleaned` is left, opening undoes all of it.
//! 2. the old segments' files → `.deleted`. From here on opening completes the replacement: what a `.swap` covers goes.
//! 3. `.swap` → the final names.
//!
//! The cleaner has synced contents and the `.cleaned` names. The thread that syncs the log syncs the directory;
//! `cleaner-offset-checkpoint` must not be written before that.
//!
//! Source: Kafka `LocalLog.replaceSegments`, `LogCleanerManager.cleanableOffsets`.

use std::path::{Path, PathBuf};

use barnabas_base::{Offset, TimestampMs};

use crate::cleaner::{CleanTicket, CleanedSegment, LogToClean, Replaced, Replacement, SegmentToClean};
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::Log;
use crate::segment::DelayedDelete;
use crate::segment::walker::Step;
use crate::segment::{self, Segment, offset_path, parse_offset_name};

/// What bounds compaction from outside of the log.
#[derive(Debug, Clone, Copy)]
pub struct CleanBounds {
    /// From `cleaner-offset-checkpoint`: everything below was compacted. `None`: nothing was.
    pub clean_to: Option<Offset>,
    /// The last stable offset, which lies at or below the high watermark: nothing past it is touched.
    pub last_stable: Offset,
}

/// How much of a log waits for compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactionDebt {
    pub first_dirty: Offset,
    /// Where a segment begins that may not be cleaned yet.
    pub first_uncleanable: Offset,
    /// Bytes of segments that begin below `first_dirty`.
    pub clean_bytes: u64,
    /// Bytes of segments from there on, up to `first_uncleanable`.
    pub dirty_bytes: u64,
    /// Bytes past `first_uncleanable` in segments that are sealed: they wait for time or for a transaction's end.
    pub held_back_bytes: u64,
    /// Something dirty is older than `max.compaction.lag.ms`.
    pub is_overdue: bool,
    /// What `clean_to` said does not fit the log: it counts as never compacted.
    pub checkpoint_was_wrong: bool,
}

impl CompactionDebt {
    /// The dirty share of what can be cleaned.
    pub fn dirty_ratio(&self) -> f64 {
        let all = self.clean_bytes + self.dirty_bytes;
        if all == 0 { 0.0 } else { self.dirty_bytes as f64 / all as f64 }
    }
}

impl Log {
    /// What compaction would find. Asks for timestamps only where a lag is configured.
    pub fn compaction_debt(
        &mut self,
        files: &mut FilePool,
        bounds: CleanBounds,
        now: TimestampMs,
    ) -> Result<CompactionDebt, StorageError> {
        let start = self.start.max(self.first_segment_base());
        let clean_to = bounds.clean_to.unwrap_or(start);
        let checkpoint_was_wrong = clean_to < start || clean_to > self.end();
        let first_dirty = if checkpoint_was_wrong { start } else { clean_to };
        let last = self.segments.len().saturating_sub(1);
        let first_at = self.segment_of(first_dirty).unwrap_or(0);
        let mut until = self.whole_segments_below(bounds.last_stable.min(self.recovery_point));
        let min_lag = self.config.compaction.min_lag_ms.0;
        if min_lag > 0 {
            for at in first_at..until {
                if self.newest_time(files, at)?.0 > now.0.saturating_sub(min_lag) {
                    until = at;
                    break;
                }
            }
        }
        let bytes = |range: &[Segment]| range.iter().map(|segment| u64::from(segment.size)).sum::<u64>();
        let clean_at = self.segments[..last].partition_point(|segment| segment.base < first_dirty);
        let (clean_at, first_at) = (clean_at.min(until), first_at.min(until));
        let first_uncleanable = self.segments.get(until).map_or(self.end(), |segment| segment.base);
        // Kafka counts a segment that the clean point lies in on both sides.
        let mut debt = CompactionDebt {
            first_dirty,
            first_uncleanable: first_uncleanable.max(first_dirty),
            clean_bytes: bytes(&self.segments[..clean_at]),
            dirty_bytes: 0,
            held_back_bytes: bytes(&self.segments[until.max(first_at)..last.max(until)]),
            is_overdue: false,
            checkpoint_was_wrong,
        };
        if first_uncleanable > first_dirty {
            debt.dirty_bytes = bytes(&self.segments[first_at..until]);
            debt.is_overdue = self.is_overdue(files, first_at, now)?;
        }
        Ok(debt)
    }

    /// How many segments from the front on are sealed, hold only offsets below `bound`, and are all on disk.
    fn whole_segments_below(&self, bound: Offset) -> usize {
        let next_bases = self.segments.iter().skip(1).map(|segment| segment.base);
        next_bases.take_while(|next| *next <= bound).count()
    }

    /// Whether a dirty segment's first batch is older than `max.compaction.lag.ms`.
    ///
    /// # Source
    /// Kafka `LogCleanerManager.maxCompactionDelay`.
    fn is_overdue(
        &mut self,
        files: &mut FilePool,
        from: usize,
        now: TimestampMs,
    ) -> Result<bool, StorageError> {
        let max_lag = self.config.compaction.max_lag_ms.0.max(0);
        if max_lag == i64::MAX {
            return Ok(false);
        }
        for at in from..self.segments.len().saturating_sub(1) {
            if self.segments[at].first_timestamp.is_none() && self.segments[at].size > 0 {
                let mut walker = self.walker(files, at, 0, false)?;
                if let Step::Batch { header, .. } = walker.step()? {
                    self.segments[at].first_timestamp = Some(header.max_timestamp);
                }
            }
            let first = self.segments[at].first_timestamp.unwrap_or(TimestampMs::NONE);
            if first.0 > 0 && first.0 < now.0.saturating_sub(max_lag) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The segments of `debt`, for the cleaner. `None`: there are none.
    pub fn log_to_clean(
        &mut self,
        files: &mut FilePool,
        debt: &CompactionDebt,
    ) -> Result<Option<LogToClean>, StorageError> {
        self.check_writable()?;
        let until = self.segments.partition_point(|segment| segment.base < debt.first_uncleanable);
        let until = until.min(self.segments.len().saturating_sub(1));
        if until == 0 || debt.first_uncleanable <= debt.first_dirty {
            return Ok(None);
        }
        let first_base = self.segments[0].base;
        let aborted = self.aborted_transactions(files, first_base, debt.first_uncleanable)?;
        let to_clean = |at: usize| SegmentToClean {
            base: self.segments[at].base,
            next_base: self.segments[at + 1].base,
            size: self.segments[at].size,
        };
        Ok(Some(LogToClean {
            name: self.place.topic_partition.clone(),
            dir: self.place.dir(),
            config: self.config.clone(),
            first_dirty: debt.first_dirty,
            first_uncleanable: debt.first_uncleanable,
            segments: (0..until).map(to_clean).collect(),
            aborted,
            epoch_starts: self.epochs.entries().iter().skip(1).map(|entry| entry.start).collect(),
            ticket: CleanTicket { log: self.id, generation: self.generation },
        }))
    }

    /// Puts compacted segments in the place of those that they were made of. See the file's header.
    ///
    /// The files that go later are returned; what was renamed is dirty. [`Replaced::Stale`]: the log has been
    /// truncated, or some of the old segments are gone; nothing was changed, and the cleaner's files are of no use.
    pub fn replace_segments(
        &mut self,
        files: &mut FilePool,
        replacement: &Replacement,
        now: TimestampMs,
    ) -> Result<Replaced, StorageError> {
        self.check_writable()?;
        let Some(at) = self.still_there(replacement) else { return Ok(Replaced::Stale) };
        let dir = self.place.dir();
        let ready = remove_strangers(files, &dir, &replacement.new)
            .and_then(|()| ready_to_swap(files, &dir, &replacement.new));
        if let Err(error) = ready {
            // Nothing old was touched yet.
            self.failed |= !error.is_passing();
            return Err(error);
        }
        let gone = self.change(|log| log.swap_in(files, &dir, at, replacement, now))?;
        let due = now.plus(self.config.file_delete_delay_ms);
        Ok(Replaced::Done(DelayedDelete { due, files: gone }))
    }

    /// Where the segments begin that are to go, if they are what the cleaner read.
    fn still_there(&self, replacement: &Replacement) -> Option<usize> {
        let ticket = CleanTicket { log: self.id, generation: self.generation };
        let first = replacement.old.first()?.base;
        let at = self.segments.binary_search_by_key(&first, |segment| segment.base).ok()?;
        let known = self.segments[at..].iter().zip(self.segments[at..].iter().skip(1));
        let as_read = |((segment, next), old): ((&Segment, &Segment), &SegmentToClean)| {
            (segment.base, segment.size, next.base) == (old.base, old.size, old.next_base)
        };
        let same = known.zip(&replacement.old).take_while(|pair| as_read(*pair)).count();
        let is_same_log = ticket == replacement.ticket;
        (is_same_log && same == replacement.old.len()).then_some(at)
    }

    fn swap_in(
        &mut self,
        files: &mut FilePool,
        dir: &Path,
        at: usize,
        replacement: &Replacement,
        now: TimestampMs,
    ) -> Result<Vec<PathBuf>, StorageError> {
        let mut gone = Vec::new();
        let stays = |base: Offset| replacement.new.iter().any(|new| new.base == base);
        for base in replacement.old.iter().map(|old| old.base) {
            files.close_segment(self.id, base);
            self.forget_dirty(base);
            let suffixes = FileKind::ALL.iter().map(|kind| kind.suffix());
            // A snapshot at a base that stays is right still.
            let snapshot = (!stays(base)).then_some(segment::SNAPSHOT);
            for suffix in suffixes.chain(snapshot) {
                let path = offset_path(dir, base, suffix);
                let aside = offset_path(dir, base, &format!("{suffix}{}", segment::DELETED));
                if rename_if_there(files, &path, &aside)? {
                    gone.push(aside);
                }
            }
        }
        for new in &replacement.new {
            for kind in FileKind::ALL {
                let swap = offset_path(dir, new.base, &format!("{}{}", kind.suffix(), segment::SWAP));
                rename_if_there(files, &swap, &offset_path(dir, new.base, kind.suffix()))?;
            }
        }
        let taken = replacement.new.iter().map(|new| segment_of(new, now));
        self.segments.splice(at..at + replacement.old.len(), taken);
        self.hints = [None; 2];
        self.forget_sound();
        self.dirty.dir = true;
        // Aborted records may be gone from the segments, and so may the index's word that they are aborted.
        if let Some(tail) = &mut self.tail {
            tail.forget_touching(replacement.end());
        }
        self.drop_empty_tail();
        Ok(gone)
    }
}

fn segment_of(new: &CleanedSegment, now: TimestampMs) -> Segment {
    Segment {
        base: new.base,
        size: new.size,
        largest: Some(new.largest),
        first_timestamp: new.first_timestamp,
        created: now,
    }
}

/// Files of an earlier compaction that was given up: one `.cleaned` of it would undo this one after a crash, when the
/// old segments are gone already.
fn remove_strangers(files: &FilePool, dir: &Path, new: &[CleanedSegment]) -> Result<(), StorageError> {
    for entry in files.disk().list(dir)? {
        let Some((base, suffix)) = parse_offset_name(&entry.name) else { continue };
        let is_ours = suffix.ends_with(segment::CLEANED) && new.iter().any(|new| new.base == base);
        let is_half_done = suffix.ends_with(segment::CLEANED) || suffix.ends_with(segment::SWAP);
        if is_half_done && !is_ours {
            files.disk().remove_file(&dir.join(&entry.name))?;
        }
    }
    Ok(())
}

/// Step 1. Where the disk turns out to be full, nothing is left of the new segments.
fn ready_to_swap(files: &FilePool, dir: &Path, new: &[CleanedSegment]) -> Result<(), StorageError> {
    let all = || new.iter().rev().flat_map(|new| FileKind::ALL.map(|kind| (new.base, kind.suffix())));
    let path = |base, suffix, state| offset_path(dir, base, &format!("{suffix}{state}"));
    for (base, suffix) in all() {
        let (from, to) = (path(base, suffix, segment::CLEANED), path(base, suffix, segment::SWAP));
        if let Err(error) = rename_if_there(files, &from, &to) {
            // In this order: as long as the last `.cleaned` is there, no `.swap` counts.
            for state in [segment::SWAP, segment::CLEANED] {
                for (base, suffix) in all() {
                    files.disk().remove_file(&path(base, suffix, state))?;
                }
            }
            return Err(error);
        }
    }
    Ok(())
}

pub(super) fn rename_if_there(files: &FilePool, from: &Path, to: &Path) -> Result<bool, StorageError> {
    match files.disk().rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}
