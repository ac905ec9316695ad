//! The process's clocks: the only file of the shell that reads one.
//!
//! Wall time, time since the process started, and stamps in nanoseconds for measuring. What core needs of them is
//! passed to it as a value ([`TimestampMs`], [`MonotonicMs`]). shell/clippy.toml bans the readings of the standard
//! library and of tokio everywhere else.
#![allow(clippy::disallowed_methods)] // the only ones

use barnabas_base::{MonotonicMs, TimestampMs};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// This moment, for timers and timeouts.
pub fn now() -> Instant {
    Instant::now()
}

/// The time since `earlier`; zero where it is still to come.
pub fn since(earlier: Instant) -> Duration {
    earlier.elapsed()
}

/// The moment of a timer, as core takes it.
pub fn monotonic(at: Instant) -> MonotonicMs {
    MonotonicMs(at.saturating_duration_since(*BEGINNING).as_millis() as u64)
}

/// Nanoseconds since the process's clock began. 0: it did not happen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub u64);

impl Stamp {
    pub fn now() -> Self {
        Self(BEGINNING.elapsed().as_nanos() as u64)
    }

    pub fn ms(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The same moment, for timers.
    pub fn instant(self) -> Instant {
        *BEGINNING + Duration::from_nanos(self.0)
    }

    /// 0 where `earlier` is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Wall time and time since the process started. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { started: *BEGINNING }
    }

    /// Milliseconds since 1970; 0 on a machine whose clock stands before that.
    pub fn wall(self) -> TimestampMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        TimestampMs(since.as_millis() as i64)
    }

    pub fn monotonic(self) -> MonotonicMs {
        MonotonicMs(self.started.elapsed().as_millis() as u64)
    }

    /// The moment that `at` names, for a timer.
    pub fn instant(self, at: MonotonicMs) -> Instant {
        self.started + Duration::from_millis(at.0.min(u64::from(u32::MAX) * 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_milliseconds_count_from_the_same_moment() {
        let clock = Clock::start();
        let (before, at, after) = (Stamp::now().ms(), clock.monotonic().0, Stamp::now().ms());
        assert!(before <= at && at <= after, "{before} {at} {after}");
        assert_eq!(clock.instant(MonotonicMs(5)).duration_since(clock.started), Duration::from_millis(5));
        assert_eq!(Stamp(3).since(Stamp(7)), 0);
        assert_eq!(Stamp(5_000_000).instant(), clock.instant(MonotonicMs(5)));
    }
}
