//! Reading: from the batch that holds an offset, as many whole batches as are asked for.
//!
//! An index entry only says where to begin to look. It is believed if a batch is found there that does not begin past
//! the offset, and if the walk from there meets the batch that ends at the entry's offset. Otherwise the segment is
//! walked from an earlier entry, or from its front. So a damaged index makes a read slow and never wrong; and a batch
//! with a lower base offset than it had, which an entry points at, is seen beside the one before it.
//!
//! Offsets lie outside a batch's checksum. One that does not rise is damage; one that leaves a gap, as compaction does,
//! is believed if the batch behind it follows.
//!
//! Where a read meets damage, the batch may lie behind it: sound/behind.rs looks for it.

pub(in crate::log) mod time_search;

use barnabas_base::Offset;
use bytes::Bytes;

use super::tail::{Tail, Wish};
use super::{BatchesRead, Log, LogPosition, ReadHint};
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::segment::batch::{BatchHeader, NoBatch};
use crate::segment::index_file::IndexEntries;
use crate::segment::offset_index::{ENTRY_BYTES, OffsetEntries, OffsetEntry};
use crate::segment::walker::{NOT_NEXT, OUT_OF_REACH, Step, WRONG_CHECKSUM, Walker, Wanted};

/// Read on top of what was asked for, since the index names a place up to `index.interval.bytes` before the offset.
const SLACK_BYTES: usize = 8 << 10;
/// So many index entries are tried before a segment is walked from its front.
const ENTRIES_TRIED: u32 = 3;

impl Log {
    /// Batches from the one that holds `from` on, none with an offset at or past `upper`, up to `max_bytes`; with
    /// `at_least_one`, the first batch whatever its size.
    ///
    /// # Errors
    /// [`StorageError::OffsetOutOfRange`]: `from` is below the start or past the end.
    ///
    /// # Source
    /// Kafka `LocalLog.read`, `LogSegment.read`. Kafka may end its answer within a batch, which clients drop; this does
    /// not.
    pub fn read(
        &mut self,
        files: &mut FilePool,
        from: Offset,
        max_bytes: usize,
        upper: Offset,
        at_least_one: bool,
    ) -> Result<BatchesRead, StorageError> {
        let end = self.end();
        if from < self.start || from > end {
            return Err(StorageError::OffsetOutOfRange { requested: from, start: self.start, end });
        }
        // A read for a follower may name offsets of batches that are numbered and not staged yet: they cannot be
        // read.
        let upper = upper.min(end);
        if from >= upper {
            return Ok(BatchesRead::nothing(from));
        }
        let wish = Wish { max_bytes, upper, at_least_one };
        if let Some(found) = self.tail.as_ref().and_then(|tail| tail.read(from, wish)) {
            return Ok(BatchesRead::in_memory(found));
        }
        let segments = match self.segment_of(from) {
            Some(first) => first..self.segments.len(),
            None => 0..0,
        };
        for at in segments {
            if let Some(read) = self.read_segment(files, at, from, wish)? {
                self.remember(&read);
                return Ok(read);
            }
        }
        // A compaction may have left the end of the segments empty.
        let staged = self.staged().find_map(|tail| tail.read(self.segment_end, wish));
        Ok(staged.map_or(BatchesRead::nothing(from), BatchesRead::in_memory))
    }

    /// Shows `visit` every batch (whole, header and records) from the one that holds `from` up to `to`, for rebuilding
    /// state.
    pub fn scan(
        &mut self,
        files: &mut FilePool,
        from: Offset,
        to: Offset,
        visit: &mut dyn FnMut(Bytes),
    ) -> Result<(), StorageError> {
        self.scan_wanting(files, (from, to), Wanted::Records, visit)
    }

    /// As [`Log::scan`], showing the headers of batches; control batches are whole.
    pub fn scan_headers(
        &mut self,
        files: &mut FilePool,
        from: Offset,
        to: Offset,
        visit: &mut dyn FnMut(Bytes),
    ) -> Result<(), StorageError> {
        self.scan_wanting(files, (from, to), Wanted::Control, visit)
    }

    fn scan_wanting(
        &self,
        files: &mut FilePool,
        (from, to): (Offset, Offset),
        wanted: Wanted,
        visit: &mut dyn FnMut(Bytes),
    ) -> Result<(), StorageError> {
        self.scan_segments(files, (from, to), wanted, visit)?;
        let staged = self.staged().flat_map(Tail::staged_batches);
        let staged = staged.skip_while(|(header, _)| header.last_offset < from);
        staged.take_while(|(header, _)| header.base_offset < to).for_each(|(_, bytes)| visit(bytes));
        Ok(())
    }

