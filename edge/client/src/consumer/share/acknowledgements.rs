//! What a member of a share group has acknowledged and the leaders do not know yet, as the batches of a request.

use barnabas_base::{Map, PartitionIndex};
use barnabas_wire::messages::share_fetch_request::AcknowledgementBatch;
use std::collections::BTreeMap;

/// The code of an offset that has no record.
pub(super) const GAP: i8 = 0;

#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    waiting: Map<PartitionIndex, BTreeMap<i64, i8>>,
}

impl Acknowledgements {
    pub(super) fn add(&mut self, partition: PartitionIndex, offset: i64, code: i8) {
        self.waiting.entry(partition).or_default().insert(offset, code);
    }

    pub(super) fn has(&self, partition: PartitionIndex) -> bool {
        self.waiting.contains_key(&partition)
    }

    /// Takes what waits for these partitions.
    pub(super) fn take(
        &mut self,
        partitions: &[PartitionIndex],
    ) -> Map<PartitionIndex, Vec<AcknowledgementBatch>> {
        let taken = partitions.iter().filter_map(|index| Some((*index, self.waiting.remove(index)?)));
        taken.map(|(index, offsets)| (index, batches(offsets))).collect()
    }
}

/// One batch for each run of offsets with the same code.
fn batches(offsets: BTreeMap<i64, i8>) -> Vec<AcknowledgementBatch> {
    let mut batches: Vec<AcknowledgementBatch> = Vec::new();
    for (offset, code) in offsets {
        match batches.last_mut() {
            Some(last) if last.last_offset + 1 == offset && last.acknowledge_types == [code] => {
                last.last_offset = offset;
            }
            _ => batches.push(AcknowledgementBatch {
                first_offset: offset,
                last_offset: offset,
                acknowledge_types: vec![code],
                ..Default::default()
            }),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_code_are_one_batch() {
        let mut all = Acknowledgements::default();
        for (offset, code) in [(7, 1), (5, 1), (6, 1), (8, 3), (10, 3)] {
            all.add(PartitionIndex(2), offset, code);
        }
        assert!(all.has(PartitionIndex(2)) && !all.has(PartitionIndex(1)));
        let taken = all.take(&[PartitionIndex(1), PartitionIndex(2)]);
        let rows: Vec<_> = taken[&PartitionIndex(2)]
            .iter()
            .map(|batch| (batch.first_offset, batch.last_offset, batch.acknowledge_types[0]))
            .collect();
        assert_eq!((taken.len(), rows), (1, vec![(5, 7, 1), (8, 8, 3), (10, 10, 3)]));
        assert!(all.take(&[PartitionIndex(2)]).is_empty());
    }
}
