//! What was read of a log for a share partition: the headers of its batches with their places, and which of its bytes a
//! member gets.
//!
//! Neighbours: core/replica/src/shares.rs, which acquires from it.

use barnabas_base::{Offset, ProducerId};
use barnabas_partition::{Acquired, BatchKind, FetchedBatch, Isolation, Outcome};
use barnabas_wire::records::BatchHeader;
use bytes::Bytes;

use crate::batch_info;

/// Whole batches, at least one.
#[derive(Debug, Clone)]
pub struct Fetched {
    records: Bytes,
    /// Each with its place in `records`, in bytes.
    batches: Vec<(usize, FetchedBatch)>,
    pub(crate) aborted: Vec<(ProducerId, Offset)>,
    /// Where the log was read.
    pub from: Offset,
}

/// Whole batches that hold what was acquired; nothing of either, mostly.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShareRead {
    pub records: Bytes,
    pub acquired: Vec<Acquired>,
}

impl Fetched {
    /// Of what was read from `from` on. `None`: there is no whole batch in it.
    pub fn of(
        records: Bytes,
        aborted: Vec<(ProducerId, Offset)>,
        from: Offset,
        isolation: Isolation,
    ) -> Option<Self> {
        let batches = parsed(&records, isolation);
        (!batches.is_empty()).then_some(Self { records, batches, aborted, from })
    }

    pub fn size_bytes(&self) -> usize {
        self.records.len()
    }

    /// The offset behind its last batch.
    pub fn end(&self) -> Offset {
        self.batches.last().map_or(self.from, |(_, batch)| batch.last.plus(1))
    }

    pub(crate) fn headers(&self) -> Vec<FetchedBatch> {
        self.batches.iter().map(|(_, batch)| *batch).collect()
    }

    /// At least 1.
    pub(crate) fn bytes_per_record(&self) -> usize {
        let first = self.batches.first().map_or(self.from, |(_, first)| first.base);
        let count = usize::try_from(self.end().get() - first.get()).unwrap_or(1).max(1);
        (self.records.len() / count).max(1)
    }

    /// The batches from the first to the last that holds something acquired.
    pub(crate) fn around(&self, acquired: &[Acquired]) -> Bytes {
        let (Some(first), Some(last)) = (acquired.first(), acquired.last()) else { return Bytes::new() };
        let begin = self.batches.partition_point(|(_, batch)| batch.last < first.first);
        let end = self.batches.partition_point(|(_, batch)| batch.base <= last.last);
        let from = self.batches.get(begin).map_or(0, |(at, _)| *at);
        let to = self.batches.get(end).map_or(self.records.len(), |(at, _)| *at);
        self.records.slice(from.min(to)..to)
    }
}

/// The batches of what was read, by their headers.
fn parsed(records: &Bytes, isolation: Isolation) -> Vec<(usize, FetchedBatch)> {
    let mut batches = Vec::new();
    let mut at = 0;
    while let Ok(header) = BatchHeader::parse(&records[at..]) {
        let end = (at + header.size_bytes()).min(records.len());
        // Only where aborted records are left out does it matter whose end a marker is.
        let is_marker = header.attributes.is_control() && isolation == Isolation::ReadCommitted;
        let is_abort = is_marker
            && matches!(
                batch_info(&header, || records.slice(at..end)).kind,
                BatchKind::Marker(marker) if marker.outcome == Outcome::Abort
            );
        let batch = FetchedBatch {
            base: header.base_offset,
            last: header.last_offset(),
            producer_id: header.producer_id,
            is_transactional: header.attributes.is_transactional(),
            is_abort,
        };
        batches.push((at, batch));
        at = end;
        if at >= records.len() {
            break;
        }
    }
    batches
}
