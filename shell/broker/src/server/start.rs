//! The start of a node: sockets, directories, metadata, threads, in the order in which they need each other. What can
//! refuse the start comes before anything is made or written.
//!
//! What each step does is in its neighbour: identity.rs, listeners.rs, membership.rs, threads.rs.

use super::identity::{begin, identify, look, open_directories, take};
use super::lifecycle::{self, Lifecycle};
use super::listeners::Beside;
use super::listeners::amqp::OwnQueues;
use super::listeners::console::OwnConsole;
use super::listeners::handshakes::{self, Handshakes};
use super::listeners::mq::OwnQueueManager;
use super::listeners::{accept_early, bind, peer_addresses};
use super::membership::{Joining, Member, wait_for_image};
use super::memory;
use super::signals::Signals;
use super::threads::{Threads, start_committers, start_journals, start_settling, start_workers};
use super::{Failure, Running};
use crate::config::descriptors;
use crate::config::sasl;
use crate::config::secret_files;
use crate::config::tls::NodeTls;
use crate::controller::quorum_worker;
use crate::log_dirs::directories::random_uuid;
use crate::mailbox::{Command, Inbox, Mailbox};
use crate::node::audit::{self, Audit};
use crate::node::log_dirs::deletions::Deletions;
use crate::node::logins::{Logins, Source};
use crate::node::shutdown::Shutdown;
use crate::node::{Node, NodeParts};
use crate::routing::audit_topic;
use crate::server::exporter;
use crate::upkeep::housekeeping;
use crate::upkeep::in_force;
use crate::upkeep::last_life;
use crate::upkeep::mover;
use crate::upkeep::put_aside;
use crate::upkeep::scrub;
use barnabas_base::Uuid;
use barnabas_clock::Clock;
use barnabas_config::{ConfigError, Listener, NodeConfig, insecure};
use barnabas_disk::LinuxDisk;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::{Meter, endpoint};
use barnabas_net::Acceptor;
use barnabas_sasl::scram::TokenKey;
use barnabas_storage::Disk;
use barnabas_tls::ServerTls;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Brings a node up. When this returns, its image stands and its threads run; no client is accepted yet. `None`: a
/// signal has stopped it before it used its partitions.
pub fn start(
    config: &NodeConfig,
    broker_config: BrokerConfig,
    meter: Arc<Meter>,
    runtime: &Runtime,
    signals: Signals,
) -> Result<Option<Running>, Failure> {
    let clock = Clock::start();
    let logins = logins(config, &broker_config)?;
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk);
    in_force::check_distinct(&config.directories())?;
    let file_bytes_max = in_force::file_bytes_max()?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let descriptors = descriptors::share_out(&broker_config, workers, config.directories().len())?;
    let places = look(config, &*disk)?;
    let memory_bytes = memory::allowed_bytes();
    in_force::check(&broker_config, &*disk, &places, memory_bytes)?;
    let tls = NodeTls::load(config)?;
    let (acceptors, listeners, connection_places) = bind(config, &broker_config, descriptors.connections)?;
    check_open_listeners(&broker_config, &listeners, &tls)?;
    let beside = listen_beside(config, &broker_config, &listeners, (&logins, &tls))?;
    // Up to here the disk is as it was.
    let mut log_dirs = open_directories(config, &disk, places)?;
    let cluster_id = identify(config, &mut log_dirs, clock)?;
    let directories = take(&broker_config, log_dirs);
    let audit =
        Audit::open(audit::Settings::read(&broker_config, config.is_broker)?, config.node_id, meter.clone())?;
    let joining = Joining {
        config,
        broker_config: &broker_config,
        cluster_id: &cluster_id,
        directories: &directories,
        listeners: &listeners,
        clock,
        file_bytes_max,
        logins: &logins,
        tls: tls.controllers.clone(),
    };
    let incarnation = random_uuid();
    let (member, controller, links) = joining.open(incarnation)?;
    let (mailboxes, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| Mailbox::new()).unzip();
    let node = Arc::new(Node::new(NodeParts {
        broker_id: config.node_id,
        incarnation,
        cluster_id,
        is_broker: config.is_broker,
        clock,
        links,
        tls,
        mailboxes,
        listeners,
        connection_places,
        directories,
        open_files_max: descriptors.log_files,
        config: broker_config,
        controller,
        meter,
        memory_bytes,
        file_bytes_max,
        shutdown: Shutdown::default(),
        deletions: Deletions::default(),
        logins,
        audit,
    }));
    in_force::say(&node, descriptors.connections);
    beside.console.iter().for_each(|console| console.recovers(&node));
    run(config, node, member, inboxes, (acceptors, beside), (runtime, signals))
}

