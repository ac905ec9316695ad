//! Opening what an earlier process left: leftovers, segments, the unsynced tail, indexes, epochs.
//!
//! The order is Kafka's (`LogLoader.load`): remove what was marked for deletion; finish or undo a compaction that was
//! interrupted; drop indexes without a segment; load segments; after an unclean stop, check from the recovery point on.
//!
//! What differs from Kafka: damage below the recovery point, and after a clean stop, stops the log instead of being
//! cut; a segment that is shorter than what was synced is such damage; and nothing is removed on the word of a file
//! that has not been checked.

pub(in crate::log) mod known;
pub(in crate::log) mod leftovers;
pub(in crate::log) mod lost;
pub(in crate::log) mod sealed;
pub(in crate::log) mod vouched;

use std::sync::Arc;

use barnabas_base::{EpochEntry, LeaderEpochs, Offset, TimestampMs};
use bytes::Bytes;

use super::{Active, Log, LogPlace, OpenFrom, Opened, TailCut};
use crate::disk::DirEntry;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::disk::small_file;
use crate::error::{StorageError, unless_full};
use crate::log::append::gather::begins_epoch;
use crate::log::open::vouched::Vouched;
use crate::log::small_files::transactions::Transactions;
use crate::log_config::LogConfig;
use crate::partition_files::epoch_file;
use crate::segment::batch::BatchHeader;
use crate::segment::walker::{NOT_NEXT, OUT_OF_REACH, Step, WRONG_CHECKSUM, WRONG_EPOCH, Walker};
use crate::segment::{self, Segment, parse_offset_name};

impl Log {
    /// Opens what an earlier process left in `place`; after an unclean stop, checks what lies past the recovery point,
    /// cuts an unsynced tail that is not whole, and rebuilds indexes. A directory that does not exist is an empty log.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]: something below the recovery point is not what was written. No record was removed.
    pub fn open(
        files: &mut FilePool,
        place: LogPlace,
        config: Arc<LogConfig>,
        from: OpenFrom,
        now: TimestampMs,
    ) -> Result<(Self, Opened), StorageError> {
        let mut log = Self::create(place, config, from.log_start);
        let mut opened = Opened::default();
        if files.disk().stat(&log.place.dir())?.is_some() {
            let done = log.load(files, from, now, &mut opened);
            if done.is_err() {
                files.close_log(log.id);
            }
            done?;
        } else if from.recovery_point > from.log_start {
            return Err(log.missing(from));
        }
        Ok((log, opened))
    }

    fn load(
        &mut self,
        files: &mut FilePool,
        from: OpenFrom,
        now: TimestampMs,
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        let deleted_up_to = self.clear_leftovers(files, from, opened)?;
        let from =
            OpenFrom { log_start: from.log_start.max(deleted_up_to.unwrap_or(from.log_start)), ..from };
        self.epochs = self.epochs_in_file(files)?.unwrap_or_default();
        let unindexed = self.load_segments(files, from, now, opened)?;
        if self.segments.is_empty() {
            if from.recovery_point > from.log_start {
                return Err(self.missing(from));
            }
            if !self.epochs.entries().is_empty() {
                // Of a log that was given up: a later one does not begin there.
                self.epochs.clear();
                self.write_epochs(files)?;
            }
            // They are of records that are gone, and a later recovery point would vouch for them.
            self.remove_snapshots(files, |_| true)?;
            // The crash came before the first sync: the next append finds the directory and starts over.
            self.dirty.root = true;
            self.dirty.dir = true;
            return Ok(());
        }
        self.look_for_lost_front(from, opened)?;
        self.read_epochs(files, opened)?;
        // Where the segments end before it, it is in the journal: it still bounds the epochs before it.
        let first_epoch = self.epochs.entries().first().copied();
        if from.clean {
            self.load_clean(files, from, &unindexed, opened)?;
        } else {
            self.recover(files, from, &unindexed, now, opened)?;
        }
        let comes_back = from.journal_end.is_some_and(|end| end >= from.log_start);
        if self.segment_end < from.log_start && !comes_back {
            // What was left lies below what was deleted.
            self.truncate_fully_and_start_at(files, from.log_start, now)?;
        }
        self.look_for_lost_inside(files, from, opened)?;
        // What follows the segments is in the journal, and with it what producers wrote last.
        self.start = from.log_start.max(self.segments[0].base).min(self.segment_end);
        self.epochs_changed |= self.epochs.truncate_from_end(self.segment_end);
        self.restore_first_epochs(files, first_epoch)?;
        self.epochs_changed |= self.epochs.truncate_from_start(self.start);
        if !opened.gaps.is_empty() {
            // Known from here on.
            self.write_epochs(files)?;
        }
        let trusted = if from.clean { self.segment_end } else { self.segment_end.min(from.recovery_point) };
        self.remove_stray_snapshots(files, trusted)?;
        if from.is_unsettled && !from.clean {
            self.note_unsettled(files)?;
        }
        // One at the recovery point itself may have been written after the sync that brought it there.
        let durable = if from.clean { trusted } else { trusted.plus(-1) };
        self.vouched = self.newest_snapshot(files, durable)?.map_or(Vouched::NOTHING, Vouched::found);
        Ok(())
    }

