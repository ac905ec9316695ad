//! The AMQP 1.0 listener inside a node (`amqp.listener`): edge/queues on a thread of its own, which reaches this node
//! through one of its own Kafka listeners, as any client does. Beside: console.rs.
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
}

impl OwnQueues {
    /// Listens, if `amqp.listener` names an address. Connections wait until [`Self::start`].
    ///
    /// # Errors
    /// The address cannot be listened on; the node has no listener that this one can use.
    pub fn bind(
        config: &BrokerConfig,
        listeners: &[(Listener, SocketAddr)],
        tls: Option<Arc<ServerTls>>,
        sasl: impl Fn(usize) -> Option<Arc<SaslListener>>,
    ) -> Result<Option<Self>, Failure> {
        let Some(address) = barnabas_queues::address(config.value(KEY)) else { return Ok(None) };
        let refused = |problem: String| ConfigError::value(KEY, problem, EXAMPLE);
        let (place, protocol) = behind(listeners).ok_or_else(|| {
            refused(
                "it needs a broker, with a listener without TLS, on loopback for instance: AMQP clients \
                 reach the node through it"
                    .to_owned(),
            )
        })?;
        let (listener, bound) = &listeners[place];
        let mechanisms = sasl(place).map(|sasl| mechanisms(&sasl)).unwrap_or_default();
        if listener.protocol == SecurityProtocol::SaslPlaintext && mechanisms.is_empty() {
            return Err(
                refused("AMQP logins need PLAIN or SCRAM in sasl.enabled.mechanisms".to_owned()).into()
            );
        }
        let cluster = barnabas_queues::cluster(&reachable(*bound).to_string(), protocol)?;
        let socket = barnabas_queues::bind(address).map_err(|error| refused(error.to_string()))?;
        check_open(config, KEY, &socket, listener.protocol)?;
        Ok(Some(Self { socket, settings: Settings { cluster, mechanisms, tls } }))
    }

    /// Lets clients in.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(self) -> std::io::Result<Queues> {
        barnabas_queues::start(self.socket, self.settings)
    }
}

/// The listener that AMQP clients act through: with logins where the node has one with them, since a listener without
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
