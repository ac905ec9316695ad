//! What happens again and again, and is to be said at once but not each time: the first time, and from then on once a
//! minute with the number of times in between: by the next time it happens, or by [`RateLimit::due`] where it has
//! stopped.
//!
//! Without a clock of its own: the caller passes the time. Bounded: [`KEYS_MAX`] keys at once have entries of their
//! own, until they have been silent for [`AGAIN`]. All others share one entry, so that they log one line more in
//! all. With [`GroupedRateLimit`] each client has places of its own: none hides what another caused.
//!
//! Neighbour: shell/broker/src/node/log_rate_limit.rs, which shares them between threads.

use crate::{DurationMs, Map, MonotonicMs};
use std::fmt;
use std::hash::Hash;

/// A key is logged again after so long; a key that was silent for so long counts as new.
pub const AGAIN: DurationMs = DurationMs(60_000);
/// IdentityMismatches may come from any number of addresses.
const KEYS_MAX: usize = 64;

/// Groups with places of their own, and the places of each. All others share as many places as one has.
const GROUPS_MAX: usize = 256;
const GROUP_KEYS_MAX: usize = 16;

/// See the file's header.
#[derive(Debug)]
pub struct RateLimit<K>(Known<K>);

/// As [`RateLimit`], for what many may cause: a group's keys take no place from another's.
#[derive(Debug)]
pub struct GroupedRateLimit<G, K> {
    of: Map<G, Known<K>>,
    rest: Known<K>,
}

#[derive(Debug)]
struct Known<K> {
    keys_max: usize,
    of: Map<K, Times>,
    /// Of those for whom there is no place.
    rest: Times,
}

#[derive(Debug, Default)]
struct Times {
    /// Since when it has not been silent, and when it last happened; `None`: never yet.
    lasts: Option<(MonotonicMs, MonotonicMs)>,
    said: Option<MonotonicMs>,
    unsaid: u64,
}

impl Times {
    fn is_silent(&self, now: MonotonicMs) -> bool {
        self.lasts.is_none_or(|(_, last)| now.since(last) >= AGAIN)
    }

    fn happened(&mut self, patience: DurationMs, now: MonotonicMs) -> Option<Unsaid> {
        if self.is_silent(now) {
            (self.lasts, self.said) = (Some((now, now)), None);
        }
        let (since, last) = self.lasts.get_or_insert((now, now));
        *last = now;
        let is_due = match self.said {
            None => now.since(*since) >= patience,
            Some(said) => now.since(said) >= AGAIN,
        };
        if !is_due {
            self.unsaid += u64::from(self.said.is_some());
            return None;
        }
        self.said = Some(now);
        Some(Unsaid(std::mem::take(&mut self.unsaid)))
    }

    /// What has not been said, once the minute is over, or at the end.
    fn due(&mut self, is_end: bool, now: MonotonicMs) -> Option<Unsaid> {
        let said = self.said?;
        if self.unsaid == 0 || (!is_end && now.since(said) < AGAIN) {
            return None;
        }
        self.said = Some(now);
        Some(Unsaid(std::mem::take(&mut self.unsaid)))
    }
}

/// How often something was not said since it was last. Shown as the end of a sentence, or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsaid(pub u64);

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            times => write!(f, " ({times} more since this was last said)"),
        }
    }
}

impl<K> Default for RateLimit<K> {
    fn default() -> Self {
        Self(Known::new(KEYS_MAX))
    }
}

impl<G, K> Default for GroupedRateLimit<G, K> {
    fn default() -> Self {
        Self { of: Map::default(), rest: Known::new(GROUP_KEYS_MAX) }
    }
}

impl<G: Hash + Eq + Clone, K: Hash + Eq + Clone> GroupedRateLimit<G, K> {
    /// As [`RateLimit::happened`].
    pub fn happened(&mut self, group: &G, key: &K, now: MonotonicMs) -> Option<Unsaid> {
        let Self { of, rest } = self;
        if of.len() >= GROUPS_MAX && !of.contains_key(group) {
            of.retain(|_, known| !known.is_silent(now));
        }
        let has_place = of.len() < GROUPS_MAX || of.contains_key(group);
        let known = match has_place {
            true => of.entry(group.clone()).or_insert_with(|| Known::new(GROUP_KEYS_MAX)),
            false => rest,
        };
        known.times(key, now).happened(DurationMs(0), now)
    }
}

