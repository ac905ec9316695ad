//! When a token is replaced, and how long an issuer is asked for one.

use crate::Secret;
use crate::oauth::{Fault, end_of};
use barnabas_base::TimestampMs;
use std::time::Duration;

/// `sasl.login.refresh.*`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub factor: f64,
    pub jitter: f64,
    pub min_period_ms: i64,
    pub buffer_ms: i64,
}

impl Window {
    /// When a token is to be replaced that was had at `now`; `drawn`: from 0 to 1.
    pub(super) fn end(self, now: TimestampMs, expires: TimestampMs, drawn: f64) -> TimestampMs {
        let life_ms = expires.0.saturating_sub(now.0).max(0);
        let share = (self.factor + self.jitter * drawn).min(1.0);
        let by_share = now.0.saturating_add((life_ms as f64 * share) as i64);
        let by_buffer = expires.0.saturating_sub(self.buffer_ms);
        // Where both periods do not fit into the life, the share alone counts, as in Kafka.
        if life_ms <= self.min_period_ms.saturating_add(self.buffer_ms) {
            return TimestampMs(by_share);
        }
        TimestampMs(by_share.min(by_buffer).max(now.0.saturating_add(self.min_period_ms)))
    }
}

/// The token in use.
#[derive(Debug, Default)]
pub struct HeldToken {
    token: Option<(Secret, TimestampMs)>,
    replace_at: TimestampMs,
}

impl HeldToken {
    /// Whether another is to be had before the next login.
    pub fn is_due(&self, now: TimestampMs) -> bool {
        now >= self.replace_at || self.token.is_none()
    }

    /// Takes a token that was had at `now`. `drawn`: from 0 to 1.
    ///
    /// # Errors
    /// It is no JWT, or has no end. The one before is still held.
    pub fn replace(
        &mut self,
        token: &str,
        window: Window,
        now: TimestampMs,
        drawn: f64,
    ) -> Result<(), Fault> {
        let expires = end_of(token)?;
        self.replace_at = window.end(now, expires, drawn);
        self.token = Some((Secret::from(token.as_bytes()), expires));
        Ok(())
    }

    /// Whether it has not ended.
    pub fn serves(&self, now: TimestampMs) -> bool {
        self.token.as_ref().is_some_and(|(_, expires)| *expires > now)
    }

    pub fn token(&self) -> Option<&Secret> {
        self.token.as_ref().map(|(token, _)| token)
    }
}

/// The pauses between two requests to an issuer: `sasl.login.retry.backoff.ms`, doubled each time, until
/// `sasl.login.retry.backoff.max.ms` is spent.
#[derive(Debug)]
pub struct Retries {
    pause_ms: u64,
    max_ms: u64,
}

impl Retries {
    pub fn new(first_ms: u64, max_ms: u64) -> Self {
        Self { pause_ms: first_ms.max(1), max_ms }
    }

    /// The pause before the next request. `None`: the time is spent. `spent`: since the first request.
    pub fn pause(&mut self, spent: Duration) -> Option<Duration> {
        let pause = Duration::from_millis(self.pause_ms);
        if spent + pause > Duration::from_millis(self.max_ms) {
            return None;
        }
        self.pause_ms = self.pause_ms.saturating_mul(2).min(self.max_ms.max(1));
        Some(pause)
    }
}
