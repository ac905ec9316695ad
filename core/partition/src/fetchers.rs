//! All leaders that one broker follows: which fetcher a partition belongs to.
//!
//! A request may wait at its leader for up to `replica.fetch.wait.max.ms`, and what is followed meanwhile would wait
//! with it: after an election, half a second without an acknowledgement. So a leader has up to
//! [`Fetchers::per_leader_max`] fetchers (Kafka's `num.replica.fetchers`), and a partition goes to one that is not
//! asking just now; there it stays.
//!
//! What is not in sync (a replica that moves here, or has been away) is asked for by a fetcher of its own
//! ([`FetcherId::BULK`]): producers wait for those that are, and must not wait behind an answer full of old records.
//!
//! Always true: a partition belongs to one fetcher at most, one of the leader that it follows.
//!
//! Source: Kafka `AbstractFetcherManager`.

pub mod fetcher;

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, LeaderEpoch, MonotonicMs};

use crate::{FetchPosition, Fetcher, FetcherSettings, ReplicaKey};

/// Names a fetcher, and so its connection and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetcherId {
    pub leader: BrokerId,
    pub number: usize,
}

impl FetcherId {
    /// The number of the one for what is not in sync.
    pub const BULK: usize = usize::MAX;

    pub fn is_bulk(self) -> bool {
        self.number == Self::BULK
    }
}

/// Of one leader.
#[derive(Debug, Default)]
struct OfLeader {
    live: Vec<Fetcher>,
    bulk: Option<Fetcher>,
}

impl OfLeader {
    fn all(&self) -> impl Iterator<Item = &Fetcher> {
        self.live.iter().chain(&self.bulk)
    }
}

/// The fetchers of one broker.
#[derive(Debug)]
pub struct Fetchers {
    settings: FetcherSettings,
    per_leader_max: usize,
    by_leader: BTreeMap<BrokerId, OfLeader>,
    places: BTreeMap<ReplicaKey, FetcherId>,
}

impl Fetchers {
    pub fn new(settings: FetcherSettings, per_leader_max: usize) -> Self {
        let (by_leader, places) = (BTreeMap::new(), BTreeMap::new());
        Self { settings, per_leader_max: per_leader_max.max(1), by_leader, places }
    }

    /// Follows `leader` in `key` from now on, in that epoch, `in_sync` with it or not; see [`Fetcher::follow`].
    pub fn follow(
        &mut self,
        key: ReplicaKey,
        leader: BrokerId,
        epoch: LeaderEpoch,
        in_sync: bool,
        position: Option<FetchPosition>,
    ) {
        let fits = |at: &FetcherId| at.leader == leader && at.is_bulk() != in_sync;
        let stays = self.places.get(&key).copied().filter(fits);
        let at = stays.unwrap_or_else(|| {
            self.unfollow(key);
            if in_sync { self.place(leader) } else { self.place_in_bulk(leader) }
        });
        self.places.insert(key, at);
        if let Some(fetcher) = self.get_mut(at) {
            fetcher.follow(key, epoch, position);
        }
    }

    /// Stops following `key`.
    pub fn unfollow(&mut self, key: ReplicaKey) {
        if let Some(at) = self.places.remove(&key)
            && let Some(fetcher) = self.get_mut(at)
        {
            fetcher.unfollow(key);
        }
    }

    /// The fetcher that `key` belongs to: it has to know every change of its log.
    pub fn of(&mut self, key: ReplicaKey) -> Option<&mut Fetcher> {
        let at = self.places.get(&key).copied()?;
        self.get_mut(at)
    }

    /// Whether `key` is asked for beside those that are in sync.
    pub fn is_in_bulk(&self, key: ReplicaKey) -> bool {
        self.places.get(&key).is_some_and(|at| at.is_bulk())
    }

