//! How much was used per second, over windows, and how long a client must wait until it is within its quota.
//!
//! Windows begin with the first use after the one before has ended, so that an idle client has none. The rate is
//! taken over all whole windows but one, and the elapsed part of the current one: a first use counts as if it were
//! spread over ten seconds by default.
//!
//! Always true:
//! 1. after the wait, and with no further use, the rate is the quota at most
//! 2. at most one window more than configured is kept
//!
//! Source: Kafka `Rate`, `SampledStat`, `QuotaUtils.throttleTime`.

use std::collections::VecDeque;

use barnabas_base::{DurationMs, MonotonicMs};

/// `quota.window.num` windows of `quota.window.size.seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    count: i64,
    window: DurationMs,
}

impl Windows {
    /// Both at least 1.
    pub fn new(count: i32, seconds: i32) -> Self {
        Self { count: i64::from(count.max(1)), window: DurationMs(i64::from(seconds.max(1)) * 1000) }
    }

    /// After so long without use nothing is left to remember.
    pub fn span(self) -> DurationMs {
        DurationMs(self.count.saturating_mul(self.window.0))
    }

    pub fn window(self) -> DurationMs {
        self.window
    }

    /// The most that can be used at once without a wait longer than a window's. Source: Kafka
    /// `ClientQuotaManager.getMaxValueInQuotaWindow`.
    pub fn largest_use(self, per_second: f64) -> f64 {
        per_second * (self.count - 1).max(1) as f64 * (self.window.0 / 1000) as f64
    }
}

#[derive(Debug, Clone, Copy)]
struct Window {
    began: MonotonicMs,
    last_use: MonotonicMs,
    used: f64,
}

/// One account's use of one kind.
#[derive(Debug, Clone, Default)]
pub struct Rate {
    /// Oldest first.
    windows: VecDeque<Window>,
}

impl Rate {
    pub fn record(&mut self, used: f64, now: MonotonicMs, of: Windows) {
        match self.windows.back_mut().filter(|last| now.since(last.began) < of.window) {
            Some(last) => {
                last.used += used;
                last.last_use = now;
            }
            None => {
                self.windows.push_back(Window { began: now, last_use: now, used });
                if self.windows.len() as i64 > of.count + 1 {
                    self.windows.pop_front();
                }
            }
        }
    }

    /// Per second.
    pub fn per_second(&mut self, now: MonotonicMs, of: Windows) -> f64 {
        self.used(now, of) * 1000.0 / self.elapsed_ms(now, of) as f64
    }

    /// In all windows.
    pub fn used(&mut self, now: MonotonicMs, of: Windows) -> f64 {
        self.forget(now, of);
        self.windows.iter().map(|window| window.used).sum()
    }

    /// How long to wait; zero within the quota.
    pub fn wait(&mut self, per_second_max: f64, now: MonotonicMs, of: Windows) -> DurationMs {
        let per_second = self.per_second(now, of);
        if per_second <= per_second_max {
            return DurationMs(0);
        }
        let over = (per_second - per_second_max) / per_second_max;
        // A float that is too large becomes the largest number.
        DurationMs((over * self.elapsed_ms(now, of) as f64).round() as i64)
    }

    /// Whether nothing is remembered any more.
    pub fn is_idle(&self, now: MonotonicMs, of: Windows) -> bool {
        self.windows.back().is_none_or(|last| now.since(last.last_use) >= of.span())
    }

    fn forget(&mut self, now: MonotonicMs, of: Windows) {
        while self.windows.front().is_some_and(|first| now.since(first.last_use) >= of.span()) {
            self.windows.pop_front();
        }
    }

    /// The time that the windows cover, taken for all but one of them at least.
    fn elapsed_ms(&self, now: MonotonicMs, of: Windows) -> i64 {
        let elapsed = self.windows.front().map_or(0, |first| now.since(first.began).0);
        let missing = (of.count - 1 - elapsed / of.window.0).max(0);
        (elapsed + missing * of.window.0).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KAFKAS: fn() -> Windows = || Windows::new(11, 1);

    fn at(ms: i64) -> MonotonicMs {
        MonotonicMs(0).plus(DurationMs(ms))
    }

    /// The numbers of Kafka's `ClientQuotaManagerTest.testQuotaViolation`: 11 windows of a second, quota 500; ten
    /// seconds of 400, then 2300. The rate is taken over 10.5 s: (4000 + 2300) / 10.5 = 600, so 2100 ms to wait.
    #[test]
    fn trace_of_kafkas_test_has_kafkas_wait() {
        let of = KAFKAS();
        let (mut rate, mut now) = (Rate::default(), 0);
        for _ in 0..10 {
            rate.record(400.0, at(now), of);
            assert_eq!(rate.wait(500.0, at(now), of).0, 0);
            now += 1000;
        }
        now += 500;
        rate.record(2300.0, at(now), of);
        assert_eq!(rate.wait(500.0, at(now), of).0, 2100);
        now += 15_000;
        assert_eq!(rate.wait(500.0, at(now), of).0, 0);
        assert!(rate.is_idle(at(now), of));
    }

    #[test]
    fn first_use_counts_as_spread_over_ten_seconds() {
        let mut rate = Rate::default();
        rate.record(10_000.0, at(5), KAFKAS());
        assert_eq!(rate.per_second(at(5), KAFKAS()), 1000.0);
        assert_eq!(rate.wait(1000.0, at(5), KAFKAS()).0, 0);
        assert_eq!(rate.wait(500.0, at(5), KAFKAS()).0, 10_000);
        assert_eq!(KAFKAS().largest_use(1000.0), 10_000.0);
    }

    /// A client that sends as fast as it may and waits as the answers say is within 5 % of its quota, whatever the
    /// size of its requests and its pace.
    #[test]
    fn obedient_client_is_within_five_percent_of_its_quota() {
        let mut seed = 7_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let of = KAFKAS();
        for _ in 0..200 {
            let quota = 1000.0 * (1 + draw(10_000)) as f64;
            let mean = quota * (1 + draw(300)) as f64 / 1000.0;
            let (mut rate, mut now, mut sent) = (Rate::default(), 0_i64, 0.0);
            // The burst that the first windows allow is over by then.
            let (warm, end) = (of.span().0 * 3, of.span().0 * 40);
            while now < end {
                let used = mean * (50 + draw(100)) as f64 / 100.0;
                rate.record(used, at(now), of);
                sent += if now >= warm { used } else { 0.0 };
                now += rate.wait(quota, at(now), of).0 + draw(5) as i64;
                assert!(rate.windows.len() as i64 <= of.count + 1);
            }
            let reached = sent * 1000.0 / (now - warm) as f64 / quota;
            // With tiny requests it is the client that does not send more.
            let idles = mean / 2.5 < quota / 1000.0 * 1.1;
            assert!((idles || reached >= 0.95) && reached <= 1.05, "{reached} of {quota} by {mean}");
        }
    }

    #[test]
    fn after_the_wait_the_rate_is_the_quota() {
        let mut rate = Rate::default();
        for (ms, used) in [(0, 500.0), (700, 9_000.0), (2500, 40_000.0)] {
            rate.record(used, at(ms), KAFKAS());
        }
        let wait = rate.wait(2000.0, at(2500), KAFKAS()).0;
        assert!(wait > 0);
        assert!(rate.per_second(at(2500 + wait), KAFKAS()) <= 2000.0 + 1.0);
    }
}
