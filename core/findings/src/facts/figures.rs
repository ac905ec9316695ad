//! A node's own figures: its metrics page, as gauges now and as differences between the two looks.

use super::Seen;
use super::machine::{Holder, Machine};

/// Of one node. Fields without `_total` are gauges or the increase between the two looks.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Between the node's two pages.
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub runqueue_seconds: f64,
    pub open_fds: f64,
    pub max_fds: f64,
    pub connections: f64,
    pub accepted: f64,
    pub request_memory: f64,
    pub request_memory_limit: f64,
    pub produce_requests: f64,
    pub batch_records: Histogram,
    /// Requests by API.
    pub apis: Vec<(String, f64)>,
    pub throttled_requests: f64,
    /// For which connections were muted, all of them together.
    pub throttle_seconds: f64,
    pub failed_logins: f64,
    pub isr_shrinks: f64,
    pub isr_expands: f64,
    /// Since the start of the node.
    pub unclean_elections_total: f64,
    pub uncleanable_partitions: f64,
    pub damage_found_total: f64,
    /// In log directories that are offline, and those whose log cannot be opened.
    pub offline_replicas: f64,
    pub dirs: Vec<DirFigures>,
    pub clients: Vec<Client>,
    /// Where a certificate is used and whose it is, and when it expires in seconds since 1970.
    pub certificates: Vec<(String, f64)>,
    /// Partitions of Produce requests: all, those with acks=0 or 1, those whose batch was refused.
    pub produced: f64,
    pub produced_weakly: Seen<f64>,
    pub produce_refused: f64,
    /// Seconds of all Produce requests together, and those of them that they waited for the journal and its sync.
    pub produce_seconds: f64,
    pub produce_sync_seconds: f64,
    /// Requests by API and version.
    pub versions: Vec<(String, i32, f64)>,
    /// Bytes of records in answers to consumers' Fetch requests.
    pub fetch_bytes: Histogram,
    /// Resources that a request asked for and its principal may not have.
    pub denied: Seen<f64>,
    /// Of all groups that this node coordinates.
    pub rebalances: f64,
    pub shared: Shared,
    pub machine: Machine,
}

/// What became of records that share groups were given.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Shared {
    /// Accepted, released, rejected and renewed ones.
    pub acknowledged: f64,
    pub rejected: f64,
    pub lock_timeouts: f64,
}

#[derive(Debug, Clone)]
pub struct DirFigures {
    pub path: String,
    pub refuses_producers: bool,
    /// Seconds of the journal's synced writes.
    pub journal_writes: Histogram,
    /// Bytes of the journal's rounds together.
    pub journal_bytes: f64,
    pub holder: Seen<Holder>,
    /// Seconds in which its block device had requests.
    pub busy_seconds: Seen<f64>,
    /// Free ones and all; `Ok(None)`: its file system has no table of them.
    pub inodes: Seen<Option<(f64, f64)>>,
}

/// Requests of one client id between the two looks: `Produce`, `Fetch` and `other`.
#[derive(Debug, Clone, Default)]
pub struct Client {
    pub id: String,
    pub requests: Vec<(String, f64)>,
    /// Seconds of its requests together without those of waiting, and those of them that the socket took.
    pub busy_seconds: f64,
    pub write_seconds: f64,
}

impl Client {
    pub fn of(&self, kind: &str) -> f64 {
        self.requests.iter().filter(|(name, _)| name == kind).map(|(_, count)| count).sum()
    }
}

/// Each bound with how many observations were not above it, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram(pub Vec<(f64, f64)>);

impl Histogram {
    pub fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// The bound of the bucket that the `share` of the observations lies in; `None` where there are none, or where it
    /// lies above the last bound.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = self.count() * share;
        if wanted <= 0.0 {
            return None;
        }
        self.0.iter().find(|(_, count)| *count >= wanted).map(|(bound, _)| *bound).filter(|b| b.is_finite())
    }

    /// What was observed since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let old = |bound: f64| before.0.iter().rfind(|(known, _)| *known <= bound).map_or(0.0, |(_, n)| *n);
        Self(self.0.iter().map(|(bound, count)| (*bound, (count - old(*bound)).max(0.0))).collect())
    }
}
