//! How many bytes a second replication may take: a quota as a value. The leader's throttled replicas and the follower's
//! have one each, and moves between log directories a third (`leader.`, `follower.replication.throttled.rate`,
//! `replica.alter.log.dirs.io.max.bytes.per.second`).
//!
//! Which replicas are throttled is the topic's word; followers in sync are never held up. Beyond the quota a throttled
//! partition is left out of the next request (follower) or answered without records (leader): bytes that were read
//! count afterwards.
//!
//! Source: KIP-73; Kafka `ReplicationQuotaManager`, `SimpleRate`.

use std::collections::VecDeque;

use barnabas_base::{BrokerId, DurationMs, MonotonicMs, PartitionIndex};

/// Bytes in the last windows, and how many may be.
#[derive(Debug, Clone)]
pub struct Throttle {
    bytes_per_second_max: i64,
    /// `replication.quota.window.num`, `replication.quota.window.size.seconds`.
    windows_max: usize,
    window: DurationMs,
    /// When each began and what it counted, oldest first.
    windows: VecDeque<(MonotonicMs, i64)>,
}

impl Throttle {
    /// Without a bound.
    pub fn new(windows_max: usize, window: DurationMs) -> Self {
        let window = DurationMs(window.0.max(1));
        Self {
            bytes_per_second_max: i64::MAX,
            windows_max: windows_max.max(1),
            window,
            windows: VecDeque::new(),
        }
    }

    pub fn set_bytes_per_second_max(&mut self, bytes: i64) {
        self.bytes_per_second_max = bytes;
    }

    pub fn record(&mut self, bytes: usize, now: MonotonicMs) {
        self.forget(now);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        match self.windows.back_mut().filter(|(began, _)| now.since(*began) < self.window) {
            Some((_, counted)) => *counted = counted.saturating_add(bytes),
            None => self.windows.push_back((now, bytes)),
        }
    }

    /// Whether throttled replicas must wait.
    pub fn is_exceeded(&mut self, now: MonotonicMs) -> bool {
        if self.bytes_per_second_max == i64::MAX {
            return false;
        }
        self.forget(now);
        let Some((began, _)) = self.windows.front() else { return false };
        // One window is taken for whole from its first byte on, so that the first bytes are not taken for a flood.
        let elapsed = now.since(*began).0.max(self.window.0);
        let counted: i128 = self.windows.iter().map(|(_, counted)| i128::from(*counted)).sum();
        counted * 1000 > i128::from(self.bytes_per_second_max) * i128::from(elapsed)
    }

    fn forget(&mut self, now: MonotonicMs) {
        let kept = self.window.0.saturating_mul(self.windows_max as i64);
        while self.windows.front().is_some_and(|(began, _)| now.since(*began).0 >= kept) {
            self.windows.pop_front();
        }
    }
}

/// Which replicas of a topic are throttled: `leader.` or `follower.replication.throttled.replicas`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ThrottledReplicas {
    #[default]
    None,
    /// `*`
    All,
    /// `partition:broker,…`
    These(Vec<(PartitionIndex, BrokerId)>),
}

impl ThrottledReplicas {
    /// Reads the topic's setting; `None` where it is not one (which the controller does not let in).
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "" => return Some(Self::None),
            "*" => return Some(Self::All),
            _ => {}
        }
        let one = |pair: &str| {
            let (partition, broker) = pair.trim().split_once(':')?;
            Some((PartitionIndex(partition.parse().ok()?), BrokerId(broker.parse().ok()?)))
        };
        text.split(',').map(one).collect::<Option<Vec<_>>>().map(Self::These)
    }

    pub fn names(&self, partition: PartitionIndex, broker: BrokerId) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(these) => these.contains(&(partition, broker)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttled_replicas_are_read_as_kafka_writes_them() {
        let named = |text: &str, partition, broker| {
            ThrottledReplicas::parse(text)
                .map(|named| named.names(PartitionIndex(partition), BrokerId(broker)))
        };
        assert_eq!(named("0:1,1:2", 1, 2), Some(true));
        assert_eq!(named("0:1,1:2", 1, 1), Some(false));
        assert_eq!(named("*", 7, 7), Some(true));
        assert_eq!(named("", 7, 7), Some(false));
        assert_eq!(named("0:1,nobody", 0, 1), None);
    }

    #[test]
    fn a_rate_is_held_over_all_windows() {
        let mut throttle = Throttle::new(10, DurationMs(1000));
        throttle.set_bytes_per_second_max(1_000);
        let (mut bytes, mut now) = (0, MonotonicMs(5_000));
        while now.0 < 105_000 {
            if !throttle.is_exceeded(now) {
                throttle.record(300, now);
                bytes += 300;
            }
            now.0 += 10;
        }
        assert!((90_000..=110_000).contains(&bytes), "{bytes} in 100 s");
    }

    #[test]
    fn without_a_bound_nothing_waits() {
        let mut throttle = Throttle::new(10, DurationMs(1000));
        throttle.record(usize::MAX, MonotonicMs(0));
        assert!(!throttle.is_exceeded(MonotonicMs(1)));
    }

    #[test]
    fn what_is_long_past_does_not_count() {
        let mut throttle = Throttle::new(10, DurationMs(1000));
        throttle.set_bytes_per_second_max(1);
        throttle.record(1_000_000, MonotonicMs(0));
        assert!(throttle.is_exceeded(MonotonicMs(9_999)));
        assert!(!throttle.is_exceeded(MonotonicMs(10_000)));
    }
}