fn logins(config: &NodeConfig, broker_config: &BrokerConfig) -> Result<Arc<Logins>, Failure> {
    let source = Source { listeners: config.listeners.clone(), jaas_file: sasl::jaas_file(broker_config)? };
    let logins = source.read(broker_config)?;
    secret_files::warn_of_open(config, broker_config, &logins);
    let token_key = broker_config.value("delegation.token.secret.key").and_then(TokenKey::new);
    Ok(Arc::new(Logins::new(source, logins, token_key)?))
}

/// The listeners of metrics, of the console, of AMQP and of MQ.
fn listen_beside(
    config: &NodeConfig,
    broker_config: &BrokerConfig,
    listeners: &[(Listener, SocketAddr)],
    (logins, tls): (&Logins, &NodeTls),
) -> Result<Beside, Failure> {
    let metrics = endpoint::bind(broker_config.value(endpoint::KEY))
        .map_err(|error| ConfigError::value(endpoint::KEY, error.to_string(), endpoint::EXAMPLE))?;
    let console =
        OwnConsole::start(broker_config, listeners, tls.console.clone(), |place| logins.listener(place))?;
    let (node, sasl) = (config.node_id.get(), |place| logins.listener(place));
    let amqp = OwnQueues::bind(broker_config, node, listeners, tls.amqp.clone(), sasl)?;
    let mq = OwnQueueManager::bind(broker_config, node, listeners, tls.mq.clone(), sasl)?;
    Ok(Beside { metrics, console, amqp, mq })
}

/// See [`insecure::check`].
fn check_open_listeners(
    config: &BrokerConfig,
    listeners: &[(Listener, SocketAddr)],
    tls: &NodeTls,
) -> Result<(), ConfigError> {
    let asks =
        |at: usize| tls.listeners.get(at).and_then(Option::as_deref).is_some_and(ServerTls::requires_clients);
    let (warnings, verdict) = insecure::check(config, listeners, asks);
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    verdict
}

/// Starts the threads, and waits in between until the node knows its cluster.
fn run(
    config: &NodeConfig,
    node: Arc<Node>,
    mut member: Member,
    inboxes: Vec<Inbox>,
    (acceptors, beside): (Vec<Acceptor>, Beside),
    (runtime, mut signals): (&Runtime, Signals),
) -> Result<Option<Running>, Failure> {
    node.audit.start()?;
    let workers = start_workers(&node, inboxes)?;
    let committers = start_committers(&node)?;
    let quorum = quorum_worker::start(member.quorum, member.files, member.requests, node.clone())?;
    peer_addresses::watch(&node, node.workers.connection_places.gate().clone());
    let handshakes = node.peers.tls.is_used().then(Handshakes::start).transpose()?;
    if handshakes.is_some() || node.logins.is_used() {
        let advertised = member.broker.as_ref().map_or(&[][..], |broker| &broker.listeners);
        handshakes::watch(&node, node.peers.tls.clone(), advertised)?;
    }
    let (accepting, acceptors) = accept_early(&node, acceptors, handshakes.as_ref());
    if let Some(registration) = member.controller {
        lifecycle::register_controller(&node, registration);
    }
    signals.describe(&node);
    if !runtime.block_on(wait_for_image(&node, &mut signals))? {
        return Ok(None);
    }
    // From here on the mark of the last clean stop is gone.
    begin(config, &node)?;
    if let Some(registration) = &mut member.broker {
        let is_usable =
            |id: &Uuid| node.log_dirs.directories.iter().any(|dir| dir.id == *id && dir.is_usable());
        registration.log_dirs.retain(is_usable);
    }
    let mut journals = start_journals(&node);
    if let Some(registration) = &mut member.broker {
        // A journal that is damaged or gone has taken its directory offline; and now the metadata log is known.
        registration.previous_broker_epoch = last_life::previous_of(&node).get();
    }
    let replayed = scrub::Replayed::of(&node);
    // Only now may a partition be opened: before, part of it was in the journal alone.
    node.workers.mailboxes.iter().for_each(|mailbox| mailbox.send_blocking(Command::Begin));
    journals.extend(start_settling(&node));
    let threads = Threads {
        links: member.links_thread,
        workers,
        committers,
        journals,
        quorum,
        housekeeping: housekeeping::start(node.clone(), replayed)?,
        mover: mover::start(node.clone())?,
        deletions: put_aside::start(node.clone())?,
        metrics: exporter::start(node.clone())?,
        doctor: exporter::doctor::start(node.clone())?,
    };
    exporter::otlp::start(node.clone())?;
    audit_topic::start(&node)?;
    let lifecycle = Lifecycle::default();
    if let Some(registration) = member.broker {
        lifecycle.start(node.clone(), registration);
    }
    Ok(Some(Running { node, acceptors, accepting, lifecycle, threads, beside, handshakes, signals }))
}
