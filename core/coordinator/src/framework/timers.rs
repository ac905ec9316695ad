//! Deadlines by key: at most one for each, moved by setting it again.
//!
//! The worker asks [`Timers::next`] how long it may sleep, and nothing else of the machine's time is needed. Two timers
//! of the same moment fire in the order in which they were set.

use std::collections::BTreeMap;
use std::hash::Hash;

use barnabas_base::{Map, MonotonicMs};

#[derive(Debug, Clone)]
pub struct Timers<K> {
    by_time: BTreeMap<(MonotonicMs, u64), K>,
    by_key: Map<K, (MonotonicMs, u64)>,
    set: u64,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { by_time: BTreeMap::new(), by_key: Map::default(), set: 0 }
    }
}

impl<K: Clone + Eq + Hash> Timers<K> {
    /// Sets or moves the timer of `key`.
    pub fn set(&mut self, key: K, at: MonotonicMs) {
        self.set += 1;
        if let Some(old) = self.by_key.insert(key.clone(), (at, self.set)) {
            self.by_time.remove(&old);
        }
        self.by_time.insert((at, self.set), key);
    }

    pub fn cancel(&mut self, key: &K) {
        if let Some(old) = self.by_key.remove(key) {
            self.by_time.remove(&old);
        }
    }

    pub fn is_set(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<MonotonicMs> {
        self.by_time.keys().next().map(|(at, _)| *at)
    }

    /// Takes the earliest timer that is due at `now`.
    pub fn take_due(&mut self, now: MonotonicMs) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_set_again_fires_once_and_later() {
        let mut timers = Timers::default();
        timers.set("a", MonotonicMs(10));
        timers.set("b", MonotonicMs(20));
        timers.set("a", MonotonicMs(20));
        assert_eq!(timers.next(), Some(MonotonicMs(20)));
        assert_eq!(timers.take_due(MonotonicMs(19)), None);
        assert_eq!(timers.take_due(MonotonicMs(20)), Some("b"));
        assert_eq!(timers.take_due(MonotonicMs(20)), Some("a"));
        assert_eq!(timers.take_due(MonotonicMs(99)), None);
    }

    #[test]
    fn a_cancelled_timer_does_not_fire() {
        let mut timers = Timers::default();
        timers.set(1, MonotonicMs(10));
        timers.cancel(&1);
        assert!(timers.is_empty());
        assert_eq!(timers.take_due(MonotonicMs(99)), None);
    }
}
