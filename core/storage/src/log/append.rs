//! Appending: batches go behind one another into the active segment, with an index entry now and then, until it is
//! full.

pub(in crate::log) mod direct;
pub(in crate::log) mod gather;
pub(in crate::log) mod stage;
pub(in crate::log) mod sync;

use barnabas_base::{EpochEntry, Offset, TimestampMs};

use super::{Active, Appended, Log};
use crate::disk::file_pool::{FileKind, FilePool};
use crate::disk::{DiskErrorKind, DiskFile, OpenMode};
use crate::error::StorageError;
use crate::log::append::direct::Run;
use crate::log::append::gather::{Batches, Order, begins_epoch, gather};
use crate::log::tail::memory::TailMemory;
use crate::segment::batch::{AppendBytes, BatchHeader};
use crate::segment::index_file::IndexEntries;
use crate::segment::offset_index::{self, OffsetEntry};
use crate::segment::time_index;
use crate::segment::walker::SKIP_FROM_BYTES;
use crate::segment::{LargestTimestamp, Segment};

/// Writes of this much and more are taken for a segment that grows fast: room is set aside ahead of them. To set room
/// aside for a few MiB at once keeps the file in few pieces and the search for room short (lab/bench/JOURNAL.md, 5).
const ROOM_FOR_WRITES_FROM: u64 = 64 << 10;
/// So much at most; and never more than the segment holds already, so that many small segments waste little.
const ROOM_AHEAD_MAX: u64 = 4 << 20;

/// What an append changes in memory, to take it back where the disk turns out to be full.
struct Before {
    end: Offset,
    segments: usize,
    /// The last segment, its counts of index entries, and the rest of [`Active`].
    active: Option<(Segment, u32, u32)>,
    last_time: TimestampMs,
    since_entry: u32,
    epoch: Option<EpochEntry>,
}

impl Log {
    /// Writes batches that are validated and numbered, after all that is staged. The first of an empty log may hold the
    /// log's end, where records were deleted up to the middle of it; any other begins at the log's end or later.
    ///
    /// Goes into the page cache only. Rolls a new segment first where one is due.
    ///
    /// # Errors
    /// After [`StorageError::Full`], [`StorageError::Exhausted`], [`StorageError::OutOfOrder`],
    /// [`StorageError::NotBatches`] and [`StorageError::TooLargeForSegment`] the log holds what it did. After any other
    /// error it takes no more writes.
    pub fn append(
        &mut self,
        files: &mut FilePool,
        records: &[AppendBytes],
        now: TimestampMs,
    ) -> Result<Appended, StorageError> {
        self.check_writable()?;
        self.check_batches(records)?;
        self.write_back_all(files, now)?;
        self.write_batches(files, records, now)
    }

    /// As [`Log::append`]; the batches stay in memory, too, until they are forgotten ([`Log::forget_below`]).
    pub fn append_kept(
        &mut self,
        files: &mut FilePool,
        memory: &mut TailMemory,
        records: &[AppendBytes],
        now: TimestampMs,
    ) -> Result<Appended, StorageError> {
        self.check_writable()?;
        let position = Some(self.next_position());
        let gathered = gather(memory, self.order(), self.epochs.latest(), records, position)?;
        self.write_back_all(files, now)?;
        let appended = self.write_batches(files, &[AppendBytes::Whole(gathered.whole())], now)?;
        if !gathered.pieces.is_empty() {
            let tail = self.tail.get_or_insert_default();
            gathered.pieces.into_iter().for_each(|piece| tail.keep_written_back(piece));
        }
        Ok(appended)
    }

    /// As [`Log::append`] or [`Log::write_back`], for batches that were checked and follow the segments' end.
    pub(super) fn write_batches(
        &mut self,
        files: &mut FilePool,
        records: &[AppendBytes],
        now: TimestampMs,
    ) -> Result<Appended, StorageError> {
        self.attempt(|log| log.settle(files))?;
        let before = self.before_append();
        match self.append_checked(files, records, now) {
            Err(error) if error.is_passing() => {
                self.change(|log| log.take_back(files, before))?;
                Err(error)
            }
            done => {
                self.failed |= done.is_err();
                if let Some(tail) = &mut self.tail {
                    tail.written_back_up_to(self.segment_end);
                    tail.take_aborted(self.segment_end);
                }
                done
            }
        }
    }