    fn missing(&self, from: OpenFrom) -> StorageError {
        StorageError::Damaged {
            file: self.place.dir(),
            position: 0,
            offset: from.log_start,
            what: "segments that were synced are missing",
        }
    }

    /// Finds the segments. Returns the bases of those that lack an index. An index whose segment was given up goes; one
    /// whose segment is lost says so.
    fn load_segments(
        &mut self,
        files: &mut FilePool,
        from: OpenFrom,
        now: TimestampMs,
        opened: &mut Opened,
    ) -> Result<Vec<Offset>, StorageError> {
        let dir = self.place.dir();
        let names = files.disk().list(&dir)?;
        for (name, offset, suffix) in names.iter().filter_map(offset_file) {
            if suffix != segment::LOG {
                continue;
            }
            let path = dir.join(name);
            let len = files.disk().stat(&path)?.map_or(0, |stat| stat.len);
            let Ok(size) = u32::try_from(len) else {
                return Err(StorageError::BadFile {
                    file: path,
                    what: format!("a segment has less than 4 GiB, and this has {len} bytes"),
                    remedy: "restore it from a copy",
                });
            };
            let unread = Segment { largest: None, ..Segment::empty(offset, now) };
            self.segments.push(Segment { size, ..unread });
        }
        self.segments.sort_unstable_by_key(|segment| segment.base);
        for (name, offset, suffix) in names.iter().filter_map(offset_file) {
            let of_segment = FileKind::ALL.iter().any(|kind| kind.suffix() == suffix);
            if of_segment && self.segments.binary_search_by_key(&offset, |segment| segment.base).is_err() {
                // A roll that found the disk full may have left an empty one.
                let is_empty = files.disk().stat(&dir.join(name))?.is_none_or(|stat| stat.len == 0);
                if !is_empty && self.is_lost(files, offset, from)? {
                    let (file, what) =
                        (self.path(offset, FileKind::Log), "it is missing, and its index is there");
                    return Err(StorageError::Damaged { file, position: 0, offset, what });
                }
                files.disk().remove_file(&dir.join(name))?;
                opened.removed.push(dir.join(name));
            }
        }
        let bases = self.segments.iter().map(|segment| segment.base);
        let has = |base: Offset, suffix: &str| {
            let wanted = format!("{:020}{suffix}", base.get());
            names.binary_search_by(|entry| entry.name.as_str().cmp(&wanted)).is_ok()
        };
        let lacks = |base: &Offset| !has(*base, segment::OFFSET_INDEX) || !has(*base, segment::TIME_INDEX);
        Ok(bases.filter(lacks).collect())
    }

    /// `None`: there is no such file, or it is torn.
    pub(super) fn epochs_in_file(&self, files: &FilePool) -> Result<Option<LeaderEpochs>, StorageError> {
        let path = self.place.dir().join(epoch_file::FILE_NAME);
        let read = small_file::read(&**files.disk(), &path)?;
        Ok(read.and_then(|text| epoch_file::parse(&text).ok()))
    }

