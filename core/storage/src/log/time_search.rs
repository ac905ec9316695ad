//! Finding records by time, for ListOffsets.
//!
//! Source: Kafka `UnifiedLog.fetchOffsetByTimestamp`, `LogSegment.findOffsetByTimestamp`, KIP-79, KIP-734.

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};
use barnabas_wire::records::{Batch, BatchError, Message};
use bytes::Bytes;

use super::tail::Tail;
use super::{FoundTimestamp, Log};
use crate::batch::BatchHeader;
use crate::error::StorageError;
use crate::file_pool::{FileKind, FilePool};
use crate::segment::LargestTimestamp;

impl Log {
    /// The first record at or past `from` whose timestamp is at least `timestamp`.
    ///
    /// Costs the decoding of one batch. Where timestamps do not rise, Kafka's answer: the first in the order of offsets.
    pub fn offset_for_timestamp(
        &mut self,
        files: &mut FilePool,
        timestamp: TimestampMs,
        from: Offset,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
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

    fn search_staged(&self, timestamp: TimestampMs, from: Offset) -> Option<FoundTimestamp> {
        let batches = self.staged().flat_map(Tail::staged_batches);
        let mut wanted =
            batches.filter(|(header, _)| header.max_timestamp >= timestamp && header.last_offset >= from);
        // They were validated when they were staged: what cannot be read holds no record to find.
        wanted.find_map(|(header, bytes)| first_record_since(bytes, &header, timestamp, from).ok().flatten())
    }

    /// The first record that has the largest timestamp of the log.
    pub fn offset_of_max_timestamp(
        &mut self,
        files: &mut FilePool,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
        let mut best: Option<(usize, LargestTimestamp)> = None;
        for at in 0..self.segments.len() {
            let largest = self.largest_timestamp(files, at)?;
            self.segments[at].largest = Some(largest);
            if largest.timestamp.0 >= 0 && best.is_none_or(|(_, known)| largest.timestamp > known.timestamp) {
                best = Some((at, largest));
            }
        }
        let times = self.staged().flat_map(Tail::staged_batches).map(|(header, _)| header.max_timestamp);
        let newest = times.max().unwrap_or(TimestampMs::NONE);
        if newest.0 >= 0 && best.is_none_or(|(_, known)| newest > known.timestamp) {
            return Ok(self.search_staged(newest, self.start));
        }
        let Some((at, largest)) = best else { return Ok(None) };
        // Looked for from the front of the log's visible part, as records below the start may hold the timestamp.
        self.search_segment(files, at, largest.timestamp, self.start)
    }

    fn search_segment(
        &self,
        files: &mut FilePool,
        at: usize,
        timestamp: TimestampMs,
        from: Offset,
    ) -> Result<Option<FoundTimestamp>, StorageError> {
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
            let found = first_record_since(bytes, &header, timestamp, from).map_err(|_| {
                self.damaged(at, position.into(), header.base_offset, "its records cannot be read")
            })?;
            if found.is_some() {
                return Ok(found);
            }
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
        // Strictly below: the entry names the last offset of the first batch that has its timestamp, and that batch counts.
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

/// The first record of a batch at or past `from` with at least `timestamp`.
fn first_record_since(
    bytes: Bytes,
    header: &BatchHeader,
    timestamp: TimestampMs,
    from: Offset,
) -> Result<Option<FoundTimestamp>, BatchError> {
    let matches = |offset: Offset, time: TimestampMs| offset >= from && time >= timestamp;
    let found = |offset, timestamp, leader_epoch| Some(FoundTimestamp { offset, timestamp, leader_epoch });
    if header.magic < 2 {
        for message in Message::parse(bytes)?.open()? {
            let message = message?;
            if matches(message.offset, message.timestamp) {
                return Ok(found(message.offset, message.timestamp, LeaderEpoch::NONE));
            }
        }
        return Ok(None);
    }
    for record in &Batch::new(bytes)?.records()? {
        let record = record?;
        if matches(record.offset, record.timestamp) {
            return Ok(found(record.offset, record.timestamp, header.leader_epoch));
        }
    }
    Ok(None)
}
