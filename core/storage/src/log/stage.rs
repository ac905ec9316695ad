//! Staging and laying: batches are taken into memory first, and written into segments later, many at once.

use barnabas_base::{Offset, TimestampMs};
use bytes::Bytes;

use super::append::Batches;
use super::tail::Tail;
use super::{AppendBytes, Laid, Log, Staged, StagedRecords};
use crate::error::StorageError;
use crate::file_pool::FilePool;

/// Batches that are staged together lie in one piece of memory up to about this size: a reader looks for its batch in one
/// piece, and memory is given back piece by piece.
const PIECE_BYTES: usize = 128 << 10;

impl Log {
    /// Takes batches that are validated and numbered into memory: the log ends behind them, and nothing is written.
    ///
    /// They are copied together, so nothing that they came in is held any longer, and each journal entry and each read finds
    /// them in one piece. Whether they are durable is the journal's business; [`Log::lay`] writes them into the segments.
    ///
    /// # Errors
    /// [`StorageError::OutOfOrder`], [`StorageError::NotBatches`], [`StorageError::TooLargeForSegment`],
    /// [`StorageError::Failed`]: the log is as it was.
    pub fn stage(&mut self, batches: Vec<AppendBytes>) -> Result<Staged, StorageError> {
        self.check_writable()?;
        self.check_batches(&batches)?;
        let from = self.end();
        let records = gather(from, &batches)?;
        let end = records.last().map_or(from, |last| last.end);
        let bytes = records.iter().map(|piece| piece.bytes.len() as u64).sum();
        if !records.is_empty() {
            for (header, _) in batches.iter().flat_map(Batches::of) {
                self.note_epoch(&header.map_err(StorageError::NotBatches)?);
            }
            let tail = self.tail.get_or_insert_default();
            records.iter().cloned().for_each(|piece| tail.stage(piece));
        }
        Ok(Staged { from, end, bytes, records })
    }

    /// The end of the segments: what lies behind it is staged.
    pub fn laid_end(&self) -> Offset {
        self.laid_end
    }

    /// Bytes that are staged and not laid.
    pub fn unlaid_bytes(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| tail.staged_bytes())
    }

    /// Bytes of batches in memory, staged or laid. Changes with every call that stages, forgets or gives up records.
    pub fn cached_bytes(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| tail.bytes())
    }

    /// Forgets batches below `end` that are in memory and laid. Returns their bytes. What is staged stays.
    pub fn forget_below(&mut self, end: Offset) -> u64 {
        let Some(tail) = &mut self.tail else { return 0 };
        let forgotten = tail.forget_below(end);
        self.drop_empty_tail();
        forgotten
    }

    /// Writes staged batches below `end` (whole ones) into the segments; they stay in memory until they are forgotten.
    ///
    /// What is written has to be synced like any other write ([`Log::take_dirty`]). The segments, their indexes and epochs are
    /// those that as many appends would have made.
    ///
    /// # Errors
    /// After [`StorageError::Full`] the log is as it was: what was staged is. After any other error it takes no more writes.
    pub fn lay(&mut self, files: &mut FilePool, end: Offset, now: TimestampMs) -> Result<Laid, StorageError> {
        self.check_writable()?;
        let nothing = Laid { end: self.laid_end, bytes: 0, rolled: None };
        let Some(tail) = &mut self.tail else { return Ok(nothing) };
        tail.divide_at(end);
        let due = tail.staged().take_while(|piece| piece.end <= end);
        let records: Vec<AppendBytes> = due.map(|piece| piece.bytes.clone().into()).collect();
        if records.is_empty() {
            return Ok(nothing);
        }
        let appended = self.write_batches(files, &records, now)?;
        Ok(Laid { end: appended.end, bytes: appended.bytes, rolled: appended.rolled })
    }

    /// Writes everything that is staged into the segments.
    pub fn lay_all(&mut self, files: &mut FilePool, now: TimestampMs) -> Result<Laid, StorageError> {
        self.lay(files, self.end(), now)
    }

    pub(super) fn drop_empty_tail(&mut self) {
        if self.tail.as_ref().is_some_and(|tail| tail.is_empty()) {
            self.tail = None;
        }
    }

    pub(super) fn staged(&self) -> impl Iterator<Item = &Tail> {
        self.tail.iter().map(|tail| &**tail).filter(|tail| tail.staged_end().is_some())
    }
}

/// Copies batches that follow a log's end at `from` together, so that they lie in few pieces.
pub(super) fn gather(from: Offset, batches: &[AppendBytes]) -> Result<Vec<StagedRecords>, StorageError> {
    let mut pieces: Vec<StagedRecords> = Vec::with_capacity(1);
    let mut left: usize = batches.iter().map(AppendBytes::len).sum();
    let (mut from, mut end) = (from, from);
    let mut bytes = Vec::with_capacity(left.min(PIECE_BYTES));
    for (header, parts) in batches.iter().flat_map(Batches::of) {
        let header = header.map_err(StorageError::NotBatches)?;
        let size = header.size as usize;
        if !bytes.is_empty() && bytes.len() + size > PIECE_BYTES {
            let room = Vec::with_capacity(left.min(PIECE_BYTES).max(size));
            let bytes = Bytes::from(std::mem::replace(&mut bytes, room));
            pieces.push(StagedRecords { from, end, bytes });
            from = end;
        }
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        left -= size;
        end = header.next_offset();
    }
    if !bytes.is_empty() {
        pieces.push(StagedRecords { from, end, bytes: bytes.into() });
    }
    Ok(pieces)
}
