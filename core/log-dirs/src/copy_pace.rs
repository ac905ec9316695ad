//! How fast moves may copy: `replica.alter.log.dirs.io.max.bytes.per.second`.
//!
//! What was copied faster than that is slept off before the next piece, and a second's worth may be copied at once
//! after a pause. The bound may change at any time. Source: KIP-113; Kafka `ReplicaAlterLogDirsThread`,
//! `ReplicationQuotaManager`.

use std::time::Duration;

/// Bytes that may be copied before the next sleep; below zero: copied too early.
#[derive(Debug, Default)]
pub struct CopyPace {
    credit: f64,
}

impl CopyPace {
    /// `since` the last call `bytes` were copied. Returns how long to wait before the next piece.
    pub fn spend(&mut self, bytes: u64, since: Duration, bytes_per_s: Option<u64>) -> Duration {
        let Some(rate) = bytes_per_s else {
            self.credit = 0.0;
            return Duration::ZERO;
        };
        let rate = rate.max(1) as f64;
        self.credit = (self.credit + since.as_secs_f64() * rate).min(rate) - bytes as f64;
        if self.credit >= 0.0 {
            Duration::ZERO
        } else {
            Duration::from_secs_f64((-self.credit / rate).min(60.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_bound_nothing_is_slept_off() {
        assert_eq!(CopyPace::default().spend(1 << 30, Duration::ZERO, None), Duration::ZERO);
    }

    #[test]
    fn copying_keeps_to_the_rate() {
        let mut pace = CopyPace::default();
        let mut at = Duration::ZERO;
        let mut since = Duration::ZERO;
        for _ in 0..100 {
            since = pace.spend(100_000, since, Some(1_000_000));
            at += since;
        }
        // 10 MB at 1 MB/s; the sleeps are what `since` says next time.
        assert!((at.as_secs_f64() - 10.0).abs() < 0.2, "{at:?}");
    }

    #[test]
    fn a_pause_saves_up_no_more_than_a_second() {
        let mut pace = CopyPace::default();
        assert_eq!(pace.spend(1_000, Duration::from_secs(3600), Some(1_000)), Duration::ZERO);
        assert_eq!(pace.spend(1_000, Duration::ZERO, Some(1_000)), Duration::from_secs(1));
    }

    #[test]
    fn a_new_bound_holds_at_once() {
        let mut pace = CopyPace::default();
        assert_eq!(pace.spend(1_000, Duration::ZERO, Some(100)), Duration::from_secs(10));
        assert_eq!(pace.spend(0, Duration::ZERO, None), Duration::ZERO);
    }
}
