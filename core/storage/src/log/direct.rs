//! Large writes go past the page cache: no page to find, fill and write back, which costs more than all else that is done with a
//! byte (figures: lab/bench/JOURNAL.md).
//!
//! Only whole blocks can be written so, and batches end within one. The last block is written with zeros behind the batches,
//! its front is kept in memory, and the next write begins with it again. So until the segment is sealed or closed
//! ([`Log::give_room_back`]) its file may be longer than what it holds, by zeros. A crash leaves them, and so they are never
//! taken for a batch, nor for damage (open.rs).

use std::ops::Range;

use super::{AppendBytes, FileKind, Log, Offset};
use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::file_pool::FilePool;
use crate::journal::{BLOCK_BYTES, RoundBuffer};
use crate::segment::Segment;
use crate::walker::Step;

/// Batches that go into the active segment with one write.
pub(super) struct Run<'a> {
    pub position: u64,
    pub parts: Vec<&'a [u8]>,
}

impl<'a> Run<'a> {
    /// Adds whole batches of `piece`, which lie side by side and stay in one part.
    pub(super) fn take(&mut self, piece: &'a AppendBytes, range: Range<usize>) {
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
    pub(super) fn write_direct(
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
        let done = match *run.parts {
            [whole] if lies_alike(whole, head) => write_in_place(file, at, whole, &mut blocks),
            _ => write_blocks(file, at, &run.parts, &mut blocks),
        };
        if let Ok(Some(last_block)) = &done {
            self.active.last_block.clone_from(last_block);
        }
        let done = done.map(|last_block| last_block.is_some());
        files.give_blocks_back(blocks, matches!(done, Ok(false)));
        done
    }

    /// Whether what lies behind `position` in a segment's file is what the end of a block was filled with. More zeros than that
    /// are something that a crash made.
    pub(super) fn is_padding(
        &self,
        files: &mut FilePool,
        base: Offset,
        position: u64,
    ) -> Result<bool, StorageError> {
        let bytes = self.file(files, base, FileKind::Log)?.read_bytes(position, BLOCK_BYTES)?;
        let to_block = position.next_multiple_of(BLOCK_BYTES as u64) - position;
        Ok((1..=to_block).contains(&(bytes.len() as u64)) && bytes.iter().all(|byte| *byte == 0))
    }

    /// Cuts the zeros off that a sealed segment may end with where its being sealed was not synced. Where a batch is missing
    /// before the next segment, zeros are damage, and stay.
    pub(super) fn cut_padding(&mut self, files: &mut FilePool, at: usize) -> Result<(), StorageError> {
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

    pub(super) fn cut_zeros(
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

/// Whether `bytes` lie to the blocks of memory as they would behind the `head` bytes of a file's last block, and are worth it.
fn lies_alike(bytes: &[u8], head: usize) -> bool {
    bytes.len() >= 4 * BLOCK_BYTES
        && bytes.as_ptr().align_offset(BLOCK_BYTES) == (BLOCK_BYTES - head) % BLOCK_BYTES
}

/// As [`write_blocks`] for bytes of which all whole blocks are written from where they lie; only the first and the last block
/// are put together in `blocks`.
fn write_in_place(
    file: &dyn DiskFile,
    at: u64,
    bytes: &[u8],
    blocks: &mut RoundBuffer,
) -> Result<Option<Vec<u8>>, StorageError> {
    let (front, rest) = bytes.split_at(blocks.len().next_multiple_of(BLOCK_BYTES) - blocks.len());
    let (middle, tail) = rest.split_at(rest.len() - rest.len() % BLOCK_BYTES);
    blocks.push(front);
    let first = blocks.len();
    blocks.push(tail);
    blocks.pad();
    let (first, last) = blocks.bytes().split_at(first);
    let done = file.write_direct(at, &[first, middle, last])?;
    Ok(done.then(|| tail.to_vec()))
}

/// Writes what is in `blocks` and then `parts`, from `at` on. Returns what of the last block is full; `None` where the file
/// system refuses.
fn write_blocks(
    file: &dyn DiskFile,
    mut at: u64,
    parts: &[&[u8]],
    blocks: &mut RoundBuffer,
) -> Result<Option<Vec<u8>>, StorageError> {
    for part in parts {
        let mut rest = *part;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(blocks.room()));
            blocks.push(now);
            rest = later;
            if blocks.room() == 0 {
                if !file.write_direct(at, &[blocks.bytes()])? {
                    return Ok(None);
                }
                at += blocks.len() as u64;
                blocks.clear();
            }
        }
    }
    let full = blocks.len() - blocks.len() % BLOCK_BYTES;
    let last_block = blocks.bytes()[full..].to_vec();
    blocks.pad();
    if blocks.len() > 0 && !file.write_direct(at, &[blocks.bytes()])? {
        return Ok(None);
    }
    Ok(Some(last_block))
}
