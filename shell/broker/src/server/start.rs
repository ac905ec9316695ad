//! The start of a node: directories, sockets, metadata, threads.

use super::lifecycle::{self, Lifecycle};
use super::{Failure, Running};
use crate::clock::Clock;
use crate::committer::CommitterParts;
use crate::connection::{MOVE_PATIENCE, NewConnection};
use crate::deleted;
use crate::descriptors;
use crate::directories::{Directories, Directory, random_uuid};
use crate::format::{Beginning, format, voter};
use crate::full;
use crate::housekeeping::{self, Deletions};
use crate::in_force;
use crate::journal_thread::{JournalParts, LinuxJournal, Prepared, StartError};
use crate::links::LinkThread;
use crate::mailbox::{Command, Inbox, Mailbox};
use crate::meter::Meter;
use crate::metering;
use crate::moves;
use crate::node::{Node, NodeParts};
use crate::node_config::{Listener, NodeConfig};
use crate::quorum_worker::{self, ControllerHandle, MetadataFiles};
use crate::replay::{self, ReplayError};
use crate::shutdown::Shutdown;
use crate::worker;
use barnabas_base::{BrokerEpoch, DirectoryId, DurationMs, Text, Uuid};
use barnabas_disk::LinuxDisk;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::features::FEATURES;
use barnabas_net::{Acceptor, ConnectionLimits, Gate, SocketOptions};
use barnabas_quorum::controller::ControllerSettings;
use barnabas_quorum::node::LocalBroker;
use barnabas_quorum::raft::Config as RaftConfig;
use barnabas_quorum::raft::requests::Here;
use barnabas_quorum::{
    Node as Quorum, Now, QuorumError, Settings as QuorumSettings, Voter, VoterEndpoint, Voters,
};
use barnabas_storage::journal::{JournalError, Recovered};
use barnabas_storage::{Disk, LogConfig, LogDir, OpenFrom, StorageError};
use barnabas_wire::Str;
use barnabas_wire::messages::broker_registration_request::{Feature, Listener as RegisteredListener};
use barnabas_wire::messages::controller_registration_request::{
    Feature as ControllerFeature, Listener as ControllerListener,
};
use barnabas_wire::messages::{BrokerRegistrationRequest, ControllerRegistrationRequest};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// After so long without a leader of the metadata quorum, somebody should look.
const LEADER_PATIENCE: Duration = Duration::from_secs(10);

type WorkerThread = std::thread::JoinHandle<std::io::Result<()>>;

const NONE_LEFT: &str = "log.dirs: none of the directories can be used";

