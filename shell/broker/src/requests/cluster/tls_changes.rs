//! Changes of this broker's TLS by AlterConfigs and IncrementalAlterConfigs: the broker tries them before the
//! controller writes them down, as Kafka's brokers do. What cannot be used is refused with INVALID_REQUEST.
//!
//! Source: Kafka `ConfigAdminManager.validateBrokerConfigChange`, `DynamicListenerConfig.validateReconfiguration`.

use crate::node::Node;
use barnabas_metadata::config::BrokerConfig;
use std::sync::Arc;

/// Why the TLS settings of `after` cannot be used. `None`: they can, or there is nothing to try. Stores are read on a
/// thread for blocking work.
pub async fn refusal(node: Arc<Node>, after: Option<BrokerConfig>) -> Option<String> {
    let after = after?;
    let now_s = node.clock.wall().0 / 1000;
    let tried = move || node.peers.tls.check(&after, &node.identity.listeners, now_s);
    match tokio::task::spawn_blocking(tried).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(error) => Some(format!("the stores could not be tried: {error}")),
    }
}
