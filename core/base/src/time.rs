//! Time as values: callers pass the current time into the core.

/// Wall-clock time in milliseconds since 1970, as records and files carry it. May jump. −1: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    pub const NONE: Self = Self(-1);

    /// This moment and `duration` more.
    #[must_use]
    pub const fn plus(self, duration: DurationMs) -> Self {
        Self(self.0.saturating_add(duration.0))
    }
}

/// A clock that only goes forward, in milliseconds since the process started. For deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MonotonicMs(pub u64);

impl MonotonicMs {
    /// This moment and `duration` more; a negative duration counts as none.
    #[must_use]
    pub const fn plus(self, duration: DurationMs) -> Self {
        let add = if duration.0 < 0 { 0 } else { duration.0 as u64 };
        Self(self.0.saturating_add(add))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> DurationMs {
        let elapsed = self.0.saturating_sub(earlier.0);
        DurationMs(if elapsed > i64::MAX as u64 { i64::MAX } else { elapsed as i64 })
    }
}

/// A length of time in milliseconds. Kafka's "never" and "no limit" (−1, `i64::MAX`) stay what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DurationMs(pub i64);