    pub fn get_mut(&mut self, at: FetcherId) -> Option<&mut Fetcher> {
        let of = self.by_leader.get_mut(&at.leader)?;
        if at.is_bulk() { of.bulk.as_mut() } else { of.live.get_mut(at.number) }
    }

    /// All fetchers, in the order of leaders. Those without partitions are dropped.
    pub fn ids(&mut self) -> Vec<FetcherId> {
        let is_over = |fetcher: &Fetcher| fetcher.is_empty() && !fetcher.is_asking();
        for of in self.by_leader.values_mut() {
            of.bulk.take_if(|bulk| is_over(bulk));
        }
        self.by_leader.retain(|_, of| !of.all().all(is_over));
        let of = |(leader, of): (&BrokerId, &OfLeader)| {
            let leader = *leader;
            let numbers = (0..of.live.len()).chain(of.bulk.as_ref().map(|_| FetcherId::BULK));
            numbers.map(move |number| FetcherId { leader, number })
        };
        self.by_leader.iter().flat_map(of).collect()
    }

    /// Whether one of them may have something to ask, or [`Self::ids`] has one to forget. Cheap: asked after each turn,
    /// and mostly all of them wait for an answer.
    pub fn need_turn(&self) -> bool {
        let may_ask = |fetcher: &Fetcher| !fetcher.is_asking() && !fetcher.is_empty();
        let is_over = |of: &OfLeader| {
            let are_idle = of.all().all(|fetcher| !fetcher.is_asking());
            are_idle || of.bulk.as_ref().is_some_and(|bulk| bulk.is_empty() && !bulk.is_asking())
        };
        self.by_leader.is_empty() || self.by_leader.values().any(|of| of.all().any(may_ask) || is_over(of))
    }

    /// Whether no leader is followed, and none has to learn that (by [`Self::ids`]).
    pub fn is_empty(&self) -> bool {
        self.by_leader.is_empty()
    }

    /// When one of them may have something to ask that it has not now. Those for what is not in sync are not let ask
    /// before `bulk_not_before`, whatever they have.
    pub fn next_wake(&self, bulk_not_before: MonotonicMs) -> Option<MonotonicMs> {
        let live = self.by_leader.values().flat_map(|of| &of.live).filter_map(Fetcher::next_wake);
        let bulk = self.by_leader.values().flat_map(|of| &of.bulk).filter_map(Fetcher::next_wake);
        live.chain(bulk.map(|at| at.max(bulk_not_before))).min()
    }

    fn place_in_bulk(&mut self, leader: BrokerId) -> FetcherId {
        let bulk = &mut self.by_leader.entry(leader).or_default().bulk;
        bulk.get_or_insert_with(|| Fetcher::new(self.settings));
        FetcherId { leader, number: FetcherId::BULK }
    }

    fn place(&mut self, leader: BrokerId) -> FetcherId {
        let fetchers = &mut self.by_leader.entry(leader).or_default().live;
        let free = fetchers.iter().position(|fetcher| !fetcher.is_asking());
        let number = match free {
            Some(number) => number,
            None if fetchers.len() < self.per_leader_max => {
                fetchers.push(Fetcher::new(self.settings));
                fetchers.len() - 1
            }
            None => {
                let fewest = fetchers.iter().enumerate().min_by_key(|(_, fetcher)| fetcher.len());
                fewest.map_or(0, |(number, _)| number)
            }
        };
        FetcherId { leader, number }
    }
}

#[cfg(test)]
mod tests {
    use barnabas_base::{DurationMs, ErrorCode, Offset, PartitionIndex, Uuid};

    use super::*;

    const SETTINGS: FetcherSettings = FetcherSettings {
        backoff_min: DurationMs(10),
        backoff_max: DurationMs(1000),
        patience: DurationMs(20),
    };
    const NOW: MonotonicMs = MonotonicMs(0);

    fn key(partition: i32) -> ReplicaKey {
        ReplicaKey { topic: Uuid([1; 16]), partition: PartitionIndex(partition) }
    }

