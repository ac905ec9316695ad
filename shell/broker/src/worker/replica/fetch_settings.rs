//! How this broker asks leaders, as its configuration says. It is read out once for each configuration: leaders are
//! asked thousands of times a second, and every key is looked up by its name.
//!
//! Neighbours: partition_worker/replica_fetcher.rs, which keeps one; fetch_connection.rs.

use crate::node::Node;
use crate::routing::addresses::listener;
use barnabas_api::replication::fetch::Follower;
use barnabas_base::{DurationMs, Text};
use barnabas_metadata::config::BrokerConfig;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub struct FetchSettings {
    config: Arc<BrokerConfig>,
    wait_max: DurationMs,
    bytes_min: i32,
    bytes_max: i32,
    partition_bytes_max: i32,
    /// `replica.socket.timeout.ms`.
    pub timeout: Duration,
    /// The name of the brokers' own listener.
    pub listener: Text,
}

impl FetchSettings {
    pub fn new(config: Arc<BrokerConfig>) -> Self {
        let timeout_ms = u64::try_from(config.int("replica.socket.timeout.ms")).unwrap_or(30_000);
        Self {
            wait_max: DurationMs(i64::from(config.int("replica.fetch.wait.max.ms"))),
            bytes_min: config.int("replica.fetch.min.bytes"),
            bytes_max: config.int("replica.fetch.response.max.bytes"),
            partition_bytes_max: config.int("replica.fetch.max.bytes"),
            timeout: Duration::from_millis(timeout_ms),
            listener: listener(&config).into(),
            config,
        }
    }

    /// Reads out the configuration if it is another one by now.
    pub fn renew(&mut self, node: &Node) {
        let config = node.cluster.config.load();
        if !Arc::ptr_eq(&self.config, &config) {
            *self = Self::new(Arc::clone(&config));
        }
    }

    pub fn follower(&self, node: &Node) -> Follower {
        Follower {
            broker: node.identity.broker_id,
            broker_epoch: node.identity.broker_epoch(),
            cluster_id: node.identity.cluster_id.clone(),
            wait_max: self.wait_max,
            bytes_min: self.bytes_min,
            bytes_max: self.bytes_max,
            partition_bytes_max: self.partition_bytes_max,
        }
    }

    /// What the records of one answer may be together.
    pub fn answer_bytes_max(&self) -> usize {
        usize::try_from(self.bytes_max).unwrap_or(0)
    }
}
