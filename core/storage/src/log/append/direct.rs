//! Large writes go past the page cache: no page to find, fill and write back, which costs more than all else that is
//! done with a byte (figures: lab/bench/JOURNAL.md).
//!
//! Only whole blocks can be written so, and batches end within one. The last block is written with zeros behind the
//! batches, its front is kept in memory, and the next write begins with it again. So until the segment is sealed or
//! closed ([`Log::give_room_back`]) its file may be longer than what it holds, by zeros. A crash leaves them, and so
//! they are never taken for a batch, nor for damage (open.rs).

use std::ops::Range;

use crate::disk::DiskFile;
use crate::disk::block_buffer::{BLOCK_BYTES, BlockBuffer};
use crate::disk::file_pool::FilePool;
use crate::error::StorageError;
use crate::log::{FileKind, Log, Offset};
use crate::segment::Segment;
use crate::segment::batch::AppendBytes;
use crate::segment::walker::Step;

/// Pieces of one write: half of what Linux takes at once (`UIO_MAXIOV`).
const ROW_PIECES_MAX: usize = 512;

/// Batches that go into the active segment with one write.
pub(in crate::log) struct Run<'a> {
    pub position: u64,
    pub parts: Vec<&'a [u8]>,
}

impl<'a> Run<'a> {
    /// Adds whole batches of `piece`, which lie side by side and stay in one part.
    pub(in crate::log) fn take(&mut self, piece: &'a AppendBytes, range: Range<usize>) {
        match piece {
            _ if range.is_empty() => {}
            AppendBytes::Whole(bytes) => self.parts.push(&bytes[range]),
            // It holds one batch.
            AppendBytes::Split { header, body } => {
                self.parts.push(header);
                self.parts.extend((!body.is_empty()).then_some(&body[..]));
            }
        }
    }
}

impl Log {
    /// Writes a run past the page cache if it is large enough. Returns whether it did.
    pub(in crate::log) fn write_direct(
        &mut self,
        files: &mut FilePool,
        file: &dyn DiskFile,
        run: &Run<'_>,
    ) -> Result<bool, StorageError> {
        let bytes = run.parts.iter().map(|part| part.len()).sum();
        let Some(mut blocks) = files.blocks_for(bytes) else { return Ok(false) };
        let head = (run.position % BLOCK_BYTES as u64) as usize;
        if self.active.last_block.len() != head {
            self.active.last_block = file.read_bytes(run.position - head as u64, head)?.to_vec();
        }
        if self.active.last_block.len() != head {
            return Ok(false);
        }
        blocks.push(&self.active.last_block);
        self.active.has_spare_room = true;
        let at = run.position - head as u64;
        let done = write_blocks(file, at, &run.parts, &mut blocks);
        if let Ok(Some(last_block)) = &done {
            self.active.last_block.clone_from(last_block);
        }
        let done = done.map(|last_block| last_block.is_some());
        files.give_blocks_back(blocks, matches!(done, Ok(false)));
        done
    }

    /// Whether what lies behind `position` in a segment's file is what the end of a block was filled with. More zeros
    /// than that are something that a crash made.
    pub(in crate::log) fn is_padding(
        &self,
        files: &mut FilePool,
        base: Offset,
        position: u64,
    ) -> Result<bool, StorageError> {
        let bytes = self.file(files, base, FileKind::Log)?.read_bytes(position, BLOCK_BYTES)?;
        let to_block = position.next_multiple_of(BLOCK_BYTES as u64) - position;
        Ok((1..=to_block).contains(&(bytes.len() as u64)) && bytes.iter().all(|byte| *byte == 0))
    }