    fn scan_segments(
        &self,
        files: &mut FilePool,
        (from, to): (Offset, Offset),
        wanted: Wanted,
        visit: &mut dyn FnMut(Bytes),
    ) -> Result<(), StorageError> {
        let first = self.segment_of(from).unwrap_or(0);
        for at in first..self.segments.len() {
            if self.segments[at].base >= to {
                break;
            }
            let position = self.begin_looking(files, at, from)?;
            let mut walker = self.walker(files, at, position, false)?.wanting(wanted);
            let mut next = self.segments[at].base;
            while let Some((header, bytes)) = self.next_scanned(&mut walker, at, next)? {
                next = header.next_offset();
                if header.base_offset >= to {
                    return Ok(());
                }
                if header.last_offset >= from {
                    visit(bytes);
                }
            }
        }
        Ok(())
    }

    /// As [`Log::next_batch`], for rebuilding state. The segment's last batch, where its base offset alone has changed,
    /// has its own again: what it says of producers is right, and a replica that is damaged there is repaired later.
    fn next_scanned(
        &self,
        walker: &mut Walker,
        at: usize,
        next: Offset,
    ) -> Result<Option<(BatchHeader, Bytes)>, StorageError> {
        match walker.step()? {
            Step::Batch { header, bytes, .. } if header.is_misplaced(next, self.reach(at)) => {
                let mut whole = bytes.to_vec();
                whole[..8].copy_from_slice(&next.get().to_be_bytes());
                Ok(Some((header.moved_to(next), whole.into())))
            }
            step => Ok(self.checked(step, at)?.map(|(_, header, bytes)| (header, bytes))),
        }
    }

    /// Where in `segments` the segment is that `offset` falls into.
    pub(super) fn segment_of(&self, offset: Offset) -> Option<usize> {
        self.segments.partition_point(|segment| segment.base <= offset).checked_sub(1)
    }

    pub(super) fn walker(
        &self,
        files: &mut FilePool,
        at: usize,
        position: u32,
        with_records: bool,
    ) -> Result<Walker, StorageError> {
        let segment = &self.segments[at];
        let file = self.file(files, segment.base, FileKind::Log)?;
        Ok(Walker::new(file, position.into(), segment.size.into(), with_records))
    }

    /// The walker's next batch; what is no batch is damage, since only whole batches were written or let in.
    pub(super) fn next_batch(
        &self,
        walker: &mut Walker,
        at: usize,
    ) -> Result<Option<(u32, BatchHeader, Bytes)>, StorageError> {
        self.checked(walker.step()?, at)
    }

    fn checked(&self, step: Step, at: usize) -> Result<Option<(u32, BatchHeader, Bytes)>, StorageError> {
        match step {
            Step::Batch { position, header, .. } if header.last_offset >= self.reach(at) => {
                Err(self.damaged(at, position, self.offset_in(at, header.base_offset), OUT_OF_REACH))
            }
            Step::Batch { position, header, bytes } => Ok(Some((position as u32, header, bytes))),
            Step::End => Ok(None),
            Step::Bad { position, why } => Err(self.damaged(at, position, self.segments[at].base, why)),
        }
    }

    /// All offsets of a segment lie below this.
    pub(super) fn reach(&self, at: usize) -> Offset {
        self.segments.get(at + 1).map_or(self.segment_end, |next| next.base)
    }

    pub(super) fn damaged(
        &self,
        at: usize,
        position: u64,
        offset: Offset,
        what: &'static str,
    ) -> StorageError {
        StorageError::Damaged {
            file: self.path(self.segments[at].base, FileKind::Log),
            position,
            offset,
            what,
        }
    }

    pub(super) fn damaged_batch(&self, at: usize, position: u32, batch: &[u8]) -> StorageError {
        let offset = BatchHeader::parse(batch).map_or(self.segments[at].base, |header| header.base_offset);
        self.damaged(at, position.into(), self.offset_in(at, offset), WRONG_CHECKSUM)
    }

    /// What a damaged batch says of its offset, which may be nonsense: an offset of its segment.
    fn offset_in(&self, at: usize, offset: Offset) -> Offset {
        offset.min(self.reach(at).plus(-1)).max(self.segments[at].base)
    }