impl<K: Hash + Eq + Clone> RateLimit<K> {
    /// It has happened: whether it is to be said now.
    pub fn happened(&mut self, key: &K, now: MonotonicMs) -> Option<Unsaid> {
        self.lasts(key, DurationMs(0), now)
    }

    /// It has happened: whether it has gone on for `patience`, and is to be said now.
    pub fn lasts(&mut self, key: &K, patience: DurationMs, now: MonotonicMs) -> Option<Unsaid> {
        self.0.times(key, now).happened(patience, now)
    }

    /// How often each key has happened since it was said a minute ago or longer, or at any time where `is_end`; it
    /// counts as said now. `None`: all keys that have no place of their own.
    pub fn due(&mut self, is_end: bool, now: MonotonicMs) -> Vec<(Option<K>, Unsaid)> {
        let Known { of, rest, .. } = &mut self.0;
        let known =
            of.iter_mut().filter_map(|(key, times)| Some((Some(key.clone()), times.due(is_end, now)?)));
        let mut due: Vec<_> = known.collect();
        due.extend(rest.due(is_end, now).map(|unsaid| (None, unsaid)));
        due
    }

    /// Whether the key has a place of its own.
    pub fn knows(&self, key: &K) -> bool {
        self.0.of.contains_key(key)
    }
}

impl<K> Known<K> {
    fn new(keys_max: usize) -> Self {
        Self { keys_max, of: Map::default(), rest: Times::default() }
    }

    fn is_silent(&self, now: MonotonicMs) -> bool {
        self.rest.is_silent(now) && self.of.values().all(|times| times.is_silent(now))
    }
}

impl<K: Hash + Eq + Clone> Known<K> {
    fn times(&mut self, key: &K, now: MonotonicMs) -> &mut Times {
        let Self { keys_max, of, rest } = self;
        if of.len() >= *keys_max && !of.contains_key(key) {
            of.retain(|_, times| !times.is_silent(now));
            if of.len() >= *keys_max {
                return rest;
            }
        }
        of.entry(key.clone()).or_default()
    }
}

/// So many lines in a minute are changes of state; more are one client's doing.
const BURST_MAX: u32 = 120;

/// Lines that are each worth reading, up to [`BURST_MAX`] a minute.
#[derive(Debug, Default)]
pub struct Burst {
    began: Option<MonotonicMs>,
    said: u32,
    unsaid: u64,
}

