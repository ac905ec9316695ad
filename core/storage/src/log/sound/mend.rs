//! Overwrites damaged batches with those that the leader has at the same place.
//!
//! Always true:
//! 1. a batch is overwritten only where it is damaged: by its checksum, its base offset or its leader epoch
//! 2. what is written has the length of what was there. It ends where a sound batch of this log follows, at the end of
//!    the segment, or where the damaged batch ends by its own header
//! 3. what is written is of the leader epoch that this log knows at its offsets, or lies below the high watermark: both
//!    make it the batch that was here
//! 4. the overwrite is synced before it counts. A torn one leaves a wrong checksum, which is damage and is found again
//!
//! A batch has the same length in both logs, so positions do not change: the indexes of the segment stay as they are.
//!
//! Neighbours: core/replica/src/replica/repair.rs, which asks the leader.

use barnabas_base::Offset;

use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::Log;
use crate::scrub::{KnownEpochs, Listed, SegmentScrub};
use crate::segment::batch::BatchHeader;
use crate::segment::walker::Step;
use crate::segment::{LOG, parse_offset_name};

/// Where a batch is damaged, by [`StorageError::Damaged`]. Behind a batch whose length has changed, a place may be
/// wrong: the leader's batches do not fit there, and it is gone once that batch is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedPlace {
    /// The base offset of the segment.
    pub segment: Offset,
    /// Bytes from the start of its file.
    pub position: u64,
    /// The batch begins here, or behind it where offsets before it are missing.
    pub offset: Offset,
}

/// What came of [`Log::mend`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    /// The log has the leader's batches from the damaged place up to this offset, and they are synced.
    Done { end: Offset },
    /// Nothing is damaged there any more.
    Sound,
    /// The leader's batches do not fit. Nothing was written.
    Unfit,
}

/// The leader's batches that fit: their bytes, and where they end.
#[derive(Debug, Clone, Copy)]
struct Fit<'a> {
    bytes: &'a [u8],
    end: Offset,
}

impl DamagedPlace {
    /// `None`: the error is not about a segment.
    pub fn of(error: &StorageError) -> Option<Self> {
        let StorageError::Damaged { file, position, offset, .. } = error else { return None };
        let (segment, suffix) = parse_offset_name(file.file_name()?.to_str()?)?;
        (suffix == LOG).then_some(Self { segment, position: *position, offset: *offset })
    }
}

