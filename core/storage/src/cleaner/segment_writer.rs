//! A compacted segment being written: its records and its indexes, as `.cleaned` files.
//!
//! The indexes are those that `Log` would rebuild from the same batches. Everything is written before the first sync,
//! and nothing is readable under a segment's own name before the log swaps it in.

use std::path::PathBuf;
use std::sync::Arc;

use barnabas_base::{Offset, TimestampMs};

use super::types::{CleanError, CleanedSegment, LogToClean, Pace};
use crate::disk::file_pool::FileKind;
use crate::disk::{Disk, DiskError, DiskFile, OpenMode};
use crate::segment::batch::BatchHeader;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::transaction_index::AbortedTransaction;
use crate::segment::{self, LargestTimestamp, Segment, offset_path};

/// Bytes per write.
const PIECE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct SegmentWriter<'a> {
    disk: &'a dyn Disk,
    log: &'a LogToClean,
    segment: Segment,
    file: Arc<dyn DiskFile>,
    piece: Vec<u8>,
    written: u64,
    offsets: Vec<u8>,
    times: Vec<u8>,
    last_time: TimestampMs,
    since_entry: u32,
    aborted: Vec<AbortedTransaction>,
}

impl<'a> SegmentWriter<'a> {
    pub fn create(disk: &'a dyn Disk, log: &'a LogToClean, base: Offset) -> Result<Self, DiskError> {
        // What an earlier attempt left must not be taken for this one's.
        for kind in FileKind::ALL {
            disk.remove_file(&cleaned_path(log, base, kind))?;
        }
        let file = disk.open(&cleaned_path(log, base, FileKind::Log), OpenMode::Truncate)?;
        Ok(Self {
            disk,
            log,
            segment: Segment { created: TimestampMs::NONE, ..Segment::empty(base, TimestampMs::NONE) },
            file,
            piece: Vec::new(),
            written: 0,
            offsets: Vec::new(),
            times: Vec::new(),
            last_time: TimestampMs::NONE,
            since_entry: 0,
            aborted: Vec::new(),
        })
    }

    /// Whether a batch can still go in here: positions and relative offsets have 31 bits (KAFKA-20036).
    pub fn has_room(&self, header: &BatchHeader) -> bool {
        let bytes = u64::from(self.segment.size) + u64::from(header.size);
        bytes <= i32::MAX as u64 && self.segment.can_index(header.last_offset)
    }

    pub fn append(
        &mut self,
        header: &BatchHeader,
        bytes: &[u8],
        pace: &mut dyn Pace,
    ) -> Result<(), CleanError> {
        if pace.take(bytes.len()).is_break() {
            return Err(CleanError::Stopped);
        }
        self.account(header);
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.write_piece()?;
        }
        Ok(())
    }

    /// As `Log::account` does for a batch that is appended.
    fn account(&mut self, header: &BatchHeader) {
        let segment = &mut self.segment;
        let (position, base) = (segment.size, segment.base);
        if position == 0 {
            segment.first_timestamp = Some(header.max_timestamp);
        }
        let mut largest = largest(segment);
        if header.max_timestamp > largest.timestamp {
            largest = LargestTimestamp { timestamp: header.max_timestamp, offset: header.last_offset };
            segment.largest = Some(largest);
        }
        segment.size += header.size;
        if self.since_entry > self.log.config.index_interval_bytes {
            let entry = OffsetEntry { offset: header.last_offset, position };
            self.offsets.extend_from_slice(&entry.encode(base));
            self.push_time(largest);
            self.since_entry = 0;
        }
        self.since_entry += header.size;
    }

    fn push_time(&mut self, largest: LargestTimestamp) {
        if largest.timestamp > self.last_time {
            self.times.extend_from_slice(&largest.encode(self.segment.base));
            self.last_time = largest.timestamp;
        }
    }

    /// Transactions whose abort markers are in here.
    pub fn note_aborted(&mut self, aborted: Vec<AbortedTransaction>) {
        self.aborted.extend(aborted);
    }

    fn write_piece(&mut self) -> Result<(), DiskError> {
        self.file.write_at(self.written, &[&self.piece])?;
        self.written += self.piece.len() as u64;
        self.piece.clear();
        Ok(())
    }

    /// Writes the rest, and syncs all files. The directory is left to the caller.
    pub fn finish(mut self, modified: TimestampMs) -> Result<CleanedSegment, CleanError> {
        if !self.piece.is_empty() {
            self.write_piece()?;
        }
        let largest = largest(&self.segment);
        self.push_time(largest);
        let aborted: Vec<u8> = self.aborted.iter().flat_map(AbortedTransaction::encode).collect();
        self.write_beside(FileKind::OffsetIndex, &self.offsets)?;
        self.write_beside(FileKind::TimeIndex, &self.times)?;
        if !aborted.is_empty() {
            self.write_beside(FileKind::TransactionIndex, &aborted)?;
        }
        self.file.set_modified(modified)?;
        self.file.sync()?;
        let Segment { base, size, first_timestamp, .. } = self.segment;
        Ok(CleanedSegment { base, size, largest, first_timestamp })
    }

    fn write_beside(&self, kind: FileKind, contents: &[u8]) -> Result<(), DiskError> {
        let file = self.disk.open(&cleaned_path(self.log, self.segment.base, kind), OpenMode::Truncate)?;
        if !contents.is_empty() {
            file.write_at(0, &[contents])?;
        }
        file.sync()
    }
}

fn largest(segment: &Segment) -> LargestTimestamp {
    segment.largest.unwrap_or(LargestTimestamp { timestamp: TimestampMs::NONE, offset: segment.base })
}

fn cleaned_path(log: &LogToClean, base: Offset, kind: FileKind) -> PathBuf {
    offset_path(&log.dir, base, &format!("{}{}", kind.suffix(), segment::CLEANED))
}

/// Removes what a cleaning that was given up has written.
pub(super) fn remove_cleaned(disk: &dyn Disk, log: &LogToClean) -> Result<(), DiskError> {
    let entries = match disk.list(&log.dir) {
        Err(error) if error.is_not_found() => return Ok(()),
        entries => entries?,
    };
    for entry in entries.iter().filter(|entry| entry.name.ends_with(segment::CLEANED)) {
        disk.remove_file(&log.dir.join(&entry.name))?;
    }
    Ok(())
}
