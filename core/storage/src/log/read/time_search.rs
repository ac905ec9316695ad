//! Finding records by time, for ListOffsets.
//!
//! A batch is found by its header, and its checksum is compared. What does not come out of it afterwards is not damage:
//! a client wrote it so.
//!
//! Source: Kafka `UnifiedLog.fetchOffsetByTimestamp`, `LogSegment.findOffsetByTimestamp`, KIP-79, KIP-734.

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use barnabas_wire::records::{Batch, BatchError, Message};
use bytes::Bytes;

use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::tail::Tail;
use crate::log::{FoundTimestamp, Log};
use crate::segment::LargestTimestamp;
use crate::segment::batch::BatchHeader;

/// A batch whose header says that it may hold the record that is looked for. To find that record in it, its records are
/// inflated and walked ([`TimedBatch::look`]), on whichever thread may take that long.
#[derive(Debug, Clone)]
pub struct TimedBatch {
    header: BatchHeader,
    bytes: Bytes,
    timestamp: TimestampMs,
    from: Offset,
}

impl TimedBatch {
    /// Where to go on where the batch does not hold the record: a producer's newest timestamp is believed, and may be
    /// wrong.
    pub fn next(&self) -> (TimestampMs, Offset) {
        (self.timestamp, self.header.last_offset.plus(1).max(self.from))
    }

    /// The batch's first offset, or the one that was asked for where that is higher.
    pub fn first_offset(&self) -> Offset {
        // Old formats do not name their first offset.
        let base = if self.header.magic < 2 { Offset::ZERO } else { self.header.base_offset };
        base.max(self.from)
    }

    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The first record at or past the offset, with at least the timestamp, that was asked for.
    ///
    /// # Errors
    /// Records that cannot be read: the batch is as it was produced, since its checksum is right.
    /// [`BatchError::TooLarge`]: it inflates to more than `inflated_max` bytes.
    pub fn look(&self, inflated_max: usize) -> Result<Option<FoundTimestamp>, BatchError> {
        let matches = |offset: Offset, time: TimestampMs| offset >= self.from && time >= self.timestamp;
        let found =
            |offset, timestamp, leader_epoch| Some(FoundTimestamp { offset, timestamp, leader_epoch });
        if self.header.magic < 2 {
            for message in Message::parse(self.bytes.clone())?.open_within(inflated_max)? {
                let message = message?;
                if matches(message.offset, message.timestamp) {
                    return Ok(found(message.offset, message.timestamp, LeaderEpoch::NONE));
                }
            }
            return Ok(None);
        }
        for record in &Batch::new(self.bytes.clone())?.records_within(inflated_max)? {
            let record = record?;
            if matches(record.offset, record.timestamp) {
                return Ok(found(record.offset, record.timestamp, self.header.leader_epoch));
            }
        }
        Ok(None)
    }
}

impl Log {
    /// The first record at or past `from` whose timestamp is at least `timestamp`. Where timestamps do not rise,
    /// Kafka's answer: the first in the order of offsets.
    ///
    /// As core/replica's callers search, batch by batch, by [`Log::batch_for_timestamp`].
    ///
    /// # Errors
    /// [`StorageError::Unreadable`]: a batch that may hold it was produced with contents that cannot be read.
    #[cfg(test)]
    pub fn offset_for_timestamp(
        &mut self,
        files: &mut FilePool,
        timestamp: TimestampMs,
        from: Offset,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
        let batch = self.batch_for_timestamp(files, timestamp, from)?;
        self.look(files, batch)
    }

    /// The first record that has the largest timestamp of the log.
    ///
    /// # Errors
    /// As [`Log::offset_for_timestamp`].
    #[cfg(test)]
    pub fn offset_of_max_timestamp(
        &mut self,
        files: &mut FilePool,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
        let batch = self.batch_of_max_timestamp(files)?;
        self.look(files, batch)
    }

    #[cfg(test)]
    fn look(
        &mut self,
        files: &mut FilePool,
        mut batch: Option<TimedBatch>,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
        while let Some(candidate) = batch {
            let unreadable = |_| StorageError::Unreadable { offset: candidate.header.base_offset };
            if let Some(found) = candidate.look(usize::MAX).map_err(unreadable)? {
                return Ok(Some(found));
            }
            let (timestamp, from) = candidate.next();
            batch = self.batch_for_timestamp(files, timestamp, from)?;
        }
        Ok(None)
    }

