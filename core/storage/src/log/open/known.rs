//! What a log holds below the recovery point, after an unclean stop: it was synced, so its records are not read again.
//! Where they end in the file is found with the indexes, as far as the segment bears these out, and by headers from
//! there on.
//!
//! Why an index may be believed although nothing waits for it to be synced: its entries up to the newest producer
//! snapshot were synced with that one, before the recovery point passed them ([`Log::write_producer_snapshot`]); what
//! comes later is there as a front part, or as zeros, since a truncation's cut is synced before anything rests on what
//! follows it. The last entry that counts is compared with the batch that it names, checksum included; the rest of the
//! segment is walked by headers. Where that does not fit, the whole segment is.
//!
//! Neighbours: open.rs goes on with what lies past the recovery point. docs/format/recovery.md.

use barnabas_base::{LeaderEpoch, Offset};

use crate::disk::DiskFile;
use crate::disk::file_pool::{FileKind, FilePool};
use crate::error::StorageError;
use crate::log::{Active, LeaderEpochs, Log, OpenFrom, Opened};
use crate::segment::batch::BatchHeader;
use crate::segment::index_file::IndexEntries;
use crate::segment::offset_index::OffsetEntry;
use crate::segment::transaction_index::AbortedTransaction;
use crate::segment::walker::{NOT_NEXT, OUT_OF_REACH, Step, Walker};
use crate::segment::{LargestTimestamp, Segment};

/// What is known of a segment besides what the log itself holds.
#[derive(Debug, Default)]
pub(in crate::log) struct Known {
    /// Of the segment's aborted transactions those whose markers lie below the recovery point.
    pub aborted: Vec<AbortedTransaction>,
    /// Its index files held more than is believed.
    pub indexes_were_cut: bool,
}

/// Entries of the two indexes of a segment that lie below the recovery point.
struct Entries {
    offsets: Vec<OffsetEntry>,
    times: Vec<LargestTimestamp>,
    /// There are entries, and they are not what was written.
    is_damaged: bool,
    /// The files are longer than that.
    is_cut: bool,
}

enum Resume {
    After(LastKnown),
    /// There is nothing to go by.
    FromTheFront,
    /// What the entries say is not what the segment holds.
    Unfit,
}

/// A batch up to which a segment and its indexes are known.
struct LastKnown {
    header: BatchHeader,
    position: u32,
    offsets: usize,
    times: usize,
    largest: LargestTimestamp,
}

/// An epoch that begins with the last batch that was taken in, and what was known before it.
struct BegunEpoch {
    epoch: LeaderEpoch,
    known: LeaderEpochs,
}

impl Log {
    /// Takes the batches of `found` in that lie below the recovery point.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]: their headers do not follow one another.
    pub(in crate::log) fn take_known(
        &mut self,
        files: &mut FilePool,
        found: Segment,
        reach: Offset,
        from: OpenFrom,
        opened: &mut Opened,
    ) -> Result<Known, StorageError> {
        self.begin_taking_in(found);
        let until = from.recovery_point;
        if until <= found.base {
            let indexes_were_cut = self.has_index_entries(files, found.base)?;
            return Ok(Known { indexes_were_cut, ..Known::default() });
        }
        let mut entries = self.entries_below(files, found, until)?;
        let mut resume = self.resume_at(files, found, until, &entries)?;
        if matches!(resume, Resume::Unfit) && entries.times.pop().is_some() {
            // The last entry of times may lie across the end of what was written.
            resume = self.resume_at(files, found, until, &entries)?;
        }
        let indexes_were_cut = entries.is_cut || !matches!(resume, Resume::After(_));
        if entries.is_damaged || matches!(resume, Resume::Unfit) {
            opened.disbelieved.push(self.path(found.base, FileKind::OffsetIndex));
        }
        if let Resume::After(last) = resume {
            self.resume(files, found, &last)?;
        }
        self.walk_known(files, found, reach, from)?;
        Ok(Known { aborted: self.known_aborted(files, found.base)?, indexes_were_cut })
    }

