//! Sound batches behind a damaged one: found by their own checksums, where the damaged one hides where they begin.
//!
//! A header whose length, base offset or last offset has changed leads a walk astray. The reader who asks for a batch
//! behind it gets that batch even so, and only what is damaged is refused.
//!
//! Always true:
//! 1. what is found has a right checksum, holds the offset that is asked for, and lies behind the sound batches before
//!    it and within the segment's reach
//! 2. where the place does not follow from a sound batch before it or from the damaged one's own length, what follows
//!    it must be the segment's end or a batch with higher offsets: bytes in a record's value that look like a batch are
//!    not one
//! 3. the work has a bound: the search ends where it has read or checked too much
//!
//! Of formats 0 and 1 the next batch is found by the damaged one's length alone.
//!
//! Neighbours: read.rs, which asks where a read meets damage.

use std::sync::Arc;

use barnabas_base::Offset;
use bytes::Bytes;

use crate::disk::DiskFile;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::Log;
use crate::segment::batch::{BatchHeader, HEADER_BYTES};

/// How far behind the index entry before an offset its batch is looked for.
const REACH_BYTES: u32 = 8 << 20;
/// What may be read to compare checksums.
const CHECKED_BYTES_MAX: usize = 64 << 20;
/// Searched at once.
const WINDOW_BYTES: usize = 64 << 10;
const MAGIC_AT: usize = 16;

/// A search in one segment.
struct Search {
    file: Arc<dyn DiskFile>,
    /// Where the segment ends, and its offsets.
    size: u32,
    reach: Offset,
    /// Up to where is searched.
    end: u32,
    /// The offset behind the sound batches before.
    floor: Offset,
    /// What may still be read to compare checksums.
    budget: usize,
    /// Read last, and from where.
    window: (u32, Bytes),
}

impl Log {
    /// The batch of a segment that holds `from`, where damage before it misleads a walk by headers. `None`: there is
    /// none that is sound.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(in crate::log) fn find_behind_damage(
        &self,
        files: &mut FilePool,
        at: usize,
        from: Offset,
    ) -> Result<Option<(u32, BatchHeader)>, StorageError> {
        let segment = self.segments[at];
        let mut position = self.index_entry(files, at, from)?.map_or(0, |entry| entry.position);
        let mut search = Search {
            file: self.file(files, segment.base, FileKind::Log)?,
            size: segment.size,
            reach: self.reach(at),
            end: segment.size.min(position.saturating_add(REACH_BYTES)),
            // The first batch of a log may begin below its start.
            floor: if at == 0 { Offset::ZERO } else { segment.base },
            budget: CHECKED_BYTES_MAX,
            window: (0, Bytes::new()),
        };
        while let Some((found, header)) = search.sound_from(position)? {
            if header.last_offset >= from {
                return Ok((header.base_offset <= from).then_some((found, header)));
            }
            search.floor = header.next_offset();
            position = found + header.size;
        }
        Ok(None)
    }
}

impl Search {
    /// The first sound batch at `position` or behind it.
    fn sound_from(&mut self, position: u32) -> Result<Option<(u32, BatchHeader)>, StorageError> {
        if let Some(header) = self.sound_at(position)? {
            return Ok(Some((position, header)));
        }
        // A batch with a damaged payload, or none that begins here.
        if let Some(next) = self.header_at(position)?.and_then(|header| position.checked_add(header.size))
            && let Some(header) = self.sound_at(next)?
        {
            return Ok(Some((next, header)));
        }
        let mut at = position + 1;
        while let Some(candidate) = self.next_candidate(at)? {
            if let Some(header) = self.sound_at(candidate)?
                && self.is_followed(candidate, &header)?
            {
                return Ok(Some((candidate, header)));
            }
            at = candidate + 1;
        }
        Ok(None)
    }

    /// The header at a place, if it may be that of a batch.
    fn header_at(&mut self, position: u32) -> Result<Option<BatchHeader>, StorageError> {
        if position >= self.end {
            return Ok(None);
        }
        let header = BatchHeader::parse(self.bytes(position)?).ok();
        Ok(header.filter(|header| header.size <= self.size - position))
    }

