//! Staging and writing back: batches are taken into memory first, and written into segments later, many at once.

use barnabas_base::{EpochEntry, Offset, TimestampMs};

use crate::disk::block_buffer::BLOCK_BYTES;
use crate::disk::file_pool::FilePool;
use crate::error::StorageError;
use crate::log::append::gather::{Gathered, gather};
use crate::log::tail::Tail;
use crate::log::tail::memory::TailMemory;
use crate::log::{Log, Staged, WrittenBack};
use crate::segment::batch::AppendBytes;

/// From this size on it is worth a block of memory that batches can be written back from where they are.
const ALIGNED_FROM_BYTES: usize = 8 * BLOCK_BYTES;

impl Log {
    /// Takes batches that are validated and numbered into memory: the log ends behind them, and nothing is written.
    ///
    /// They are copied together, so nothing that they came in is held any longer, and each journal entry and each
    /// read finds them in one piece. Whether they are durable is the journal's business; [`Log::write_back`] writes
    /// them into the segments.
    ///
    /// # Errors
    /// [`StorageError::OutOfOrder`], [`StorageError::NotBatches`], [`StorageError::TooLargeForSegment`],
    /// [`StorageError::Failed`]: the log is as it was.
    pub fn stage(
        &mut self,
        memory: &mut TailMemory,
        batches: &[AppendBytes],
    ) -> Result<Staged, StorageError> {
        self.check_writable()?;
        let from = self.end();
        let bytes: usize = batches.iter().map(AppendBytes::len).sum();
        let position = (bytes >= ALIGNED_FROM_BYTES).then(|| self.next_position());
        let Gathered { pieces: records, epochs, .. } =
            gather(memory, self.order(), self.epochs.latest(), batches, position)?;
        let end = records.last().map_or(from, |last| last.end);
        let bytes = records.iter().map(|piece| piece.bytes.len() as u64).sum();
        for EpochEntry { epoch, start } in epochs {
            self.assign_epoch(epoch, start);
        }
        if !records.is_empty() {
            let tail = self.tail.get_or_insert_default();
            records.iter().cloned().for_each(|piece| tail.stage(piece));
        }
        Ok(Staged { from, end, bytes, records })
    }

    /// The end of the segments: what lies behind it is staged.
    pub fn segment_end(&self) -> Offset {
        self.segment_end
    }

    /// Bytes that are staged and not written back.
    pub fn staged_bytes(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| tail.staged_bytes())
    }

    /// Bytes of batches in memory, staged or written back. Changes with every call that stages, forgets or gives up
    /// records.
    pub fn cached_bytes(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| tail.bytes())
    }

    /// Forgets batches below `end` that are in memory and written back. Returns their bytes. What is staged stays.
    pub fn forget_below(&mut self, end: Offset) -> u64 {
        let Some(tail) = &mut self.tail else { return 0 };
        let forgotten = tail.forget_below(end);
        self.drop_empty_tail();
        forgotten
    }

    /// Writes staged batches below `end` (whole ones) into the segments; they stay in memory until they are forgotten.
    ///
    /// What is written has to be synced like any other write ([`Log::take_dirty`]). The segments, their indexes and
    /// epochs are those that as many appends would have made.
    ///
    /// # Errors
    /// After [`StorageError::Full`] and [`StorageError::Exhausted`] the log is as it was: what was staged is. After any
    /// other error it takes no more writes.
    pub fn write_back(
        &mut self,
        files: &mut FilePool,
        end: Offset,
        now: TimestampMs,
    ) -> Result<WrittenBack, StorageError> {
        self.check_writable()?;
        let nothing = WrittenBack { end: self.segment_end, bytes: 0, rolled: None };
        let Some(tail) = &mut self.tail else { return Ok(nothing) };
        tail.divide_at(end);
        let due = tail.staged().take_while(|piece| piece.end <= end);
        let records: Vec<AppendBytes> = due.map(|piece| piece.bytes.clone().into()).collect();
        if records.is_empty() {
            return Ok(nothing);
        }
        let appended = self.write_batches(files, &records, now)?;
        Ok(WrittenBack { end: appended.end, bytes: appended.bytes, rolled: appended.rolled })
    }

    /// Writes everything that is staged into the segments.
    pub fn write_back_all(
        &mut self,
        files: &mut FilePool,
        now: TimestampMs,
    ) -> Result<WrittenBack, StorageError> {
        self.write_back(files, self.end(), now)
    }

    /// Where in the active segment's file what comes next will lie, unless a segment begins before it.
    pub(in crate::log) fn next_position(&self) -> u64 {
        u64::from(self.segments.last().map_or(0, |segment| segment.size)) + self.staged_bytes()
    }

    pub(in crate::log) fn drop_empty_tail(&mut self) {
        if self.tail.as_ref().is_some_and(|tail| tail.is_empty()) {
            self.tail = None;
        }
    }

    pub(in crate::log) fn staged(&self) -> impl Iterator<Item = &Tail> {
        self.tail.iter().map(|tail| &**tail).filter(|tail| tail.staged_end().is_some())
    }
}
