//! One cleaning of one log, a group of segments at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use barnabas_base::{Map, Offset, ProducerId, TimestampMs};
use barnabas_wire::records::{Batch, Message};
use bytes::Bytes;

use super::filter::{Filter, Left, control_type};
use super::groups::groups;
use super::offset_map::{Full, MapMemory, OffsetMap};
use super::read::{FoundBatch, SegmentReader};
use super::segment_writer::{SegmentWriter, remove_cleaned};
use super::transactions::Transactions;
use super::types::{
    BATCH_INFLATED_BYTES_MAX, CleanError, CleanStats, CleanedSegment, LastRecord, LogToClean, Pace,
    Replacement, SegmentToClean,
};
use crate::disk::Disk;
use crate::segment::batch::BatchHeader;
use crate::segment::{self, offset_path};

/// A cleaning whose keys are known: [`Cleaning::next_group`] until there is none, and then the log is clean up to
/// [`Cleaning::end`]. Each group is to be swapped in before the next one is asked for.
#[derive(Debug)]
pub struct Cleaning {
    disk: Arc<dyn Disk>,
    log: LogToClean,
    filter: Filter,
    groups: VecDeque<Vec<SegmentToClean>>,
    /// Tombstones of the old formats stay in files that were written later than this.
    old_deletes_stay_since: TimestampMs,
}

impl Cleaning {
    /// Reads the dirty part and remembers its keys, as many as fit.
    ///
    /// # Errors
    /// [`CleanError`]; nothing was written.
    pub fn begin(
        disk: Arc<dyn Disk>,
        log: LogToClean,
        last_records: Map<ProducerId, LastRecord>,
        memory: MapMemory,
        now: TimestampMs,
        pace: &mut dyn Pace,
    ) -> Result<Self, CleanError> {
        remove_cleaned(&*disk, &log)?;
        let dirty_offsets = log.first_uncleanable.since(log.first_dirty).max(0) as u64;
        let mut map = OffsetMap::new(memory, dirty_offsets);
        fill(&mut map, &*disk, &log, pace)?;
        if map.complete_to() < log.first_dirty {
            return Err(CleanError::MapTooSmall { offset: log.first_dirty });
        }
        let end = map.complete_to().plus(1);
        let groups = VecDeque::from(groups(&*disk, &log, end)?);
        let old_deletes_stay_since = old_deletes_stay_since(&*disk, &log)?;
        let mut filter = Filter::new(&log, map, last_records, now);
        filter.stats.keys = filter.map.len() as u64;
        Ok(Self { disk, log, filter, groups, old_deletes_stay_since })
    }

    /// Up to here the log is clean once every group has been swapped in.
    pub fn end(&self) -> Offset {
        self.filter.map.complete_to().plus(1)
    }

    pub fn stats(&self) -> CleanStats {
        self.filter.stats
    }

    /// Writes the next group's new segments. `None`: that was all.
    ///
    /// # Errors
    /// [`CleanError`]; what was written of the group is removed again, as far as that is possible.
    pub fn next_group(&mut self, pace: &mut dyn Pace) -> Result<Option<Replacement>, CleanError> {
        let Some(old) = self.groups.pop_front() else { return Ok(None) };
        match self.clean_group(&old, pace) {
            Ok(new) => {
                self.filter.stats.segments_before += old.len() as u64;
                self.filter.stats.segments_after += new.len() as u64;
                Ok(Some(Replacement { ticket: self.log.ticket, old, new }))
            }
            Err(error) => {
                // What cannot be removed now goes before the next cleaning, or when the log is opened.
                let _ = self.give_up();
                Err(error)
            }
        }
    }

    /// Removes what was written and not swapped in.
    pub fn give_up(&self) -> Result<(), CleanError> {
        Ok(remove_cleaned(&*self.disk, &self.log)?)
    }

