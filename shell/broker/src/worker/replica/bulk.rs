//! How much of what is not in sync is asked for at once, and how soon again: what producers write goes first.
//!
//! A replica that moves here, or has been away, may lack any amount. It is asked for by a fetcher of its own for each
//! leader ([`FetcherId::BULK`]), a little at a time, with a pause while the device is slow, and not at all while the
//! journal is crowded: what room it has left is for producers. The longer that lasts the more is asked for at once: who
//! does not catch up with little must catch up all the same.
//!
//! Always true: while the device is slow, each leader is asked at most once in [`PAUSE`], and none waits for another's
//! turn.
//!
//! Neighbours: partition_worker/replica_fetcher.rs, which asks.

use barnabas_base::{DurationMs, MonotonicMs};
use barnabas_partition::FetcherId;
use std::collections::BTreeMap;

/// What is asked for at once of each leader. It is asked for again when that is durable, so that no more stands before
/// a producer's batch in the journal's queue. With a quarter of it leaders spent a third of their processor time on
/// looking at all partitions of the session, for two or three that are answered.
const BYTES: i32 = 1 << 20;
/// Twice as much after each such time.
const PATIENCE: DurationMs = DurationMs(4_000);
/// Up to 4 MiB: more at once is time of the device that producers wait for.
const DOUBLED_MAX: u32 = 2;
/// Between two requests to a leader while the device is slow.
const PAUSE: DurationMs = DurationMs(100);

/// One worker's.
#[derive(Debug, Default)]
pub struct Bulk(BTreeMap<FetcherId, Asked>);

#[derive(Debug)]
struct Asked {
    since: MonotonicMs,
    last: MonotonicMs,
}

impl Bulk {
    /// Fetchers that are no more are forgotten.
    pub fn retain(&mut self, ids: &[FetcherId]) {
        self.0.retain(|at, _| ids.contains(at));
    }

    /// While the device is slow: when it is this fetcher's turn again. `None`: now.
    pub fn waits_until(&self, at: FetcherId, now: MonotonicMs) -> Option<MonotonicMs> {
        let turn = self.0.get(&at)?.last.plus(PAUSE);
        (now < turn).then_some(turn)
    }

    /// It asks now: for how many bytes at most.
    pub fn ask(&mut self, at: FetcherId, now: MonotonicMs) -> i32 {
        let asked = self.0.entry(at).or_insert(Asked { since: now, last: now });
        asked.last = now;
        let doubled = u32::try_from(now.since(asked.since).0 / PATIENCE.0).unwrap_or(u32::MAX);
        BYTES << doubled.min(DOUBLED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::BrokerId;

    fn of(leader: i32) -> FetcherId {
        FetcherId { leader: BrokerId(leader), number: FetcherId::BULK }
    }

    #[test]
    fn each_leader_has_its_turn_however_often_another_is_ready() {
        let mut bulk = Bulk::default();
        let mut asked = [0; 3];
        for now in (0..1_000).step_by(10).map(MonotonicMs) {
            for (leader, times) in asked.iter_mut().enumerate() {
                let at = of(leader as i32);
                if bulk.waits_until(at, now).is_none() {
                    bulk.ask(at, now);
                    *times += 1;
                }
            }
        }
        assert_eq!(asked, [10, 10, 10]);
        assert_eq!(bulk.waits_until(of(1), MonotonicMs(950)), Some(MonotonicMs(1_000)));
    }

    #[test]
    fn who_does_not_catch_up_is_asked_for_more_at_once() {
        let mut bulk = Bulk::default();
        let bytes = [0, 3_999, 4_000, 8_000, 16_000, 600_000].map(|now| bulk.ask(of(1), MonotonicMs(now)));
        assert_eq!(bytes, [1, 1, 2, 4, 4, 4].map(|mib| mib << 20));
        assert_eq!(bulk.ask(of(2), MonotonicMs(600_000)), 1 << 20);
    }

    #[test]
    fn fetchers_that_are_no_more_cost_nothing() {
        let mut bulk = Bulk::default();
        for leader in 0..3 {
            bulk.ask(of(leader), MonotonicMs(0));
        }
        bulk.retain(&[of(1)]);
        assert_eq!(bulk.0.len(), 1);
        assert_eq!(bulk.ask(of(0), MonotonicMs(60_000)), 1 << 20);
    }
}