    /// The first batch with an offset at or past `from` that says of itself that it holds a record of `timestamp` or
    /// later. Its checksum is right.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]: its bytes are not what was written.
    pub fn batch_for_timestamp(
        &mut self,
        files: &mut FilePool,
        timestamp: TimestampMs,
        from: Offset,
    ) -> Result<Option<TimedBatch>, StorageError> {
        let from = from.max(self.start);
        let first = self.segment_of(from).unwrap_or(0);
        for at in first..self.segments.len() {
            if self.newest_time(files, at)? < timestamp {
                continue;
            }
            let found = self.search_segment(files, at, timestamp, from)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(self.search_staged(timestamp, from))
    }

    fn search_staged(&self, timestamp: TimestampMs, from: Offset) -> Option<TimedBatch> {
        let mut batches = self.staged().flat_map(Tail::staged_batches);
        let found =
            batches.find(|(header, _)| header.max_timestamp >= timestamp && header.last_offset >= from);
        found.map(|(header, bytes)| TimedBatch { header, bytes, timestamp, from })
    }

    /// The first batch that says of itself that it holds the largest timestamp of the log.
    ///
    /// # Errors
    /// As [`Log::batch_for_timestamp`].
    pub fn batch_of_max_timestamp(
        &mut self,
        files: &mut FilePool,
    ) -> Result<Option<TimedBatch>, StorageError> {
        let mut best: Option<(usize, LargestTimestamp)> = None;
        for at in 0..self.segments.len() {
            let mut largest = self.largest_timestamp(files, at)?;
            self.segments[at].largest = Some(largest);
            if largest.offset < self.start {
                largest = self.largest_from_start(files, at)?;
            }
            if largest.timestamp.0 >= 0 && best.is_none_or(|(_, known)| largest.timestamp > known.timestamp) {
                best = Some((at, largest));
            }
        }
        let staged = self.staged().flat_map(Tail::staged_batches).map(|(header, _)| header);
        let times =
            staged.filter(|header| header.last_offset >= self.start).map(|header| header.max_timestamp);
        let newest = times.max().unwrap_or(TimestampMs::NONE);
        if newest.0 >= 0 && best.is_none_or(|(_, known)| newest > known.timestamp) {
            return Ok(self.search_staged(newest, self.start));
        }
        let Some((at, largest)) = best else { return Ok(None) };
        // Looked for from the front of the log's visible part, as records below the start may hold the timestamp.
        self.search_segment(files, at, largest.timestamp, self.start)
    }

    /// The largest timestamp of the segment's batches that the log's start has left: it was raised past the batch that
    /// holds the segment's own.
    fn largest_from_start(
        &mut self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<LargestTimestamp, StorageError> {
        let base = self.segments[at].base;
        let mut largest = LargestTimestamp { timestamp: TimestampMs::NONE, offset: base };
        let position = self.begin_looking(files, at, self.start.max(base))?;
        let mut walker = self.walker(files, at, position, false)?;
        while let Some((_, header, _)) = self.next_batch(&mut walker, at)? {
            if header.last_offset >= self.start && header.max_timestamp > largest.timestamp {
                largest = LargestTimestamp { timestamp: header.max_timestamp, offset: header.last_offset };
            }
        }
        Ok(largest)
    }

    fn search_segment(
        &mut self,
        files: &mut FilePool,
        at: usize,
        timestamp: TimestampMs,
        from: Offset,
    ) -> Result<Option<TimedBatch>, StorageError> {
        let base = self.segments[at].base;
        let begin = self.time_indexed_offset(files, at, timestamp)?.max(from);
        let position = self.begin_looking(files, at, begin.max(base))?;
        let mut walker = self.walker(files, at, position, false)?;
        while let Some((position, header, _)) = self.next_batch(&mut walker, at)? {
            if header.max_timestamp < timestamp || header.last_offset < from {
                continue;
            }
            let file = self.file(files, base, FileKind::Log)?;
            let bytes = file.read_bytes(position.into(), header.size as usize)?;
            self.sound_front(files, at, position, &bytes, header.last_offset.plus(1))?;
            return Ok(Some(TimedBatch { header, bytes, timestamp, from }));
        }
        Ok(None)
    }

    /// An offset up to which no batch of the segment has a timestamp past `timestamp`, as the time index says.
    fn time_indexed_offset(
        &self,
        files: &mut FilePool,
        at: usize,
        timestamp: TimestampMs,
    ) -> Result<Offset, StorageError> {
        let base = self.segments[at].base;
        let file = self.existing_file(files, base, FileKind::TimeIndex)?;
        let sealed;
        let entries = if at + 1 == self.segments.len() {
            &self.active.times
        } else {
            sealed = self.sealed_entries::<12>(files, base, FileKind::TimeIndex)?;
            &sealed
        };
        // Strictly below: the entry names the last offset of the first batch that has its timestamp, and that batch
        // counts.
        let below = |entry: &[u8; 12]| LargestTimestamp::decode(*entry, base).timestamp < timestamp;
        let count = entries.count_while(file.as_deref(), below)?;
        let Some(last) = count.checked_sub(1) else { return Ok(base) };
        let Some(entry) = entries.get(file.as_deref(), last)? else { return Ok(base) };
        let entry = LargestTimestamp::decode(entry, base);
        // Believed if the batch that it names has that timestamp: a damaged entry could lead past what is looked for.
        let named = self.find_batch(files, at, entry.offset)?;
        let right = named.is_some_and(|(_, header)| header.max_timestamp == entry.timestamp);
        Ok(if right { entry.offset } else { base })
    }
}
