//! Changes of this broker's TLS and logins by AlterConfigs and IncrementalAlterConfigs: the broker tries them before
//! the controller writes them down. What cannot be used is refused with INVALID_REQUEST: written down, it would have
//! no effect, and a password that is to be replaced would go on working.
//!
//! Source: Kafka `ConfigAdminManager.validateBrokerConfigChange`, `DynamicListenerConfig.validateReconfiguration`,
//! which tries stores alone.

use crate::node::Node;
use barnabas_metadata::config::BrokerConfig;
use std::sync::Arc;

/// Why the TLS settings or the logins of `after` cannot be used. `None`: they can, or there is nothing to try. Stores
/// are read on a thread for blocking work.
pub async fn refusal(node: Arc<Node>, after: Option<BrokerConfig>) -> Option<String> {
    let after = after?;
    let now_s = node.clock.wall().0 / 1000;
    let tried = move || {
        let stores = node.peers.tls.check(&after, &node.identity.listeners, now_s);
        stores.map_err(|error| error.to_string())?;
        node.logins.check(&node.cluster.config.load(), &after)
    };
    match tokio::task::spawn_blocking(tried).await {
        Ok(tried) => tried.err(),
        Err(error) => Some(format!("the change could not be tried: {error}")),
    }
}