    fn has_index_entries(&self, files: &mut FilePool, base: Offset) -> Result<bool, StorageError> {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            if let Some(file) = self.existing_file(files, base, kind)?
                && file.len()? > 0
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The last segment's aborted transactions, as far as it is taken in: their index was synced with the markers.
    fn known_aborted(
        &mut self,
        files: &mut FilePool,
        base: Offset,
    ) -> Result<Vec<AbortedTransaction>, StorageError> {
        let mut aborted = match self.read_transaction_index(files, base) {
            Err(StorageError::Damaged { .. }) => {
                self.rebuild_transaction_index(files, self.segments.len() - 1)?
            }
            index => index?,
        };
        // One that was never written is all zeros.
        aborted.retain(|aborted| {
            aborted.last_offset < self.segment_end && aborted.first_offset < aborted.last_offset
        });
        Ok(aborted)
    }

    /// By headers, up to the first batch that reaches past the recovery point, or to what is no batch.
    fn walk_known(
        &mut self,
        files: &mut FilePool,
        found: Segment,
        reach: Offset,
        from: OpenFrom,
    ) -> Result<(), StorageError> {
        let (until, has_no_holes) = (from.recovery_point, self.has_no_holes(from));
        let file = self.file(files, found.base, FileKind::Log)?;
        let begin = self.segments.last().map_or(0, |segment| segment.size);
        let mut walker = Walker::new(file, begin.into(), found.size.into(), false);
        // A batch that leaves a gap counts if the one behind it follows. Else behind the last one there may be
        // anything.
        let mut left_gap = None;
        let mut begun: Option<BegunEpoch> = None;
        while (self.segment_end < until || left_gap.is_some() || begun.is_some())
            && let Step::Batch { position, header, .. } = walker.step()?
        {
            self.bear_out(&mut begun, &header);
            if let Some((position, offset)) = left_gap.filter(|_| header.last_offset < self.segment_end) {
                let file = self.path(found.base, FileKind::Log);
                return Err(StorageError::Damaged { file, position, offset, what: NOT_NEXT });
            }
            if self.segment_end >= until {
                break;
            }
            let is_misplaced = has_no_holes && header.is_misplaced(self.segment_end, until);
            if header.last_offset >= until && !is_misplaced {
                break;
            }
            let what = if header.base_offset < self.segment_end || is_misplaced {
                NOT_NEXT
            } else if header.last_offset >= reach || !found.can_index(header.last_offset) {
                OUT_OF_REACH
            } else {
                left_gap = (header.base_offset > self.segment_end).then_some((position, self.segment_end));
                begun = self.begin_epoch(&header);
                self.account(&header);
                continue;
            };
            let (file, offset) = (self.path(found.base, FileKind::Log), self.segment_end);
            return Err(StorageError::Damaged { file, position, offset, what });
        }
        Ok(())
    }

    /// A batch of a newer epoch than the file of epochs has. The file may be older than the batch; or the batch's epoch
    /// has changed on the disk, as its checksum does not cover it.
    fn begin_epoch(&self, header: &BatchHeader) -> Option<BegunEpoch> {
        let latest = self.epochs.latest().filter(|_| header.has_epoch())?;
        (latest.epoch < header.leader_epoch)
            .then(|| BegunEpoch { epoch: header.leader_epoch, known: self.epochs.clone() })
    }

    /// The batch behind it decides: epochs never fall from one batch to the next.
    fn bear_out(&mut self, begun: &mut Option<BegunEpoch>, header: &BatchHeader) {
        if let Some(begun) = begun.take_if(|_| header.has_epoch())
            && header.leader_epoch < begun.epoch
        {
            self.epochs = begun.known;
        }
    }

    /// Entries that rise from one to the next and lie below `until`.
    fn entries_below(
        &self,
        files: &mut FilePool,
        found: Segment,
        until: Offset,
    ) -> Result<Entries, StorageError> {
        let base = found.base;
        let below = |offset: Offset| offset < until;
        let file = self.existing_file(files, base, FileKind::OffsetIndex)?;
        let is_offset = |entry: &[u8; 8]| {
            let entry = OffsetEntry::decode(*entry, base);
            entry.offset > base && below(entry.offset)
        };
        let (raw, offsets_len) = read_front::<8>(file.as_deref(), is_offset)?;
        let mut offsets: Vec<OffsetEntry> = raw.iter().map(|raw| OffsetEntry::decode(*raw, base)).collect();
        let rises = offsets
            .windows(2)
            .take_while(|pair| pair[0].offset < pair[1].offset && pair[0].position < pair[1].position);
        let rising = (rises.count() + 1).min(offsets.len());
        offsets.truncate(rising);
        let fitting = offsets.iter().take_while(|entry| entry.position > 0 && entry.position < found.size);
        offsets.truncate(fitting.count());
        let mut is_damaged = is_garbage(&raw, offsets.len());

        let file = self.existing_file(files, base, FileKind::TimeIndex)?;
        let is_time =
            |entry: &[u8; 12]| *entry != [0; 12] && below(LargestTimestamp::decode(*entry, base).offset);
        let (raw, times_len) = read_front::<12>(file.as_deref(), is_time)?;
        let mut times: Vec<LargestTimestamp> =
            raw.iter().map(|raw| LargestTimestamp::decode(*raw, base)).collect();
        let rises = times
            .windows(2)
            .take_while(|pair| pair[0].timestamp < pair[1].timestamp && pair[0].offset < pair[1].offset);
        let rising = (rises.count() + 1).min(times.len());
        times.truncate(rising);
        is_damaged |= is_garbage(&raw, times.len());
        let is_cut = offsets_len > offsets.len() as u64 * 8 || times_len > times.len() as u64 * 12;
        Ok(Entries { offsets, times, is_damaged, is_cut })
    }

    /// The last batch that an offset entry names and up to which the entries of times are complete.
    fn resume_at(
        &mut self,
        files: &mut FilePool,
        found: Segment,
        until: Offset,
        entries: &Entries,
    ) -> Result<Resume, StorageError> {
        let (Some(last), Some(mut complete)) =
            (entries.offsets.last(), entries.times.last().map(|time| time.offset))
        else {
            return Ok(Resume::FromTheFront);
        };
        if complete < last.offset {
            // Times need not rise. Up to a snapshot all entries are there; one that lies where the recovery point does
            // may have been written after the sync.
            let snapshot = self.read_producer_snapshot(files, until.plus(-1))?.map(|(at, _)| at.plus(-1));
            complete = complete.max(snapshot.unwrap_or(complete));
        }
        let offsets = entries.offsets.partition_point(|entry| entry.offset <= complete);
        let Some(&at) = offsets.checked_sub(1).and_then(|last| entries.offsets.get(last)) else {
            return Ok(Resume::FromTheFront);
        };
        let times = entries.times.partition_point(|time| time.offset <= at.offset);
        let Some(&largest) = times.checked_sub(1).and_then(|last| entries.times.get(last)) else {
            return Ok(Resume::FromTheFront);
        };
        let file = self.file(files, found.base, FileKind::Log)?;
        let mut walker = Walker::new(file.clone(), at.position.into(), found.size.into(), true);
        let Step::Batch { header, bytes, .. } = walker.step()? else { return Ok(Resume::Unfit) };
        // An epoch that is not written down yet began further back.
        let latest = self.epochs.latest().map_or(LeaderEpoch::NONE, |latest| latest.epoch);
        let epoch_is_known = header.leader_epoch <= latest;
        if header.last_offset != at.offset || !header.checksum_is_right(&bytes) {
            return Ok(Resume::Unfit);
        }
        if !epoch_is_known {
            return Ok(Resume::FromTheFront);
        }
        // The batch that has the largest timestamp.
        let before = entries.offsets.partition_point(|entry| entry.offset <= largest.offset).checked_sub(1);
        let from = before.map_or(0, |before| entries.offsets[before].position);
        let mut walker = Walker::new(file, from.into(), found.size.into(), false);
        loop {
            match walker.step()? {
                Step::Batch { header, .. } if header.last_offset < largest.offset => {}
                Step::Batch { header: named, .. }
                    if named.last_offset == largest.offset && named.max_timestamp == largest.timestamp =>
                {
                    let position = at.position;
                    return Ok(Resume::After(LastKnown { header, position, offsets, times, largest }));
                }
                _ => return Ok(Resume::Unfit),
            }
        }
    }

    /// Everything up to a batch that its entries name is taken in.
    fn resume(&mut self, files: &mut FilePool, found: Segment, at: &LastKnown) -> Result<(), StorageError> {
        let file = self.file(files, found.base, FileKind::Log)?;
        let first = match Walker::new(file, 0, found.size.into(), false).step()? {
            Step::Batch { header, .. } => Some(header.max_timestamp),
            _ => None,
        };
        let segment = self.segments.last_mut().expect("begin_taking_in has pushed it");
        segment.size = at.position + at.header.size;
        segment.first_timestamp = first;
        segment.largest = Some(at.largest);
        self.active = Active {
            offsets: IndexEntries::in_file(at.offsets as u32),
            times: IndexEntries::in_file(at.times as u32),
            last_time: at.largest.timestamp,
            since_entry: at.header.size,
            ..Active::default()
        };
        self.segment_end = at.header.next_offset();
        Ok(())
    }

    /// The last segment's index files hold less than they did: that is synced before anything rests on what comes
    /// after.
    pub(in crate::log) fn note_indexes(&mut self, files: &mut FilePool) -> Result<(), StorageError> {
        let Some(base) = self.segments.last().map(|segment| segment.base) else { return Ok(()) };
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
            if let Some(file) = self.existing_file(files, base, kind)? {
                self.mark_dirty(files, base, kind, file);
            }
        }
        Ok(())
    }
}

/// Entries of an index file from the front on that satisfy `holds`, and the file's length.
fn read_front<const N: usize>(
    file: Option<&dyn DiskFile>,
    holds: impl Fn(&[u8; N]) -> bool,
) -> Result<(Vec<[u8; N]>, u64), StorageError> {
    let Some(file) = file else { return Ok((Vec::new(), 0)) };
    let len = file.len()?;
    let all = IndexEntries::<N>::in_file((len / N as u64) as u32);
    // Kafka's are set to their largest size while they are written to: the rest is zeros.
    let count = all.count_while(Some(file), holds)?;
    let bytes = file.read_bytes(0, count as usize * N)?;
    let (entries, _) = bytes.as_chunks::<N>();
    Ok((entries.to_vec(), len))
}

/// Whether the entry behind those that are believed is something else than what was never written.
fn is_garbage<const N: usize>(raw: &[[u8; N]], believed: usize) -> bool {
    raw.get(believed).is_some_and(|entry| *entry != [0; N])
}
