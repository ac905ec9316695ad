//! Records with keys, for compacted topics: what stands in one follows from its number, so that a reader knows whether
//! it is as it was written.
//!
//! Neighbours: `batch`, which builds and reads batches of them;
//! `invariants/acknowledged_is_kept/compaction_keeps.rs`, which judges what is left.

use barnabas_base::{ProducerId, Sequence, TimestampMs, split_mix_64};
use barnabas_wire::records::{BatchBuilder, RecordRef};

/// Idempotent producers from this id on write records with keys.
pub(crate) const FIRST_PRODUCER: i64 = 1 << 32;
/// Values of transactions with this bit have keys.
pub(crate) const VALUE_BIT: u64 = 1 << 60;
/// So few that most records have newer ones of their key.
const KEYS: u64 = 10;
const SIZES: [usize; 4] = [8, 30, 100, 380];
const HEADER: &[u8] = b"number";

/// A record with a key. Never twice the same in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Keyed(u64);

impl Keyed {
    /// What stands at `sequence` of a producer; `None`: it writes without keys.
    pub fn of_sequence(producer: ProducerId, sequence: Sequence) -> Option<Self> {
        let producer = producer.get().checked_sub(FIRST_PRODUCER).filter(|number| *number >= 0)?;
        Some(Self((producer as u64) << 32 | sequence.get() as u64))
    }

    /// A part of a transaction; `None`: it has no key.
    pub fn of_value(value: u64) -> Option<Self> {
        (value & VALUE_BIT != 0).then_some(Self(value))
    }

    fn drawn(self) -> u64 {
        let mut state = self.0;
        split_mix_64(&mut state)
    }

    pub fn key(self) -> u8 {
        (self.drawn() % KEYS) as u8
    }

    /// One in five deletes its key.
    pub fn is_tombstone(self) -> bool {
        (self.drawn() >> 16).is_multiple_of(5)
    }

    fn value(self) -> Option<Vec<u8>> {
        let size = SIZES[(self.drawn() >> 32) as usize % SIZES.len()];
        (!self.is_tombstone()).then(|| vec![self.0 as u8; size])
    }

    pub fn push(self, builder: &mut BatchBuilder, now: TimestampMs) {
        let number = self.0.to_be_bytes();
        let headers = [(HEADER, Some(&number[..]))];
        builder.push(now, Some(&[self.key()]), self.value().as_deref(), &headers);
    }

    /// `None`: it is not one, or not as it was written.
    pub fn read(record: &RecordRef<'_>) -> Option<Self> {
        let mut headers = record.headers();
        let Some((HEADER, Some(number))) = headers.next() else { return None };
        let keyed = Self(u64::from_be_bytes(number.try_into().ok()?));
        let is_whole = record.key == Some(&[keyed.key()]) && record.value == keyed.value().as_deref();
        (is_whole && headers.next().is_none()).then_some(keyed)
    }

    pub fn number(self) -> u64 {
        self.0
    }
}
