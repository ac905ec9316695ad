//! A bucket that fills at the quota's rate: what may be used at once after a pause, and how long until there is
//! something again.
//!
//! It holds what the quota allows in all windows together, and begins full. One use may take it below zero; the next
//! one waits until it is not.
//!
//! Source: KIP-599; Kafka `TokenBucket`, `StrictControllerMutationQuota`, `PermissiveControllerMutationQuota`.

use barnabas_base::{DurationMs, MonotonicMs};

use super::Windows;

/// So little is what sums of floats differ by.
const LEAST: f64 = 1e-9;

/// One account's bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    left: f64,
    at: MonotonicMs,
}

impl Bucket {
    pub fn full(per_second: f64, now: MonotonicMs, of: Windows) -> Self {
        Self { left: burst(per_second, of), at: now }
    }

    /// Takes what is used, or nothing where the bucket is below zero.
    ///
    /// # Errors
    /// How long until it is not.
    pub fn take_or_refuse(
        &mut self,
        used: f64,
        per_second: f64,
        now: MonotonicMs,
        of: Windows,
    ) -> Result<(), DurationMs> {
        self.fill(per_second, now, of);
        match self.wait(per_second) {
            DurationMs(0) => {
                self.left -= used;
                Ok(())
            }
            wait => Err(wait),
        }
    }

    /// Takes what is used in any case. Returns how long the client must wait.
    pub fn take(&mut self, used: f64, per_second: f64, now: MonotonicMs, of: Windows) -> DurationMs {
        self.fill(per_second, now, of);
        self.left -= used;
        self.wait(per_second)
    }

    /// Whether it is as a new one.
    pub fn is_full(&self, now: MonotonicMs, of: Windows) -> bool {
        self.left >= 0.0 && now.since(self.at) >= of.span()
    }

    fn fill(&mut self, per_second: f64, now: MonotonicMs, of: Windows) {
        let filled = self.left + per_second * now.since(self.at).0 as f64 / 1000.0;
        *self = Self { left: filled.min(burst(per_second, of)), at: now };
    }

    fn wait(&self, per_second: f64) -> DurationMs {
        if self.left >= -LEAST {
            return DurationMs(0);
        }
        // A float that is too large becomes the largest number.
        DurationMs(((-self.left / per_second * 1000.0).round() as i64).max(1))
    }
}

fn burst(per_second: f64, of: Windows) -> f64 {
    per_second * of.span().0 as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: f64 = 10.0;

    fn windows() -> Windows {
        Windows::new(11, 1)
    }

    fn at(ms: u64) -> MonotonicMs {
        MonotonicMs(5000 + ms)
    }

    /// Ten per second for eleven seconds: the bucket holds 110.
    #[test]
    fn one_use_may_go_below_zero_and_the_next_waits() {
        let mut bucket = Bucket::full(TEN, at(0), windows());
        assert_eq!(bucket.take_or_refuse(110.0, TEN, at(0), windows()), Ok(()));
        assert_eq!(bucket.take_or_refuse(30.0, TEN, at(0), windows()), Ok(()), "it is empty, not below");
        assert_eq!(bucket.take_or_refuse(1.0, TEN, at(0), windows()), Err(DurationMs(3000)));
        assert_eq!(bucket.take_or_refuse(1.0, TEN, at(2999), windows()), Err(DurationMs(1)));
        assert_eq!(bucket.take_or_refuse(1.0, TEN, at(3000), windows()), Ok(()));
        assert_eq!(bucket.take_or_refuse(1.0, TEN, at(3000), windows()), Err(DurationMs(100)));
    }

    #[test]
    fn permissive_use_is_taken_and_makes_the_wait_longer() {
        let mut bucket = Bucket::full(TEN, at(0), windows());
        let mut take = |used, ms| bucket.take(used, TEN, at(ms), windows()).0;
        assert_eq!((take(110.0, 0), take(5.0, 0), take(5.0, 0), take(0.0, 600)), (0, 500, 1000, 400));
    }

    #[test]
    fn bucket_fills_to_its_windows_and_no_further() {
        let mut bucket = Bucket::full(TEN, at(0), windows());
        bucket.take(50.0, TEN, at(0), windows());
        assert!(!bucket.is_full(at(10_999), windows()) && bucket.is_full(at(11_000), windows()));
        assert_eq!(bucket.take(111.0, TEN, at(1_000_000), windows()), DurationMs(100));
        // A lower quota takes effect at once.
        assert_eq!(bucket.take_or_refuse(1.0, 1.0, at(1_001_000), windows()), Ok(()));
    }
}
