//! How far the replicas of one worker are behind their leaders: the furthest of them is on the metrics page (Kafka's
//! MaxLag).
//!
//! In records, up to the leader's high watermark, as its newest answer told. Who has everything costs nothing.
//!
//! Neighbours: partition_worker/replica_fetcher.rs, which tells; exporter/collect/quorum.rs, which shows it.

use crate::mailbox::PartitionKey;
use barnabas_metrics::WorkerCells;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

/// One worker's.
#[derive(Debug, Default)]
pub struct Behind {
    /// Of those that lack something.
    lacks: HashMap<PartitionKey, u64>,
    /// How many lack so much.
    by_records: BTreeMap<u64, u32>,
    has_changed: Cell<bool>,
}

impl Behind {
    /// A leader has answered, and a replica has so many of its records still to fetch.
    pub fn set(&mut self, key: PartitionKey, records: i64) {
        let records = u64::try_from(records).unwrap_or(0);
        let before = if records == 0 { self.lacks.remove(&key) } else { self.lacks.insert(key, records) };
        let before = before.unwrap_or(0);
        if before == records {
            return;
        }
        if before > 0
            && let Some(count) = self.by_records.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.by_records.remove(&before);
            }
        }
        if records > 0 {
            *self.by_records.entry(records).or_default() += 1;
        }
        self.has_changed.set(true);
    }

    /// The partition has no leader to follow any more.
    pub fn forget(&mut self, key: PartitionKey) {
        self.set(key, 0);
    }

    /// Adds it to the worker's metrics.
    pub fn count(&self, cells: &WorkerCells) {
        if self.has_changed.replace(false) {
            cells.behind_most.set(self.by_records.last_key_value().map_or(0, |(&records, _)| records));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, TopicId};

    #[test]
    fn furthest_behind_is_reported_until_it_has_caught_up_or_stops_following() {
        let (mut behind, cells) = (Behind::default(), WorkerCells::default());
        let key =
            |partition| PartitionKey { topic: TopicId::default(), partition: PartitionIndex(partition) };
        let mut told = Vec::new();
        for (partition, records) in [(0, 5), (1, 9), (2, 9), (1, 0), (2, 4), (0, -1), (2, 0)] {
            behind.set(key(partition), records);
            behind.count(&cells);
            told.push(cells.behind_most.get());
        }
        assert_eq!(told, [5, 9, 9, 9, 5, 4, 0]);
        behind.set(key(7), 3);
        behind.forget(key(7));
        behind.forget(key(8));
        behind.count(&cells);
        assert_eq!((cells.behind_most.get(), behind.lacks.len(), behind.by_records.len()), (0, 0, 0));
    }
}
