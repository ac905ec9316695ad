//! One partition's part of a fetch answer, as batches of records: CRC checked, inflated, without markers and without
//! records of aborted transactions. Pure.

use super::FetchedBatch;
use barnabas_base::{Offset, PartitionIndex};
use barnabas_wire::messages::fetch_response::PartitionData;
use barnabas_wire::records::{Batch, BatchError, Entry, entries};
use std::collections::VecDeque;

/// What came of one partition.
#[derive(Debug)]
pub struct Unpacked {
    pub batches: Vec<FetchedBatch>,
    /// The offset after everything that could be read.
    pub next: Offset,
    /// Why it goes no further.
    pub error: Option<Fault>,
}

/// Why a batch cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is damaged, or of a format that is not known.
    Unreadable(String),
    /// It is sound, and inflates to more than the consumer takes. Reading could go on at `next`.
    TooLarge { at: Offset, next: Offset },
}

/// Unpacks what was fetched from `from` on. `inflated_max`: of one batch.
pub fn unpack(data: PartitionData, from: Offset, read_committed: bool, inflated_max: usize) -> Unpacked {
    let partition = PartitionIndex(data.partition_index);
    let mut unpacked = Unpacked { batches: Vec::new(), next: from, error: None };
    let mut aborted = AbortedTransactions::new(&data);
    for entry in entries(data.records.unwrap_or_default()) {
        let batch = match entry {
            Ok(Entry::Batch(batch)) => batch,
            Ok(Entry::Message(_)) => {
                unpacked.error = Some(Fault::Unreadable("the broker sent an old record format".to_owned()));
                break;
            }
            Err(error) => {
                unpacked.error = Some(Fault::Unreadable(error.to_string()));
                break;
            }
        };
        let aborted = read_committed.then_some(&mut aborted);
        if let Err(error) = unpacked.take(partition, from, &batch, inflated_max, aborted) {
            let (at, next) = (batch.header().base_offset, batch.header().next_offset());
            unpacked.error = Some(match error {
                BatchError::TooLarge { .. } => Fault::TooLarge { at, next },
                error => Fault::Unreadable(format!("at offset {at}: {error}")),
            });
            break;
        }
    }
    if let Some(last) = unpacked.batches.last_mut() {
        last.next = unpacked.next;
    }
    unpacked
}

impl Unpacked {
    fn take(
        &mut self,
        partition: PartitionIndex,
        from: Offset,
        batch: &Batch,
        inflated_max: usize,
        aborted: Option<&mut AbortedTransactions>,
    ) -> Result<(), BatchError> {
        batch.check_crc()?;
        let header = *batch.header();
        let (producer, next) = (header.producer_id.get(), header.next_offset());
        if header.attributes.is_control() {
            if let Some(aborted) = aborted {
                aborted.marker(producer);
            }
        } else {
            let is_aborted = header.attributes.is_transactional()
                && aborted.is_some_and(|aborted| aborted.holds(producer, header.base_offset.get()));
            if !is_aborted && next > from {
                let records = batch.records_up_to(inflated_max)?;
                self.batches.push(FetchedBatch { partition, from, records, next });
            }
        }
        self.next = self.next.max(next);
        Ok(())
    }
}

/// Which producers' records are to be skipped from where on: the fetch answer's own list.
#[derive(Debug)]
pub struct AbortedTransactions {
    /// (first offset, producer id), in the order of the offsets.
    coming: VecDeque<(i64, i64)>,
    open: Vec<i64>,
}

impl AbortedTransactions {
    /// Of one partition's answer, whose batches are then asked about in their order.
    pub fn new(data: &PartitionData) -> Self {
        let listed = data.aborted_transactions.iter().flatten();
        let mut coming: Vec<_> = listed.map(|aborted| (aborted.first_offset, aborted.producer_id)).collect();
        coming.sort_unstable();
        Self { coming: coming.into(), open: Vec::new() }
    }

    /// Whether a batch of transactions of `producer` at `offset` was aborted.
    pub fn holds(&mut self, producer: i64, offset: i64) -> bool {
        while let Some((_, begun)) = self.coming.pop_front_if(|entry| entry.0 <= offset) {
            self.open.push(begun);
        }
        self.open.contains(&producer)
    }

    /// A transaction of `producer` ends.
    pub fn marker(&mut self, producer: i64) {
        self.open.retain(|open| *open != producer);
    }
}
