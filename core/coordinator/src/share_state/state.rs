//! One share-partition's state, and how changes are merged into it.
//!
//! Always true: batches are in the order of their offsets, do not overlap, none of them ends before the start offset,
//! and two that say the same do not touch.

use std::collections::BTreeMap;

use barnabas_base::{LeaderEpoch, Offset, TimestampMs};

/// Records of which something is known. Those in no batch, from the start offset on, have not been delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBatch {
    pub first: Offset,
    /// The last one is within.
    pub last: Offset,
    /// As Kafka numbers them: 0 available, 2 acknowledged, 4 archived.
    pub delivery_state: i8,
    pub delivery_count: i16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareState {
    pub snapshot_epoch: i32,
    /// Raised by each initialization of the share-partition.
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    /// The newest leader epoch that was ever said, which may be above that of a state set up since. Not in any record
    /// of its own.
    pub newest_leader_epoch: LeaderEpoch,
    /// [`Offset::NONE`]: no member has read from it yet.
    pub start_offset: Offset,
    /// Records from the start offset on that are done with; −1: not known.
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
    pub created: TimestampMs,
    pub written: TimestampMs,
}

/// What has changed since the snapshot: the contents of a ShareUpdate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Update {
    pub snapshot_epoch: i32,
    /// [`LeaderEpoch::NONE`]: as before.
    pub leader_epoch: LeaderEpoch,
    /// [`Offset::NONE`]: as before.
    pub start_offset: Offset,
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
}

impl ShareState {
    /// A share-partition of which nothing has been delivered.
    ///
    /// # Source
    /// Kafka 4.4 `ShareGroupOffset.fromRequest`.
    pub(crate) fn begin(before: Option<&Self>, state_epoch: i32, start: Offset, now: TimestampMs) -> Self {
        Self {
            snapshot_epoch: before.map_or(0, |before| before.snapshot_epoch.saturating_add(1)),
            state_epoch,
            leader_epoch: LeaderEpoch(0),
            newest_leader_epoch: before.map_or(LeaderEpoch(0), |before| before.newest_leader_epoch),
            start_offset: start,
            delivery_complete_count: if start == Offset::NONE { -1 } else { 0 },
            batches: Vec::new(),
            created: now,
            written: now,
        }
    }

    /// The state after an update.
    pub(crate) fn merged(&self, update: &Update) -> Self {
        let leader_epoch = match update.leader_epoch {
            LeaderEpoch::NONE => self.leader_epoch,
            said => said,
        };
        let start_offset =
            if update.start_offset == Offset::NONE { self.start_offset } else { update.start_offset };
        Self {
            leader_epoch,
            newest_leader_epoch: self.newest_leader_epoch.max(update.leader_epoch),
            start_offset,
            delivery_complete_count: update.delivery_complete_count,
            batches: combine(&self.batches, &update.batches, start_offset),
            ..*self
        }
    }

    /// The same, as a snapshot of its own.
    pub(crate) fn as_snapshot(&self, created: TimestampMs, now: TimestampMs) -> Self {
        let snapshot_epoch = self.snapshot_epoch.saturating_add(1);
        Self { snapshot_epoch, created, written: now, batches: self.batches.clone(), ..*self }
    }
}

/// Both, without what lies before `start`. Where they overlap, the higher delivery count holds, then the higher state,
/// as a record's delivery never goes back.
///
/// # Source
/// Kafka 4.4 `PersisterStateBatchCombiner`.
pub(crate) fn combine(old: &[StateBatch], new: &[StateBatch], start: Offset) -> Vec<StateBatch> {
    let mut edges: Vec<(Offset, bool, Weight)> = Vec::with_capacity(2 * (old.len() + new.len()));
    for batch in old.iter().chain(new) {
        // A batch that ends before it begins is none.
        if batch.last < batch.first.max(start) {
            continue;
        }
        let weight = (batch.delivery_count, batch.delivery_state);
        edges.push((batch.first.max(start), true, weight));
        edges.push((batch.last.plus(1), false, weight));
    }
    edges.sort_unstable();
    // By weight, as a client may say any number of different ones.
    let mut open: BTreeMap<Weight, usize> = BTreeMap::new();
    let mut combined: Vec<StateBatch> = Vec::with_capacity(old.len() + new.len());
    let mut since = start;
    for (at, begins, weight) in edges {
        if let Some((&heaviest, _)) = open.last_key_value()
            && at > since
        {
            push(&mut combined, since, at, heaviest);
        }
        since = at;
        if begins {
            *open.entry(weight).or_default() += 1;
        } else if let Some(count) = open.get_mut(&weight) {
            *count -= 1;
            if *count == 0 {
                open.remove(&weight);
            }
        }
    }
    combined
}

