//! Every key's newest offset in the dirty part of a log, under a bound of memory.
//!
//! An open table of 24 bytes a slot (a key's 128 bits, and the offset plus one), as large as the number of dirty
//! offsets asks for and the bound allows. Pages that no key falls into are never touched, so a small log costs little.
//!
//! Source: Kafka `SkimpyOffsetMap`, whose slots have the same size: the same setting holds the same number of keys.

use barnabas_base::Offset;

use super::key_hash::{self, Seed};

const SLOT_BYTES: usize = 24;

/// How much memory a map may take, and under which secret keys are hashed.
#[derive(Debug, Clone, Copy)]
pub struct MapMemory {
    /// One thread's share of `log.cleaner.dedupe.buffer.size`.
    pub bytes: usize,
    /// `log.cleaner.io.buffer.load.factor`: how full the table may get.
    pub load_factor: f64,
    /// Random.
    pub seed: [u64; 2],
}

impl MapMemory {
    fn slots(self) -> usize {
        // An index past 2³¹ slots would be 48 GiB of memory; Kafka stops at 2 GiB.
        (self.bytes / SLOT_BYTES).max(2)
    }

    /// The most keys that a map holds.
    pub(super) fn keys_max(self) -> usize {
        ((self.slots() as f64 * self.load_factor) as usize).clamp(1, self.slots() - 1)
    }
}

#[derive(Debug)]
pub(super) struct OffsetMap {
    seed: Seed,
    /// Hash, hash, offset + 1; all zero where the slot is free.
    slots: Vec<[u64; 3]>,
    keys: usize,
    keys_max: usize,
    /// Every key at or below this offset, and at or past where the map begins, is in here.
    complete_to: Offset,
}

/// No room for another key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

impl OffsetMap {
    /// For `offsets` records at most.
    pub fn new(memory: MapMemory, offsets: u64) -> Self {
        let keys_max = memory.keys_max();
        let wanted = offsets.min(keys_max as u64) as f64 / memory.load_factor.clamp(0.01, 0.99);
        let slots = (wanted as usize + 2).min(memory.slots());
        Self { seed: memory.seed, slots: vec![[0; 3]; slots], keys: 0, keys_max, complete_to: Offset::NONE }
    }

    pub fn len(&self) -> usize {
        self.keys
    }

    pub fn complete_to(&self) -> Offset {
        self.complete_to
    }

    /// Everything up to `offset` has been put in.
    pub fn complete(&mut self, offset: Offset) {
        self.complete_to = self.complete_to.max(offset);
    }

    /// Offsets rise from call to call. A map that is full takes no key, known or not, as in Kafka.
    pub fn put(&mut self, key: &[u8], offset: Offset) -> Result<(), Full> {
        if self.keys >= self.keys_max {
            return Err(Full);
        }
        let (at, known) = self.find(key);
        self.keys += usize::from(!known);
        self.slots[at][2] = offset.get() as u64 + 1;
        self.complete(offset);
        Ok(())
    }

    /// The newest offset of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Offset> {
        let hash = key_hash::hash(self.seed, key);
        let slot = self.slots[self.slot_of(hash)];
        (slot[2] != 0).then(|| Offset(slot[2] as i64 - 1))
    }

    /// The slot of `key`, its hash written into it, and whether it was there before.
    fn find(&mut self, key: &[u8]) -> (usize, bool) {
        let hash = key_hash::hash(self.seed, key);
        let at = self.slot_of(hash);
        let known = self.slots[at][2] != 0;
        self.slots[at][..2].copy_from_slice(&hash);
        (at, known)
    }

    /// Where `hash` is, or would be. There is always a free slot: `keys_max` is below the number of slots.
    fn slot_of(&self, hash: [u64; 2]) -> usize {
        // The high bits of a product spread a hash over any number of slots without a division.
        let mut at = ((u128::from(hash[0]) * self.slots.len() as u128) >> 64) as usize;
        while self.slots[at][2] != 0 && self.slots[at][..2] != hash {
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
        at
    }
}