impl Log {
    /// Checks the segment that holds `offset`: of the newest all that is written back, synced or not. `has_no_holes` as
    /// in [`SegmentScrub::open`]. `None`: there is no such segment.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn segment_check(
        &self,
        files: &FilePool,
        offset: Offset,
        has_no_holes: bool,
    ) -> Result<Option<SegmentScrub>, StorageError> {
        let Some(at) = self.segment_of(offset).filter(|_| offset < self.segment_end) else { return Ok(None) };
        let next = self.segments.get(at + 1).map(|segment| segment.base);
        let listed = Listed { base: self.segments[at].base, next };
        let walk =
            SegmentScrub::open(files.disk(), &self.place.dir(), listed, self.segment_end, has_no_holes)?;
        let epochs = KnownEpochs::of(self.epochs.clone(), self.segment_end);
        Ok(walk.map(|walk| walk.with_epochs(epochs)))
    }

    /// Where the segment behind the one begins that holds `offset`.
    pub fn next_segment_base(&self, offset: Offset) -> Option<Offset> {
        let behind = self.segment_of(offset).map_or(0, |at| at + 1);
        self.segments.get(behind).map(|segment| segment.base)
    }

    /// Whether a sound batch lies at `place` by now: the file may have been restored. A hint: only a check of the whole
    /// segment shows that. What cannot be read is not sound.
    pub fn is_sound_at(&self, files: &mut FilePool, place: DamagedPlace) -> bool {
        let at = self.segments.iter().position(|segment| segment.base == place.segment);
        let Some(at) = at.filter(|at| place.position < u64::from(self.segments[*at].size)) else {
            return false;
        };
        let walker = self.walker(files, at, place.position as u32, true);
        match walker.and_then(|mut walker| Ok(walker.step()?)) {
            Ok(Step::Batch { header, bytes, .. }) => {
                let is_there = header.last_offset >= place.offset && header.last_offset < self.reach(at);
                is_there && header.checksum_is_right(&bytes) && !self.is_of_unknown_epoch(&header)
            }
            Ok(Step::End | Step::Bad { .. }) | Err(_) => false,
        }
    }

    /// Overwrites what is damaged at `place` with the leader's batches, if they fit there. `fetched` are whole batches
    /// whose checksums are right. `committed`: the high watermark.
    ///
    /// # Errors
    /// The file cannot be read, written or synced. Any part of the place may be overwritten then.
    pub fn mend(
        &mut self,
        files: &mut FilePool,
        place: DamagedPlace,
        fetched: &[u8],
        committed: Offset,
    ) -> Result<Mend, StorageError> {
        let Some(at) = self.segments.iter().position(|segment| segment.base == place.segment) else {
            return Ok(Mend::Unfit);
        };
        let Some(fit) = self.fit(files, at, place, fetched, committed)? else { return Ok(Mend::Unfit) };
        let file = self.file(files, place.segment, FileKind::Log)?;
        let there = file.read_bytes(place.position, fit.bytes.len())?;
        if there[..] == *fit.bytes {
            self.forget_largest_timestamp(files, at);
            return Ok(Mend::Sound);
        }
        if self.is_sound(files, at, place.position, fit.bytes)? {
            return Ok(Mend::Unfit);
        }
        self.attempt(|log| {
            for (from, batch) in each_batch(fit.bytes) {
                let range = from..from + batch.len();
                if there.get(range) != Some(batch) {
                    file.write_at(place.position + from as u64, &[batch])?;
                }
            }
            log.hints = [None; 2];
            log.forget_sound();
            // It may have been read from the file while that was damaged.
            log.active.last_block.clear();
            Ok(())
        })?;
        // A sync that failed is final, whatever it failed with.
        self.change(|_| Ok(file.sync()?))?;
        self.forget_largest_timestamp(files, at);
        Ok(Mend::Done { end: fit.end })
    }

    /// The segment's largest timestamp may have been read from a header that was damaged then. Retention and searches
    /// by time go by it. The newest segment's is read now, as appends go on from it; if
    /// that fails, it stays.
    fn forget_largest_timestamp(&mut self, files: &mut FilePool, at: usize) {
        let known = self.segments[at].largest.take();
        if at + 1 == self.segments.len() {
            self.segments[at].largest = self.largest_timestamp(files, at).ok().or(known);
        }
    }

    /// The leader's batches that go to `place`.
    fn fit<'a>(
        &self,
        files: &mut FilePool,
        at: usize,
        place: DamagedPlace,
        fetched: &'a [u8],
        committed: Offset,
    ) -> Result<Option<Fit<'a>>, StorageError> {
        let size = u64::from(self.segments[at].size);
        let Some(from) = first_behind(fetched, place.offset) else { return Ok(None) };
        let fetched = &fetched[from..];
        let mut end = place.offset;
        for (from, batch) in each_batch(fetched) {
            let Ok(header) = BatchHeader::parse(batch) else { return Ok(None) };
            let behind = from + batch.len();
            let position = place.position + behind as u64;
            let belongs = header.base_offset >= end
                && header.last_offset < self.reach(at)
                && position <= size
                && self.was_here(&header, committed);
            if !belongs {
                return Ok(None);
            }
            end = header.next_offset();
            let next = BatchHeader::parse(&fetched[behind..]).ok().map(|next| next.base_offset);
            let fits = from == 0 && self.is_its_own(files, at, place, &header)?
                || self.goes_on(files, at, position, (end, next))?;
            if fits {
                return Ok(Some(Fit { bytes: &fetched[..behind], end }));
            }
        }
        Ok(None)
    }

    /// Whether the leader's batch was in this log. A leader epoch has one batch at an offset; what is committed is the
    /// same everywhere.
    fn was_here(&self, header: &BatchHeader, committed: Offset) -> bool {
        match self.epochs.epoch_at(header.base_offset).filter(|_| header.has_epoch()) {
            Some(known) => known == header.leader_epoch,
            None => header.last_offset < committed,
        }
    }

    /// Whether the header at `place` says of its length, and of how many offsets it has, what the leader's says.
    fn is_its_own(
        &self,
        files: &mut FilePool,
        at: usize,
        place: DamagedPlace,
        leaders: &BatchHeader,
    ) -> Result<bool, StorageError> {
        let Step::Batch { header, .. } = self.walker(files, at, place.position as u32, false)?.step()? else {
            return Ok(false);
        };
        let offsets = |header: &BatchHeader| header.last_offset.get() - header.base_offset.get();
        Ok([place.offset, header.base_offset].contains(&leaders.base_offset)
            && header.size == leaders.size
            && header.magic == leaders.magic
            && offsets(&header) == offsets(leaders))
    }

    /// Whether the batch at `position` is sound, with the base offset and the leader epoch of the leader's.
    fn is_sound(
        &self,
        files: &mut FilePool,
        at: usize,
        position: u64,
        leaders: &[u8],
    ) -> Result<bool, StorageError> {
        let Step::Batch { header, bytes, .. } = self.walker(files, at, position as u32, true)?.step()? else {
            return Ok(false);
        };
        let place = |header: &BatchHeader| (header.base_offset, header.leader_epoch);
        let is_there = BatchHeader::parse(leaders).is_ok_and(|leaders| place(&leaders) == place(&header));
        Ok(is_there && header.checksum_is_right(&bytes))
    }

    /// Whether this log goes on at `position` where the leader's batches end. `ends`: where that is, and where the
    /// leader's next batch begins, if it is known.
    fn goes_on(
        &self,
        files: &mut FilePool,
        at: usize,
        position: u64,
        (end, next): (Offset, Option<Offset>),
    ) -> Result<bool, StorageError> {
        let reach = self.reach(at);
        if position == u64::from(self.segments[at].size) {
            let is_last = at + 1 == self.segments.len();
            return Ok(end == reach || !is_last && next.is_some_and(|next| next >= reach));
        }
        let Step::Batch { header, bytes, .. } = self.walker(files, at, position as u32, true)?.step()? else {
            return Ok(false);
        };
        let follows = header.base_offset == end || Some(header.base_offset) == next;
        Ok(follows && header.last_offset < reach && header.checksum_is_right(&bytes))
    }
}

/// Whole batches, and where each begins.
fn each_batch(batches: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = BatchHeader::parse(batches.get(at..)?).ok()?;
        let from = at;
        at += header.size as usize;
        Some((from, batches.get(from..at)?))
    })
}

/// Where the first batch begins that has `offset` or more.
fn first_behind(batches: &[u8], offset: Offset) -> Option<usize> {
    let ends_behind =
        |batch: &[u8]| BatchHeader::parse(batch).is_ok_and(|header| header.last_offset >= offset);
    each_batch(batches).find(|(_, batch)| ends_behind(batch)).map(|(from, _)| from)
}
