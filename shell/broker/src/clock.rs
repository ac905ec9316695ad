//! The process's two clocks, as the values that core is told.

use crate::metering::requests::beginning;
use barnabas_base::{MonotonicMs, TimestampMs};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Wall time and time since the process started. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    pub fn start() -> Self {
        Self { started: beginning() }
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
        self.started + std::time::Duration::from_millis(at.0.min(u64::from(u32::MAX) * 1000))
    }
}
