//! Three to five replicas of one partition, their controller, clients and a bad day, in one thread: the same seed, the same day.
//!
//! The replicas are [`Partition`](crate::Partition)s as they are; their disks lose what was not synced when they crash, messages are
//! late, lost, doubled or cut off one way, brokers are fenced while they live on, come back with an empty disk, and lead on after
//! somebody else was elected. The controller ([`controller`]) is small and truthful: what it would have to get wrong is tested in
//! core/quorum. After every step the invariants run (`invariants/`, one per file); after a bad phase the faults end, and everything
//! must come to rest: everyone in sync, equal logs, every producer answered.
//!
//! Each [`Mistake`](crate::planted::Mistake) is noticed within a thousand seeds.

mod client;
mod controller;
mod invariants;
mod network;
mod node;
mod tests;
mod world;

use barnabas_base::{BrokerId, LeaderEpoch, Offset};

use crate::BatchInfo;

/// One batch in a log: what it is, where it lies, under which epoch it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    base: Offset,
    epoch: LeaderEpoch,
    info: BatchInfo,
}

impl Batch {
    fn end(&self) -> Offset {
        self.base.plus(i64::from(self.info.offsets))
    }
}

/// Somebody who sends and receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Controller,
    Node(BrokerId),
    Client(usize),
}

/// splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// FNV-1a over everything that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trace(u64);

impl Trace {
    fn note(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