    /// Cuts the zeros off that a sealed segment may end with where its being sealed was not synced. Where a batch is
    /// missing before the next segment, zeros are damage, and stay.
    pub(in crate::log) fn cut_padding(
        &mut self,
        files: &mut FilePool,
        at: usize,
    ) -> Result<(), StorageError> {
        let Segment { base, size, .. } = self.segments[at];
        let last_byte = u64::from(size.saturating_sub(1));
        if self.file(files, base, FileKind::Log)?.read_bytes(last_byte, 1)? != [0][..] {
            return Ok(());
        }
        let from = self.begin_looking(files, at, Offset(i64::MAX))?;
        let mut walker = self.walker(files, at, from, false)?;
        let mut end = base;
        loop {
            match walker.step()? {
                Step::Batch { header, .. } => end = header.next_offset(),
                Step::Bad { position, .. }
                    if end == self.reach(at) && self.is_padding(files, base, position)? =>
                {
                    self.cut_zeros(files, base, position)?;
                    self.segments[at].size = position as u32;
                    return Ok(());
                }
                Step::Bad { .. } | Step::End => return Ok(()),
            }
        }
    }

    pub(in crate::log) fn cut_zeros(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        position: u64,
    ) -> Result<(), StorageError> {
        let file = self.file(files, base, FileKind::Log)?;
        file.set_len(position)?;
        self.mark_dirty(files, base, FileKind::Log, file);
        Ok(())
    }
}

/// Whether `bytes` lie to the blocks of memory as they would behind the `head` bytes of a file's last block, and are
/// worth it.
fn lies_alike(bytes: &[u8], head: usize) -> bool {
    bytes.len() >= 4 * BLOCK_BYTES
        && bytes.as_ptr().align_offset(BLOCK_BYTES) == (BLOCK_BYTES - head) % BLOCK_BYTES
}

/// Writes what is in `blocks` and then `parts`, from `at` on. Returns what of the last block is full; `None` where the
/// file system refuses.
///
/// The whole blocks of a part that lies to the blocks of memory as it will to those of the file are written from where
/// they are. Everything else is put together in `blocks`.
fn write_blocks(
    file: &dyn DiskFile,
    at: u64,
    parts: &[&[u8]],
    blocks: &mut BlockBuffer,
) -> Result<Option<Vec<u8>>, StorageError> {
    let mut row = Row { at, copied: 0, pieces: Vec::with_capacity(2 * parts.len().min(ROW_PIECES_MAX)) };
    for part in parts {
        let mut rest = *part;
        let head = blocks.len() % BLOCK_BYTES;
        if lies_alike(rest, head) && blocks.room() >= 2 * BLOCK_BYTES {
            let (front, behind) = rest.split_at((BLOCK_BYTES - head) % BLOCK_BYTES);
            let (middle, tail) = behind.split_at(behind.len() - behind.len() % BLOCK_BYTES);
            blocks.push(front);
            row.copied_up_to(blocks.len());
            row.pieces.push(Piece::There(middle));
            if row.pieces.len() >= ROW_PIECES_MAX && !row.write(file, blocks)? {
                return Ok(None);
            }
            rest = tail;
        }
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(blocks.room()));
            blocks.push(now);
            rest = later;
            if blocks.room() == 0 && !row.write(file, blocks)? {
                return Ok(None);
            }
        }
    }
    let full = blocks.len() - blocks.len() % BLOCK_BYTES;
    let last_block = blocks.bytes()[full..].to_vec();
    blocks.pad();
    Ok(row.write(file, blocks)?.then_some(last_block))
}

/// Blocks to be written with one call.
struct Row<'a> {
    at: u64,
    /// So much of what was put together is in `pieces`.
    copied: usize,
    pieces: Vec<Piece<'a>>,
}

enum Piece<'a> {
    Copied(Range<usize>),
    There(&'a [u8]),
}

impl Row<'_> {
    fn copied_up_to(&mut self, end: usize) {
        if end > self.copied {
            self.pieces.push(Piece::Copied(self.copied..end));
            self.copied = end;
        }
    }

    /// Writes the row, which ends with a block, and begins the next one. `false`: the file system refuses.
    fn write(&mut self, file: &dyn DiskFile, blocks: &mut BlockBuffer) -> Result<bool, StorageError> {
        self.copied_up_to(blocks.len());
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Copied(range) => &blocks.bytes()[range.clone()],
            Piece::There(bytes) => bytes,
        });
        let slices: Vec<&[u8]> = pieces.collect();
        if !slices.is_empty() && !file.write_direct(self.at, &slices)? {
            return Ok(false);
        }
        self.at += slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
        self.pieces.clear();
        self.copied = 0;
        blocks.clear();
        Ok(true)
    }
}
