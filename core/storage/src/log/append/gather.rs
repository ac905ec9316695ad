//! Batches on their way in: their headers checked, their bytes copied together.

use barnabas_base::{EpochEntry, Offset};
use bytes::Bytes;
use smallvec::SmallVec;

use crate::disk::block_buffer::BLOCK_BYTES;
use crate::error::StorageError;
use crate::log::StagedRecords;
use crate::log::tail::memory::TailMemory;
use crate::segment::batch::{AppendBytes, BatchHeader, NoBatch};

/// Batches that are staged together are divided into pieces of about this size: a reader looks for its batch in one
/// piece.
const PIECE_BYTES: usize = 128 << 10;

/// Batches copied together. Of one batch, which is what each of thousands of partitions gets at a time, no list is
/// made.
pub(in crate::log) struct Gathered {
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
/// `position`: where in a file they will lie. Then they lie to the blocks of memory as they will to those of the file,
/// and nearly all of them can be written past the page cache from where they are.
pub(in crate::log) fn gather(
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
        if begins_epoch(latest, &header) {
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

/// Where the next batch may begin.
pub(in crate::log) struct Order {
    pub end: Offset,
    pub may_straddle: bool,
    pub segment_bytes: u32,
}

impl Order {
    /// Checks that the batch may come next.
    pub(in crate::log) fn check(&mut self, header: &BatchHeader) -> Result<(), StorageError> {
        let straddles = std::mem::take(&mut self.may_straddle) && header.last_offset >= self.end;
        if header.base_offset < self.end && !straddles {
            return Err(StorageError::OutOfOrder { found: header.base_offset, end: self.end });
        }
        if header.size > self.segment_bytes {
            return Err(StorageError::TooLargeForSegment {
                bytes: header.size.into(),
                segment_bytes: self.segment_bytes,
            });
        }
        self.end = header.next_offset();
        Ok(())
    }
}

/// The batches in a piece: what each header says, and the one or two parts that its bytes lie in.
pub(in crate::log) enum Batches<'a> {
    Whole(&'a [u8]),
    Split { header: &'a [u8], body: &'a [u8] },
}

pub(in crate::log) type FoundBatch<'a> = (Result<BatchHeader, &'static str>, [&'a [u8]; 2]);

impl<'a> Batches<'a> {
    pub(in crate::log) fn of(piece: &'a AppendBytes) -> Self {
        match piece {
            AppendBytes::Whole(bytes) => Self::Whole(bytes),
            AppendBytes::Split { header, body } => Self::Split { header, body },
        }
    }

    fn parse(bytes: &[u8], available: usize) -> Result<BatchHeader, &'static str> {
        match BatchHeader::parse(bytes) {
            Ok(header) if header.size as usize <= available => Ok(header),
            Ok(_) => Err("the last batch is cut off"),
            Err(NoBatch::Short(_)) => Err("a header is cut off"),
            Err(NoBatch::Wrong(why)) => Err(why),
        }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = FoundBatch<'a>;

    fn next(&mut self) -> Option<FoundBatch<'a>> {
        match std::mem::replace(self, Self::Whole(&[])) {
            Self::Whole([]) => None,
            Self::Whole(bytes) => match Self::parse(bytes, bytes.len()) {
                Ok(header) => {
                    let (batch, rest) = bytes.split_at(header.size as usize);
                    *self = Self::Whole(rest);
                    Some((Ok(header), [batch, &[]]))
                }
                Err(why) => Some((Err(why), [&[], &[]])),
            },
            Self::Split { header, body } => {
                let len = header.len() + body.len();
                let found = Self::parse(header, len).and_then(|parsed| {
                    if parsed.size as usize == len {
                        Ok(parsed)
                    } else {
                        Err("header and records differ in size")
                    }
                });
                Some((found, [header, body]))
            }
        }
    }
}

/// Whether the epochs change with this batch: it is the first of a newer one, or of an older one than a leader that
/// wrote nothing had begun at or before its place. What is written back from memory finds all its epochs known, and
/// newer ones behind it.
pub(in crate::log) fn begins_epoch(latest: Option<EpochEntry>, header: &BatchHeader) -> bool {
    header.magic >= 2
        && latest.is_none_or(|latest| {
            let is_empty = latest.epoch > header.leader_epoch && latest.start <= header.base_offset;
            latest.epoch < header.leader_epoch || is_empty
        })
}