/// Brings a node up. When this returns, its image stands and its threads run; nobody is accepted yet.
pub fn start(
    config: &NodeConfig,
    broker_config: BrokerConfig,
    meter: Arc<Meter>,
    runtime: &Runtime,
) -> Result<Running, Failure> {
    let clock = Clock::start();
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk);
    in_force::check_distinct(&config.directories())?;
    let file_bytes_max = in_force::file_bytes_max()?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let descriptors = descriptors::share_out(&broker_config, workers, config.directories().len())?;
    let mut log_dirs = open_directories(config, &disk)?;
    let cluster_id = identify(config, &mut log_dirs, clock)?;
    check_any_left(&log_dirs)?;
    let memory_bytes = memory_bytes();
    in_force::check(&broker_config, &log_dirs, memory_bytes)?;
    let (acceptors, listeners) = bind(config, &broker_config, descriptors.connections)?;
    let metrics_listener = metering::endpoint::bind(broker_config.value(metering::endpoint::KEY))?;
    let is_synced = broker_config.value("log.ack.durability") != Some("written");
    log_dirs.iter_mut().for_each(|(log_dir, _)| log_dir.set_synced(is_synced));
    let directories = known_directories(log_dirs);
    full::configure(&directories, &broker_config);
    begin_all(config, &directories)?;
    let incarnation = random_uuid();
    let registration =
        config.is_broker.then(|| registration(config, &cluster_id, &directories, &listeners, incarnation));
    let (quorum, files) = open_quorum(
        config,
        &broker_config,
        &cluster_id,
        &directories,
        registration.clone(),
        clock,
        file_bytes_max,
    )?;
    let (links, links_thread) = LinkThread::start()?;
    let controllers = (config.is_controller && !quorum.is_alone())
        .then(|| controller_registration(config, quorum.directory(), incarnation));
    let here = Arc::new(Here { cluster_id: cluster_id.clone(), listener: controller_listener(config) });
    let (controller, requests) =
        ControllerHandle::new(quorum.directory(), quorum.kraft_version(), links.clone(), here);
    let (mailboxes, receivers): (Vec<_>, Vec<_>) = (0..workers).map(|_| Mailbox::new()).unzip();
    let node = Arc::new(Node::new(NodeParts {
        broker_id: config.node_id,
        incarnation,
        cluster_id,
        is_broker: config.is_broker,
        clock,
        links,
        mailboxes,
        listeners,
        directories,
        open_files_max: descriptors.log_files,
        config: broker_config,
        controller,
        meter,
        memory_bytes,
        file_bytes_max,
        shutdown: Shutdown::default(),
        deletions: Deletions::default(),
    }));
    in_force::say(&node, descriptors.connections);
    let workers = start_workers(&node, receivers)?;
    let committers = start_committers(&node)?;
    let quorum = quorum_worker::start(quorum, files, requests, node.clone())?;
    let (accepting, acceptors) = accept_controllers(&node, acceptors);
    if let Some(registration) = controllers {
        lifecycle::register_controller(&node, registration);
    }
    runtime.block_on(wait_for_image(&node))?;
    let mut journals = start_journals(&node);
    // Only now may a partition be opened: before, part of it was in the journal alone.
    node.mailboxes.iter().for_each(|mailbox| mailbox.send_blocking(Command::Begin));
    journals.extend(start_settling(&node));
    let housekeeping = housekeeping::start(node.clone())?;
    let mover = moves::start(node.clone())?;
    let deletions = deleted::start(node.clone())?;
    let metrics = metering::reader::start(node.clone())?;
    let lifecycle = Lifecycle::default();
    if let Some(registration) = registration {
        lifecycle.start(node.clone(), registration);
    }
    Ok(Running {
        node,
        acceptors,
        accepting,
        lifecycle,
        links: links_thread,
        workers,
        committers,
        journals,
        quorum,
        housekeeping,
        mover,
        deletions,
        metrics,
        metrics_listener,
    })
}

/// The listener that members of the quorum use among themselves.
fn controller_listener(config: &NodeConfig) -> Text {
    config.listeners.controller_names.first().map_or_else(Text::default, |name| Text::from(name.as_str()))
}

type Accepting = (Vec<tokio::task::JoinHandle<()>>, Vec<(usize, Acceptor)>);

/// Controllers' listeners listen before anything else: without them no quorum of several comes about. Returns the others.
fn accept_controllers(node: &Arc<Node>, acceptors: Vec<Acceptor>) -> Accepting {
    let acceptors = acceptors.into_iter().enumerate();
    let (early, late): (Vec<_>, Vec<_>) =
        acceptors.partition(|(listener, _)| node.listeners[*listener].0.is_controller);
    let accept_early =
        |(listener, acceptor)| node.links.handle().spawn(accept(node.clone(), listener, acceptor));
    (early.into_iter().map(accept_early).collect(), late)
}

