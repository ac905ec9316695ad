//! The clients of KIP-714 on this node, and what they pushed: core/telemetry's table behind a lock.
//!
//! A client asks and pushes once in an interval of minutes. The lock is held for the checks and for the series, not
//! while a push is inflated and read.

use crate::node::Node;
use barnabas_metadata::config::BrokerConfig;
use barnabas_telemetry::{ClientTable, Limits};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the file's header.
#[derive(Debug)]
pub struct ClientMetrics {
    table: Mutex<ClientTable>,
    pub push_bytes_max: usize,
    pub limits: Limits,
}

impl ClientMetrics {
    pub fn new(config: &BrokerConfig) -> Self {
        let number = |key: &'static str| usize::try_from(config.long(key)).unwrap_or(usize::MAX);
        let push_bytes_max = number("telemetry.max.bytes");
        let limits = Limits::of(number("telemetry.series.max"));
        Self { table: Mutex::new(ClientTable::new(push_bytes_max, limits)), push_bytes_max, limits }
    }

    /// As it is. To ask it about a client: [`Self::current`].
    pub fn table(&self) -> MutexGuard<'_, ClientTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With the subscriptions of the newest image.
    pub fn current(&self, node: &Node) -> MutexGuard<'_, ClientTable> {
        let image = node.cluster.image.load();
        let mut table = self.table();
        for unusable in table.follow(&image.configs) {
            tracing::warn!(
                subscription = %unusable.subscription,
                why = %unusable.why,
                "a client-metrics subscription matches no client, because its match cannot be used here; \
                 change it: barnabas client-metrics --alter"
            );
        }
        table
    }
}
