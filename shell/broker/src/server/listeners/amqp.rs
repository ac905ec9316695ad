//! The AMQP 1.0 listener inside a node (`amqp.listener`): edge/queues on a thread of its own, which reaches this node
//! through one of its own Kafka listeners, as any client does. Beside: console.rs, mq.rs.
//!
//! It starts when clients are let in.

use super::console::{check_open, mechanisms, reachable, target};
use crate::server::Failure;
use barnabas_config::sasl::SaslListener;
use barnabas_config::{ConfigError, Listener, SecurityProtocol};
use barnabas_metadata::config::BrokerConfig;
use barnabas_queues::{EXAMPLE, KEY, Queues, Settings};
use barnabas_tls::ServerTls;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A listener that is bound, and its settings.
#[derive(Debug)]
pub struct OwnQueues {
    socket: TcpListener,
    settings: Settings,
    node: i32,
}

impl OwnQueues {
    /// Listens, if `amqp.listener` names an address. Connections wait until [`Self::start`].
    ///
    /// # Errors
    /// The address cannot be listened on; the node has no listener that this one can use.
    pub fn bind(
        config: &BrokerConfig,
        node: i32,
        listeners: &[(Listener, SocketAddr)],
        tls: Option<Arc<ServerTls>>,
        sasl: impl Fn(usize) -> Option<Arc<SaslListener>>,
    ) -> Result<Option<Self>, Failure> {
        let Some(address) = barnabas_queues::address(config.value(KEY)) else { return Ok(None) };
        let refused = |problem: String| ConfigError::value(KEY, problem, EXAMPLE);
        let Way { bootstrap, protocol, mechanisms, has_logins } =
            Way::find("AMQP", listeners, sasl).map_err(refused)?;
        let cluster = barnabas_queues::cluster(&bootstrap, protocol)?;
        let socket = barnabas_queues::bind(address).map_err(|error| refused(error.to_string()))?;
        check_open(config, KEY, &socket, has_logins)?;
        Ok(Some(Self { socket, settings: Settings { cluster, mechanisms, tls }, node }))
    }

    /// Lets clients in.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(self) -> std::io::Result<Queues> {
        barnabas_queues::start(self.socket, self.settings, self.node)
    }
}

/// How clients of message queues reach the node.
#[derive(Debug)]
pub struct Way {
    pub bootstrap: String,
    pub protocol: &'static str,
    /// SASL mechanisms, in the order in which they are tried.
    pub mechanisms: Vec<String>,
    /// Clients log in.
    pub has_logins: bool,
}

impl Way {
    /// # Errors
    /// Why there is none for clients of `clients` (a protocol's name).
    pub fn find(
        clients: &str,
        listeners: &[(Listener, SocketAddr)],
        sasl: impl Fn(usize) -> Option<Arc<SaslListener>>,
    ) -> Result<Self, String> {
        let (place, protocol) = behind(listeners).ok_or_else(|| {
            format!(
                "it needs a broker, with a listener without TLS, on loopback for instance: {clients} clients reach \
                 the node through it"
            )
        })?;
        let (listener, bound) = &listeners[place];
        let mechanisms = sasl(place).map(|sasl| mechanisms(&sasl)).unwrap_or_default();
        if listener.protocol == SecurityProtocol::SaslPlaintext && mechanisms.is_empty() {
            return Err(format!("{clients} logins need PLAIN or SCRAM in sasl.enabled.mechanisms"));
        }
        let (bootstrap, has_logins) = (reachable(*bound).to_string(), listener.protocol.has_sasl());
        Ok(Self { bootstrap, protocol, mechanisms, has_logins })
    }
}

/// The listener that such clients act through: with logins where the node has one with them, since a listener without
/// them may be meant for this machine alone.
fn behind(listeners: &[(Listener, SocketAddr)]) -> Option<(usize, &'static str)> {
    let has_logins = |(listener, _): &(Listener, SocketAddr)| {
        !listener.is_controller
            && !listener.is_reserved
            && listener.protocol == SecurityProtocol::SaslPlaintext
    };
    let with_logins = listeners.iter().position(has_logins).map(|place| (place, "SASL_PLAINTEXT"));
    with_logins.or_else(|| target(listeners))
}