/// Delivery count, then state.
type Weight = (i16, i8);

fn push(
    combined: &mut Vec<StateBatch>,
    first: Offset,
    end: Offset,
    (delivery_count, delivery_state): Weight,
) {
    let last = end.plus(-1);
    if let Some(before) = combined.last_mut()
        && before.last.plus(1) == first
        && (before.delivery_count, before.delivery_state) == (delivery_count, delivery_state)
    {
        before.last = last;
        return;
    }
    combined.push(StateBatch { first, last, delivery_state, delivery_count });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch((first, last, delivery_state, delivery_count): (i64, i64, i8, i16)) -> StateBatch {
        StateBatch { first: Offset(first), last: Offset(last), delivery_state, delivery_count }
    }

    fn check(
        old: &[(i64, i64, i8, i16)],
        new: &[(i64, i64, i8, i16)],
        start: i64,
        expect: &[(i64, i64, i8, i16)],
    ) {
        let of = |batches: &[(i64, i64, i8, i16)]| -> Vec<StateBatch> {
            batches.iter().copied().map(batch).collect()
        };
        assert_eq!(combine(&of(old), &of(new), Offset(start)), of(expect));
    }

    #[test]
    fn the_later_delivery_holds() {
        check(
            &[(100, 120, 0, 1)],
            &[(110, 115, 0, 2)],
            100,
            &[(100, 109, 0, 1), (110, 115, 0, 2), (116, 120, 0, 1)],
        );
        check(&[(100, 120, 0, 1)], &[(100, 120, 2, 1)], 100, &[(100, 120, 2, 1)]);
        check(
            &[(100, 120, 2, 2)],
            &[(90, 130, 0, 1)],
            0,
            &[(90, 99, 0, 1), (100, 120, 2, 2), (121, 130, 0, 1)],
        );
    }

    #[test]
    fn what_lies_before_the_start_goes() {
        check(&[(100, 120, 0, 1)], &[(121, 130, 2, 1)], 125, &[(125, 130, 2, 1)]);
        check(&[(100, 120, 0, 1)], &[], 121, &[]);
        check(&[(100, 120, 0, 1)], &[], 110, &[(110, 120, 0, 1)]);
        check(&[(5, 4, 0, 1)], &[], 0, &[]);
    }

    #[test]
    fn neighbours_that_say_the_same_become_one() {
        check(
            &[(100, 109, 2, 1)],
            &[(110, 119, 2, 1), (120, 120, 0, 1)],
            0,
            &[(100, 119, 2, 1), (120, 120, 0, 1)],
        );
        check(&[(100, 109, 2, 1)], &[(111, 119, 2, 1)], -1, &[(100, 109, 2, 1), (111, 119, 2, 1)]);
    }

    /// Against the plainest rule: each offset for itself.
    #[test]
    fn each_offset_gets_its_heaviest() {
        let mut seed = 7u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        for _ in 0..2_000 {
            let mut batches = |count: u64| -> Vec<StateBatch> {
                (0..count)
                    .map(|_| {
                        let first = next(40) as i64;
                        batch((
                            first,
                            first + next(12) as i64,
                            [0, 2, 4][next(3) as usize],
                            1 + next(3) as i16,
                        ))
                    })
                    .collect()
            };
            let (old, new) = (batches(4), batches(4));
            let start = Offset(10);
            let combined = combine(&old, &new, start);
            for offset in 0..60 {
                let offset = Offset(offset);
                let all = old.iter().chain(&new).filter(|each| each.first <= offset && offset <= each.last);
                let heaviest = all.map(|each| (each.delivery_count, each.delivery_state)).max();
                let expected = heaviest.filter(|_| offset >= start);
                let mut found = combined.iter().filter(|each| each.first <= offset && offset <= each.last);
                assert_eq!(found.next().map(|each| (each.delivery_count, each.delivery_state)), expected);
                assert!(found.next().is_none(), "batches overlap");
            }
        }
    }
}
