//! What replication may take on this broker: as a leader of throttled replicas, and as a follower of throttled ones
//! (KIP-73).
//!
//! Two quotas for the whole node, shared by its workers (core/partition's `throttle` does the sums). Each topic's
//! settings name its throttled replicas; the quotas apply to no others. In-sync replicas are never throttled.
//!
//! `leader.replication.throttled.rate` and `follower.replication.throttled.rate` are dynamic settings of brokers, as
//! Kafka's reassignment tool sets them.
//!
//! Neighbours: partition_worker/replication/followers.rs asks as a leader, partition_worker/replica_fetcher.rs as a
//! follower; publisher.rs tells of new rates.
//!
//! Source: KIP-73; Kafka `ReplicationQuotaManager`, `ReplicaManager.shouldLeaderThrottle`,
//! `ReplicaFetcherThread.shouldFollowerThrottle`.

use barnabas_base::{BrokerId, DurationMs, MonotonicMs, PartitionIndex, Text};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Image, Resource};
use barnabas_partition::{Throttle, ThrottledReplicas};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// See the file's header.
#[derive(Debug)]
pub struct Throttles {
    pub leader: Quota,
    pub follower: Quota,
}

/// Bytes per second of one side.
#[derive(Debug)]
pub struct Quota {
    rate_key: &'static str,
    /// Without a bound nothing is counted.
    is_bounded: AtomicBool,
    throttle: Mutex<Throttle>,
}

impl Throttles {
    pub fn new(config: &BrokerConfig) -> Self {
        let quota = |rate_key| Quota::new(rate_key, config);
        Self {
            leader: quota("leader.replication.throttled.rate"),
            follower: quota("follower.replication.throttled.rate"),
        }
    }

    /// Takes over rates that have changed.
    pub fn configure(&self, config: &BrokerConfig) {
        self.leader.configure(config);
        self.follower.configure(config);
    }
}

impl Quota {
    fn new(rate_key: &'static str, config: &BrokerConfig) -> Self {
        let windows = usize::try_from(config.int("replication.quota.window.num")).unwrap_or(11);
        let window = DurationMs(i64::from(config.int("replication.quota.window.size.seconds")) * 1000);
        let throttle = Mutex::new(Throttle::new(windows, window));
        let quota = Self { rate_key, is_bounded: AtomicBool::new(false), throttle };
        quota.configure(config);
        quota
    }

    fn configure(&self, config: &BrokerConfig) {
        let dynamic = config.dynamic();
        let rate = dynamic.broker.get(self.rate_key).or_else(|| dynamic.default.get(self.rate_key));
        let rate = rate.and_then(|value| value.trim().parse::<i64>().ok()).filter(|rate| *rate >= 0);
        let rate = rate.unwrap_or(i64::MAX);
        let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
        throttle.set_bytes_per_second_max(rate);
        self.is_bounded.store(rate != i64::MAX, Ordering::Release);
    }

    /// Bytes of throttled replicas were read, or came.
    pub fn record(&self, bytes: usize, now: MonotonicMs) {
        if bytes > 0 && self.is_bounded.load(Ordering::Acquire) {
            self.throttle.lock().unwrap_or_else(PoisonError::into_inner).record(bytes, now);
        }
    }

    /// Whether throttled replicas must wait.
    pub fn is_exceeded(&self, now: MonotonicMs) -> bool {
        self.is_bounded.load(Ordering::Acquire)
            && self.throttle.lock().unwrap_or_else(PoisonError::into_inner).is_exceeded(now)
    }
}

/// What a topic says of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttled {
    /// Where it leads: what followers fetch of it counts.
    pub as_leader: bool,
    /// Where it follows.
    pub as_follower: bool,
}

impl Throttled {
    /// This broker's replica of a partition.
    pub fn of(broker: BrokerId, image: &Image, topic: &Text, partition: PartitionIndex) -> Self {
        let Some(values) = image.configs.of(&Resource::topic(topic.clone())) else { return Self::default() };
        let names = |key: &str| {
            let named = values.get(key).and_then(|value| ThrottledReplicas::parse(value));
            named.is_some_and(|named| named.names(partition, broker))
        };
        Self {
            as_leader: names("leader.replication.throttled.replicas"),
            as_follower: names("follower.replication.throttled.replicas"),
        }
    }
}
