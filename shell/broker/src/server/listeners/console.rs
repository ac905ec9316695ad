//! The console inside a node (`console.listener`): edge/console on a listener and a thread of its own, which reaches
//! this node through one of its own Kafka listeners, as any client does.
//!
//! Beside: amqp.rs, which reaches the node in the same way; own_logs.rs, which lends it the node's logs.
//!
//! It starts before the logs are recovered, so that `/livez` answers meanwhile; `/readyz` says what lacks.

use crate::node::Node;
use crate::server::Failure;
use crate::server::listeners::own_logs::NodeLogs;
use barnabas_base::{BrokerEpoch, PartitionIndex, TopicId};
use barnabas_config::sasl::SaslListener;
use barnabas_config::{ConfigError, Listener, SecurityProtocol, insecure};
use barnabas_console::{
    ADVERTISED, ADVERTISED_EXAMPLE, Check, Console, EXAMPLE, HOSTS, KEY, Places, READ_ONLY, REGISTRY,
    REGISTRY_EXAMPLE, REGISTRY_LOGIN, Registry, SCHEMAS, Settings, Standing,
};
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_tls::ServerTls;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Offline replicas that the readiness probe names; it counts the others.
const OFFLINE_NAMED_MAX: usize = 10;

/// A console that runs until this is dropped.
#[derive(Debug)]
pub struct OwnConsole {
    console: Console,
    standing: Arc<Known>,
    logs: Arc<NodeLogs>,
}

/// What is known of the node so far.
#[derive(Debug, Default)]
struct Known {
    node: OnceLock<Arc<Node>>,
    serves: AtomicBool,
}

impl OwnConsole {
    /// Listens and answers from now on, if `console.listener` names an address.
    ///
    /// # Errors
    /// The address cannot be listened on; the node has no listener that the console can use.
    pub fn start(
        config: &BrokerConfig,
        listeners: &[(Listener, SocketAddr)],
        tls: Option<Arc<ServerTls>>,
        sasl: impl Fn(usize) -> Option<Arc<SaslListener>>,
    ) -> Result<Option<Self>, Failure> {
        let Some(address) = barnabas_console::address(config.value(KEY)) else { return Ok(None) };
        let refused = |problem: String| ConfigError::value(KEY, problem, EXAMPLE);
        let (place, target) =
            target(listeners).ok_or_else(|| refused(without_target(listeners).to_owned()))?;
        let (listener, bound) = &listeners[place];
        let mechanisms = sasl(place).map(|sasl| mechanisms(&sasl)).unwrap_or_default();
        if listener.protocol == SecurityProtocol::SaslPlaintext && mechanisms.is_empty() {
            return Err(refused(
                "logins by HTTP basic need PLAIN or SCRAM in sasl.enabled.mechanisms".to_owned(),
            )
            .into());
        }
        let advertised = config.value(ADVERTISED).map(str::to_owned);
        if let Some(url) = &advertised {
            barnabas_console::check_advertised(url)
                .map_err(|why| ConfigError::value(ADVERTISED, why.to_string(), ADVERTISED_EXAMPLE))?;
        }
        let standing = Arc::new(Known::default());
        let logs = Arc::new(NodeLogs::default());
        let settings = Settings {
            hosts: config.value(HOSTS).unwrap_or_default().split(',').map(str::to_owned).collect(),
            advertised,
            cluster: barnabas_console::cluster(&reachable(*bound).to_string(), target)?,
            mechanisms,
            is_read_only: config.value(READ_ONLY) == Some("true"),
            tls,
            standing: Some(checks(standing.clone())),
            logs: Some(logs.clone()),
            schemas: schemas(config)?,
        };
        let socket = barnabas_console::bind(address).map_err(|error| refused(error.to_string()))?;
        check_open(config, KEY, &socket, listener.protocol.has_sasl())?;
        Ok(Some(Self { console: barnabas_console::start(socket, settings)?, standing, logs }))
    }

    pub fn url(&self) -> String {
        self.console.url()
    }

    /// The node is there; its logs are still being recovered.
    pub fn recovers(&self, node: &Arc<Node>) {
        // Set once: a process has one node.
        let _ = self.standing.node.set(node.clone());
        let _ = self.logs.node.set(node.clone());
    }

    /// Clients are let in.
    pub fn serves(&self) {
        self.standing.serves.store(true, Ordering::Release);
    }
}