/// Waits until this node knows what the cluster is like: at once where it leads alone.
///
/// # Errors
/// Somebody wants the node to stop, or it cannot go on.
async fn wait_for_image(node: &Arc<Node>) -> Result<(), Failure> {
    if node.controller.has_image() {
        return Ok(());
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stopped = || Failure::from("stopped while it looked for the leader of the metadata quorum");
    let mut watch = node.controller.watch_image();
    loop {
        tokio::select! {
            known = watch.wait_for(|has_image| *has_image) => {
                return known.map(drop).map_err(|_| stopped());
            }
            _ = terminate.recv() => return Err(stopped()),
            _ = interrupt.recv() => return Err(stopped()),
            () = node.shutdown.wanted() => return Err(stopped()),
            () = tokio::time::sleep(LEADER_PATIENCE) => {
                tracing::warn!(
                    "still looking for the leader of the metadata quorum of cluster {}: {}",
                    node.cluster_id,
                    node.controller.standing()
                );
            }
        }
    }
}

/// The directories under the identities that they have in the cluster.
fn known_directories(log_dirs: Vec<(LogDir, bool)>) -> Directories {
    let known = log_dirs.into_iter().map(|(log_dir, holds_partitions)| {
        let id = log_dir.meta().and_then(|meta| meta.directory_id).unwrap_or_default();
        Directory::new(log_dir, id, holds_partitions)
    });
    Directories::new(known.collect())
}

fn start_workers(node: &Arc<Node>, inboxes: Vec<Inbox>) -> std::io::Result<Vec<WorkerThread>> {
    let threads = inboxes.into_iter().enumerate().map(|(id, inbox)| {
        let node = node.clone();
        std::thread::Builder::new().name(format!("worker-{id}")).spawn(move || worker::run(id, node, inbox))
    });
    threads.collect()
}

/// Locks and reads every directory; with each, whether partitions may lie in it. One that cannot be used is dead: the node goes on
/// without it while another one holds partitions, unless it is the metadata log's (Kafka `LogManager`, `KafkaRaftServer`).
///
/// # Errors
/// Another process works in one of them: that is no fault of the directory.
fn open_directories(config: &NodeConfig, disk: &Arc<dyn Disk>) -> Result<Vec<(LogDir, bool)>, Failure> {
    let mut log_dirs = Vec::new();
    for path in config.directories() {
        let log_dir = match LogDir::open(disk.clone(), path) {
            Ok(log_dir) => log_dir,
            Err(error @ StorageError::Locked(_)) => return Err(error.into()),
            Err(error) if *path == *config.metadata_log_dir => return Err(error.into()),
            Err(error) => dead(disk, path, &error.to_string()),
        };
        log_dirs.push((log_dir, config.log_dirs.iter().any(|dir| dir == path)));
    }
    Ok(log_dirs)
}

fn dead(disk: &Arc<dyn Disk>, path: &Path, why: &str) -> LogDir {
    tracing::error!("log directory {} is offline until the next start: {why}", path.display());
    LogDir::dead(disk.clone(), path)
}

/// # Errors
/// No directory is left that could hold partitions.
fn check_any_left(log_dirs: &[(LogDir, bool)]) -> Result<(), Failure> {
    let is_left = log_dirs.iter().any(|(log_dir, holds_partitions)| *holds_partitions && log_dir.is_online());
    if is_left { Ok(()) } else { Err(NONE_LEFT.into()) }
}

/// What is written from here on, the last clean stop does not vouch for. A directory that does not even take that in is dead.
fn begin_all(config: &NodeConfig, directories: &Directories) -> Result<(), Failure> {
    for directory in directories.iter().filter(|directory| directory.is_online()) {
        let begun = replay::discard_stale(directory).and_then(|()| directory.lock().begin());
        let Err(error) = begun else { continue };
        if *directory.path == *config.metadata_log_dir {
            return Err(error.into());
        }
        let path = directory.path.display();
        tracing::error!(
            %error,
            "log directory {path} is offline until the next start: nothing can be written there. Check its disk and its owner"
        );
        directory.fail();
    }
    if directories.iter().any(Directory::is_usable) { Ok(()) } else { Err(NONE_LEFT.into()) }
}

/// Which cluster and node the directories belong to; formats them where the node does that by itself.
fn identify(config: &NodeConfig, log_dirs: &mut [(LogDir, bool)], clock: Clock) -> Result<Text, Failure> {
    let known = log_dirs.iter().find_map(|(log_dir, _)| log_dir.meta()?.cluster_id.clone());
    let cluster_id = match (&known, config.formats_itself) {
        (Some(id), _) => id.clone(),
        (None, true) => Text::from(random_uuid().to_string()),
        (None, false) => return Err(not_formatted(config, &log_dirs[0].0).into()),
    };
    check_kraft(config, log_dirs)?;
    for (log_dir, _) in log_dirs.iter_mut().filter(|(log_dir, _)| log_dir.is_online()) {
        let Some(meta) = log_dir.meta().cloned() else {
            if !config.formats_itself {
                let problem = not_formatted(config, log_dir);
                if **log_dir.path() == *config.metadata_log_dir || known.is_none() {
                    return Err(problem.into());
                }
                let hint = "if its disk is not mounted, mount it and start again; if its disk was replaced, format it with -g \
                            (--ignore-formatted) and this cluster's id, and start again";
                *log_dir = dead(log_dir.disk(), log_dir.path(), &format!("{problem}; {hint}"));
                continue;
            }
            check_empty(log_dir)?;
            format(log_dir, config, &Beginning::newest(cluster_id.clone()), clock.wall())?;
            tracing::info!("formatted {} for cluster {cluster_id}", log_dir.path().display());
            continue;
        };
        let path = log_dir.path().display();
        if meta.cluster_id.as_ref().is_some_and(|found| *found != cluster_id) {
            let found = meta.cluster_id.unwrap_or_default();
            return Err(
                format!("{path} belongs to cluster {found}, another directory to {cluster_id}").into()
            );
        }
        if let Some(found) = meta.node_id
            && found != config.node_id
        {
            let problem = format!("is {}, but {path} belongs to node {found}", config.node_id);
            return Err(format!("node.id: {problem}. Example: node.id={found}").into());
        }
        if meta.directory_id.is_none() || meta.version == 0 {
            // Written by a Kafka before 3.7: the directory gets its identity now (KIP-858).
            let directory_id = meta.directory_id.or_else(|| Some(random_uuid()));
            let (node_id, cluster_id) = (Some(config.node_id), Some(cluster_id.clone()));
            log_dir.write_meta(barnabas_storage::MetaProperties {
                version: 1,
                cluster_id,
                node_id,
                directory_id,
            })?;
        }
    }
    Ok(cluster_id)
}

/// Version 0 of `meta.properties` is ZooKeeper mode's. Unless a metadata log says what its partitions are (after Kafka's own
/// migration, KIP-866), that stands in ZooKeeper: beginning an empty cluster there would make strays of all of them.
fn check_kraft(config: &NodeConfig, log_dirs: &[(LogDir, bool)]) -> Result<(), Failure> {
    for (log_dir, _) in log_dirs {
        let metadata_log = config.metadata_log_dir.join("__cluster_metadata-0");
        let is_old = log_dir.meta().is_some_and(|meta| meta.version == 0);
        if is_old && log_dir.disk().stat(&metadata_log)?.is_none() {
            return Err(format!(
                "{} is of a Kafka with ZooKeeper (version=0 in its meta.properties), and what its topics are stands in ZooKeeper. \
                 Nothing was changed. Migrate it to KRaft with Apache Kafka 3.9 first, then start here; or start with another \
                 directory: --override log.dirs=/some/empty/place",
                log_dir.path().display()
            )
            .into());
        }
    }
    Ok(())
}

/// A directory that holds partitions has lost its `meta.properties`: it is somebody's data, not a new node's.
fn check_empty(log_dir: &LogDir) -> Result<(), Failure> {
    let partitions = log_dir.partitions()?;
    let Some(found) = partitions.first() else { return Ok(()) };
    let path = log_dir.path().display();
    Err(format!(
        "{path} holds data ({} and perhaps more) but no meta.properties, so it cannot be told whose it is. Put that file back \
         from a copy, or start with another directory: --override log.dirs=/some/empty/place",
        found.name
    )
    .into())
}

fn not_formatted(config: &NodeConfig, log_dir: &LogDir) -> String {
    let dir = log_dir.path().display();
    if let Some(found) = log_dir.partitions().ok().and_then(|found| found.into_iter().next()) {
        return format!(
            "log.dirs: {dir}/meta.properties is missing, and {dir} holds data ({} and perhaps more), so it cannot be told whose it \
             is: put that file back from a copy",
            found.name
        );
    }
    let standalone = if config.has_static_voters() || !config.is_controller { "" } else { " --standalone" };
    format!(
        "log.dirs: {} is not formatted. Format it first: \
         barnabas storage format -t $(barnabas storage random-uuid) -c FILE.properties{standalone}",
        log_dir.path().display()
    )
}

type Bound = (Vec<Acceptor>, Vec<(Listener, SocketAddr)>);

fn bind(config: &NodeConfig, broker_config: &BrokerConfig, descriptors: usize) -> Result<Bound, Failure> {
    let count = |key| usize::try_from(broker_config.long(key)).unwrap_or(usize::MAX);
    let gate = Gate::new(ConnectionLimits {
        connections_max: count("max.connections").min(descriptors),
        connections_per_ip_max: count("max.connections.per.ip"),
        connections_per_ip_overrides: per_ip_overrides(broker_config)?,
        creation_rate_max: u32::try_from(broker_config.long("max.connection.creation.rate"))
            .ok()
            .filter(|&rate| rate < i32::MAX as u32)
            .unwrap_or(u32::MAX),
    });
    let buffer = |key| usize::try_from(broker_config.long(key)).ok();
    let options = SocketOptions {
        backlog: backlog(broker_config),
        send_buffer_bytes: buffer("socket.send.buffer.bytes")
            .filter(|_| is_given(broker_config, "socket.send.buffer.bytes")),
        receive_buffer_bytes: buffer("socket.receive.buffer.bytes")
            .filter(|_| is_given(broker_config, "socket.receive.buffer.bytes")),
    };
    let mut acceptors = Vec::new();
    let mut listeners = Vec::new();
    for listener in &config.listeners.all {
        let acceptor =
            Acceptor::bind(&listener.endpoint.host, listener.endpoint.port, gate.clone(), options)?;
        listeners.push((listener.clone(), acceptor.local_addr()));
        acceptors.push(acceptor);
    }
    Ok((acceptors, listeners))
}

/// Kafka's default of 50 makes thousands of clients that come at once wait seconds for their retransmitted SYN.
fn backlog(broker_config: &BrokerConfig) -> i32 {
    const KEY: &str = "socket.listen.backlog.size";
    if is_given(broker_config, KEY) { broker_config.int(KEY).max(1) } else { 1024 }
}

/// Kafka's default of 100 KiB would switch the kernel's own tuning off: it counts only where the operator set it.
fn is_given(broker_config: &BrokerConfig, key: &str) -> bool {
    broker_config.given().get(key).is_some()
}

fn per_ip_overrides(broker_config: &BrokerConfig) -> Result<Vec<(std::net::IpAddr, usize)>, Failure> {
    const KEY: &str = "max.connections.per.ip.overrides";
    let mut overrides = Vec::new();
    for entry in broker_config.list(KEY) {
        // An IPv6 address holds colons itself: the number stands after the last one.
        let parsed = entry
            .rsplit_once(':')
            .and_then(|(address, count)| Some((address.trim().parse().ok()?, count.trim().parse().ok()?)));
        overrides.push(parsed.ok_or_else(|| {
            format!("{KEY}: '{entry}' is no address and number. Example: {KEY}=10.0.0.7:100")
        })?);
    }
    Ok(overrides)
}

fn open_quorum(
    config: &NodeConfig,
    broker_config: &BrokerConfig,
    cluster_id: &Text,
    directories: &Directories,
    registration: Option<BrokerRegistrationRequest>,
    clock: Clock,
    file_bytes_max: u64,
) -> Result<(Quorum, MetadataFiles), Failure> {
    let directory = directories
        .iter()
        .find(|directory| *directory.path == *config.metadata_log_dir)
        .ok_or("metadata.log.dir is not among the node's directories")?;
    let known = directory.lock().open_from(&quorum_worker::partition());
    // Where the log begins, its own segments and snapshots say.
    let from = OpenFrom { log_start: barnabas_base::Offset::ZERO, ..known };
    let log_config = LogConfig {
        segment_bytes: u32::try_from(broker_config.long("metadata.log.segment.bytes"))
            .unwrap_or(1 << 30)
            .min(u32::try_from(file_bytes_max).unwrap_or(u32::MAX)),
        segment_ms: DurationMs(broker_config.long("metadata.log.segment.ms")),
        retention_ms: DurationMs(-1),
        retention_bytes: -1,
        ..LogConfig::default()
    };
    let mut files =
        MetadataFiles::open(directory.disk.clone(), directory.path.clone(), from, log_config, clock.wall())?;
    let raft = raft_config(config, broker_config, directory.id);
    let settings = QuorumSettings {
        static_voters: static_voters(config, &raft.me),
        raft,
        local_broker: registration.map(|registration| LocalBroker { registration, unfenced: true }),
        controller: ControllerSettings { cluster_id: cluster_id.clone(), config: broker_config.clone() },
        idle_interval: DurationMs(broker_config.long("metadata.max.idle.interval.ms")),
        snapshot_bytes: u64::try_from(broker_config.long("metadata.log.max.record.bytes.between.snapshots"))
            .unwrap_or(20 << 20),
        snapshot_interval: DurationMs(broker_config.long("metadata.log.max.snapshot.interval.ms")),
    };
    let at = |error: QuorumError, files: &MetadataFiles| format!("{}: {error}", files.dir().display());
    let mut starting = Quorum::start(settings, files.stored()?).map_err(|error| at(error, &files))?;
    files.feed(&mut starting)?;
    let now = Now { wall: clock.wall(), monotonic: clock.monotonic() };
    let quorum = starting.finish(now, &mut || random_uuid().0).map_err(|error| at(error, &files))?;
    Ok((quorum, files))
}

/// This node as a member of the quorum.
fn raft_config(config: &NodeConfig, broker_config: &BrokerConfig, directory: DirectoryId) -> RaftConfig {
    let listener = controller_listener(config);
    let seed = u64::from_le_bytes(super::random_bytes());
    let millis = |key| DurationMs(broker_config.long(key));
    let servers = config.bootstrap_servers.iter();
    let bootstrap = servers.map(|(host, port)| VoterEndpoint {
        listener: listener.clone(),
        host: host.clone(),
        port: *port,
    });
    RaftConfig {
        bootstrap: bootstrap.collect(),
        is_controller: config.is_controller,
        auto_join: broker_config.boolean("controller.quorum.auto.join.enable"),
        election_timeout: millis("controller.quorum.election.timeout.ms"),
        fetch_timeout: millis("controller.quorum.fetch.timeout.ms"),
        election_backoff_max: millis("controller.quorum.election.backoff.max.ms"),
        request_timeout: millis("controller.quorum.request.timeout.ms"),
        retry_backoff: millis("controller.quorum.retry.backoff.ms"),
        ..RaftConfig::new(voter(config, directory), listener, seed)
    }
}

/// `controller.quorum.voters`. A voter of a file has no directory; the only one is this node on this directory.
fn static_voters(config: &NodeConfig, me: &Voter) -> Voters {
    if let [only] = config.static_voters.as_slice()
        && only.id == me.id
    {
        return Voters::new([me.clone()]);
    }
    let listener = controller_listener(config);
    Voters::new(config.static_voters.iter().map(|voter| Voter {
        id: voter.id,
        directory: DirectoryId::ZERO,
        endpoints: vec![VoterEndpoint {
            listener: listener.clone(),
            host: voter.host.clone(),
            port: voter.port,
        }],
        kraft_min: 0,
        kraft_max: 1,
    }))
}

/// What this controller tells the active one of itself.
fn controller_registration(
    config: &NodeConfig,
    directory: DirectoryId,
    incarnation: Uuid,
) -> ControllerRegistrationRequest {
    let protocol_of = |name: &str| {
        let listeners = config.listeners.all.iter();
        let mut listeners = listeners.filter(|listener| listener.endpoint.listener.as_str() == name);
        listeners.next().map_or(0, |listener| listener.protocol.id())
    };
    let listeners = voter(config, directory).endpoints.into_iter().map(|endpoint| ControllerListener {
        name: Str::from(&endpoint.listener),
        host: Str::from(&endpoint.host),
        port: endpoint.port,
        security_protocol: protocol_of(&endpoint.listener),
        ..ControllerListener::default()
    });
    let features = FEATURES.iter().map(|feature| ControllerFeature {
        name: Str::from_static(feature.name),
        min_supported_version: feature.min,
        max_supported_version: feature.max,
        ..ControllerFeature::default()
    });
    ControllerRegistrationRequest {
        controller_id: config.node_id.get(),
        incarnation_id: incarnation,
        listeners: listeners.collect(),
        features: features.collect(),
        ..ControllerRegistrationRequest::default()
    }
}

/// What this broker tells the controller of itself.
fn registration(
    config: &NodeConfig,
    cluster_id: &Text,
    directories: &Directories,
    listeners: &[(Listener, SocketAddr)],
    incarnation: Uuid,
) -> BrokerRegistrationRequest {
    let mut log_dirs: Vec<_> = directories.iter().filter(|dir| dir.is_usable()).map(|dir| dir.id).collect();
    log_dirs.sort_unstable();
    let previous = directories.iter().filter_map(|dir| dir.lock().clean_broker_epoch()).max();
    let advertised = config.listeners.advertised.iter().map(|(endpoint, protocol)| {
        let bound = listeners.iter().find(|(listener, _)| listener.endpoint.listener == endpoint.listener);
        let port = match (endpoint.port, bound) {
            (0, Some((_, address))) => address.port(),
            (port, _) => port,
        };
        RegisteredListener {
            name: Str::from(endpoint.listener.as_str()),
            host: Str::from(advertised_host(&endpoint.host)),
            port,
            security_protocol: protocol.id(),
            ..RegisteredListener::default()
        }
    });
    BrokerRegistrationRequest {
        broker_id: config.node_id.get(),
        cluster_id: Str::from(cluster_id),
        incarnation_id: incarnation,
        listeners: advertised.collect(),
        features: FEATURES
            .iter()
            .map(|feature| Feature {
                name: Str::from_static(feature.name),
                min_supported_version: feature.min,
                max_supported_version: feature.max,
                ..Feature::default()
            })
            .collect(),
        rack: config.rack.as_ref().map(Str::from),
        is_migrating_zk_broker: false,
        log_dirs,
        previous_broker_epoch: previous.unwrap_or(BrokerEpoch::NONE).get(),
        ..BrokerRegistrationRequest::default()
    }
}

/// A listener on every interface is reached by the machine's name.
fn advertised_host(host: &str) -> String {
    if !matches!(host, "" | "0.0.0.0" | "::") {
        return host.to_owned();
    }
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

fn start_committers(node: &Arc<Node>) -> Result<Vec<std::thread::JoinHandle<()>>, Failure> {
    let mut threads = Vec::new();
    for (index, directory) in node.directories.iter().enumerate() {
        let told = node.clone();
        let parts = CommitterParts {
            name: format!("committer-{index}"),
            directory: index,
            disk: directory.disk.clone(),
            file_system: directory.file_system.clone(),
            workers: node.mailboxes.clone(),
            meter: node.meter.clone(),
            failed: Box::new(move |error| told.directory_failed(index, &error)),
        };
        threads.push(directory.committer.start(parts)?);
    }
    Ok(threads)
}

/// Replays what the journals hold, and starts their threads. A directory whose journal is damaged is offline; the others serve.
fn start_journals(node: &Arc<Node>) -> Vec<std::thread::JoinHandle<()>> {
    // All of them are read before the first goes on: it may want something laid at once, and where a partition lies is known only
    // then.
    let mut prepared = Vec::new();
    for (index, directory) in node.directories.iter().enumerate() {
        if !directory.holds_partitions || !directory.is_online() {
            continue;
        }
        match prepare_journal(node, index) {
            Ok(journal) => prepared.push((index, journal)),
            Err(error) => node.directory_failed(index, &error),
        }
    }
    let mut threads = Vec::new();
    for (index, journal) in prepared {
        match node.directories[index].journal.start(journal) {
            Ok(thread) => threads.push(thread),
            Err(error) => node.directory_failed(index, &error),
        }
    }
    threads
}

/// See [`replay::settle`]. Once the journals are read: they are synced by themselves, and somebody waits for that.
fn start_settling(node: &Arc<Node>) -> Vec<std::thread::JoinHandle<()>> {
    let mut threads = Vec::new();
    for (index, directory) in node.directories.iter().enumerate().filter(|(_, dir)| dir.is_online()) {
        match replay::settle(node, index) {
            Ok(thread) => threads.extend(thread),
            Err(error) => {
                // Logs see to themselves then, and the stop will not be called clean.
                tracing::warn!(%error, "{} is not synced as a whole after the unclean stop", directory.path.display());
            }
        }
    }
    threads
}

fn prepare_journal(node: &Arc<Node>, index: usize) -> Result<Prepared, StartError> {
    let recovered = full::with_room(node, index, is_full, || replay::replay(node, index));
    let recovered = recovered.map_err(Box::new)?;
    let journal = &node.directories[index].journal;
    match (journal.prepare(journal_parts(node, index, recovered.clone())), recovered) {
        (Err(StartError::NoRoom), Some(mut recovered)) => {
            let replayed =
                full::with_room(node, index, is_full, || replay::replay_rest(node, index, &mut recovered));
            replayed.map_err(Box::new)?;
            journal.prepare(journal_parts(node, index, Some(recovered)))
        }
        (prepared, _) => prepared,
    }
}

fn is_full(error: &ReplayError) -> bool {
    match error {
        ReplayError::Storage(error) => error.is_passing(),
        ReplayError::Journal(JournalError::Disk(error)) => error.kind.is_shortage(),
        ReplayError::Journal(_) => false,
    }
}

fn journal_parts(node: &Arc<Node>, index: usize, recovered: Option<Recovered>) -> JournalParts {
    let directory = &node.directories[index];
    let (asked, told, shut) = (node.clone(), node.clone(), node.clone());
    JournalParts {
        directory: index,
        path: directory.path.clone(),
        id: directory.id,
        disk: directory.disk.clone(),
        files: Box::new(LinuxJournal),
        config: replay::config_of(node, directory),
        recovered,
        opening: u64::from_le_bytes(super::random_bytes()),
        workers: node.mailboxes.clone(),
        meter: node.meter.clone(),
        is_online: Box::new(move || asked.directories[index].is_online()),
        full: Box::new(move |error| shut.directories[index].room.hit(error, shut.clock.monotonic())),
        failed: Box::new(move |error| told.directory_failed(index, &error)),
    }
}

fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// Accepts connections and deals them out to the workers in turn.
pub async fn accept(node: Arc<Node>, listener: usize, acceptor: Acceptor) {
    let mut next = listener;
    let taken = acceptor.run(|stream, peer, slot| {
        next = (next + 1) % node.workers;
        node.meter.connections_accepted.one();
        let new = NewConnection { stream, peer, listener, slot, reader: None, patience: MOVE_PATIENCE };
        if !node.mailboxes[next].try_send(Command::Connection(new)) {
            node.meter.connections_refused.one();
            if !node.shutdown.is_wanted() {
                tracing::info!(%peer, "connection refused: the worker has too much to do");
            }
        }
    });
    if let Err(error) = taken.await {
        let at = node.listeners.get(listener).map(|(_, address)| address.to_string()).unwrap_or_default();
        tracing::error!(%error, "the listener on {at} has stopped: nobody can connect there, and the node stops");
        node.shutdown.failed("a listener has stopped");
    }
}