    /// Whether appending batches of `bytes` with this last offset and largest timestamp would begin a new segment, so
    /// that a snapshot of the producers can be taken before.
    pub fn roll_is_due(
        &self,
        bytes: u32,
        last_offset: Offset,
        max_timestamp: TimestampMs,
        now: TimestampMs,
    ) -> bool {
        let Some(segment) = self.segments.last() else { return true };
        if !segment.can_index(last_offset) {
            return true;
        }
        if segment.size == 0 {
            return false;
        }
        let waited = match segment.first_timestamp {
            Some(first) if first.0 >= 0 => max_timestamp.0.saturating_sub(first.0),
            _ => now.0.saturating_sub(segment.created.0),
        };
        let config = &self.config;
        let offsets_max = (config.segment_index_bytes as usize / offset_index::ENTRY_BYTES) as u32;
        let times_max = (config.segment_index_bytes as usize / time_index::ENTRY_BYTES) as u32;
        u64::from(segment.size) + u64::from(bytes) > u64::from(config.segment_bytes)
            || waited > config.segment_ms.0.saturating_sub(self.roll_jitter_ms(segment.base))
            || self.active.offsets.count() >= offsets_max
            // One entry is kept back for the one that closes the index.
            || self.active.times.count() + 1 >= times_max
    }

    /// Spreads rolls by time: a share of `segment.jitter.ms` that depends on partition and segment alone.
    fn roll_jitter_ms(&self, base: Offset) -> i64 {
        let jitter = self.config.segment_jitter_ms.0;
        if jitter <= 0 {
            return 0;
        }
        let name = self.place.topic_partition.topic.bytes();
        let seed = i64::from(self.place.topic_partition.partition.get()) ^ base.get();
        // FNV-1a: any spread will do.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.chain(seed.to_be_bytes()).fold(0xcbf2_9ce4_8422_2325, mix);
        (hash % jitter as u64) as i64
    }

    fn check_batches(&self, records: &[AppendBytes]) -> Result<(), StorageError> {
        let mut order = self.order();
        for (header, _) in records.iter().flat_map(Batches::of) {
            order.check(&header.map_err(StorageError::NotBatches)?)?;
        }
        Ok(())
    }

    /// What may follow.
    pub(super) fn order(&self) -> Order {
        Order {
            end: self.end(),
            may_straddle: self.holds_nothing(),
            segment_bytes: self.config.segment_bytes,
        }
    }

    /// An empty log may begin within a batch: records were deleted up to there, and the batch comes back from the
    /// journal or from a leader.
    fn holds_nothing(&self) -> bool {
        self.staged_bytes() == 0 && self.segments.iter().all(|segment| segment.size == 0)
    }

    fn append_checked(
        &mut self,
        files: &mut FilePool,
        records: &[AppendBytes],
        now: TimestampMs,
    ) -> Result<Appended, StorageError> {
        let position = self.segments.last().map_or(0, |segment| segment.size.into());
        let mut run = Run { position, parts: Vec::with_capacity(records.len()) };
        let (mut bytes, mut rolled) = (0, None);
        for piece in records {
            let (mut from, mut at) = (0, 0);
            for (header, _) in Batches::of(piece) {
                let header = header.map_err(StorageError::NotBatches)?;
                let straddles = self.segments.last().is_some_and(|active| active.base > header.base_offset);
                if straddles || self.roll_is_due(header.size, header.last_offset, header.max_timestamp, now) {
                    run.take(piece, from..at);
                    from = at;
                    self.write_run(files, &mut run)?;
                    let base = self.next_base(&header, now);
                    self.begin_segment(files, base, now)?;
                    run.position = 0;
                    rolled = Some(base);
                }
                self.account(&header);
                at += header.size as usize;
            }
            run.take(piece, from..at);
            bytes += at as u64;
        }
        self.write_run(files, &mut run)?;
        self.index_written_back_aborted(files)?;
        self.write_due_entries(files)?;
        Ok(Appended { end: self.segment_end, bytes, rolled })
    }

