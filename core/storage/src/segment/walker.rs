//! Walks the batches of a segment file from front to back, in reads of bounded size.

use std::sync::Arc;

use barnabas_base::{LeaderEpoch, LeaderEpochs, Offset};
use bytes::Bytes;

use crate::disk::{DiskError, DiskFile};
use crate::segment::batch::{BatchHeader, HEADER_BYTES, NoBatch};

/// Bytes per read: large enough that the calls do not matter, small enough for many logs to be opened at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Where records are not wanted, batches of this much and more are skipped: what lies between two headers costs more to
/// read than another call.
pub(crate) const SKIP_FROM_BYTES: u32 = 32 << 10;
/// What is read then, to find the next header.
const LOOK_BYTES: usize = 4 << 10;

/// What is wrong with a batch. Its base offset and its leader epoch lie outside its checksum.
pub(crate) const NOT_NEXT: &str = "its offset does not follow";
pub(crate) const OUT_OF_REACH: &str = "its offset is out of the segment's reach";
pub(crate) const WRONG_CHECKSUM: &str = "its checksum is wrong";
pub(crate) const WRONG_EPOCH: &str = "its leader epoch is not the one in leader-epoch-checkpoint";

/// A position in a segment file, moving from batch to batch.
#[derive(Debug)]
pub(crate) struct Walker {
    file: Arc<dyn DiskFile>,
    position: u64,
    end: u64,
    wanted: Wanted,
    /// The size of the batch before.
    last_size: u32,
    chunk: Bytes,
    chunk_at: u64,
}

/// Which batches are read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// None: `bytes` stays empty.
    Headers,
    /// Control batches; of others `bytes` is the header.
    Control,
    /// All.
    Records,
}

/// What lies at the walker's position.
#[derive(Debug)]
pub(crate) enum Step {
    /// `bytes` is the whole batch, or what else of it is wanted.
    Batch {
        position: u64,
        header: BatchHeader,
        bytes: Bytes,
    },
    End,
    /// No batch, up to the end of the file.
    Bad {
        position: u64,
        why: &'static str,
    },
}

impl Walker {
    /// From `position`, where a batch begins, up to `end`. With `with_records`, each batch's bytes are read as well.
    pub(crate) fn new(file: Arc<dyn DiskFile>, position: u64, end: u64, with_records: bool) -> Self {
        let wanted = if with_records { Wanted::Records } else { Wanted::Headers };
        Self { file, position, end, wanted, last_size: 0, chunk: Bytes::new(), chunk_at: position }
    }

    pub(crate) fn wanting(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    pub(crate) fn step(&mut self) -> Result<Step, DiskError> {
        let left = self.end.saturating_sub(self.position);
        if left == 0 {
            return Ok(Step::End);
        }
        let position = self.position;
        let mut need = 1;
        let header = loop {
            self.load(need)?;
            if self.loaded() < need {
                return Ok(Step::Bad { position, why: "the file is shorter than it was" });
            }
            match BatchHeader::parse(&self.chunk[self.offset_in_chunk()..]) {
                Ok(header) => break header,
                Err(NoBatch::Short(more)) if more as u64 <= left => need = more,
                Err(NoBatch::Short(_)) => {
                    return Ok(Step::Bad { position, why: "the header is cut off" });
                }
                Err(NoBatch::Wrong(why)) => return Ok(Step::Bad { position, why }),
            }
        };
        if u64::from(header.size) > left {
            return Ok(Step::Bad { position, why: "the batch is cut off" });
        }
        let whole = header.size as usize;
        let size = match self.wanted {
            Wanted::Headers => 0,
            Wanted::Control if !header.is_control() => whole.min(HEADER_BYTES),
            Wanted::Control | Wanted::Records => whole,
        };
        self.load(size)?;
        if self.loaded() < size {
            return Ok(Step::Bad { position, why: "the file is shorter than it was" });
        }
        let from = self.offset_in_chunk();
        let bytes = self.chunk.slice(from..from + size);
        self.position += u64::from(header.size);
        self.last_size = header.size;
        Ok(Step::Batch { position, header, bytes })
    }

    fn offset_in_chunk(&self) -> usize {
        (self.position - self.chunk_at) as usize
    }

    /// Bytes of the chunk from the position on.
    fn loaded(&self) -> usize {
        self.chunk.len().saturating_sub((self.position - self.chunk_at) as usize)
    }

    /// Makes at least `need` bytes from the position on available, where the file has them.
    fn load(&mut self, need: usize) -> Result<(), DiskError> {
        if self.position >= self.chunk_at && self.loaded() >= need {
            return Ok(());
        }
        let left = self.end - self.position;
        let skips = self.wanted != Wanted::Records && self.last_size >= SKIP_FROM_BYTES;
        let chunk = if skips { LOOK_BYTES } else { CHUNK_BYTES };
        let len = (need.max(chunk) as u64).min(left) as usize;
        self.chunk = self.file.read_bytes(self.position, len)?;
        self.chunk_at = self.position;
        Ok(())
    }
}

/// A batch by the header, in a walk from one to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walked {
    pub position: u32,
    pub header: BatchHeader,
    /// Where the batch before it ended.
    pub expected: Offset,
    /// The leader epoch of the batch before it.
    epoch_before: Option<LeaderEpoch>,
}

impl Walked {
    /// The first one of a walk.
    pub fn first(position: u32, header: BatchHeader, expected: Offset) -> Self {
        Self { position, header, expected, epoch_before: None }
    }

    /// The one behind it.
    pub fn then(&self, position: u32, header: BatchHeader) -> Self {
        let epoch_before = Some(self.header.leader_epoch);
        Self { position, header, expected: self.header.next_offset(), epoch_before }
    }

    /// The batch with the base offset that the one before and what follows bear out, where it has another: `behind` is
    /// where the next one begins.
    pub fn put_right(&self, behind: Offset) -> Option<BatchHeader> {
        self.header.is_misplaced(self.expected, behind).then(|| self.header.moved_to(self.expected))
    }

    /// Whether its leader epoch is wrong. `behind`: the epoch of the next one, where there is one.
    pub fn has_wrong_epoch(&self, epochs: &LeaderEpochs, behind: Option<LeaderEpoch>) -> bool {
        let own = self.header.leader_epoch;
        let Some(known) = epochs.epoch_at(self.header.base_offset) else { return false };
        let mut beside = self.epoch_before.into_iter().chain(behind);
        let is_alone = !beside.clone().any(|epoch| epoch == own);
        self.header.has_epoch() && own != known && is_alone && beside.any(|epoch| epoch == known)
    }
}
