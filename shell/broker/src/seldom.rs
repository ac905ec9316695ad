//! What happens again and again, and is to be said at once but not each time: the first time, and from then on once a minute with the
//! number of times in between.
//!
//! Without a clock of its own: the caller says what time it is. Bounded: of [`KEYS_MAX`] things at once; who has been silent for
//! longest is forgotten first, and then is new.
//!
//! Used by quorum_worker/peers.rs and dispatch/quorum.rs, of nodes that are not of this cluster or not who they say.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who has been told something, is told again after so long; and who was silent for so long, is new.
pub const AGAIN: Duration = Duration::from_secs(60);
/// Strangers may come from any number of addresses.
const KEYS_MAX: usize = 64;

/// One lock, held for a look-up.
#[derive(Debug)]
pub struct Seldom<K>(Mutex<HashMap<K, Times>>);

#[derive(Debug)]
struct Times {
    since: Instant,
    last: Instant,
    said: Option<Instant>,
    unsaid: u64,
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

impl<K> Default for Seldom<K> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Hash + Eq + Clone> Seldom<K> {
    /// It has happened: whether it is to be said now.
    pub fn happened(&self, key: &K, now: Instant) -> Option<Unsaid> {
        self.lasts(key, Duration::ZERO, now)
    }

    /// It has happened: whether it has gone on for `patience`, and is to be said now.
    pub fn lasts(&self, key: &K, patience: Duration, now: Instant) -> Option<Unsaid> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(key) {
            make_room(&mut known, now);
        }
        let times =
            known.entry(key.clone()).or_insert(Times { since: now, last: now, said: None, unsaid: 0 });
        times.last = now;
        let is_due = match times.said {
            None => now.saturating_duration_since(times.since) >= patience,
            Some(said) => now.saturating_duration_since(said) >= AGAIN,
        };
        if !is_due {
            times.unsaid += 1;
            return None;
        }
        times.said = Some(now);
        Some(Unsaid(std::mem::take(&mut times.unsaid)))
    }
}

/// Forgets who is silent, and, where that is nobody, who has been for longest.
fn make_room<K: Hash + Eq + Clone>(known: &mut HashMap<K, Times>, now: Instant) {
    known.retain(|_, times| now.saturating_duration_since(times.last) < AGAIN * 2);
    if known.len() < KEYS_MAX {
        return;
    }
    let oldest = known.iter().min_by_key(|(_, times)| times.last).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        known.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_is_said_and_then_one_a_minute_with_a_count() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        let said =
            |key: &'static str, at_ms: u64| seldom.happened(&key, start + Duration::from_millis(at_ms));
        assert_eq!(said("a", 0), Some(Unsaid(0)));
        // 30 a second for a minute and a half.
        let of_a: Vec<Unsaid> = (1..2_700).filter_map(|time| said("a", time * 1_000 / 30)).collect();
        assert_eq!(of_a, [Unsaid(1_799)]);
        assert_eq!(said("b", 90_000), Some(Unsaid(0)), "another one is told at once");
        assert_eq!(Unsaid(1_799).to_string(), " (1799 more since this was last said)");
        assert_eq!(Unsaid(0).to_string(), "");
    }

    #[test]
    fn what_passes_by_itself_is_not_said() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        let said =
            |at_s: u64| seldom.lasts(&1, Duration::from_secs(9), start + Duration::from_secs(at_s)).is_some();
        assert_eq!([0, 3, 8, 9, 10, 68, 69].map(said), [false, false, false, true, false, false, true]);
    }

    #[test]
    fn of_any_number_some_are_remembered() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        for key in 0..10_000_u32 {
            let at = start + Duration::from_micros(u64::from(key));
            assert_eq!(seldom.happened(&key, at), Some(Unsaid(0)));
        }
        assert_eq!(seldom.0.lock().unwrap().len(), KEYS_MAX);
        assert_eq!(seldom.happened(&9_999, start + Duration::from_secs(1)), None);
    }
}
