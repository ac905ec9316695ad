//! The memory that batches are kept in, for readers and until they are written back. It goes round: what was
//! forgotten is filled again.
//!
//! Fresh memory costs more than everything else that is done with a byte: each of its pages is a fault, and is
//! filled with zeros first (lab/bench/JOURNAL.md). Small pieces share *slabs*, which are reused when all their
//! pieces are released; a large piece has memory of its own.
//!
//! Each worker has one for all its logs. A piece keeps its whole slab from coming back; but it is written back
//! before the journal has gone round once more, and forgotten before the cache of recent batches has, so slabs in
//! use are bounded by these two.
//!
//! Always true:
//! 1. no byte that is handed out is in use elsewhere
//! 2. what is kept, in use or not, is at most what it was made for

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::BytesMut;

/// Seven of the larger batches that Java's producers are told to make. A slow reader may keep one from coming back
/// (tail.rs).
const SLAB_BYTES: usize = 512 << 10;
/// More than this has memory to itself.
const SHARED_BYTES_MAX: usize = SLAB_BYTES / 4;
/// How many of the oldest are looked at for one that is free.
const LOOKED_AT: usize = 4;

/// See the file's header.
#[derive(Debug, Default)]
pub struct TailMemory {
    kept_bytes_max: usize,
    kept_bytes: usize,
    /// What is left of the slab that is being filled.
    slab: Option<BytesMut>,
    /// What was handed out, by the binary logarithm of its size; the oldest first.
    kept: Vec<VecDeque<BytesMut>>,
}

impl TailMemory {
    /// Keeps no more than `kept_bytes_max` to be used again. 0: nothing, and nothing is shared.
    pub fn new(kept_bytes_max: u64) -> Self {
        let kept_bytes_max = usize::try_from(kept_bytes_max).unwrap_or(usize::MAX);
        Self { kept_bytes_max, kept_bytes: 0, slab: None, kept: Vec::new() }
    }

    /// Room for exactly so many bytes, empty. What is small comes from one slab, so where it begins says where the next
    /// begins.
    pub(in crate::log) fn take(&mut self, bytes: usize) -> BytesMut {
        if self.kept_bytes_max < SLAB_BYTES {
            return BytesMut::with_capacity(bytes);
        }
        if bytes > SHARED_BYTES_MAX {
            // Few sizes, so that one fits another's place. What is not touched of it costs nothing.
            let size = bytes.next_power_of_two();
            let mut whole = self.free(size);
            let rest = whole.split_off(bytes);
            self.keep(size, rest);
            return whole;
        }
        let mut slab = match self.slab.take() {
            Some(slab) if slab.capacity() >= bytes => slab,
            full => {
                full.into_iter().for_each(|full| self.keep(SLAB_BYTES, full));
                self.free(SLAB_BYTES)
            }
        };
        self.slab = Some(slab.split_off(bytes));
        slab
    }

    fn free(&mut self, size: usize) -> BytesMut {
        let class = size.trailing_zeros() as usize;
        if let Some(kept) = self.kept.get_mut(class) {
            for _ in 0..kept.len().min(LOOKED_AT) {
                let Some(mut oldest) = kept.pop_front() else { break };
                if oldest.try_reclaim(size) {
                    self.kept_bytes -= size;
                    return oldest;
                }
                kept.push_back(oldest);
            }
        }
        BytesMut::with_capacity(size)
    }

    /// Keeps what a handle belongs to, whatever of it is in use.
    fn keep(&mut self, size: usize, handle: BytesMut) {
        let class = size.trailing_zeros() as usize;
        if self.kept.len() <= class {
            self.kept.resize_with(class + 1, VecDeque::new);
        }
        self.kept[class].push_back(handle);
        self.kept_bytes += size;
        while self.kept_bytes > self.kept_bytes_max {
            // The size of which there is most.
            let fullest = self.kept.iter().enumerate().max_by_key(|(class, kept)| kept.len() << class);
            let Some(class) = fullest.map(|(class, _)| class) else { return };
            if self.kept[class].pop_front().is_some() {
                self.kept_bytes -= 1 << class;
            }
        }
    }
}
