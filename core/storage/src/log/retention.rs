//! Retention: whole segments go from the front, by start offset, by size, by time.
//!
//! Source: Kafka `UnifiedLog.deleteOldSegments`, `deletableSegments`.

pub(in crate::log) mod front;
pub(in crate::log) mod replace;
pub(in crate::log) mod truncate;

use barnabas_base::{Offset, TimestampMs};

use super::Log;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::segment::DelayedDelete;
use crate::segment::LargestTimestamp;
use crate::segment::index_file::IndexEntries;

impl Log {
    /// Applies retention by start offset, size and time to segments that lie below `high_watermark`.
    ///
    /// Without `delete` in `cleanup.policy` only segments below the start go. If the active segment has to go as well,
    /// an empty one is begun behind it first. The start moves up to the first segment that stays.
    pub fn delete_old_segments(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        self.check_writable()?;
        self.attempt(|log| log.remove_needless_name(files))?;
        let mut count = self.count_old(files, now, high_watermark)?;
        if count > 0 && count == self.segments.len() {
            let begun = self.attempt(|log| log.begin_segment(files, log.segment_end, now));
            match begun {
                // There is no room for an empty one: the active segment stays.
                Err(error) if error.is_passing() && count > 1 => count -= 1,
                begun => begun?,
            }
        }
        if count == 0 {
            return Ok(None);
        }
        self.change(|log| log.delete_first(files, count, now))
    }

    /// Where the segments would begin after [`Log::delete_old_segments`]; `None`: nothing would go.
    pub fn would_begin_at(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<Option<Offset>, StorageError> {
        let count = self.count_old(files, now, high_watermark)?;
        Ok((count > 0).then(|| self.segments.get(count).map_or(self.segment_end, |stays| stays.base)))
    }

    fn count_old(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<usize, StorageError> {
        if self.segments.is_empty() {
            return Ok(0);
        }
        let mut count = self.below_start(high_watermark);
        if self.config.cleanup.delete {
            count += self.over_size(count, high_watermark);
            count += self.over_age(files, count, now, high_watermark)?;
        }
        Ok(count)
    }

    /// Whether the segment at `at` lies below the high watermark and holds anything.
    ///
    /// The producers' snapshot at the next one's base is synced with that one's first records: without it a crash would
    /// forget what the producers last wrote here.
    fn may_go(&self, at: usize, high_watermark: Offset) -> bool {
        match self.segments.get(at + 1) {
            Some(next) => high_watermark >= next.base && (self.recovery_point > next.base || next.size == 0),
            None => high_watermark >= self.segment_end && self.segments[at].size > 0,
        }
    }

    fn below_start(&self, high_watermark: Offset) -> usize {
        let next_bases = self.segments.iter().skip(1).map(|segment| segment.base);
        let below = next_bases.take_while(|next| *next <= self.start).count();
        (0..below).take_while(|at| self.may_go(*at, high_watermark)).count()
    }

    fn over_size(&self, first: usize, high_watermark: Offset) -> usize {
        if self.config.retention_bytes < 0 {
            return 0;
        }
        let sizes = self.segments[first..].iter().map(|segment| i64::from(segment.size));
        // What is staged counts, and stays.
        let staged = self.staged_bytes() as i64;
        let mut over = sizes.sum::<i64>() + staged - self.config.retention_bytes;
        let mut count = 0;
        for at in first..self.segments.len() {
            over -= i64::from(self.segments[at].size);
            if over < 0 || !self.may_go(at, high_watermark) {
                break;
            }
            count += 1;
        }
        count
    }

    fn over_age(
        &mut self,
        files: &mut FilePool,
        first: usize,
        now: TimestampMs,
        high_watermark: Offset,
    ) -> Result<usize, StorageError> {
        let retention = self.config.retention_ms.0;
        if retention < 0 {
            return Ok(0);
        }
        let mut count = 0;
        for at in first..self.segments.len() {
            if !self.may_go(at, high_watermark) {
                break;
            }
            let newest = self.newest_time(files, at)?;
            if now.0.saturating_sub(newest.0) <= retention {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    /// The segment's largest timestamp; where its records have none, when its file was last written.
    pub(super) fn newest_time(
        &mut self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<TimestampMs, StorageError> {
        let largest = self.largest_timestamp(files, at)?;
        self.segments[at].largest = Some(largest);
        if largest.timestamp.0 >= 0 {
            return Ok(largest.timestamp);
        }
        let path = self.path(self.segments[at].base, FileKind::Log);
        let stat = files.disk().stat(&path)?;
        Ok(stat.map_or(self.segments[at].created, |stat| stat.modified))
    }

    fn delete_first(
        &mut self,
        files: &mut FilePool,
        count: usize,
        now: TimestampMs,
    ) -> Result<Option<DelayedDelete>, StorageError> {
        let gone: Vec<Offset> = self.segments.drain(..count).map(|segment| segment.base).collect();
        self.hints = [None; 2];
        self.forget_sound();
        let first = self.segments[0].base;
        self.advance_start(first);
        self.say_what_goes(files, gone[0], first)?;
        self.set_aside(files, &gone, now)
    }

    /// The largest timestamp of a segment, and the last offset of the first batch that has it.
    ///
    /// What the time index ends with is believed if the batch that it names has that timestamp, so that no segment goes
    /// on the word of a damaged index; otherwise the batches are asked. What was appended after the last entry is asked
    /// in any case.
    pub(super) fn largest_timestamp(
        &self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<LargestTimestamp, StorageError> {
        let segment = self.segments[at];
        if let Some(known) = segment.largest {
            return Ok(known);
        }
        let mut largest = LargestTimestamp { timestamp: TimestampMs::NONE, offset: segment.base };
        let mut from = 0;
        let times = self.sealed_entries::<12>(files, segment.base, FileKind::TimeIndex)?;
        let file = self.existing_file(files, segment.base, FileKind::TimeIndex)?;
        if let Some(last) = times.count().checked_sub(1)
            && let Some(entry) = times.get(file.as_deref(), last)?
        {
            let entry = LargestTimestamp::decode(entry, segment.base);
            if let Some((position, header)) = self.find_batch(files, at, entry.offset)?
                && header.max_timestamp == entry.timestamp
                && header.base_offset <= entry.offset
            {
                largest = entry;
                from = position;
            }
        }
        let mut walker = self.walker(files, at, from, false)?;
        while let Some((_, header, _)) = self.next_batch(&mut walker, at)? {
            if header.max_timestamp > largest.timestamp {
                largest = LargestTimestamp { timestamp: header.max_timestamp, offset: header.last_offset };
            }
        }
        Ok(largest)
    }

    /// The entries of an index whose file holds them all.
    pub(super) fn sealed_entries<const N: usize>(
        &self,
        files: &mut FilePool,
        base: Offset,
        kind: FileKind,
    ) -> Result<IndexEntries<N>, StorageError> {
        let bytes = match self.existing_file(files, base, kind)? {
            Some(file) => file.len()?,
            None => 0,
        };
        Ok(IndexEntries::in_file((bytes / N as u64) as u32))
    }
}