    fn read_epochs(&mut self, files: &mut FilePool, opened: &mut Opened) -> Result<(), StorageError> {
        let path = self.place.dir().join(epoch_file::FILE_NAME);
        if let Some(epochs) = self.epochs_in_file(files)? {
            self.epochs = epochs;
            return Ok(());
        }
        let torn = files.disk().stat(&path)?.is_some();
        // Never written down (the crash came first), or damaged: the batches carry their epochs.
        self.epochs = self.epochs_of_batches(files)?;
        self.epochs_changed = true;
        if torn {
            opened.rebuilt.push(path);
        }
        Ok(())
    }

    fn epochs_of_batches(&self, files: &mut FilePool) -> Result<LeaderEpochs, StorageError> {
        let mut epochs = LeaderEpochs::default();
        for at in 0..self.segments.len() {
            let mut walker = self.walker(files, at, 0, false)?;
            // A tail that is no batch is judged later, by what was synced.
            while let Step::Batch { header, .. } = walker.step()? {
                note_epoch(&mut epochs, &header);
            }
        }
        Ok(epochs)
    }

    /// Where the file of epochs begins behind the log's start, what comes before is read from the batches. Records had
    /// been deleted, and a crash came between that file and the checkpoint that names the new start: the records are
    /// there again, and without their epochs a follower's records of an older epoch would pass for this log's. `first`:
    /// the first entry of the file.
    fn restore_first_epochs(
        &mut self,
        files: &mut FilePool,
        first: Option<EpochEntry>,
    ) -> Result<(), StorageError> {
        if self.start >= first.map_or(self.segment_end, |first| first.start) {
            return Ok(());
        }
        let is_before = |header: &BatchHeader| first.is_none_or(|first| header.base_offset < first.start);
        let may_precede = |header: &BatchHeader| first.is_none_or(|first| header.leader_epoch <= first.epoch);
        let mut epochs = LeaderEpochs::default();
        // A batch of a later epoch than what follows it is damaged: what follows says of which one it is.
        let mut unbelieved = None;
        let from = self.segment_of(self.start).unwrap_or(0);
        'log: for at in from..self.segments.len() {
            let mut walker = self.walker(files, at, 0, false)?;
            while let Step::Batch { header, .. } = walker.step()? {
                // Batches of old formats have none: one look is enough.
                let is_old = epochs.entries().is_empty() && !header.has_epoch();
                if !is_before(&header) || (header.last_offset >= self.start && is_old) {
                    break 'log;
                }
                if header.last_offset < self.start {
                    continue;
                }
                // Epochs never fall from one batch to the next.
                match (may_precede(&header), epochs.latest().is_none()) {
                    (true, true) => {
                        epochs.assign(header.leader_epoch, unbelieved.unwrap_or(header.base_offset));
                    }
                    (true, false) => note_epoch(&mut epochs, &header),
                    (false, true) => _ = unbelieved.get_or_insert(header.base_offset),
                    (false, false) => {}
                }
            }
        }
        if let (Some(first), None, Some(begin)) = (first, epochs.latest(), unbelieved) {
            epochs.assign(first.epoch, begin);
        }
        if epochs.entries().is_empty() {
            return Ok(());
        }
        for entry in self.epochs.entries() {
            epochs.assign(entry.epoch, entry.start);
        }
        (self.epochs, self.epochs_changed) = (epochs, true);
        Ok(())
    }

    /// After a clean stop only the end is looked up. Missing indexes are rebuilt.
    fn load_clean(
        &mut self,
        files: &mut FilePool,
        from: OpenFrom,
        unindexed: &[Offset],
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        let last = self.segments.len() - 1;
        for at in 0..=last {
            if unindexed.contains(&self.segments[at].base) {
                self.rebuild_indexes(files, at, opened)?;
            }
        }
        // Not known yet: nothing is out of its reach.
        self.segment_end = Offset(i64::MAX);
        self.active.offsets =
            self.sealed_entries::<8>(files, self.segments[last].base, FileKind::OffsetIndex)?;
        let (end, mut damage) = self.end_of_last_segment(files, from)?;
        match self.read_active(files, last) {
            // Of the same damage, or of one in front of a sound end.
            Err(error @ StorageError::Damaged { .. }) if from.is_repairable => {
                damage.get_or_insert(error);
            }
            read => read?,
        }
        self.segment_end = end;
        if let Some(damage) = damage {
            opened.found(damage, from)?;
        }
        if self.segment_end < from.recovery_point {
            let size = self.segments[last].size.into();
            return Err(self.damaged(
                last,
                size,
                self.segment_end,
                "the segment is shorter than what was synced, or the next one is missing",
            ));
        }
        self.recovery_point = self.segment_end;
        Ok(())
    }

    /// Where the log ends, and what is damaged there: then the recovery point says where it ends.
    fn end_of_last_segment(
        &self,
        files: &mut FilePool,
        from: OpenFrom,
    ) -> Result<(Offset, Option<StorageError>), StorageError> {
        let (last, known) = (self.segments.len() - 1, from.recovery_point);
        let is_as_known = |(end, batch): (Offset, Option<BatchHeader>)| {
            end == known && !batch.is_some_and(|batch| self.is_of_unknown_epoch(&batch))
        };
        match self.end_of_segment(files, last)? {
            Some(found) if is_as_known(found) => return Ok((known, None)),
            _ => {}
        }
        let followed = self.follow_segment(files, last, known)?;
        Ok(match followed.damage {
            // Past what was vouched for nothing says where the log ends.
            Some(damage) if followed.end >= known => return Err(damage),
            Some(damage) => (known, Some(damage)),
            None => (followed.end, None),
        })
    }

    /// After an unclean stop: what lies below the recovery point is known (known.rs); every batch past it is checked,
    /// and the indexes are completed from there.
    fn recover(
        &mut self,
        files: &mut FilePool,
        from: OpenFrom,
        unindexed: &[Offset],
        now: TimestampMs,
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        let first = self.segment_of(from.recovery_point).unwrap_or(0);
        self.recover_sealed(files, first, unindexed, opened)?;
        let tail: Vec<Segment> = self.segments.split_off(first);
        self.segment_end = tail[0].base;
        let known = self.take_known(files, tail[0], reach_in(&tail, 0), from, opened)?;
        // Their file was written before the checkpoint; what it says of later batches may be of some that were given
        // up.
        self.epochs_changed |= self.epochs.truncate_from_end(self.segment_end);
        let mut transactions = Transactions::from(self.segment_end);
        for (at, found) in tail.iter().enumerate() {
            let hole = at > 0 && self.has_lost_before(*found, from);
            let reach = reach_in(&tail, at);
            if at > 0 && !hole {
                self.begin_taking_in(*found);
            }
            let mut bad = match hole {
                true => Some((0, "the offsets before it are missing")),
                false => self.take_in_rest(files, *found, reach, Some(&mut transactions))?,
            };
            let may_be_padded = !hole && (at + 1 == tail.len() || self.segment_end == reach);
            let padding = match bad {
                Some((position, _)) if may_be_padded => self.is_padding(files, found.base, position)?,
                _ => false,
            };
            let last = (bad.is_some() && !padding) || at + 1 == tail.len();
            if last && self.segment_end < from.recovery_point {
                let short = "the segment is shorter than what was synced, or the next one is missing";
                let (position, why) = bad.unwrap_or((found.size.into(), short));
                let file = self.path(found.base, FileKind::Log);
                return Err(StorageError::Damaged { file, position, offset: self.segment_end, what: why });
            }
            if let (Some((position, _)), true) = (bad, padding) {
                self.cut_zeros(files, found.base, position)?;
                bad = None;
            }
            if !hole {
                let mut aborted = if at == 0 { known.aborted.clone() } else { Vec::new() };
                aborted.extend(transactions.take_aborted());
                self.write_transaction_index(files, found.base, &aborted)?;
            }
            match bad {
                Some((position, why)) => {
                    opened.cut = Some(self.cut_tail(files, position, why, &tail[at..], now)?);
                    break;
                }
                None if !last => {
                    unless_full(self.seal_indexes(files))?;
                    self.active.has_spare_room = true;
                    self.give_room_back(files)?;
                }
                None => {}
            }
        }
        unless_full(self.complete_indexes(files))?;
        if known.indexes_were_cut {
            self.note_indexes(files)?;
        }
        self.active.has_spare_room = true;
        self.recovery_point = from.recovery_point.min(self.segment_end);
        self.note_unsynced(files, first, opened.cut.is_some())
    }

    /// Whether the end of the last segment was lost unsynced: `next` begins past it. Segments are begun where the one
    /// before ends. Compaction leaves holes between them, below the recovery point.
    fn has_lost_before(&self, next: Segment, from: OpenFrom) -> bool {
        let is_in_reach = next.base.since(self.segment_end) <= i64::from(i32::MAX);
        let may_be_compacted =
            !from.recovery_point_holds || !is_in_reach || self.segment_end < from.recovery_point;
        next.base > self.segment_end && !(self.config.cleanup.compact && may_be_compacted)
    }

    /// Takes a segment's batches in as if they were appended again: indexes, epochs and times follow from them. Returns
    /// where and why that ended before the file did.
    ///
    /// Offsets lie outside the checksum. A batch counts once the one behind it (or the next segment, at `reach`) shows
    /// that its offset was right: of two that do not follow, the one that left a gap before it is the wrong one.
    fn take_in(
        &mut self,
        files: &mut FilePool,
        found: Segment,
        reach: Offset,
        checked: Option<&mut Transactions>,
    ) -> Result<Option<(u64, &'static str)>, StorageError> {
        self.begin_taking_in(found);
        self.take_in_rest(files, found, reach, checked)
    }

    /// The segment is the log's last one, and nothing of it is taken in yet.
    pub(super) fn begin_taking_in(&mut self, found: Segment) {
        self.segments.push(Segment::empty(found.base, found.created));
        self.active = Active { last_time: TimestampMs::NONE, ..Active::default() };
        // An empty segment still says where the log ends.
        self.segment_end = self.segment_end.max(found.base);
    }

    /// As [`Log::take_in`], from where the segment was taken in so far.
    fn take_in_rest(
        &mut self,
        files: &mut FilePool,
        found: Segment,
        reach: Offset,
        mut checked: Option<&mut Transactions>,
    ) -> Result<Option<(u64, &'static str)>, StorageError> {
        let check = checked.is_some();
        let from = self.segments.last().map_or(0, |segment| segment.size);
        let file = self.file(files, found.base, FileKind::Log)?;
        let mut walker = Walker::new(file, from.into(), found.size.into(), check);
        let mut held: Option<(u64, BatchHeader, Bytes)> = None;
        loop {
            let next = held.as_ref().map_or(self.segment_end, |(_, header, _)| header.next_offset());
            let (position, found_batch, mut why) = match walker.step()? {
                Step::Batch { position, header, bytes } => {
                    let fits = header.last_offset < reach && found.can_index(header.last_offset);
                    let checksum = !check || header.checksum_is_right(&bytes);
                    let why = match (checksum, fits, header.base_offset >= next) {
                        (false, ..) => Some(WRONG_CHECKSUM),
                        (_, false, _) => Some(OUT_OF_REACH),
                        (.., false) => Some(NOT_NEXT),
                        _ => None,
                    };
                    (position, Some((header, bytes)), why)
                }
                Step::End => (0, None, None),
                Step::Bad { position, why } => (position, None, Some(why)),
            };
            if let (Some((held_at, held, _)), Some((header, _)), Some(NOT_NEXT)) = (&held, &found_batch, why)
                && held.base_offset > self.segment_end
                && header.base_offset > self.segment_end
            {
                return Ok(Some((*held_at, NOT_NEXT)));
            }
            if let (Some((held_at, held, _)), Some((header, _)), true) = (&held, &found_batch, check)
                && held.has_epoch()
                && header.has_epoch()
                && held.leader_epoch > header.leader_epoch
            {
                // They never fall from one batch to the next.
                let is_known = self.epochs.latest().is_none_or(|latest| latest.epoch <= header.leader_epoch);
                if is_known {
                    return Ok(Some((*held_at, WRONG_EPOCH)));
                }
                why = Some(WRONG_EPOCH);
            }
            if let Some((_, header, bytes)) = held.take() {
                self.account(&header);
                if let Some(transactions) = &mut checked {
                    transactions.observe(self, files, &header, bytes)?;
                }
            }
            match (found_batch, why) {
                (_, Some(why)) => return Ok(Some((position, why))),
                (Some((header, bytes)), None) => held = Some((position, header, bytes)),
                (None, None) => return Ok(None),
            }
        }
    }

    /// Rebuilds a sealed segment's indexes from its batches.
    pub(super) fn rebuild_indexes(
        &mut self,
        files: &mut FilePool,
        at: usize,
        opened: &mut Opened,
    ) -> Result<(), StorageError> {
        // Worked on as if it were the active segment.
        let later = self.segments.split_off(at);
        let (end, epochs) = (self.segment_end, self.epochs.clone());
        self.segment_end = later[0].base;
        let reach = later.get(1).map_or(Offset(i64::MAX), |next| next.base);
        let bad = self.take_in(files, later[0], reach, None)?;
        if let Some((position, why)) = bad {
            let offset = self.segment_end;
            return Err(self.damaged(at, position, offset, why));
        }
        unless_full(self.seal_indexes(files))?;
        self.segments.extend_from_slice(&later[1..]);
        self.segment_end = end;
        self.epochs = epochs;
        opened.rebuilt.push(self.path(later[0].base, FileKind::OffsetIndex));
        Ok(())
    }

    fn cut_tail(
        &mut self,
        files: &mut FilePool,
        position: u64,
        why: &'static str,
        tail: &[Segment],
        now: TimestampMs,
    ) -> Result<TailCut, StorageError> {
        let base = tail[0].base;
        let is_taken_in = self.segments.last().is_some_and(|segment| segment.base == base);
        if is_taken_in {
            self.file(files, base, FileKind::Log)?.set_len(position)?;
        }
        let later = &tail[usize::from(is_taken_in)..];
        let later: Vec<Offset> = later.iter().rev().map(|segment| segment.base).collect();
        let bytes: u64 = tail.iter().map(|segment| u64::from(segment.size)).sum();
        if let Some(delete) = self.set_aside(files, &later, now)? {
            for path in delete.files {
                files.disk().remove_file(&path)?;
            }
        }
        let file = self.path(base, FileKind::Log);
        Ok(TailCut { file, position, bytes: bytes - position, end: self.segment_end, why })
    }

    /// Snapshots count where they lie at a segment's base or are the newest; later than the log's end they are wrong.
    /// After an unclean stop one that is newer than the recovery point may be of records that were given up.
    ///
    /// # Source
    /// Kafka `ProducerStateManager.removeStraySnapshots`.
    fn remove_stray_snapshots(&mut self, files: &mut FilePool, end: Offset) -> Result<(), StorageError> {
        let first = self.first_segment_base();
        let bases: Vec<Offset> = self.segments.iter().map(|segment| segment.base).collect();
        let is_base = |offset: Offset| bases.binary_search(&offset).is_ok();
        let newest = self.newest_snapshot(files, end)?;
        self.remove_snapshots(files, |offset| {
            offset > end || offset < first || (!is_base(offset) && Some(offset) != newest)
        })
    }
}

fn reach_in(segments: &[Segment], at: usize) -> Offset {
    segments.get(at + 1).map_or(Offset(i64::MAX), |next| next.base)
}

fn offset_file(entry: &DirEntry) -> Option<(&str, Offset, &str)> {
    let (offset, suffix) = parse_offset_name(&entry.name)?;
    (!entry.is_dir).then_some((entry.name.as_str(), offset, suffix))
}

fn note_epoch(epochs: &mut LeaderEpochs, header: &BatchHeader) {
    if begins_epoch(epochs.latest(), header) {
        epochs.assign(header.leader_epoch, header.base_offset);
    }
}