    /// Where a segment begins that takes `header`'s batch next: where the last one ends, so that a crash that loses its
    /// end leaves a gap. In a copy of a compacted log the batch may come later, and the hole before it belongs to the
    /// log all the same.
    fn next_base(&self, header: &BatchHeader, now: TimestampMs) -> Offset {
        let base = header.base_offset.min(self.segment_end);
        let is_first = self.segments.is_empty();
        match is_first || Segment::empty(base, now).can_index(header.last_offset) {
            true => base,
            false => header.base_offset,
        }
    }

    fn write_run(&mut self, files: &mut FilePool, run: &mut Run<'_>) -> Result<(), StorageError> {
        if let (Some(segment), false) = (self.segments.last(), run.parts.is_empty()) {
            let base = segment.base;
            let file = self.file(files, base, FileKind::Log)?;
            self.make_room(&*file, run)?;
            if !self.write_direct(files, &*file, run)? {
                file.write_at(run.position, &run.parts)?;
                self.active.last_block = Vec::new();
            }
            self.mark_dirty(files, base, FileKind::Log, file);
            run.parts.clear();
        }
        Ok(())
    }

    /// Sets room aside ahead of large writes. A segment's first one may be all that it ever gets: many partitions are
    /// copied by one write.
    fn make_room(&mut self, file: &dyn DiskFile, run: &Run<'_>) -> Result<(), StorageError> {
        let bytes: usize = run.parts.iter().map(|part| part.len()).sum();
        let end = run.position + bytes as u64;
        if (bytes as u64) < ROOM_FOR_WRITES_FROM || run.position == 0 || end <= self.active.room {
            return Ok(());
        }
        let wanted = (end + end.min(ROOM_AHEAD_MAX)).min(u64::from(self.config.segment_bytes).max(end));
        self.active.has_spare_room = true;
        match file.allocate(wanted) {
            Ok(()) => self.active.room = wanted,
            // The write itself may still find what it needs.
            Err(error) if error.kind == DiskErrorKind::Full || error.kind.is_shortage() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Gives back the room in the active segment's file that was set aside and not used.
    ///
    /// # Errors
    /// As for any write.
    pub fn give_room_back(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let Some(&active) = self.segments.last() else { return Ok(()) };
        if self.active.has_spare_room {
            let file = self.file(files, active.base, FileKind::Log)?;
            file.set_len(active.size.into())?;
            self.mark_dirty(files, active.base, FileKind::Log, file);
            (self.active.room, self.active.has_spare_room) = (0, false);
        }
        Ok(())
    }

    /// Notes in memory that `header`'s batch comes next in the active segment.
    ///
    /// An entry is due once more than `index.interval.bytes` lie since the last one, and names this batch; rebuilding
    /// the indexes from the segment goes through here as well, so both give the same bytes.
    pub(super) fn account(&mut self, header: &BatchHeader) {
        let segment = self.segments.last_mut().expect("a batch goes into a segment: roll_is_due says so");
        let position = segment.size;
        if position == 0 {
            segment.first_timestamp = Some(header.max_timestamp);
        }
        let known = segment
            .largest
            .unwrap_or(LargestTimestamp { timestamp: TimestampMs::NONE, offset: segment.base });
        let largest = if header.max_timestamp > known.timestamp {
            LargestTimestamp { timestamp: header.max_timestamp, offset: header.last_offset }
        } else {
            known
        };
        segment.largest = Some(largest);
        segment.size += header.size;
        // A walk by headers skips large batches.
        self.since_snapshot += u64::from(header.size.min(SKIP_FROM_BYTES));
        let base = segment.base;
        if self.active.since_entry > self.config.index_interval_bytes {
            let entry = OffsetEntry { offset: header.last_offset, position };
            self.active.offsets.push(entry.encode(base));
            self.push_time_entry(base, largest);
            self.active.since_entry = 0;
        }
        self.active.since_entry += header.size;
        self.note_epoch(header);
        self.segment_end = header.next_offset();
    }

    pub(super) fn note_epoch(&mut self, header: &BatchHeader) {
        if begins_epoch(self.epochs.latest(), header) {
            self.assign_epoch(header.leader_epoch, header.base_offset);
        }
    }

    fn push_time_entry(&mut self, base: Offset, largest: LargestTimestamp) {
        if largest.timestamp > self.active.last_time {
            self.active.times.push(largest.encode(base));
            self.active.last_time = largest.timestamp;
        }
    }

    fn write_due_entries(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        if self.active.offsets.is_due() || self.active.times.is_due() {
            self.write_entries(files)?;
        }
        Ok(())
    }

    /// Writes the active segment's pending index entries into their files, making them if they are missing. Nothing
    /// rests on them before the segment is sealed, so nothing is synced.
    pub(super) fn write_entries(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let Some(base) = self.segments.last().map(|segment| segment.base) else { return Ok(()) };
        self.active.offsets.write_out(&*self.file(files, base, FileKind::OffsetIndex)?)?;
        self.active.times.write_out(&*self.file(files, base, FileKind::TimeIndex)?)?;
        Ok(())
    }

    /// Completes the active segment's indexes, to be synced: after that they count as they are.
    pub(super) fn seal_indexes(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        self.complete_indexes(files)?;
        let Some(base) = self.segments.last().map(|segment| segment.base) else { return Ok(()) };
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            let file = self.file(files, base, kind)?;
            self.mark_dirty(files, base, kind, file);
        }
        self.dirty.dir = true;
        Ok(())
    }

    /// Completes the active segment's indexes as Kafka does when a segment is closed: the time index ends with the
    /// segment's largest timestamp.
    pub(super) fn complete_indexes(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        if let Some(&Segment { base, largest: Some(largest), .. }) = self.segments.last() {
            self.push_time_entry(base, largest);
        }
        self.trim_indexes(files)
    }

    /// Writes pending entries out and cuts the index files to the entries that count: after a truncation they may reach
    /// beyond.
    pub(super) fn trim_indexes(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        self.write_entries(files)?;
        let Some(base) = self.segments.last().map(|segment| segment.base) else { return Ok(()) };
        let (offsets, times) = (self.active.offsets.bytes(), self.active.times.bytes());
        for (kind, bytes) in [(FileKind::OffsetIndex, offsets), (FileKind::TimeIndex, times)] {
            let file = self.file(files, base, kind)?;
            // Cutting is a transaction of the file system even where nothing is cut, and replay closes thousands of
            // logs.
            if file.len()? != bytes {
                file.set_len(bytes)?;
            }
        }
        Ok(())
    }

    /// Goes on at `offset`, in a new segment: the records of the offsets between are gone (they were compacted away).
    pub fn skip_to(
        &mut self,
        files: &mut FilePool,
        offset: Offset,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        if offset <= self.end() {
            return Ok(());
        }
        if !self.is_on_disk() {
            (self.start, self.segment_end) = (offset, offset);
            return Ok(());
        }
        self.attempt(|log| {
            log.begin_segment(files, offset, now)?;
            log.segment_end = offset;
            Ok(())
        })
    }

    /// Begins a new segment at the log's end, unless the active one is empty. Returns its base.
    pub fn roll(&mut self, files: &mut FilePool, now: TimestampMs) -> Result<Option<Offset>, StorageError> {
        match self.segments.last() {
            None => Ok(None),
            Some(active) if active.base == self.segment_end => Ok(None),
            Some(_) => self.attempt(|log| {
                log.begin_segment(files, log.segment_end, now)?;
                Ok(Some(log.segment_end))
            }),
        }
    }

    /// Makes an empty segment at `base` the active one. An empty one before it goes, since it could hold nothing any
    /// more.
    pub(super) fn begin_segment(
        &mut self,
        files: &mut FilePool,
        base: Offset,
        now: TimestampMs,
    ) -> Result<(), StorageError> {
        let mut is_new = false;
        match self.segments.last() {
            None => is_new = self.make_dir(files)?,
            Some(&active) if active.size == 0 => {
                self.remove_segment_files(files, active.base)?;
                self.segments.pop();
            }
            Some(_) => {
                self.seal_indexes(files)?;
                self.give_room_back(files)?;
                self.note_epochs(files)?;
            }
        }
        let path = self.path(base, FileKind::Log);
        files.close_segment(self.id, base);
        let file = files.get(self.key(base, FileKind::Log), OpenMode::Truncate, || path)?;
        let mut has_spare_room = false;
        if self.config.preallocate {
            file.allocate(self.config.segment_bytes.into())?;
            has_spare_room = true;
        }
        let indexes = [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];
        for kind in indexes.into_iter().filter(|_| !is_new) {
            files.disk().remove_file(&self.path(base, kind))?;
        }
        self.mark_dirty(files, base, FileKind::Log, file);
        self.dirty.dir = true;
        self.segments.push(Segment::empty(base, now));
        self.active = Active { last_time: TimestampMs::NONE, has_spare_room, ..Active::default() };
        Ok(())
    }

    /// The partition's directory with `partition.metadata`, which is there before any record. Returns whether there was
    /// none.
    fn make_dir(&mut self, files: &mut FilePool) -> Result<bool, StorageError> {
        let dir = self.place.dir();
        let is_new = files.disk().stat(&dir)?.is_none();
        files.disk().create_dir(&dir)?;
        self.dirty.root = true;
        self.dirty.dir = true;
        self.write_partition_metadata(files)?;
        Ok(is_new)
    }

    pub(super) fn remove_segment_files(
        &mut self,
        files: &mut FilePool,
        base: Offset,
    ) -> Result<(), StorageError> {
        files.close_segment(self.id, base);
        self.forget_dirty(base);
        for kind in FileKind::ALL {
            files.disk().remove_file(&self.path(base, kind))?;
        }
        self.dirty.dir = true;
        Ok(())
    }

    fn before_append(&self) -> Before {
        let counts = |segment: &Segment| (*segment, self.active.offsets.count(), self.active.times.count());
        Before {
            end: self.segment_end,
            segments: self.segments.len(),
            active: self.segments.last().map(counts),
            last_time: self.active.last_time,
            since_entry: self.active.since_entry,
            epoch: self.epochs.latest(),
        }
    }

    /// Restores what was before an append that found the disk full, or could open no file.
    fn take_back(&mut self, files: &mut FilePool, before: Before) -> Result<(), StorageError> {
        let Some((segment, offsets, times)) = before.active else {
            // The first append of all: whatever there is of the directory is found and used by the next one.
            for segment in std::mem::take(&mut self.segments) {
                self.remove_segment_files(files, segment.base)?;
            }
            return self.restore(before, Active::default());
        };
        let newer = self.segments.iter().filter(|now| now.base > segment.base);
        for base in newer.map(|segment| segment.base).collect::<Vec<_>>() {
            self.remove_segment_files(files, base)?;
        }
        let mut active = std::mem::take(&mut self.active);
        if self.segments.len() > before.segments {
            // Its indexes were completed when the next segment was begun.
            active.offsets = IndexEntries::in_file(offsets);
            active.times = IndexEntries::in_file(times);
        }
        self.segments.retain(|known| known.base < segment.base);
        self.segments.push(segment);
        let file = self.file(files, segment.base, FileKind::Log)?;
        file.set_len(segment.size.into())?;
        self.mark_dirty(files, segment.base, FileKind::Log, file);
        active.offsets.cut_to(offsets);
        active.times.cut_to(times);
        if self.staged().any(|tail| !tail.aborted.is_empty()) {
            self.cut_transaction_index(files, segment.base, before.end)?;
        }
        self.restore(before, active)
    }

    fn restore(&mut self, before: Before, active: Active) -> Result<(), StorageError> {
        let Active { offsets, times, .. } = active;
        // Cutting the file has given back all room that was set aside.
        self.active = Active {
            offsets,
            times,
            last_time: before.last_time,
            since_entry: before.since_entry,
            ..Active::default()
        };
        self.segment_end = before.end;
        // What is staged has noted its epochs already, and they stay.
        let is_new = |entry: &&EpochEntry| before.epoch.is_none_or(|before| entry.epoch > before.epoch);
        if let Some(news) = self.epochs.entries().iter().find(is_new).map(|entry| entry.start) {
            self.epochs_changed |= self.epochs.truncate_from_end(news);
            // An epoch that began where the next one did had given way to it.
            if let Some(before) = before.epoch {
                self.assign_epoch(before.epoch, before.start);
            }
        }
        self.generation += 1;
        Ok(())
    }
}
