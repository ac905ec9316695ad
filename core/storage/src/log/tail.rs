//! The log's newest batches in memory: those that are staged (nowhere else but in the directory's journal) and, before
//! them, those that were written back to a segment lately and are kept for readers.
//!
//! Pieces of whole batches, oldest first. Each names the offsets that it stands for, from where the log ended before
//! it; so a hole (an append that went past this into the segment) shows, and readers go to the segment for it.
//!
//! Always true:
//! 1. staged pieces come last, follow one another without a hole, and the first of them begins at the log's segment end
//! 2. `staged_bytes ≤ bytes`, and both are what the pieces hold
//! 3. a piece is forgotten only once it is written back, or given up with its offsets

pub(in crate::log) mod memory;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use barnabas_base::Offset;
use bytes::Bytes;

use super::types::{Found, StagedRecords};
use crate::segment::batch::BatchHeader;
use crate::segment::transaction_index::AbortedTransaction;

/// See the file's header. A log has none while nothing of it is in memory.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pieces: VecDeque<StagedRecords>,
    /// How many of `pieces`, from the front on, are written back.
    written_back: usize,
    bytes: u64,
    staged_bytes: u64,
    /// The log's end, where anything is staged.
    end: Offset,
    /// Aborted transactions whose markers are staged.
    pub aborted: Vec<AbortedTransaction>,
}

impl Tail {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn staged_bytes(&self) -> u64 {
        self.staged_bytes
    }

    /// The log's end, where anything is staged.
    pub(super) fn staged_end(&self) -> Option<Offset> {
        (self.written_back < self.pieces.len()).then_some(self.end)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// What is not written back yet, oldest first.
    pub(super) fn staged(&self) -> impl Iterator<Item = &StagedRecords> {
        self.pieces.range(self.written_back..)
    }

    pub(super) fn stage(&mut self, piece: StagedRecords) {
        self.end = piece.end;
        self.bytes += piece.bytes.len() as u64;
        self.staged_bytes += piece.bytes.len() as u64;
        self.pieces.push_back(piece);
    }

    /// Keeps a piece that is in the segment already. Nothing may be staged.
    pub(super) fn keep_written_back(&mut self, piece: StagedRecords) {
        assert!(self.written_back == self.pieces.len(), "what is written back comes before what is staged");
        self.bytes += piece.bytes.len() as u64;
        self.pieces.push_back(piece);
        self.written_back += 1;
    }

    /// Divides the staged piece that `end` lies in, so that one ends where the last batch below `end` does.
    pub(super) fn divide_at(&mut self, end: Offset) {
        let Some(at) = (self.written_back..self.pieces.len()).find(|at| self.pieces[*at].end > end) else {
            return;
        };
        let piece = &mut self.pieces[at];
        let (front, next) = batches_below(&piece.bytes, end);
        if front > 0 && front < piece.bytes.len() {
            let bytes = piece.bytes.split_to(front);
            let new = StagedRecords { from: piece.from, end: next, bytes };
            piece.from = next;
            self.pieces.insert(at, new);
        }
    }

    /// Everything below `end` is written back; a piece lies on one side of it.
    pub(super) fn written_back_up_to(&mut self, end: Offset) {
        while let Some(piece) = self.pieces.get(self.written_back).filter(|piece| piece.end <= end) {
            self.staged_bytes -= piece.bytes.len() as u64;
            self.written_back += 1;
        }
    }

    /// Forgets pieces that were written back that lie below `end`. Returns their bytes.
    pub(super) fn forget_below(&mut self, end: Offset) -> u64 {
        let mut forgotten = 0;
        while self.written_back > 0 && self.pieces[0].end <= end {
            let piece = self.pieces.pop_front().expect("a piece that was written back is a piece");
            self.written_back -= 1;
            forgotten += piece.bytes.len() as u64;
        }
        self.bytes -= forgotten;
        forgotten
    }

    /// As [`Tail::forget_below`], and the piece that `end` lies in too.
    pub(super) fn forget_touching(&mut self, end: Offset) {
        let touching = self.pieces.iter().take_while(|piece| piece.from < end).last();
        self.forget_below(touching.map_or(end, |piece| piece.end.max(end)));
    }

    /// Where the log would end if it were cut at `offset`, which lies in a staged piece.
    pub(super) fn cut_end(&self, offset: Offset) -> Offset {
        match self.piece_of(offset) {
            Some(at) => {
                let bytes = &self.pieces[at].bytes;
                let (front, _) = batches_below(bytes, offset);
                BatchHeader::parse(&bytes[front..]).map_or(offset, |next| next.base_offset.min(offset))
            }
            None => offset,
        }
    }

    /// Gives up the batches that hold `offset` or more, those that were written back included.
    pub(super) fn cut_at(&mut self, offset: Offset) {
        let end = self.cut_end(offset);
        loop {
            let staged = self.written_back < self.pieces.len();
            let Some(last) = self.pieces.back_mut().filter(|piece| piece.end > end) else { break };
            let before = last.bytes.len() as u64;
            let (kept, _) = batches_below(&last.bytes, end);
            last.bytes.truncate(kept);
            last.end = end;
            if last.bytes.is_empty() {
                self.pieces.pop_back();
                self.written_back = self.written_back.min(self.pieces.len());
            }
            self.bytes -= before - kept as u64;
            if staged {
                self.staged_bytes -= before - kept as u64;
            }
        }
        self.end = self.end.min(end);
        self.aborted.retain(|aborted| aborted.last_offset < end);
    }

    /// Takes the aborted transactions whose markers lie below `end`.
    pub(super) fn take_aborted(&mut self, end: Offset) -> Vec<AbortedTransaction> {
        let count = self.aborted.partition_point(|aborted| aborted.last_offset < end);
        self.aborted.drain(..count).collect()
    }

    /// The piece that stands for `offset`.
    fn piece_of(&self, offset: Offset) -> Option<usize> {
        let at = self.pieces.partition_point(|piece| piece.end <= offset);
        self.pieces.get(at).filter(|piece| piece.from <= offset).map(|_| at)
    }

    /// Whole batches from the one that holds `from` on. `None`: `from` is not in memory.
    pub(super) fn read(&self, from: Offset, wish: Wish) -> Option<Found> {
        let first = self.piece_of(from)?;
        let mut parts: Vec<Bytes> = Vec::new();
        let (mut len, mut next) = (0, from);
        for (at, piece) in self.pieces.range(first..).enumerate() {
            if at > 0 && piece.from != self.pieces[first + at - 1].end {
                break;
            }
            let skipped = if at == 0 { batches_below(&piece.bytes, from).0 } else { 0 };
            let rest = piece.bytes.slice(skipped..);
            let room = wish.max_bytes - len;
            if rest.len() <= room && piece.end <= wish.upper {
                len += rest.len();
                next = piece.end;
                parts.push(rest);
                continue;
            }
            let (taken, end, too_large) = take_batches(&rest, room, wish, len == 0);
            if too_large {
                return Some(Found { records: Bytes::new(), next: from, too_large });
            }
            if taken > 0 {
                parts.push(rest.slice(..taken));
                next = end;
            }
            break;
        }
        Some(Found { records: join(parts), next, too_large: false })
    }

    /// Panics where one of the invariants in the file's header does not hold.
    #[cfg(test)]
    pub(super) fn check(&self, segment_end: Offset) {
        let bytes = |pieces: &mut dyn Iterator<Item = &StagedRecords>| -> u64 {
            pieces.map(|piece| piece.bytes.len() as u64).sum()
        };
        assert_eq!(self.bytes, bytes(&mut self.pieces.iter()), "bytes in memory");
        assert_eq!(self.staged_bytes, bytes(&mut self.staged()), "staged bytes");
        let mut end = segment_end;
        for piece in self.staged() {
            assert_eq!(piece.from, end, "a hole in what is staged");
            end = piece.end;
        }
        assert_eq!(self.staged_end().unwrap_or(segment_end), end, "the end");
        let mut below = Offset::ZERO;
        for piece in &self.pieces {
            assert!(below <= piece.from && piece.from < piece.end, "pieces in order");
            let (whole, next) = batches_below(&piece.bytes, piece.end);
            assert!(whole == piece.bytes.len() && whole > 0 && next <= piece.end, "whole batches");
            below = piece.end;
        }
        let written_back = self.pieces.range(..self.written_back);
        assert!(
            written_back.map(|piece| piece.end).all(|end| end <= segment_end),
            "pieces that were written back lie in segments"
        );
        assert!(
            self.aborted.iter().all(|aborted| aborted.last_offset >= segment_end),
            "markers not written back"
        );
    }

    /// All staged batches, header and bytes, oldest first.
    pub(super) fn staged_batches(&self) -> impl Iterator<Item = (BatchHeader, Bytes)> {
        self.staged().flat_map(|piece| {
            let mut rest = piece.bytes.clone();
            std::iter::from_fn(move || {
                let header = BatchHeader::parse(&rest).ok()?;
                Some((header, rest.split_to(header.size as usize)))
            })
        })
    }
}

/// How much a read may return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    pub max_bytes: usize,
    pub upper: Offset,
    pub at_least_one: bool,
}

