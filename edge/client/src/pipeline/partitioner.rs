//! Which partition a record goes to.
//!
//! With a key: `murmur2(key) mod partitions`, as all of Kafka's clients. Without: one partition until it was given a
//! batch's worth of bytes, then another (KIP-480, KIP-794). The next one is drawn; where busy partitions are to get
//! less, two are drawn and the one with fewer batches outstanding is taken, which spreads as Kafka's table of queue
//! lengths does without a walk over all partitions.

use super::lane::Lane;
use crate::murmur2::murmur2;

/// How records without a key are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spread {
    /// As Kafka's own clients.
    #[default]
    Sticky,
    /// One record to each partition in turn.
    RoundRobin,
    Random,
    /// All to one.
    Only(i32),
}

#[derive(Debug)]
pub(super) struct Partitioner {
    pub spread: Spread,
    is_adaptive: bool,
    batch_bytes: usize,
    current: usize,
    produced: usize,
    random: u64,
}

impl Partitioner {
    pub fn new(spread: Spread, is_adaptive: bool, batch_bytes: usize, seed: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self {
            spread,
            is_adaptive,
            batch_bytes: batch_bytes.max(1),
            current: usize::MAX,
            produced: 0,
            random,
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * below as u128) >> 64) as usize
    }

    pub fn of_key(key: &[u8], partitions: usize) -> usize {
        (murmur2(key) & i32::MAX) as usize % partitions
    }

    /// The partition of the next record without a key, of about `bytes`.
    #[inline]
    pub fn next(&mut self, lanes: &[Lane], bytes: usize) -> usize {
        match self.spread {
            Spread::Sticky => {
                if self.current >= lanes.len() || self.produced >= self.batch_bytes {
                    self.turn(lanes);
                }
                self.produced += bytes;
                self.current
            }
            Spread::RoundRobin => {
                self.current = if self.current >= lanes.len() - 1 { 0 } else { self.current + 1 };
                self.current
            }
            Spread::Random => self.draw(lanes.len()),
            Spread::Only(partition) => partition as usize,
        }
    }

    /// Takes another partition for records without a key, where one is stuck to.
    pub fn turn(&mut self, lanes: &[Lane]) {
        self.produced = 0;
        let first = self.draw(lanes.len());
        self.current = first;
        if self.is_adaptive {
            let second = self.draw(lanes.len());
            if lanes[second].depth() < lanes[first].depth() {
                self.current = second;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(count: usize) -> Vec<Lane> {
        (0..count).map(|_| Lane::default()).collect()
    }

    #[test]
    fn it_sticks_until_a_batch_is_full_and_reaches_all() {
        let lanes = lanes(16);
        let mut partitioner = Partitioner::new(Spread::Sticky, true, 1_000, 7);
        let mut seen = [0; 16];
        for _ in 0..400 {
            let first = partitioner.next(&lanes, 100);
            seen[first] += 1;
            for _ in 0..9 {
                assert_eq!(partitioner.next(&lanes, 100), first);
            }
        }
        assert!(seen.iter().all(|count| (5..60).contains(count)), "{seen:?}");
    }

    #[test]
    fn in_turn_means_each_once() {
        let lanes = lanes(3);
        let mut partitioner = Partitioner::new(Spread::RoundRobin, true, 1_000, 7);
        let order: Vec<_> = (0..6).map(|_| partitioner.next(&lanes, 1)).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }
}