    fn position(epoch: i32) -> FetchPosition {
        FetchPosition {
            leader_epoch: LeaderEpoch(epoch),
            offset: Offset::ZERO,
            last_epoch: None,
            log_start: Offset::ZERO,
            high_watermark: Offset::ZERO,
        }
    }

    fn follow(fetchers: &mut Fetchers, partition: i32, leader: i32, epoch: i32) {
        let position = position(epoch);
        fetchers.follow(key(partition), BrokerId(leader), LeaderEpoch(epoch), true, Some(position));
    }

    fn asks(fetchers: &mut Fetchers, leader: i32, number: usize) -> Vec<i32> {
        let at = FetcherId { leader: BrokerId(leader), number };
        let plan = fetchers.get_mut(at).unwrap().plan(NOW, false);
        plan.map_or_else(Vec::new, |plan| {
            plan.partitions.iter().map(|(key, _)| key.partition.get()).collect()
        })
    }

    #[test]
    fn who_may_not_ask_for_old_records_yet_is_not_woken_for_them() {
        let mut fetchers = Fetchers::new(SETTINGS, 2);
        let bulk = |fetchers: &mut Fetchers, partition, position| {
            fetchers.follow(key(partition), BrokerId(1), LeaderEpoch(1), false, position);
        };
        bulk(&mut fetchers, 1, Some(position(1)));
        bulk(&mut fetchers, 2, None);
        assert_eq!(fetchers.next_wake(NOW), Some(NOW.plus(SETTINGS.patience)));
        assert_eq!(fetchers.next_wake(MonotonicMs(500)), Some(MonotonicMs(500)));
        // What producers wait for is not held up by it.
        follow(&mut fetchers, 3, 1, 1);
        fetchers.follow(key(4), BrokerId(1), LeaderEpoch(1), true, None);
        assert_eq!(fetchers.next_wake(MonotonicMs(500)), Some(NOW.plus(SETTINGS.patience)));
    }

    #[test]
    fn what_is_followed_while_all_are_asking_gets_a_fetcher_of_its_own() {
        let mut fetchers = Fetchers::new(SETTINGS, 2);
        follow(&mut fetchers, 0, 2, 1);
        follow(&mut fetchers, 1, 2, 1);
        assert_eq!(asks(&mut fetchers, 2, 0), [0, 1]);
        follow(&mut fetchers, 2, 2, 1);
        assert_eq!(asks(&mut fetchers, 2, 1), [2]);
        // There are no more than two: the one with fewer partitions takes it, and will ask when it is answered.
        follow(&mut fetchers, 3, 2, 1);
        let at = FetcherId { leader: BrokerId(2), number: 1 };
        let fetcher = fetchers.get_mut(at).unwrap();
        fetcher.answered(ErrorCode::None, 5, DurationMs(0), &[], NOW, |_, _, _| {});
        assert_eq!(asks(&mut fetchers, 2, 1), [2, 3]);
    }

    #[test]
    fn fetchers_need_no_turn_while_all_of_them_wait_for_answers() {
        let mut fetchers = Fetchers::new(SETTINGS, 2);
        assert!(fetchers.need_turn(), "lines of former leaders are closed in it");
        follow(&mut fetchers, 0, 2, 1);
        assert!(fetchers.need_turn());
        asks(&mut fetchers, 2, 0);
        assert!(!fetchers.need_turn());
        // A second one, which may ask.
        follow(&mut fetchers, 1, 2, 1);
        assert!(fetchers.need_turn());
        asks(&mut fetchers, 2, 1);
        assert!(!fetchers.need_turn());
        // It has no partition left: the other one's request goes on.
        fetchers.unfollow(key(1));
        let at = |number| FetcherId { leader: BrokerId(2), number };
        let fetcher = fetchers.get_mut(at(1)).unwrap();
        fetcher.unanswered(NOW);
        fetcher.plan(MonotonicMs(1000), false);
        assert!(fetcher.is_empty() && !fetchers.need_turn());
        fetchers.get_mut(at(0)).unwrap().unanswered(NOW);
        assert!(fetchers.need_turn());
        // No partition follows that leader any more.
        fetchers.unfollow(key(0));
        fetchers.get_mut(at(0)).unwrap().plan(MonotonicMs(1000), false);
        assert!(fetchers.need_turn());
        assert!(fetchers.ids().is_empty());
    }

