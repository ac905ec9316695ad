//! When an issuer's keys are fetched again: every `refresh.ms`, after a failure with a growing pause, and early for a
//! token whose key is unknown.
//!
//! A stranger can send tokens with any `kid`. So there is one early fetch in [`EARLY_MS`], whatever is sent. Kafka
//! keeps a time for each of 16 kids, which fresh kids push out.
//!
//! # Source
//! Kafka 4.4 `RefreshingHttpsJwks`; KIP-768.

use barnabas_base::MonotonicMs;

/// Between two early fetches.
pub const EARLY_MS: u64 = 10_000;

/// The pauses, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauses {
    /// `sasl.oauthbearer.jwks.endpoint.refresh.ms`
    pub refresh_ms: u64,
    /// `….retry.backoff.ms`
    pub retry_ms: u64,
    /// `….retry.backoff.max.ms`
    pub retry_max_ms: u64,
}

/// The time of the next fetch.
#[derive(Debug)]
pub struct Refresh {
    pauses: Pauses,
    due: MonotonicMs,
    /// The last early fetch.
    early: Option<MonotonicMs>,
    failures: u32,
}

impl Refresh {
    /// Due at once.
    pub fn new(pauses: Pauses, now: MonotonicMs) -> Self {
        Self { pauses, due: now, early: None, failures: 0 }
    }

    pub fn due(&self) -> MonotonicMs {
        self.due
    }

    /// A token names a key that is not here. Returns whether the keys are fetched for it at once.
    pub fn unknown_key(&mut self, now: MonotonicMs) -> bool {
        let is_soon = self.early.is_some_and(|early| now.0.saturating_sub(early.0) < EARLY_MS);
        if is_soon || self.failures > 0 {
            return false;
        }
        self.early = Some(now);
        self.due = self.due.min(now);
        true
    }

    /// Returns whether the fetch before this one had failed.
    pub fn fetched(&mut self, now: MonotonicMs) -> bool {
        let is_recovered = std::mem::take(&mut self.failures) > 0;
        self.due = MonotonicMs(now.0.saturating_add(self.pauses.refresh_ms.max(1)));
        is_recovered
    }

    /// Returns how many fetches have failed since the last that succeeded.
    pub fn failed(&mut self, now: MonotonicMs) -> u32 {
        let pause = self.pauses.retry_ms.max(1).saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        self.due = MonotonicMs(now.0.saturating_add(pause.min(self.pauses.retry_max_ms.max(1))));
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses { refresh_ms: 3_600_000, retry_ms: 100, retry_max_ms: 10_000 };

    #[test]
    fn storm_of_unknown_keys_makes_one_fetch_in_ten_seconds() {
        let mut refresh = Refresh::new(PAUSES, MonotonicMs(0));
        refresh.fetched(MonotonicMs(0));
        let mut fetches = Vec::new();
        for now in (1..=30_000).map(MonotonicMs) {
            if refresh.unknown_key(now) {
                assert_eq!(refresh.due(), now);
                fetches.push(now.0);
                refresh.fetched(now);
            }
        }
        assert_eq!(fetches, [1, 10_001, 20_001]);
    }

    #[test]
    fn failure_waits_longer_each_time_and_strangers_do_not_shorten_it() {
        let mut refresh = Refresh::new(PAUSES, MonotonicMs(0));
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let now = refresh.due();
            refresh.failed(now);
            assert!(!refresh.unknown_key(now));
            pauses.push(refresh.due().0 - now.0);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        let now = refresh.due();
        assert_eq!(refresh.failed(now), 10);
        assert!(refresh.fetched(now) && !refresh.fetched(now));
        assert_eq!(refresh.due().0 - now.0, PAUSES.refresh_ms);
    }
}