    /// A position at which a batch begins, at or before the first batch that holds `offset` or more.
    pub(super) fn begin_looking(
        &self,
        files: &mut FilePool,
        at: usize,
        offset: Offset,
    ) -> Result<u32, StorageError> {
        let Some(entry) = self.index_entry(files, at, offset)? else { return Ok(0) };
        match self.walker(files, at, entry.position, false)?.step()? {
            // Kafka's entries name the last offset of an append, whose first batch this is.
            Step::Batch { header, .. }
                if header.base_offset <= offset && header.last_offset <= entry.offset =>
            {
                Ok(entry.position)
            }
            _ => Ok(0),
        }
    }

    /// What the index says.
    pub(super) fn index_entry(
        &self,
        files: &mut FilePool,
        at: usize,
        offset: Offset,
    ) -> Result<Option<OffsetEntry>, StorageError> {
        let segment = self.segments[at];
        if offset <= segment.base {
            return Ok(None);
        }
        let holds = |entry: &[u8; ENTRY_BYTES]| OffsetEntry::decode(*entry, segment.base).offset <= offset;
        let is_active = at + 1 == self.segments.len();
        let file = if is_active && self.active.offsets.is_file_empty() {
            None
        } else {
            self.existing_file(files, segment.base, FileKind::OffsetIndex)?
        };
        let sealed: OffsetEntries;
        let entries = if is_active {
            &self.active.offsets
        } else {
            let bytes = file.as_ref().map_or(Ok(0), |file| file.len())?;
            sealed = IndexEntries::in_file((bytes / ENTRY_BYTES as u64) as u32);
            &sealed
        };
        let count = entries.count_while(file.as_deref(), holds)?;
        let Some(last) = count.checked_sub(1) else { return Ok(None) };
        let entry = entries.get(file.as_deref(), last)?.map(|entry| OffsetEntry::decode(entry, segment.base));
        Ok(entry.filter(|entry| entry.position < segment.size))
    }

    fn read_segment(
        &mut self,
        files: &mut FilePool,
        at: usize,
        from: Offset,
        wish: Wish,
    ) -> Result<Option<BatchesRead>, StorageError> {
        let read = match self.first_window(files, at, from, wish.max_bytes) {
            Ok(Some(window)) => self.read_window(files, at, from, wish, window),
            Ok(None) => return Ok(None),
            Err(error) => Err(error),
        };
        match read {
            // What is damaged may be a batch before it, whose header led astray.
            Err(damage @ StorageError::Damaged { .. }) => match self.find_behind_damage(files, at, from)? {
                Some((position, first)) => {
                    let window = Window { position, bytes: Bytes::new() };
                    self.read_window(files, at, from, wish, (window, first)).map(Some)
                }
                None => Err(damage),
            },
            read => read.map(Some),
        }
    }

    /// As [`Log::open_window`], where what the first batch says of its offsets fits.
    fn first_window(
        &self,
        files: &mut FilePool,
        at: usize,
        from: Offset,
        max_bytes: usize,
    ) -> Result<Option<(Window, BatchHeader)>, StorageError> {
        let Some((window, first)) = self.open_window(files, at, from, max_bytes)? else { return Ok(None) };
        let base = self.segments[at].base;
        if first.last_offset >= self.reach(at) {
            return Err(self.damaged(at, window.position.into(), from, OUT_OF_REACH));
        }
        // Where a read goes on, a batch begins there. Elsewhere its base offset may be too high.
        let is_wrong = match self.hint(from, base) {
            Some(_) => first.base_offset < from,
            None => window.is_overlapped(&first),
        };
        if is_wrong {
            return Err(self.damaged(at, window.position.into(), from, NOT_NEXT));
        }
        let leaves_hole = first.base_offset > from.max(base);
        let is_sought = window.bytes.is_empty() || leaves_hole && self.hint(from, base).is_none();
        if leaves_hole && !self.is_followed(files, at, &window, &first)?
            || is_sought && !self.rises(files, at, from, window.position)?
        {
            return Err(self.damaged(at, window.position.into(), from, NOT_NEXT));
        }
        Ok(Some((window, first)))
    }

    /// Whether the batches up to the one at `position` overlap nowhere, from the index entry for `from` on: otherwise
    /// one of them may have a base offset that is too low.
    fn rises(
        &self,
        files: &mut FilePool,
        at: usize,
        from: Offset,
        position: u32,
    ) -> Result<bool, StorageError> {
        let begin = self.index_entry(files, at, from)?.map_or(0, |entry| entry.position);
        let mut walker = self.walker(files, at, begin, false)?;
        let mut next = Offset::NONE;
        while let Some((place, header, _)) = self.next_batch(&mut walker, at)? {
            if place > position {
                break;
            }
            if header.base_offset < next {
                return Ok(false);
            }
            next = header.next_offset();
        }
        Ok(true)
    }

