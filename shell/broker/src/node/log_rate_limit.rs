//! What happens again and again, and is to be said at once but not each time: core/base's limits, shared between
//! threads. One lock each, held for a look-up.
//!
//! Used by quorum_worker/peers.rs, requests/quorum/identity_mismatch.rs and server/lifecycle.rs, of nodes that are not
//! of this cluster or not who they say; by partition_worker/replication/repair.rs, of leaders whose records are
//! damaged.

use barnabas_base::{DurationMs, RateLimit};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use barnabas_base::Unsaid;

/// See [`RateLimit`].
#[derive(Debug)]
pub struct LogRateLimit<K>(Mutex<RateLimit<K>>);

/// See [`barnabas_base::GroupedRateLimit`].
#[derive(Debug)]
pub struct GroupedRateLimit<G, K>(Mutex<barnabas_base::GroupedRateLimit<G, K>>);

/// See [`barnabas_base::Burst`].
#[derive(Debug, Default)]
pub struct Burst(Mutex<barnabas_base::Burst>);

impl<K> Default for LogRateLimit<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<G, K> Default for GroupedRateLimit<G, K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> LogRateLimit<K> {
    /// It has happened: whether it is to be said now.
    pub fn happened(&self, key: &K, now: Instant) -> Option<Unsaid> {
        locked(&self.0).happened(key, barnabas_clock::monotonic(now))
    }

    /// It has happened: whether it has gone on for `patience`, and is to be said now.
    pub fn lasts(&self, key: &K, patience: Duration, now: Instant) -> Option<Unsaid> {
        let patience = DurationMs(i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
        locked(&self.0).lasts(key, patience, barnabas_clock::monotonic(now))
    }

    /// See [`RateLimit::due`].
    pub fn due(&self, is_end: bool, now: Instant) -> Vec<(Option<K>, Unsaid)> {
        locked(&self.0).due(is_end, barnabas_clock::monotonic(now))
    }

    /// See [`RateLimit::knows`].
    pub fn knows(&self, key: &K) -> bool {
        locked(&self.0).knows(key)
    }
}

impl<G: Hash + Eq + Clone, K: Hash + Eq + Clone> GroupedRateLimit<G, K> {
    /// As [`LogRateLimit::happened`].
    pub fn happened(&self, group: &G, key: &K, now: Instant) -> Option<Unsaid> {
        locked(&self.0).happened(group, key, barnabas_clock::monotonic(now))
    }
}

impl Burst {
    /// It has happened: whether it is to be said now.
    pub fn happened(&self, now: Instant) -> Option<Unsaid> {
        locked(&self.0).happened(barnabas_clock::monotonic(now))
    }
}

fn locked<T>(limit: &Mutex<T>) -> MutexGuard<'_, T> {
    limit.lock().unwrap_or_else(PoisonError::into_inner)
}