    /// The batch at `position`, if it is sound and no other one shows that its base offset is wrong.
    fn sound_at(&mut self, position: u32) -> Result<Option<BatchHeader>, StorageError> {
        let Some(header) = self.header_at(position)? else { return Ok(None) };
        if header.base_offset < self.floor || header.last_offset >= self.reach {
            return Ok(None);
        }
        let Some(left) = self.budget.checked_sub(header.size as usize) else {
            self.end = 0;
            return Ok(None);
        };
        self.budget = left;
        let batch = self.file.read_bytes(position.into(), header.size as usize)?;
        if batch.len() < header.size as usize || !header.checksum_is_right(&batch) {
            return Ok(None);
        }
        let is_borne_out = header.base_offset == self.floor || !self.is_overlapped(position, &header)?;
        Ok(is_borne_out.then_some(header))
    }

    /// Whether the one behind it begins before it ends, and that is not the fault of the one behind: its records would
    /// not fit between this one and what follows.
    fn is_overlapped(&self, position: u32, header: &BatchHeader) -> Result<bool, StorageError> {
        let Some(next) = self.header_behind(position, header)? else { return Ok(false) };
        if next.base_offset > header.last_offset {
            return Ok(false);
        }
        let behind = position + header.size;
        let ends = match behind.checked_add(next.size) {
            Some(end) if end < self.size => {
                self.header_behind(behind, &next)?.map_or(Offset::NONE, |behind| behind.base_offset)
            }
            _ => self.reach,
        };
        Ok(!next.is_misplaced(header.next_offset(), ends))
    }

    /// Whether the segment ends behind the batch at `position`, or what lies there has higher offsets.
    fn is_followed(&self, position: u32, header: &BatchHeader) -> Result<bool, StorageError> {
        let behind = self.header_behind(position, header)?;
        let is_last = position + header.size == self.size;
        Ok(is_last || behind.is_some_and(|next| next.base_offset > header.last_offset))
    }

    fn header_behind(
        &self,
        position: u32,
        header: &BatchHeader,
    ) -> Result<Option<BatchHeader>, StorageError> {
        let behind = position + header.size;
        let len = HEADER_BYTES.min((self.size - behind) as usize);
        Ok(BatchHeader::parse(&self.file.read_bytes(behind.into(), len)?).ok())
    }

    /// The next place, from `at` on, that looks like the header of a batch of format 2 which would fit.
    fn next_candidate(&mut self, mut at: u32) -> Result<Option<u32>, StorageError> {
        while at < self.end {
            let (floor, reach, left) = (self.floor, self.reach, self.size - at);
            let bytes = self.bytes(at)?;
            let fits = |offset: usize| {
                bytes[offset + MAGIC_AT] == 2
                    && BatchHeader::parse(&bytes[offset..]).is_ok_and(|header| {
                        let is_within = header.base_offset >= floor && header.last_offset < reach;
                        is_within && header.size as usize + offset <= left as usize
                    })
            };
            let count = (bytes.len() + 1).saturating_sub(HEADER_BYTES);
            if let Some(found) = (0..count).find(|offset| fits(*offset)) {
                return Ok(Some(at + found as u32).filter(|found| *found < self.end));
            }
            if count == 0 {
                return Ok(None);
            }
            at += count as u32;
        }
        Ok(None)
    }

    /// What lies at `position`: a whole header at least, where the segment has it.
    fn bytes(&mut self, position: u32) -> Result<&[u8], StorageError> {
        let left = (self.size - position) as usize;
        let (from, window) = &self.window;
        let held = position.checked_sub(*from).map_or(0, |skip| window.len().saturating_sub(skip as usize));
        if held < HEADER_BYTES.min(left) {
            let window = self.file.read_bytes(position.into(), WINDOW_BYTES.min(left))?;
            self.window = (position, window);
        }
        let (from, window) = &self.window;
        Ok(&window[(position - from) as usize..])
    }
}