    fn read_window(
        &mut self,
        files: &mut FilePool,
        at: usize,
        from: Offset,
        wish: Wish,
        (mut window, first): (Window, BatchHeader),
    ) -> Result<BatchesRead, StorageError> {
        let (segment, reach) = (self.segments[at], self.reach(at));
        let too_large = first.size as usize > wish.max_bytes && !wish.at_least_one;
        if first.last_offset >= wish.upper || too_large {
            return Ok(BatchesRead { first_batch_too_large: too_large, ..BatchesRead::nothing(from) });
        }
        let left = (segment.size - window.position) as usize;
        let wanted = wish.max_bytes.max(first.size as usize).min(left);
        if window.bytes.len() < wanted.min(first.size as usize) || window.bytes.len() < wanted / 2 {
            let file = self.file(files, segment.base, FileKind::Log)?;
            window.bytes = file.read_bytes(window.position.into(), wanted)?;
        }
        window.bytes.truncate(wanted);
        let is_end = wanted == left;
        let (len, next_offset) = whole_batches(&window.bytes, wish.upper.min(reach), is_end);
        if len == 0 {
            return Err(self.damaged(at, window.position.into(), from, "the file is shorter than it was"));
        }
        let (len, next_offset) =
            self.sound_front(files, at, window.position, &window.bytes[..len], next_offset)?;
        window.bytes.truncate(len);
        let position = LogPosition { segment: segment.base, position: window.position };
        Ok(BatchesRead {
            records: window.bytes,
            next_offset,
            position: Some(position),
            first_batch_too_large: false,
        })
    }

    /// Where in a segment the read that goes on at `from` begins.
    fn hint(&self, from: Offset, segment: Offset) -> Option<&ReadHint> {
        self.hints.iter().flatten().find(|hint| hint.offset == from && hint.position.segment == segment)
    }

    /// Bytes of a segment from the first batch on that holds `from` or more, as many as one read gave; and its header.
    /// `None`: the segment holds no such batch.
    fn open_window(
        &self,
        files: &mut FilePool,
        at: usize,
        from: Offset,
        max_bytes: usize,
    ) -> Result<Option<(Window, BatchHeader)>, StorageError> {
        let segment = self.segments[at];
        let hint = self.hint(from, segment.base);
        let entry = if hint.is_some() { None } else { self.index_entry(files, at, from)? };
        let begin = match hint {
            Some(hint) => hint.position.position,
            None => entry.map_or(0, |entry| entry.position),
        };
        if begin >= segment.size {
            return Ok(None);
        }
        let file = self.file(files, segment.base, FileKind::Log)?;
        let left = (segment.size - begin) as usize;
        let slack = if hint.is_some() { 0 } else { SLACK_BYTES };
        let len = left.min(max_bytes.saturating_add(slack).max(SLACK_BYTES));
        let mut window = Window { position: begin, bytes: file.read_bytes(begin.into(), len)? };
        let ends_at = entry.map(|entry| entry.offset);
        if let Some(first) = window.skip_to(from, segment.base, hint.is_some(), ends_at) {
            return Ok(Some((window, first)));
        }
        // Not in the window, or the index led astray: look batch by batch.
        let found = self.find_batch(files, at, from)?;
        Ok(found.map(|(position, first)| (Window { position, bytes: Bytes::new() }, first)))
    }

    /// The first batch of a segment that holds `offset` or more.
    pub(super) fn find_batch(
        &self,
        files: &mut FilePool,
        at: usize,
        offset: Offset,
    ) -> Result<Option<(u32, BatchHeader)>, StorageError> {
        let mut below = offset;
        for _ in 0..ENTRIES_TRIED {
            let Some(entry) = self.index_entry(files, at, below)? else { break };
            if let Some(found) = self.find_behind(files, at, Some(entry), offset)? {
                return Ok(found);
            }
            below = entry.offset.plus(-1);
        }
        Ok(self.find_behind(files, at, None, offset)?.flatten())
    }

    /// As [`Log::find_batch`], from an index entry on, or from the segment's front. `None`: the entry is not believed.
    fn find_behind(
        &self,
        files: &mut FilePool,
        at: usize,
        entry: Option<OffsetEntry>,
        offset: Offset,
    ) -> Result<Option<Option<(u32, BatchHeader)>>, StorageError> {
        let mut walker = self.walker(files, at, entry.map_or(0, |entry| entry.position), false)?;
        let (mut next, mut is_borne_out) = (self.segments[at].base, entry.is_none());
        loop {
            let found = match (self.next_batch(&mut walker, at), entry) {
                (Err(StorageError::Damaged { .. }), Some(_)) if !is_borne_out => return Ok(None),
                (found, _) => found?,
            };
            let Some((position, header, _)) = found else { return Ok(is_borne_out.then_some(None)) };
            is_borne_out |= entry.is_some_and(|entry| entry.offset == header.last_offset);
            // Of formats 0 and 1 the last offset alone is known.
            if header.last_offset < next {
                let damage = || self.damaged(at, position.into(), next, NOT_NEXT);
                return if is_borne_out { Err(damage()) } else { Ok(None) };
            }
            if header.last_offset >= offset {
                return Ok(is_borne_out.then_some(Some((position, header))));
            }
            next = header.next_offset();
        }
    }

