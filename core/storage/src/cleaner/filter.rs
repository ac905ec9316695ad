//! What is left of one batch.
//!
//! Source: Kafka `Cleaner.cleanInto`, `Cleaner.shouldRetainRecord`, `MemoryRecords.filterTo`.

use barnabas_base::{Map, Offset, ProducerId, TimestampMs};
use barnabas_wire::records::{
    Batch, BatchError, BatchHeader, CONTROL_BYTES_MAX, ControlType, Message, RecordRef, Records,
    with_messages_left, with_records_left, without_records,
};
use bytes::Bytes;

use super::offset_map::OffsetMap;
use super::transactions::Transactions;
use super::types::{BATCH_INFLATED_BYTES_MAX, CleanStats, LastRecord, LogToClean};

/// What stays and what goes, in one cleaning of one log.
#[derive(Debug)]
pub(super) struct Filter {
    pub map: OffsetMap,
    pub last_records: Map<ProducerId, LastRecord>,
    pub transactions: Transactions,
    pub now: TimestampMs,
    pub first_uncleanable: Offset,
    pub epoch_starts: Vec<Offset>,
    pub delete_horizon_of_new: TimestampMs,
    pub stats: CleanStats,
}

/// A batch as it goes into the new segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Same,
    Other(Bytes),
}

/// What is known of a batch before its records are looked at.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    /// None of its records stays.
    drop_records: bool,
    /// It stays even without records.
    stays_empty: bool,
    /// A marker of whose transaction nothing is left: it goes once its delete horizon has passed.
    is_orphan_marker: bool,
}

impl Filter {
    pub fn new(
        log: &LogToClean,
        map: OffsetMap,
        last_records: Map<ProducerId, LastRecord>,
        now: TimestampMs,
    ) -> Self {
        Self {
            map,
            last_records,
            transactions: Transactions::new(&log.aborted, Offset::ZERO),
            now,
            first_uncleanable: log.first_uncleanable,
            epoch_starts: log.epoch_starts.clone(),
            delete_horizon_of_new: now.plus(log.config.compaction.delete_retention_ms),
            stats: CleanStats::default(),
        }
    }

    /// What is left of a batch of the current format.
    ///
    /// # Errors
    /// Records that cannot be read.
    pub fn batch(&mut self, bytes: Bytes) -> Result<Left, BatchError> {
        let batch = Batch::new(bytes)?;
        let header = *batch.header();
        let verdict = self.judge(&batch)?;
        if verdict.drop_records && !verdict.stays_empty {
            return Ok(Left::Nothing);
        }
        let records = batch.records_up_to(BATCH_INFLATED_BYTES_MAX)?;
        let (kept, all) = self.records_left(&header, &records, verdict)?;
        if kept.is_empty() {
            let stays = verdict.stays_empty;
            return Ok(if stays { Left::Other(without_records(&header)) } else { Left::Nothing });
        }
        let has_tombstones = kept.iter().any(|record| record.value.is_none());
        let had_horizon = header.attributes.has_delete_horizon();
        let needs_horizon = (has_tombstones || verdict.is_orphan_marker) && !had_horizon;
        if all && !needs_horizon {
            return Ok(Left::Same);
        }
        let horizon = match (needs_horizon, had_horizon) {
            (true, _) => Some(self.delete_horizon_of_new),
            (_, true) => Some(header.base_timestamp),
            _ => None,
        };
        Ok(Left::Other(with_records_left(&header, &kept, horizon)?))
    }

    fn judge(&mut self, batch: &Batch) -> Result<Verdict, BatchError> {
        let header = batch.header();
        let is_control = header.attributes.is_control();
        let nothing_left = match is_control {
            true => self.transactions.on_control(header, control_type(batch)?),
            false => self.transactions.on_batch(header),
        };
        let is_last = header.has_producer_id()
            && self.last_records.get(&header.producer_id).is_some_and(|last| match last.last_data_offset {
                Some(offset) => header.last_offset() == offset,
                None => is_control && header.producer_epoch == last.epoch,
            });
        // So that a replica that copies this log comes to its end.
        let is_end = header.next_offset() == self.first_uncleanable;
        // So that it learns where epochs begin: else, as a leader, it would leave a follower records that no other
        // replica has.
        let begins_epoch = self.epoch_starts.binary_search(&header.base_offset).is_ok();
        Ok(Verdict {
            drop_records: nothing_left && (!is_control || self.horizon_has_passed(header)),
            stays_empty: is_last || is_end || begins_epoch,
            is_orphan_marker: nothing_left && is_control,
        })
    }

    /// The records that stay, and whether those are all.
    fn records_left<'a>(
        &mut self,
        header: &BatchHeader,
        records: &'a Records,
        verdict: Verdict,
    ) -> Result<(Vec<RecordRef<'a>>, bool), BatchError> {
        let mut kept = Vec::new();
        let mut count = 0;
        let tombstones_stay = !self.horizon_has_passed(header);
        for record in records {
            let record = record?;
            count += 1;
            let stays = !verdict.drop_records
                && (header.attributes.is_control()
                    || self.stays(record.offset, record.key, record.value.is_some() || tombstones_stay));
            if stays {
                kept.push(record);
            }
        }
        self.stats.records_read += count;
        self.stats.records_kept += kept.len() as u64;
        let all = kept.len() as u64 == count;
        Ok((kept, all))
    }

    /// What is left of a message of format 0 or 1: it becomes a batch of the current format, as Kafka does since 4.0.
    ///
    /// # Errors
    /// As [`Filter::batch`].
    pub fn message(&mut self, bytes: Bytes, tombstones_stay: bool) -> Result<Left, BatchError> {
        let message = Message::parse(bytes)?;
        let (mut kept, mut has_tombstones) = (Vec::new(), false);
        for inner in message.open()? {
            let inner = inner?;
            self.stats.records_read += 1;
            if self.stays(inner.offset, inner.key.as_deref(), inner.value.is_some() || tombstones_stay) {
                has_tombstones |= inner.value.is_none();
                kept.push(inner);
            }
        }
        self.stats.records_kept += kept.len() as u64;
        if kept.is_empty() {
            return Ok(Left::Nothing);
        }
        let horizon = has_tombstones.then_some(self.delete_horizon_of_new);
        Ok(Left::Other(with_messages_left(&message, &kept, horizon)?))
    }

    /// Whether the record is its key's newest, as far as the map knows. `counts`: it has a value, or is a tombstone
    /// that is needed yet.
    fn stays(&mut self, offset: Offset, key: Option<&[u8]>, counts: bool) -> bool {
        if offset > self.map.complete_to() {
            return true;
        }
        let Some(key) = key else {
            self.stats.records_without_key += 1;
            return false;
        };
        counts && self.map.get(key).is_none_or(|newest| offset >= newest)
    }

    fn horizon_has_passed(&self, header: &BatchHeader) -> bool {
        header.attributes.has_delete_horizon() && header.base_timestamp <= self.now
    }
}

/// What a control batch says. `None`: it is empty, or its key is not known.
pub(super) fn control_type(batch: &Batch) -> Result<Option<ControlType>, BatchError> {
    if batch.header().record_count == 0 {
        return Ok(None);
    }
    let records = batch.records_within(CONTROL_BYTES_MAX)?;
    let Some(record) = records.iter().next() else { return Ok(None) };
    Ok(ControlType::from_key(record?.key.unwrap_or_default()))
}