/// Where the schemas of records are had from. A registry with TLS is trusted by the keys of all listeners.
fn schemas(config: &BrokerConfig) -> Result<Places, ConfigError> {
    let directory = config.value(SCHEMAS).map(PathBuf::from);
    let Some(url) = config.value(REGISTRY) else { return Ok(Places { directory, registry: None }) };
    let of = |key: &str| config.value(key).map(str::to_owned);
    let registry = Registry::new(url, config.value(REGISTRY_LOGIN), of);
    let registry = registry.map_err(|why| ConfigError::value(REGISTRY, why, REGISTRY_EXAMPLE))?;
    Ok(Places { directory, registry: Some(registry) })
}

/// The first listener for clients without TLS, else for brokers; and its protocol, in the client's words.
pub(super) fn target(listeners: &[(Listener, SocketAddr)]) -> Option<(usize, &'static str)> {
    let mut places: Vec<usize> =
        (0..listeners.len()).filter(|place| !listeners[*place].0.is_controller).collect();
    places.sort_by_key(|place| listeners[*place].0.is_reserved);
    places.into_iter().find_map(|place| match listeners[place].0.protocol {
        SecurityProtocol::Plaintext => Some((place, "PLAINTEXT")),
        SecurityProtocol::SaslPlaintext => Some((place, "SASL_PLAINTEXT")),
        SecurityProtocol::Ssl | SecurityProtocol::SaslSsl => None,
    })
}

fn without_target(listeners: &[(Listener, SocketAddr)]) -> &'static str {
    if listeners.iter().all(|(listener, _)| listener.is_controller) {
        return "this node is a controller alone: set it on a broker, or run `barnabas console`";
    }
    "all listeners of this node have TLS, and the console in a node needs one without it, on loopback for \
     instance. `barnabas console --command-config` reaches listeners with TLS"
}

/// A listener whose clients act through one of the node's: see [`insecure::check_beside`].
pub(super) fn check_open(
    config: &BrokerConfig,
    key: &str,
    socket: &TcpListener,
    has_logins: bool,
) -> Result<(), Failure> {
    let address = socket.local_addr()?;
    if insecure::check_beside(config, key, address, has_logins)? {
        tracing::warn!(
            "{key} ({address}) takes clients of other machines without authentication; insecure.listeners.allowed \
             allows it"
        );
    }
    Ok(())
}

/// What this process connects to where the listener is bound to every address.
pub(super) fn reachable(bound: SocketAddr) -> SocketAddr {
    match bound {
        SocketAddr::V4(address) if address.ip().is_unspecified() => {
            (Ipv4Addr::LOCALHOST, address.port()).into()
        }
        SocketAddr::V6(address) if address.ip().is_unspecified() => {
            (Ipv6Addr::LOCALHOST, address.port()).into()
        }
        other => other,
    }
}

pub(super) fn mechanisms(sasl: &SaslListener) -> Vec<String> {
    let names = sasl.offers.iter().map(|offer| offer.mechanism.name());
    names.filter(|name| *name != "OAUTHBEARER").map(str::to_owned).collect()
}

fn checks(known: Arc<Known>) -> Standing {
    Arc::new(move || {
        let Some(node) = known.node.get() else { return vec![lacks("recovered", "the node starts")] };
        let image = node.cluster.image.load();
        let broker = image.cluster.broker(node.identity.broker_id);
        let is_registered = node.identity.broker_epoch() != BrokerEpoch::NONE;
        let is_unfenced = broker.is_some_and(|broker| !broker.fenced);
        let check = |name, is_well: bool, words: &str| Check::new(name, (!is_well).then(|| words.to_owned()));
        vec![
            check("recovered", known.serves.load(Ordering::Acquire), "the node recovers its logs"),
            check("registered", is_registered, "the controller has not registered this broker"),
            check("unfenced", is_unfenced, "the controller has fenced this broker"),
            check("stays", !node.shutdown.is_wanted(), "the node stops"),
            Check { warning: offline(node, &image), ..Check::new("replicas", None) },
        ]
    })
}

fn lacks(name: &'static str, words: &str) -> Check {
    Check::new(name, Some(words.to_owned()))
}

/// Replicas of this node that serve nothing. The node gets traffic all the same: the others serve.
fn offline(node: &Node, image: &Image) -> Option<String> {
    let all = node.log_dirs.impaired.all_offline()?;
    let name = |(topic, partition): &(TopicId, PartitionIndex)| {
        let topic = image.topics.by_id(*topic)?;
        Some(format!("{}-{partition}", topic.name))
    };
    let named: Vec<String> = all.iter().filter_map(name).take(OFFLINE_NAMED_MAX).collect();
    let more = if all.len() > named.len() { ", \u{2026}" } else { "" };
    Some(format!(
        "{} replicas are offline, since their logs cannot be opened ({}{more}); the node's log says what to do",
        all.len(),
        named.join(", ")
    ))
}
