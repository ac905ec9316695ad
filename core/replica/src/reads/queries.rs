//! What a replica answers from what it knows and from headers of batches: bounds, offsets by time, times by offset,
//! ends of epochs, deletion of records.
//!
//! Neighbours: shell/broker/src/worker/partition_worker/reading/asks.rs, which opens the partition and spends its turn;
//! core/storage's `log/read/time_search.rs`.
//!
//! Source: Kafka `Partition.fetchOffsetForTimestamp`, `Partition.lastOffsetForLeaderEpoch`,
//! `Partition.deleteRecordsOnLeader`.

use barnabas_base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};
use barnabas_partition::{Isolation, Refusal};
use barnabas_storage::{FilePool, StorageError, TimedBatch};
use barnabas_wire::records::{BatchHeader, TimestampType};

use crate::{Replica, RequestError, Surroundings, Verified};

/// What is searched in a log.
#[derive(Debug, Clone, Copy)]
pub enum Search {
    Nothing,
    /// The first record at or after this time, at or past this offset.
    ByTime(TimestampMs, Offset),
    /// The record with the largest time.
    MaxTime,
}

/// From where to where a client may search, and what ListOffsets answers beside that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListBounds {
    /// The offset after the last that the client may read.
    pub readable_end: Offset,
    pub leader_epoch: LeaderEpoch,
    pub log_start: Offset,
    /// The epoch of the record at `log_start`, where it is known.
    pub log_start_epoch: Option<LeaderEpoch>,
    /// A new leader whose high watermark has not reached the start of its epoch yet.
    pub high_watermark_lags: bool,
}

/// Why a query has no answer.
#[derive(Debug)]
pub enum QueryError {
    Refused(RequestError),
    /// The log could not be read or written: damage is to be named to the operator.
    Storage(StorageError),
}

impl From<Refusal> for QueryError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<StorageError> for QueryError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl Replica {
    /// What ListOffsets may answer. `from_any`: a follower answers too (Kafka's DEBUGGING_REPLICA_ID).
    ///
    /// # Errors
    /// The replica does not lead, or the epoch is another one.
    pub fn list_bounds(
        &self,
        isolation: Isolation,
        leader_epoch: Option<LeaderEpoch>,
        from_any: bool,
    ) -> Result<ListBounds, Refusal> {
        let bounds = match from_any {
            true => self.partition.replica_bounds(isolation, leader_epoch)?,
            false => self.partition.bounds(isolation, leader_epoch)?,
        };
        let lags = self.partition.list_bounds(isolation, leader_epoch) == Err(Refusal::OffsetNotAvailable);
        let epochs = self.log.epochs();
        Ok(ListBounds {
            readable_end: bounds.end,
            leader_epoch: epochs.latest().map_or(self.partition.leader_epoch(), |entry| entry.epoch),
            log_start: bounds.log_start,
            log_start_epoch: epochs.epoch_at(bounds.log_start),
            high_watermark_lags: lags,
        })
    }

    /// The next batch that may hold what is searched.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn timed_batch(
        &mut self,
        search: Search,
        files: &mut FilePool,
    ) -> Result<Option<TimedBatch>, StorageError> {
        match search {
            Search::Nothing => Ok(None),
            Search::ByTime(time, from) => {
                self.log.batch_for_timestamp(files, time, from.max(self.log.start()))
            }
            Search::MaxTime => self.log.batch_of_max_timestamp(files),
        }
    }

    /// When the batch that holds `at` was written, or the next one where compaction has removed that. Its header is all
    /// that is read. `None`: there is no such batch, or it is of before format 2, which has no time here.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn time_at(&mut self, at: Offset, files: &mut FilePool) -> Result<Option<TimestampMs>, StorageError> {
        let at = at.max(self.log.start());
        if at >= self.log.end() {
            return Ok(None);
        }
        let mut found = None;
        self.log.scan_headers(files, at, at.plus(1), &mut |batch| found = found.or(time_of(&batch)))?;
        if found.is_none() {
            let end = self.log.end();
            found = time_of(&self.log.read(files, at, 0, end, true)?.records);
        }
        Ok(found)
    }

    /// The largest epoch that is not after `epoch`, and where it ends here (KIP-101).
    ///
    /// # Errors
    /// The replica does not lead, or the epoch is another one.
    pub fn epoch_end(
        &self,
        epoch: LeaderEpoch,
        leader_epoch: Option<LeaderEpoch>,
    ) -> Result<(LeaderEpoch, Offset), Refusal> {
        self.partition.check_leader(leader_epoch)?;
        Ok(self.log.epochs().end_offset_for(epoch, self.log.end()))
    }

    /// Deletes records below `up_to` (`None`: below the high watermark). Returns where the log starts now; the caller
    /// has that in the checkpoints before it answers. Followers learn of it with their next fetch: theirs that wait are
    /// woken.
    ///
    /// # Errors
    /// Nothing was deleted.
    pub fn delete_records(
        &mut self,
        up_to: Option<Offset>,
        around: &mut Surroundings<'_>,
    ) -> Result<Offset, QueryError> {
        // So that the log's start never lies in what is in memory alone.
        self.write_back_all(around)?;
        let start = self.partition.delete_records(up_to, &mut around.outbox.decisions)?;
        self.upkeep.is_changed = true;
        Ok(start)
    }

    /// What the transaction coordinator's agreement about this producer would rest on. `None`: the transaction is open,
    /// and the coordinator need not be asked (KIP-890).
    ///
    /// # Errors
    /// The partition refuses the producer.
    pub fn verification(
        &mut self,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
        starts_at_zero: bool,
    ) -> Result<Option<Verified>, Refusal> {
        let guard = self.partition.guard(producer_id, epoch, starts_at_zero)?;
        Ok(guard.map(|guard| Verified { replica: self.number, guard }))
    }
}

/// When a batch's first record was written, or the batch, where the broker dates it.
fn time_of(batch: &[u8]) -> Option<TimestampMs> {
    let header = BatchHeader::parse(batch).ok()?;
    let is_dated_by_records = header.attributes.timestamp_type() == TimestampType::CreateTime;
    // The first timestamp of a compacted batch may be the time at which its tombstones go (KIP-534).
    let time = match is_dated_by_records && !header.attributes.has_delete_horizon() {
        true => header.base_timestamp,
        false => header.max_timestamp,
    };
    (time.0 >= 0).then_some(time)
}
