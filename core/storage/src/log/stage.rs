//! Staging and laying: batches are taken into memory first, and written into segments later, many at once.

use barnabas_base::{EpochEntry, Offset, TimestampMs};
use bytes::Bytes;

use super::append::{Batches, Order};
use super::tail::Tail;
use super::{AppendBytes, Laid, Log, Staged, StagedRecords};
use crate::error::StorageError;
use crate::file_pool::FilePool;
use crate::journal::BLOCK_BYTES;

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
        let from = self.end();
        let (records, epochs) = gather(self.order(), self.epochs.latest(), &batches)?;
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

/// Pieces, and the leader epochs that begin in them.
type Gathered = (Vec<StagedRecords>, Vec<EpochEntry>);

/// Checks batches and copies them together, so that they lie in few pieces. One look at each header does for both.
pub(super) fn gather(
    mut order: Order,
    mut latest: Option<EpochEntry>,
    batches: &[AppendBytes],
) -> Result<Gathered, StorageError> {
    let (mut pieces, mut epochs) = (Vec::with_capacity(1), Vec::new());
    let mut left: usize = batches.iter().map(AppendBytes::len).sum();
    let mut from = order.end;
    let mut bytes = Vec::new();
    for (header, parts) in batches.iter().flat_map(Batches::of) {
        let header = header.map_err(StorageError::NotBatches)?;
        let (size, end) = (header.size as usize, order.end);
        order.check(&header)?;
        if header.magic >= 2 && latest.is_none_or(|latest| latest.epoch < header.leader_epoch) {
            let entry = EpochEntry { epoch: header.leader_epoch, start: header.base_offset };
            latest = Some(entry);
            epochs.push(entry);
        }
        if !bytes.is_empty() && bytes.len() + size > PIECE_BYTES {
            pieces.push(StagedRecords { from, end, bytes: std::mem::take(&mut bytes).into() });
            from = end;
        }
        if bytes.is_empty() {
            // Exactly what it will hold, but for a batch at the end that would be too much.
            bytes.reserve_exact(left.min(PIECE_BYTES).max(size));
        }
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        left -= size;
    }
    if !bytes.is_empty() {
        pieces.push(StagedRecords { from, end: order.end, bytes: bytes.into() });
    }
    Ok((pieces, epochs))
}

/// As [`gather`], into one piece of memory that lies to the blocks of memory as it will lie to those of a file from `position`
/// on: nearly all of it can be written from where it is. Also returns all of it.
pub(super) fn gather_for(
    position: u64,
    mut order: Order,
    batches: &[AppendBytes],
) -> Result<(Vec<StagedRecords>, Bytes), StorageError> {
    let total: usize = batches.iter().map(AppendBytes::len).sum();
    let mut store: Vec<u8> = Vec::with_capacity(total + 2 * BLOCK_BYTES);
    let begin = store.as_ptr().align_offset(BLOCK_BYTES) + (position % BLOCK_BYTES as u64) as usize;
    store.resize(begin, 0);
    let mut ends: Vec<(Offset, usize)> = Vec::new();
    let start = order.end;
    for (header, parts) in batches.iter().flat_map(Batches::of) {
        let header = header.map_err(StorageError::NotBatches)?;
        let piece = ends.last().map_or(begin, |last| last.1);
        if store.len() > piece && store.len() + header.size as usize - piece > PIECE_BYTES {
            ends.push((order.end, store.len()));
        }
        order.check(&header)?;
        parts.iter().for_each(|part| store.extend_from_slice(part));
    }
    ends.push((order.end, store.len()));
    let store = Bytes::from(store);
    let (mut from, mut at) = (start, begin);
    let pieces = ends.into_iter().filter(|(_, to)| *to > begin).map(|(end, to)| {
        let piece = StagedRecords { from, end, bytes: store.slice(at..to) };
        (from, at) = (end, to);
        piece
    });
    Ok((pieces.collect(), store.slice(begin..)))
}
