//! The time as a value: the quorum reads no clock.

use barnabas_base::{MonotonicMs, TimestampMs};

/// The time, by both clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    pub wall: TimestampMs,
    pub monotonic: MonotonicMs,
}
