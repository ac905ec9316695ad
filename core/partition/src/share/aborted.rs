//! Which of the batches that were read belong to aborted transactions, and what is left of what was acquired without
//! them.
//!
//! Source: Kafka 4.4 `SharePartition.fetchAbortedTransactionRecordBatches`, `filterRecordBatchesFromAcquiredRecords`.

use barnabas_base::{Offset, ProducerId, Set};

use super::in_flight::Run;
use super::types::{Acquired, FetchedBatch};

/// Batches of records of aborted transactions, in the log's order.
pub(super) fn batches(fetched: &[FetchedBatch], aborted: &[(ProducerId, Offset)]) -> Vec<Run> {
    let mut waiting = aborted.to_vec();
    waiting.sort_unstable_by_key(|(_, first)| *first);
    let mut waiting = waiting.into_iter().peekable();
    let mut open = Set::default();
    let mut found = Vec::new();
    for batch in fetched.iter().filter(|batch| batch.producer_id.get() >= 0) {
        while let Some((producer, _)) = waiting.next_if(|(_, first)| *first <= batch.last) {
            open.insert(producer);
        }
        if batch.is_abort {
            open.remove(&batch.producer_id);
        } else if batch.is_transactional && open.contains(&batch.producer_id) {
            found.push(Run { first: batch.base, last: batch.last });
        }
    }
    found
}

/// What lies in both. Each is in order, without overlaps.
pub(super) fn common(acquired: &[Acquired], ranges: &[Run]) -> Vec<Run> {
    let pairs = acquired.iter().flat_map(|of| {
        let meets = move |range: &&Run| range.first <= of.last && range.last >= of.first;
        ranges
            .iter()
            .filter(meets)
            .map(|range| Run { first: range.first.max(of.first), last: range.last.min(of.last) })
    });
    pairs.collect()
}

/// What was acquired and lies in no range.
pub(super) fn without(acquired: &[Acquired], ranges: &[Run]) -> Vec<Acquired> {
    let mut left = Vec::new();
    for of in acquired {
        let mut first = of.first;
        for range in ranges.iter().filter(|range| range.first <= of.last && range.last >= of.first) {
            if range.first > first {
                left.push(Acquired { first, last: range.first.plus(-1), ..*of });
            }
            first = first.max(range.last.plus(1));
        }
        if first <= of.last {
            left.push(Acquired { first, ..*of });
        }
    }
    left
}
