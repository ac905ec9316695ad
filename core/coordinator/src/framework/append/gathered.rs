//! What a shard appends in one turn of its worker, on the way into one batch of its log.
//!
//! A batch of the log costs as much as a dozen records: its header, its checksum, its place in the journal's round,
//! its answer. During one round the requests for the next one gather in the worker's mailbox, so batches grow with
//! the load. There is no linger: the gathered records are appended when the turn ends.
//!
//! Not gathered: batches of a producer's transaction and markers, which are batches of their own in Kafka's format.
//!
//! Always true: batches are handed in in the order of their ids, and decided together.

use crate::framework::{BatchId, Record};

/// From here on a batch is large enough, and its cost lies in its bytes. Far below `max.message.bytes`, and below what
/// would go into the segment directly.
const TOGETHER_BYTES_MAX: usize = 64 << 10;

/// A shard's batches that are one batch of the log, each with the place of its first record in that.
#[derive(Debug)]
pub struct Together {
    last: (BatchId, i64),
    before: Vec<(BatchId, i64)>,
}

impl Together {
    pub fn one(batch: BatchId) -> Self {
        Self { last: (batch, 0), before: Vec::new() }
    }

    /// The last one, which stands for all before it where they are safe, and those.
    pub fn all(&self) -> (&(BatchId, i64), &[(BatchId, i64)]) {
        (&self.last, &self.before)
    }
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct Gathered {
    batches: Vec<(BatchId, i64)>,
    records: Vec<Record>,
    bytes: usize,
}

impl Gathered {
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether these may go with what is here. Whatever comes first may.
    pub fn has_room(&self, records: &[Record]) -> bool {
        self.is_empty() || self.bytes + bytes_of(records) <= TOGETHER_BYTES_MAX
    }

    pub fn add(&mut self, batch: BatchId, mut records: Vec<Record>) {
        self.batches.push((batch, self.records.len() as i64));
        self.bytes += bytes_of(&records);
        if self.records.is_empty() {
            self.records = records;
        } else {
            self.records.append(&mut records);
        }
    }

    /// What there is, if anything.
    pub fn take(&mut self) -> Option<(Together, Vec<Record>)> {
        let last = self.batches.pop()?;
        let Self { batches: before, records, .. } = std::mem::take(self);
        Some((Together { last, before }, records))
    }
}

fn bytes_of(records: &[Record]) -> usize {
    records.iter().map(Record::bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn records(count: usize, bytes: usize) -> Vec<Record> {
        vec![Record { key: Bytes::from(vec![0; bytes]), value: None }; count]
    }

    #[test]
    fn batches_keep_their_order_and_their_places() {
        let mut gathered = Gathered::default();
        assert!(gathered.take().is_none());
        for (id, count) in [(4, 2), (5, 1), (6, 3)] {
            gathered.add(BatchId(id), records(count, 10));
        }
        let (together, all) = gathered.take().expect("gathered");
        assert_eq!(all.len(), 6);
        assert_eq!(together.all(), (&(BatchId(6), 3), &[(BatchId(4), 0), (BatchId(5), 2)][..]));
        assert!(gathered.is_empty() && gathered.take().is_none());
    }

    #[test]
    fn what_is_large_goes_alone() {
        let mut gathered = Gathered::default();
        let large = records(1, 2 * TOGETHER_BYTES_MAX);
        assert!(gathered.has_room(&large));
        gathered.add(BatchId(1), large);
        assert!(!gathered.has_room(&records(1, 1)));
    }
}