    fn clean_group(
        &mut self,
        old: &[SegmentToClean],
        pace: &mut dyn Pace,
    ) -> Result<Vec<CleanedSegment>, CleanError> {
        let Self { disk, log, filter, old_deletes_stay_since, .. } = self;
        let disk = &**disk;
        let mut modified = TimestampMs::NONE;
        let mut new = Vec::new();
        let mut writer: Option<SegmentWriter<'_>> = None;
        for &segment in old {
            let path = offset_path(&log.dir, segment.base, segment::LOG);
            let stat = disk.stat(&path)?.ok_or(CleanError::Gone(path))?;
            modified = stat.modified;
            let old_deletes_stay = stat.modified > *old_deletes_stay_since;
            let mut reader = SegmentReader::open(disk, log, segment)?;
            while let Some(found) = reader.next(pace)? {
                let (position, size) = (found.position, found.bytes.len());
                let left = what_is_left(filter, found, old_deletes_stay);
                let left = left.map_err(|what| reader.unreadable(position, what))?;
                filter.stats.bytes_read += size as u64;
                if let Some((header, bytes)) = left {
                    filter.stats.bytes_written += bytes.len() as u64;
                    if let Some(full) = writer.take_if(|writer| !writer.has_room(&header)) {
                        new.push(full.finish(modified)?);
                    }
                    let base = if new.is_empty() { old[0].base } else { header.base_offset };
                    let writer = match &mut writer {
                        Some(writer) => writer,
                        none => none.insert(SegmentWriter::create(disk, log, base)?),
                    };
                    writer.append(&header, &bytes, pace)?;
                    writer.note_aborted(filter.transactions.take_left());
                }
            }
        }
        let last = match writer {
            Some(writer) => Some(writer),
            // A segment stays where the group began, though nothing be in it.
            None if new.is_empty() => Some(SegmentWriter::create(disk, log, old[0].base)?),
            None => None,
        };
        if let Some(writer) = last {
            new.push(writer.finish(modified)?);
        }
        disk.sync_dir(&log.dir)?;
        Ok(new)
    }
}

fn what_is_left(
    filter: &mut Filter,
    found: FoundBatch,
    old_deletes_stay: bool,
) -> Result<Option<(BatchHeader, Bytes)>, String> {
    let FoundBatch { header, bytes, .. } = found;
    let left = match header.magic {
        2 => filter.batch(bytes.clone()),
        _ => filter.message(bytes.clone(), old_deletes_stay),
    };
    match left.map_err(|error| error.to_string())? {
        Left::Nothing => Ok(None),
        Left::Same => Ok(Some((header, bytes))),
        Left::Other(bytes) => match BatchHeader::parse(&bytes) {
            Ok(header) => Ok(Some((header, bytes))),
            Err(_) => Err("what is left of it is no batch".to_owned()),
        },
    }
}

/// Puts the keys of the dirty part into the map, until it is full.
///
/// # Source
/// Kafka `Cleaner.buildOffsetMap`.
fn fill(
    map: &mut OffsetMap,
    disk: &dyn Disk,
    log: &LogToClean,
    pace: &mut dyn Pace,
) -> Result<(), CleanError> {
    let mut transactions = Transactions::new(&log.aborted, log.first_dirty);
    for &segment in log.segments.iter().filter(|segment| segment.next_base > log.first_dirty) {
        let mut reader = SegmentReader::open(disk, log, segment)?;
        while let Some(found) = reader.next(pace)? {
            let last_offset = found.header.last_offset;
            let position = found.position;
            let filled = fill_from(map, &mut transactions, found, log.first_dirty);
            match filled.map_err(|error| reader.unreadable(position, error))? {
                Ok(()) if last_offset >= log.first_dirty => map.complete(last_offset),
                Ok(()) => {}
                Err(Full) => return Ok(()),
            }
        }
        // Where the last batches are gone, so are their keys.
        map.complete(segment.next_base.plus(-1));
    }
    Ok(())
}

fn fill_from(
    map: &mut OffsetMap,
    transactions: &mut Transactions,
    found: FoundBatch,
    from: Offset,
) -> Result<Result<(), Full>, barnabas_wire::records::BatchError> {
    if found.header.magic < 2 {
        for message in Message::parse(found.bytes)?.open()? {
            let message = message?;
            if let Some(key) = message.key.filter(|_| message.offset >= from)
                && map.put(&key, message.offset).is_err()
            {
                return Ok(Err(Full));
            }
        }
        return Ok(Ok(()));
    }
    let batch = Batch::new(found.bytes)?;
    if batch.header().attributes.is_control() {
        transactions.on_control(batch.header(), control_type(&batch)?);
        return Ok(Ok(()));
    }
    if transactions.on_batch(batch.header()) {
        return Ok(Ok(()));
    }
    for record in &batch.records_up_to(BATCH_INFLATED_BYTES_MAX)? {
        let record = record?;
        if let Some(key) = record.key.filter(|_| record.offset >= from)
            && map.put(key, record.offset).is_err()
        {
            return Ok(Err(Full));
        }
    }
    Ok(Ok(()))
}

/// # Source
/// Kafka `Cleaner.doClean`: `delete.retention.ms` before the last clean segment was written.
fn old_deletes_stay_since(disk: &dyn Disk, log: &LogToClean) -> Result<TimestampMs, CleanError> {
    let Some(last) = log.segments.iter().rfind(|segment| segment.base < log.first_dirty) else {
        return Ok(TimestampMs(0));
    };
    let path = offset_path(&log.dir, last.base, segment::LOG);
    let stat = disk.stat(&path)?.ok_or(CleanError::Gone(path))?;
    Ok(TimestampMs(stat.modified.0.saturating_sub(log.config.compaction.delete_retention_ms.0)))
}
