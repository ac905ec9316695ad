//! What of a replica a consumer may read.
//!
//! Always true:
//! 1. a reader sees nothing beyond its bounds: the high watermark, the last stable offset, or for followers the log's
//!    end
//! 2. a reader whose last epoch ended before its offset gets the end of that epoch here, and no records (KIP-320)
//!
//! Neighbours: shell/broker/src/worker/partition_worker/reading/reads.rs, which collects answers and wakes waiting
//! fetches; core/storage's `Log::read`.
//!
//! Source: Kafka `Partition.readRecords`.

pub(crate) mod queries;

use barnabas_base::{LeaderEpoch, Offset};
use barnabas_partition::{Bounds, Isolation, Refusal};
use barnabas_storage::{AbortedTransaction, FilePool, StorageError};
use bytes::Bytes;

use crate::{Effect, Outbox, Replica, RequestError};

/// What one fetch asks of one partition.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest {
    pub from: Offset,
    pub max_bytes: usize,
    /// The first batch comes whole, even if it is larger than that.
    pub at_least_one: bool,
    pub isolation: Isolation,
    /// A replica that follows may answer (KIP-392).
    pub from_any: bool,
    pub leader_epoch: Option<LeaderEpoch>,
    pub last_fetched_epoch: Option<LeaderEpoch>,
}

#[derive(Debug)]
pub struct Read {
    pub records: Bytes,
    /// The offset after the last of them.
    pub next: Offset,
    pub aborted: Vec<AbortedTransaction>,
    /// The reader's log parted from this one: the largest common epoch and where it ends here (KIP-595).
    pub diverging: Option<(LeaderEpoch, Offset)>,
}

impl Default for Read {
    fn default() -> Self {
        Self { records: Bytes::new(), next: Offset::NONE, aborted: Vec::new(), diverging: None }
    }
}

impl Replica {
    /// From where to where such a request may read.
    ///
    /// # Errors
    /// The replica does not lead, or the epoch is another one.
    pub fn bounds_for(&self, request: &ReadRequest) -> Result<Bounds, Refusal> {
        match request.from_any {
            true => self.partition.replica_bounds(request.isolation, request.leader_epoch),
            false => self.partition.bounds(request.isolation, request.leader_epoch),
        }
    }

    /// What a consumer is shown.
    ///
    /// # Errors
    /// Outside of `bounds`, damaged, or storage has failed ([`Effect::ReadFailed`] says of which).
    pub fn read(
        &mut self,
        request: &ReadRequest,
        bounds: Bounds,
        files: &mut FilePool,
        outbox: &mut Outbox,
    ) -> Result<Read, RequestError> {
        if let Some(epoch) = request.last_fetched_epoch
            && let Some(diverging) = self.diverging(epoch, request.from)
        {
            // An epoch that no record here is of, nor any older one: there is nothing to fall back to.
            if diverging.1 == Offset::NONE {
                return Err(out_of_range(request.from, bounds).into());
            }
            return Ok(Read { diverging: Some(diverging), ..Read::default() });
        }
        bounds.check(request.from)?;
        let mut read = self.read_records(request, bounds, files, outbox)?;
        if request.isolation == Isolation::ReadCommitted && !read.records.is_empty() {
            let aborted = self.log.aborted_transactions(files, request.from, read.next);
            read.aborted = aborted.map_err(|error| read_failed(error, request.from, bounds, outbox))?;
        }
        Ok(read)
    }

    /// Whole batches from where the request asks, up to the bounds.
    ///
    /// # Errors
    /// As [`Replica::read`].
    pub fn read_records(
        &mut self,
        request: &ReadRequest,
        bounds: Bounds,
        files: &mut FilePool,
        outbox: &mut Outbox,
    ) -> Result<Read, RequestError> {
        let ReadRequest { from, max_bytes, at_least_one, .. } = *request;
        if from >= bounds.end || (max_bytes == 0 && !at_least_one) {
            return Ok(Read::default());
        }
        let read = self.log.read(files, from, max_bytes, bounds.end, at_least_one);
        let mut read = read.map_err(|error| read_failed(error, from, bounds, outbox))?;
        if read.position.is_some() && read.next_offset < bounds.end && read.records.len() < max_bytes / 2 {
            // It ended where the segment does; what comes next is mostly in memory. One answer for both.
            let left = max_bytes - read.records.len();
            // What is wrong there is the next request's answer.
            if let Ok(rest) = self.log.read(files, read.next_offset, left, bounds.end, false)
                && !rest.records.is_empty()
            {
                read.records = [read.records, rest.records].concat().into();
                read.next_offset = rest.next_offset;
            }
        }
        Ok(Read { records: read.records, next: read.next_offset, ..Read::default() })
    }

    /// The reader's last epoch ended before the place that it wants to read from.
    fn diverging(&self, last_fetched: LeaderEpoch, from: Offset) -> Option<(LeaderEpoch, Offset)> {
        let (epoch, end) = self.log.epochs().end_offset_for(last_fetched, self.log.end());
        (epoch < last_fetched || end < from).then_some((epoch, end))
    }
}

fn out_of_range(asked: Offset, bounds: Bounds) -> Refusal {
    Refusal::OutOfRange { asked, start: bounds.log_start, end: bounds.log_end }
}

fn read_failed(error: StorageError, from: Offset, bounds: Bounds, outbox: &mut Outbox) -> RequestError {
    let answer = match &error {
        StorageError::OffsetOutOfRange { .. } => return out_of_range(from, bounds).into(),
        StorageError::Damaged { .. } => RequestError::Damaged,
        _ => RequestError::Storage,
    };
    outbox.effects.push(Effect::ReadFailed(Box::new(error)));
    answer
}
