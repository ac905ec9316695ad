//! What a leader knows of the other replicas, and how far all that count have come.
//!
//! Source: Kafka `Partition.maybeIncrementLeaderHW`, `effectiveMinIsr`; KIP-966.

use barnabas_base::{BrokerId, Offset};

use crate::Leadership;

/// Another replica.
#[derive(Debug, Clone, Copy)]
struct Follower {
    broker: BrokerId,
    in_sync: bool,
    /// Everything below is on its disk. Unknown until it first fetches under this leader.
    end: Offset,
}

/// One leadership of this broker.
#[derive(Debug, Clone)]
pub(crate) struct Leading {
    /// Where this epoch began.
    pub epoch_start: Offset,
    min_in_sync: u16,
    followers: Box<[Follower]>,
}

impl Leading {
    pub fn new(epoch_start: Offset, leadership: &Leadership<'_>) -> Self {
        let mut leading = Self { epoch_start, min_in_sync: 1, followers: Box::default() };
        leading.update(leadership);
        leading
    }

    /// Takes over replicas and in-sync set; what is known of replicas that stay is kept.
    pub fn update(&mut self, leadership: &Leadership<'_>) {
        let known = |broker| self.followers.iter().find(|follower| follower.broker == broker);
        let followers = leadership.followers.iter().map(|state| Follower {
            broker: state.broker,
            in_sync: state.in_sync,
            end: known(state.broker).map_or(Offset::NONE, |follower| follower.end),
        });
        self.followers = followers.collect();
        self.min_in_sync = leadership.min_in_sync;
    }

    pub fn set_min_in_sync(&mut self, min_in_sync: u16) {
        self.min_in_sync = min_in_sync;
    }

    /// Notes how far `broker` has come; `false` if it is no replica.
    pub fn replicated(&mut self, broker: BrokerId, end: Offset) -> bool {
        let follower = self.followers.iter_mut().find(|follower| follower.broker == broker);
        let known = follower.is_some();
        if let Some(follower) = follower {
            follower.end = end;
        }
        known
    }

    /// In-sync replicas, the leader included.
    pub fn in_sync(&self) -> u16 {
        1 + self.followers.iter().filter(|follower| follower.in_sync).count() as u16
    }

    /// In-sync replicas needed: never more than there are replicas.
    pub fn needed(&self) -> u16 {
        self.min_in_sync.min(1 + self.followers.len() as u16)
    }

    /// Up to where everything is on every in-sync replica, this one durable up to `durable_end`. `None` while they are too
    /// few: what only they have could be lost with them, so nobody is shown it.
    pub fn safe_end(&self, durable_end: Offset) -> Option<Offset> {
        if self.in_sync() < self.needed() {
            return None;
        }
        let in_sync = self.followers.iter().filter(|follower| follower.in_sync);
        Some(in_sync.map(|follower| follower.end).fold(durable_end, Offset::min))
    }
}
