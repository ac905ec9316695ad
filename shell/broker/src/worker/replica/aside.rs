//! Which damaged replicas wait, and which fetch damaged places beside their own fetches.
//!
//! Always true: a partition has one such fetch under way at most, and a pause after each that brought nothing.
//!
//! Neighbours: partition_worker/replication/aside.rs, which fetches.

use barnabas_base::{DurationMs, MonotonicMs};
use barnabas_partition::PartitionKey;
use std::collections::{BTreeMap, BTreeSet};

/// How soon a replica is looked at again that waits, or that the leader had nothing for.
const PAUSE: DurationMs = DurationMs(1_000);

/// One worker's.
#[derive(Debug, Default)]
pub struct Aside {
    pub in_flight: BTreeSet<PartitionKey>,
    pub waits_until: BTreeMap<PartitionKey, MonotonicMs>,
}

impl Aside {
    /// When a replica is to be looked at again.
    pub fn due(&self) -> Option<MonotonicMs> {
        self.waits_until.values().min().copied()
    }

    /// Nothing is followed: none of the waiting ones goes on by itself.
    pub fn clear(&mut self) {
        self.waits_until.clear();
    }

    pub fn wait(&mut self, key: PartitionKey, now: MonotonicMs) {
        self.waits_until.entry(key).or_insert(now.plus(PAUSE));
    }

    pub fn take_due(&mut self, now: MonotonicMs) -> Vec<PartitionKey> {
        let due = self.waits_until.extract_if(.., |_, until| *until <= now);
        due.map(|(key, _)| key).collect()
    }

    pub fn may_ask(&self, key: PartitionKey, now: MonotonicMs) -> bool {
        !self.in_flight.contains(&key) && self.waits_until.get(&key).is_none_or(|until| *until <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::{PartitionIndex, Uuid};

    const NOW: MonotonicMs = MonotonicMs(7);

    fn key(partition: i32) -> PartitionKey {
        PartitionKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
    }

    #[test]
    fn waiting_replica_is_due_once_and_asks_then() {
        let mut aside = Aside::default();
        assert!(aside.may_ask(key(0), NOW));
        aside.wait(key(0), NOW);
        aside.wait(key(0), NOW.plus(PAUSE));
        assert!(!aside.may_ask(key(0), NOW) && aside.may_ask(key(1), NOW));
        assert_eq!(aside.due(), Some(NOW.plus(PAUSE)), "it does not wait longer because it was looked at");
        assert_eq!(aside.take_due(NOW), []);
        assert_eq!(aside.take_due(NOW.plus(PAUSE)), [key(0)]);
        assert_eq!(aside.due(), None);
        aside.in_flight.insert(key(0));
        assert!(!aside.may_ask(key(0), NOW.plus(PAUSE)), "one at a time");
    }
}