/// Bytes of the batches at the front whose offsets all lie below `end`, and the offset after them.
fn batches_below(bytes: &[u8], end: Offset) -> (usize, Offset) {
    let (mut at, mut next) = (0, end);
    while let Ok(header) = BatchHeader::parse(&bytes[at..]) {
        if header.last_offset >= end {
            break;
        }
        at += header.size as usize;
        next = header.next_offset();
    }
    (at, next)
}

/// Bytes of the batches at the front of `rest` that may be returned, the offset after them, and whether the very first
/// batch is larger than was asked for.
fn take_batches(rest: &[u8], room: usize, wish: Wish, first: bool) -> (usize, Offset, bool) {
    let (mut taken, mut next) = (0, Offset::NONE);
    while let Ok(header) = BatchHeader::parse(&rest[taken..]) {
        if header.last_offset >= wish.upper {
            break;
        }
        if taken + header.size as usize > room {
            let is_first = first && taken == 0;
            if is_first && wish.at_least_one {
                return (header.size as usize, header.next_offset(), false);
            }
            return (taken, next, is_first);
        }
        taken += header.size as usize;
        next = header.next_offset();
    }
    (taken, next, false)
}

/// What is copied although it lies in one part: a reader that is slow to take so little keeps no whole slab
/// (memory.rs).
const COPIED_BYTES_MAX: usize = 4 << 10;

/// One part is passed on as it is, unless it is small; more are copied together.
fn join(mut parts: Vec<Bytes>) -> Bytes {
    match parts.len() {
        0 => Bytes::new(),
        1 if parts[0].len() > COPIED_BYTES_MAX => parts.swap_remove(0),
        _ => parts.concat().into(),
    }
}
