//! Staging and laying: batches are taken into memory first, and written into segments later, many at once.

use barnabas_base::{EpochEntry, Offset, TimestampMs};
use bytes::Bytes;
use smallvec::SmallVec;

use super::append::{Batches, Order};
use super::memory::TailMemory;
use super::tail::Tail;
use super::{AppendBytes, Laid, Log, Staged, StagedRecords};
use crate::error::StorageError;
use crate::file_pool::FilePool;
use crate::journal::BLOCK_BYTES;

/// Batches that are staged together are divided into pieces of about this size: a reader looks for its batch in one piece.
const PIECE_BYTES: usize = 128 << 10;
/// From this size on it is worth a block of memory that batches can be laid from where they are.
const ALIGNED_FROM_BYTES: usize = 8 * BLOCK_BYTES;

impl Log {
    /// Takes batches that are validated and numbered into memory: the log ends behind them, and nothing is written.
    ///
    /// They are copied together, so nothing that they came in is held any longer, and each journal entry and each read finds
    /// them in one piece. Whether they are durable is the journal's business; [`Log::lay`] writes them into the segments.
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
    /// After [`StorageError::Full`] and [`StorageError::Exhausted`] the log is as it was: what was staged is. After any other error it takes no more writes.
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

    /// Where in the active segment's file what comes next will lie, unless a segment begins before it.
    pub(super) fn next_position(&self) -> u64 {
        u64::from(self.segments.last().map_or(0, |segment| segment.size)) + self.unlaid_bytes()
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

/// Batches copied together. Of one batch, which is what each of thousands of partitions gets at a time, no list is made.
pub(super) struct Gathered {
    pub pieces: SmallVec<[StagedRecords; 1]>,
    /// The leader epochs that begin in them.
    pub epochs: SmallVec<[EpochEntry; 1]>,
    /// The memory that they lie in, side by side, from `begin` on.
    store: Bytes,
    begin: usize,
}

impl Gathered {
    /// The bytes of all pieces.
    pub fn whole(&self) -> Bytes {
        self.store.slice(self.begin..)
    }
}

/// Checks batches and copies them together, so that they lie in few pieces. One look at each header does for both.
///
/// `position`: where in a file they will lie. Then they lie to the blocks of memory as they will to those of the file, and nearly
/// all of them can be written past the page cache from where they are.
pub(super) fn gather(
    memory: &mut TailMemory,
    mut order: Order,
    mut latest: Option<EpochEntry>,
    batches: &[AppendBytes],
    position: Option<u64>,
) -> Result<Gathered, StorageError> {
    let total: usize = batches.iter().map(AppendBytes::len).sum();
    let spare = position.map_or(0, |_| BLOCK_BYTES);
    let mut store = memory.take(total + spare);
    let head = |position| (position % BLOCK_BYTES as u64) as usize;
    let to_block = store.as_ptr().align_offset(BLOCK_BYTES);
    let begin = position.map_or(0, |position| (to_block + head(position)) % BLOCK_BYTES);
    store.resize(begin, 0);
    // Where a piece ends: in the log and in the memory.
    let (mut ends, mut epochs) = (SmallVec::<[(Offset, usize); 1]>::new(), SmallVec::new());
    let (mut from, mut piece) = (order.end, begin);
    for (header, parts) in batches.iter().flat_map(Batches::of) {
        let header = header.map_err(StorageError::NotBatches)?;
        if store.len() > piece && store.len() - piece + header.size as usize > PIECE_BYTES {
            ends.push((order.end, store.len()));
            piece = store.len();
        }
        order.check(&header)?;
        if header.magic >= 2 && latest.is_none_or(|latest| latest.epoch < header.leader_epoch) {
            let entry = EpochEntry { epoch: header.leader_epoch, start: header.base_offset };
            latest = Some(entry);
            epochs.push(entry);
        }
        parts.iter().for_each(|part| store.extend_from_slice(part));
    }
    if store.len() > piece {
        ends.push((order.end, store.len()));
    }
    let store = store.freeze();
    let mut at = begin;
    let pieces = ends.into_iter().map(|(end, to)| {
        let piece = StagedRecords { from, end, bytes: store.slice(at..to) };
        (from, at) = (end, to);
        piece
    });
    Ok(Gathered { pieces: pieces.collect(), epochs, store, begin })
}