impl Burst {
    /// It has happened: whether it is to be said now.
    pub fn happened(&mut self, now: MonotonicMs) -> Option<Unsaid> {
        let minute = self;
        if minute.began.is_none_or(|began| now.since(began) >= AGAIN) {
            (minute.began, minute.said) = (Some(now), 0);
        }
        if minute.said >= BURST_MAX {
            minute.unsaid += 1;
            return None;
        }
        minute.said += 1;
        Some(Unsaid(std::mem::take(&mut minute.unsaid)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: MonotonicMs, s: u64) -> MonotonicMs {
        MonotonicMs(start.0 + s * 1000)
    }

    #[test]
    fn burst_is_written_whole_and_a_flood_is_counted() {
        let (mut burst, start) = (Burst::default(), MonotonicMs(7_000));
        let mut said = |at_s: u64| burst.happened(after(start, at_s));
        assert_eq!((0..1_000).filter_map(|_| said(1)).collect::<Vec<_>>(), [Unsaid(0); BURST_MAX as usize]);
        assert_eq!(said(59), None);
        assert_eq!(said(62), Some(Unsaid(1_000 - u64::from(BURST_MAX) + 1)));
        assert_eq!(said(63), Some(Unsaid(0)));
    }

    #[test]
    fn first_event_is_logged_and_then_one_a_minute_with_a_count() {
        let (mut seldom, start) = (RateLimit::default(), MonotonicMs(7_000));
        let mut said = |key: &'static str, at_ms: u64| seldom.happened(&key, MonotonicMs(start.0 + at_ms));
        assert_eq!(said("a", 0), Some(Unsaid(0)));
        // 30 a second for a minute and a half.
        let of_a: Vec<Unsaid> = (1..2_700).filter_map(|time| said("a", time * 1_000 / 30)).collect();
        assert_eq!(of_a, [Unsaid(1_799)]);
        assert_eq!(said("b", 90_000), Some(Unsaid(0)), "another key is logged at once");
        assert_eq!(Unsaid(1_799).to_string(), " (1799 more since this was last said)");
        assert_eq!(Unsaid(0).to_string(), "");
    }

    #[test]
    fn what_passes_by_itself_is_not_said() {
        let (mut seldom, start) = (RateLimit::default(), MonotonicMs(7_000));
        let mut said = |at_s: u64| seldom.lasts(&1, DurationMs(9_000), after(start, at_s)).is_some();
        assert_eq!([0, 3, 8, 9, 10, 68, 69].map(&mut said), [false, false, false, true, false, false, true]);
        // The same again after an hour has not gone on since then.
        assert_eq!([3_600, 3_608, 3_609].map(said), [false, false, true]);
    }

    #[test]
    fn what_was_not_said_before_the_first_time_is_not_counted() {
        let (mut seldom, start) = (RateLimit::default(), MonotonicMs(7_000));
        let said = |at_s: u64| seldom.lasts(&1, DurationMs(9_000), after(start, at_s));
        let times: Vec<Unsaid> = [0, 5, 9, 10, 40, 69].into_iter().filter_map(said).collect();
        assert_eq!(times, [Unsaid(0), Unsaid(2)]);
    }

    #[test]
    fn what_has_stopped_is_counted_after_a_minute() {
        let (mut seldom, start) = (RateLimit::default(), MonotonicMs(7_000));
        for _ in 0..313 {
            seldom.happened(&"a", start);
        }
        seldom.happened(&"once", start);
        assert_eq!(seldom.due(false, after(start, 59)), []);
        assert_eq!(seldom.due(false, after(start, 60)), [(Some("a"), Unsaid(312))]);
        assert_eq!(seldom.due(false, after(start, 200)), [], "it is counted once");
        assert_eq!(seldom.happened(&"a", after(start, 201)), Some(Unsaid(0)));
        assert_eq!(seldom.happened(&"a", after(start, 202)), None);
        assert_eq!(
            seldom.due(true, after(start, 203)),
            [(Some("a"), Unsaid(1))],
            "the end waits for no minute"
        );
    }

    #[test]
    fn keys_without_a_place_are_counted_together() {
        let (mut seldom, start) = (RateLimit::default(), MonotonicMs(7_000));
        for key in 0..10_000 {
            seldom.happened(&key, start);
        }
        let others = 10_000 - KEYS_MAX as u64 - 1;
        assert_eq!(seldom.due(false, after(start, 60)), [(None, Unsaid(others))]);
        assert!(seldom.knows(&0) && !seldom.knows(&9_999));
    }

    #[test]
    fn one_group_hides_no_other_and_groups_are_bounded() {
        let (mut seldom, start) = (GroupedRateLimit::default(), MonotonicMs(7_000));
        let mut said = |group: u32, key: u32| seldom.happened(&group, &key, start).is_some();
        let of_one = (0..10_000).filter(|key| said(0, *key)).count();
        assert_eq!(of_one, GROUP_KEYS_MAX + 1);
        assert!(said(1, 7), "the first of another");
        assert!(!said(1, 7) && said(1, 8));
        let of_many = (2..10_000).filter(|group| said(*group, 7)).count();
        assert_eq!(of_many, GROUPS_MAX - 2 + 1);
        let later = after(start, 120);
        assert!(seldom.happened(&20_000, &7, later).is_some(), "silent groups make room");
        assert_eq!(seldom.of.len(), 1);
    }

    #[test]
    fn of_any_number_some_are_named_and_the_rest_share_a_line() {
        let (mut seldom, start) = (RateLimit::default(), MonotonicMs(7_000));
        let mut round = |from: u32, at_s: u64| {
            let at = after(start, at_s);
            let said = (from..from + 10_000).filter_map(|key| seldom.happened(&key, at));
            said.collect::<Vec<Unsaid>>()
        };
        let first = round(0, 0);
        assert_eq!(first, [Unsaid(0); KEYS_MAX + 1]);
        assert_eq!(round(0, 30), []);
        let again = round(0, 60);
        assert_eq!(again.len(), KEYS_MAX + 1);
        assert_eq!(again.iter().map(|unsaid| unsaid.0).max(), Some(2 * (10_000 - KEYS_MAX as u64) - 1));
        // Those before are silent: others have their places.
        assert_eq!(round(20_000, 130).len(), KEYS_MAX + 1);
        assert_eq!(seldom.0.of.len(), KEYS_MAX);
    }
}
