//! The listener for IBM MQ's clients inside a node (`mq.listener`): edge/mq-queues on a thread of its own, which
//! reaches this node through one of its own Kafka listeners, as any client does. Beside: amqp.rs.
//!
//! It starts when clients are let in.

use super::amqp::Way;
use super::console::check_open;
use crate::server::Failure;
use barnabas_config::sasl::SaslListener;
use barnabas_config::{ConfigError, Listener};
use barnabas_metadata::config::BrokerConfig;
use barnabas_mq_queues::{
    EXAMPLE, KEY, Names, QUEUE_MANAGER, QUEUES, QUEUES_EXAMPLE, Queues, Settings, Shared,
};
use barnabas_tls::ServerTls;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A listener that is bound, and its settings.
#[derive(Debug)]
pub struct OwnQueueManager {
    socket: TcpListener,
    settings: Settings,
    shared: Shared,
}

impl OwnQueueManager {
    /// Listens, if `mq.listener` names an address. Connections wait until [`Self::start`]. `node` is the node's id.
    ///
    /// # Errors
    /// The address cannot be listened on; `mq.queues` is no list of pairs; the node has no listener that this one can
    /// use.
    pub fn bind(
        config: &BrokerConfig,
        node: i32,
        listeners: &[(Listener, SocketAddr)],
        tls: Option<Arc<ServerTls>>,
        sasl: impl Fn(usize) -> Option<Arc<SaslListener>>,
    ) -> Result<Option<Self>, Failure> {
        let Some(address) = barnabas_mq_queues::address(config.value(KEY)) else { return Ok(None) };
        let refused = |problem: String| ConfigError::value(KEY, problem, EXAMPLE);
        let names = Names::parse(config.value(QUEUES).unwrap_or_default())
            .map_err(|problem| ConfigError::value(QUEUES, problem, QUEUES_EXAMPLE))?;
        let shared = Shared::new(config.value(QUEUE_MANAGER).unwrap_or("BARNABAS"), names, node);
        let Way { bootstrap, protocol, mechanisms, has_logins } =
            Way::find("MQ", listeners, sasl).map_err(refused)?;
        let cluster = barnabas_mq_queues::cluster(&bootstrap, protocol)?;
        let socket = barnabas_mq_queues::bind(address).map_err(|error| refused(error.to_string()))?;
        check_open(config, KEY, &socket, has_logins)?;
        Ok(Some(Self { socket, settings: Settings { cluster, mechanisms, tls }, shared }))
    }

    /// Lets clients in.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(self) -> std::io::Result<Queues> {
        barnabas_mq_queues::start(self.socket, self.settings, self.shared)
    }
}