    /// Whether the batch behind `first`, at the window's front, lies behind its offsets. None behind it is as good.
    fn is_followed(
        &self,
        files: &mut FilePool,
        at: usize,
        window: &Window,
        first: &BatchHeader,
    ) -> Result<bool, StorageError> {
        let behind = window.bytes.get(first.size as usize..).map(BatchHeader::parse);
        if let Some(Ok(behind)) = behind {
            return Ok(behind.base_offset > first.last_offset);
        }
        let mut walker = self.walker(files, at, window.position.saturating_add(first.size), false)?;
        Ok(match walker.step()? {
            Step::Batch { header, .. } => header.base_offset > first.last_offset,
            Step::End | Step::Bad { .. } => true,
        })
    }

    /// The next read in sequence begins where this one ended.
    fn remember(&mut self, read: &BatchesRead) {
        let Some(position) = read.position else { return };
        let next = LogPosition { position: position.position + read.records.len() as u32, ..position };
        self.hints.rotate_right(1);
        self.hints[0] = Some(ReadHint { offset: read.next_offset, position: next });
    }
}

/// Bytes of a segment from a position on.
struct Window {
    position: u32,
    bytes: Bytes,
}

impl Window {
    /// Whether the batch behind `first`, which is at the front, begins before that ends, as far as it is in here.
    fn is_overlapped(&self, first: &BatchHeader) -> bool {
        let behind = self.bytes.get(first.size as usize..).map(BatchHeader::parse);
        behind.is_some_and(|behind| behind.is_ok_and(|behind| behind.base_offset <= first.last_offset))
    }

    /// Moves to the first batch that holds `offset` or more. `None`: it is not in here, or this does not begin with a
    /// batch at or below `offset`; or, where `is_next`, with one that lies below; or the offsets do not rise.
    /// `ends_at`: the index says that a batch from here on ends there, which must show on the way.
    fn skip_to(
        &mut self,
        offset: Offset,
        segment: Offset,
        is_next: bool,
        ends_at: Option<Offset>,
    ) -> Option<BatchHeader> {
        let mut header =
            BatchHeader::parse(&self.bytes).ok().filter(|header| header.last_offset >= segment)?;
        let is_far = header.base_offset > offset && self.position > 0 && !is_next;
        if is_far || is_next && header.last_offset < offset {
            return None;
        }
        let is_there = |header: &BatchHeader| ends_at.is_none_or(|end| header.last_offset == end);
        let mut is_borne_out = is_there(&header);
        while header.last_offset < offset {
            let (size, next) = (header.size as usize, header.next_offset());
            if size >= self.bytes.len() {
                return None;
            }
            self.bytes = self.bytes.slice(size..);
            self.position += header.size;
            header = BatchHeader::parse(&self.bytes).ok().filter(|header| header.base_offset >= next)?;
            is_borne_out |= is_there(&header);
        }
        is_borne_out.then_some(header)
    }
}

/// How many bytes at the front of `bytes` are whole batches below `upper`, and the offset after them. A batch that
/// leaves a gap counts if the one behind it follows, or if it is the segment's last: `is_end`.
fn whole_batches(bytes: &[u8], upper: Offset, is_end: bool) -> (usize, Offset) {
    let (mut len, mut next) = (0, Offset::NONE);
    let mut before_gap = None;
    loop {
        let header = match BatchHeader::parse(&bytes[len..]) {
            Ok(header) if header.base_offset >= next => header,
            Ok(_) => return before_gap.unwrap_or((len, next)),
            Err(NoBatch::Short(_)) if !is_end => return before_gap.unwrap_or((len, next)),
            Err(NoBatch::Short(_) | NoBatch::Wrong(_)) => return (len, next),
        };
        if header.size as usize > bytes.len() - len || header.last_offset >= upper {
            return (len, next);
        }
        before_gap = (len > 0 && header.base_offset > next).then_some((len, next));
        len += header.size as usize;
        next = header.next_offset();
    }
}
