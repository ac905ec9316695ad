//! What was sent and how long it took, in the lines of Kafka's tool.
//!
//! Source: Kafka 4.3 `ProducerPerformance.Stats`: a window's line goes out with the first acknowledgement after its
//! end; with a warm-up there is a second count from its last record on, and the windows' lines are then that one's.

use super::histogram::Latencies;
use super::java::decimal;
use std::time::{Duration, Instant};

/// One count: of the whole run, or of what came after the warm-up.
#[derive(Debug)]
pub struct Stats {
    started: Instant,
    ended: Option<Instant>,
    is_steady_state: bool,
    is_quiet: bool,
    interval: Duration,
    pub latencies: Latencies,
    pub bytes: u64,
    window: Window,
    has_told_steady: bool,
}

#[derive(Debug)]
struct Window {
    started: Instant,
    count: u64,
    bytes: u64,
    latency_us: u64,
    latency_max_us: u64,
}

impl Window {
    fn new(started: Instant) -> Self {
        Self { started, count: 0, bytes: 0, latency_us: 0, latency_max_us: 0 }
    }
}

impl Stats {
    pub fn new(started: Instant, interval: Duration, is_steady_state: bool) -> Self {
        Self {
            started,
            ended: None,
            is_steady_state,
            is_quiet: false,
            interval,
            latencies: Latencies::new(),
            bytes: 0,
            window: Window::new(started),
            has_told_steady: false,
        }
    }

    /// From now on another count's windows are told.
    pub fn hush(&mut self) {
        self.is_quiet = true;
    }

    pub fn end(&mut self, at: Instant) {
        self.ended = Some(at);
    }

    /// Counts `count` records of together `bytes` that took `us` each.
    #[inline]
    pub fn record(&mut self, us: u64, count: u64, bytes: u64) {
        self.latencies.record(us, count);
        self.bytes += bytes;
        self.window.count += count;
        self.window.bytes += bytes;
        self.window.latency_us += us * count;
        self.window.latency_max_us = self.window.latency_max_us.max(us);
    }

    /// The lines that are due at `now`.
    pub fn window_lines(&mut self, now: Instant) -> Vec<String> {
        let elapsed = now.saturating_duration_since(self.window.started);
        if elapsed < self.interval || self.window.count == 0 {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if self.is_steady_state && !self.has_told_steady {
            self.has_told_steady = true;
            lines.push("In steady state.".to_owned());
        }
        let window = std::mem::replace(&mut self.window, Window::new(now));
        if !self.is_quiet {
            let ms = elapsed.as_millis() as f64;
            let mb = 1000.0 * window.bytes as f64 / ms / (1024.0 * 1024.0);
            lines.push(format!(
                "{} records sent, {} records/sec ({} MB/sec), {} ms avg latency, {} ms max latency.",
                window.count,
                decimal(1000.0 * window.count as f64 / ms, 1),
                decimal(mb, 2),
                decimal(window.latency_us as f64 / window.count as f64 / 1e3, 1),
                decimal(window.latency_max_us as f64 / 1e3, 1),
            ));
        }
        lines
    }

    pub fn elapsed(&self) -> Duration {
        self.ended.unwrap_or_else(Instant::now).saturating_duration_since(self.started)
    }

    pub fn records_per_second(&self) -> f64 {
        1000.0 * self.latencies.count() as f64 / self.elapsed().as_millis() as f64
    }

    pub fn mb_per_second(&self) -> f64 {
        1000.0 * self.bytes as f64 / self.elapsed().as_millis() as f64 / (1024.0 * 1024.0)
    }

    pub fn total_line(&self) -> String {
        let whole_ms = |quantile| self.latencies.ms(quantile) as u64;
        format!(
            "{}{} records sent, {} records/sec ({} MB/sec), {} ms avg latency, {} ms max latency, {} ms 50th, {} ms \
             95th, {} ms 99th, {} ms 99.9th.",
            self.latencies.count(),
            if self.is_steady_state { " steady state" } else { "" },
            decimal(self.records_per_second(), 6),
            decimal(self.mb_per_second(), 2),
            decimal(self.latencies.average_ms(), 2),
            decimal(self.latencies.max_ms(), 2),
            whole_ms(0.5),
            whole_ms(0.95),
            whole_ms(0.99),
            whole_ms(0.999),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_kafkas() {
        let started = Instant::now();
        let mut stats = Stats::new(started, Duration::from_secs(5), false);
        for ms in 1..=1_000 {
            stats.record(ms * 1_000, 1, 100);
        }
        let at = started + Duration::from_secs(5);
        assert_eq!(
            stats.window_lines(at),
            [
                "1000 records sent, 200.0 records/sec (0.02 MB/sec), 500.5 ms avg latency, 1000.0 ms max latency."
            ]
        );
        assert!(stats.window_lines(at + Duration::from_secs(4)).is_empty());
        stats.end(started + Duration::from_secs(8));
        assert_eq!(
            stats.total_line(),
            "1000 records sent, 125.000000 records/sec (0.01 MB/sec), 500.50 ms avg latency, 1000.45 ms max latency, \
             500 ms 50th, 950 ms 95th, 990 ms 99th, 999 ms 99.9th."
        );
    }

    #[test]
    fn after_the_warm_up_the_steady_count_speaks() {
        let started = Instant::now();
        let mut stats = Stats::new(started, Duration::from_secs(1), true);
        stats.record(2_000, 10, 1_000);
        let lines = stats.window_lines(started + Duration::from_secs(1));
        assert_eq!(lines[0], "In steady state.");
        assert!(lines[1].starts_with("10 records sent, 10.0 records/sec"));
        assert!(stats.total_line().starts_with("10 steady state records sent, "));
    }
}