    #[test]
    fn bulk_that_has_ended_needs_a_turn() {
        let mut fetchers = Fetchers::new(SETTINGS, 2);
        follow(&mut fetchers, 0, 2, 1);
        asks(&mut fetchers, 2, 0);
        fetchers.follow(key(1), BrokerId(2), LeaderEpoch(1), false, Some(position(1)));
        assert!(fetchers.need_turn());
        asks(&mut fetchers, 2, FetcherId::BULK);
        assert!(!fetchers.need_turn());
        fetchers.unfollow(key(1));
        let bulk = FetcherId { leader: BrokerId(2), number: FetcherId::BULK };
        let bulk = fetchers.get_mut(bulk).unwrap();
        bulk.unanswered(NOW);
        bulk.plan(MonotonicMs(1000), false);
        assert!(fetchers.need_turn());
        assert_eq!(fetchers.ids().len(), 1);
        assert!(!fetchers.need_turn());
    }

    #[test]
    fn what_is_not_in_sync_is_asked_for_apart_until_it_is() {
        let mut fetchers = Fetchers::new(SETTINGS, 2);
        let at = position;
        follow(&mut fetchers, 0, 2, 1);
        fetchers.follow(key(1), BrokerId(2), LeaderEpoch(1), false, Some(at(1)));
        assert_eq!(asks(&mut fetchers, 2, 0), [0]);
        assert_eq!(asks(&mut fetchers, 2, FetcherId::BULK), [1]);
        assert!(fetchers.is_in_bulk(key(1)) && !fetchers.is_in_bulk(key(0)));
        // It has caught up: the fetcher for in-sync replicas fetches it, though the bulk's request is in flight.
        fetchers.follow(key(1), BrokerId(2), LeaderEpoch(1), true, Some(at(1)));
        assert_eq!(asks(&mut fetchers, 2, 1), [1]);
        assert!(!fetchers.is_in_bulk(key(1)));
        let bulk = FetcherId { leader: BrokerId(2), number: FetcherId::BULK };
        assert!(fetchers.ids().contains(&bulk));
        fetchers.get_mut(bulk).unwrap().answered(ErrorCode::None, 5, DurationMs(0), &[], NOW, |_, _, _| {});
        fetchers.get_mut(bulk).unwrap().plan(NOW, false);
        assert!(!fetchers.ids().contains(&bulk));
    }

    #[test]
    fn a_new_epoch_stays_where_it_is_and_a_new_leader_moves() {
        let mut fetchers = Fetchers::new(SETTINGS, 2);
        follow(&mut fetchers, 0, 2, 1);
        assert_eq!(asks(&mut fetchers, 2, 0), [0]);
        follow(&mut fetchers, 0, 2, 2);
        assert_eq!(fetchers.ids().len(), 1);
        follow(&mut fetchers, 0, 3, 3);
        assert_eq!(asks(&mut fetchers, 3, 0), [0]);
        // The request to the former leader is still under way.
        assert_eq!(fetchers.ids().len(), 2);
        let at = FetcherId { leader: BrokerId(2), number: 0 };
        fetchers.get_mut(at).unwrap().unanswered(NOW);
        fetchers.get_mut(at).unwrap().plan(MonotonicMs(1000), false);
        assert_eq!(fetchers.ids(), [FetcherId { leader: BrokerId(3), number: 0 }]);
        fetchers.unfollow(key(0));
        assert!(fetchers.of(key(0)).is_none());
    }
}
