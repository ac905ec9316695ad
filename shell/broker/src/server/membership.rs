//! This node in its cluster's quorum: the metadata log is opened, and what the node says of itself as a broker and as a
//! controller is put together.
//!
//! What it says of itself is core/identity/src/registration.rs. Nothing is sent here: the quorum worker
//! (quorum_worker.rs) and [`super::lifecycle`] do that. A node that leads a quorum of its own alone knows what its
//! cluster is like when this is done; another one learns it from the leader ([`wait_for_image`]).

use super::Failure;
use super::signals::Signals;
use crate::config::machine::machine_name;
use crate::log_dirs::directories::{Directories, random_uuid};
use crate::node::Node;
use crate::node::logins::Logins;
use crate::node::peers::controller::{ControllerHandle, Requests};
use crate::upkeep::last_life;
use barnabas_base::{DurationMs, Text, Uuid};
use barnabas_clock::Clock;
use barnabas_config::{Listener, NodeConfig};
use barnabas_identity::{
    Bound, Found, Machine, RoleNotice, broker_registration, controller_listener, controller_registration,
    partition_of_topics, raft_config, role_notices, static_voters,
};
use barnabas_log_dirs::scrubbing::METADATA_LOG;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata_log::metadata_partition;
use barnabas_metadata_log::{MetadataError, MetadataFiles, Truncated};
use barnabas_net::links::LinkThread;
use barnabas_quorum::controller::ControllerSettings;
use barnabas_quorum::node::LocalBroker;
use barnabas_quorum::raft::requests::Here;
use barnabas_quorum::{Node as Quorum, Now, QuorumError, Settings as QuorumSettings};
use barnabas_storage::{LogConfig, OpenFrom, StorageError};
use barnabas_tls::ClientTls;
use barnabas_wire::messages::{BrokerRegistrationRequest, ControllerRegistrationRequest};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the metadata quorum may have no leader before the operator should look.
const LEADER_PATIENCE: Duration = Duration::from_secs(10);

/// What is known of the node before it is a member.
pub struct Joining<'a> {
    pub config: &'a NodeConfig,
    pub broker_config: &'a BrokerConfig,
    pub cluster_id: &'a Text,
    pub directories: &'a Directories,
    pub listeners: &'a [(Listener, SocketAddr)],
    pub clock: Clock,
    pub file_bytes_max: u64,
    pub logins: &'a Logins,
    /// For connections to controllers.
    pub tls: Option<Arc<ClientTls>>,
}

/// A member whose thread does not run yet.
pub struct Member {
    pub quorum: Quorum,
    pub files: MetadataFiles,
    pub requests: Requests,
    pub links_thread: JoinHandle<()>,
    /// What it says of itself as a broker, if it is one.
    pub broker: Option<BrokerRegistrationRequest>,
    /// The same as a controller, if it is one.
    pub controller: Option<ControllerRegistrationRequest>,
}

impl Joining<'_> {
    /// Opens the metadata log. `incarnation` names this process among the node's lives.
    ///
    /// # Errors
    /// The metadata log cannot be read, or is another node's; the system gives no thread.
    pub fn open(&self, incarnation: Uuid) -> Result<(Member, ControllerHandle, LinkThread), Failure> {
        let config = self.config;
        let machine = machine_name();
        let machine = Machine(&machine);
        let bound: Vec<Bound> =
            self.listeners.iter().map(|(listener, at)| (listener.clone(), at.port())).collect();
        let usable = self.directories.iter().filter(|dir| dir.is_usable()).map(|dir| dir.id).collect();
        let broker = config.is_broker.then(|| {
            let before = (usable, last_life::previous_epoch(self.directories));
            broker_registration(config, (self.cluster_id, incarnation), before, &bound, machine)
        });
        let (quorum, files) = self.open_quorum(broker.clone()).map_err(with_remedy)?;
        self.say_roles(&quorum);
        let (links, links_thread) = LinkThread::start()?;
        let controller = config
            .is_controller
            .then(|| controller_registration(config, (quorum.directory(), incarnation), &bound, machine));
        let here =
            Arc::new(Here { cluster_id: self.cluster_id.clone(), listener: controller_listener(config) });
        let (handle, requests) = ControllerHandle::new(
            quorum.directory(),
            quorum.kraft_version(),
            (links.clone(), self.tls.clone()),
            here,
        );
        if let Some(login) = &self.logins.to_controllers {
            handle.log_in_with(login.clone());
        }
        Ok((Member { quorum, files, requests, links_thread, broker, controller }, handle, links))
    }

    /// What lies in the directories and does not fit `process.roles`.
    fn say_roles(&self, quorum: &Quorum) {
        let mut partition = None;
        if !self.config.is_broker {
            for directory in self.directories.iter().filter(|directory| directory.is_usable()) {
                match partition_of_topics(&*directory.disk, &directory.path) {
                    Ok(found) => partition = partition.or(found.map(|name| (&*directory.path, name))),
                    Err(error) => {
                        let path = directory.path.display();
                        tracing::warn!(%error, "whether {path} holds partitions cannot be seen");
                    }
                }
            }
        }
        let found = Found {
            voters: quorum.voters(),
            directory: quorum.directory(),
            partition: partition.as_ref().map(|(path, name)| (*path, name.as_str())),
        };
        for notice in role_notices(self.config, found) {
            match notice {
                RoleNotice::Error(words) => tracing::error!("{words}"),
                RoleNotice::Warning(words) => tracing::warn!("{words}"),
                RoleNotice::Info(words) => tracing::info!("{words}"),
            }
        }
    }

    fn open_quorum(
        &self,
        registration: Option<BrokerRegistrationRequest>,
    ) -> Result<(Quorum, MetadataFiles), Failure> {
        let Self { config, broker_config, cluster_id, directories, clock, file_bytes_max, .. } = *self;
        let directory = directories
            .iter()
            .find(|directory| *directory.path == *config.metadata_log_dir)
            .ok_or("metadata.log.dir is not among the node's directories")?;
        let known = directory.lock().open_ahead(&metadata_partition())?;
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
        let mut files = MetadataFiles::open(
            directory.disk.clone(),
            directory.path.clone(),
            from,
            log_config,
            clock.wall(),
        )?;
        if let Some(Truncated { bytes, end }) = files.cut {
            tracing::info!("truncated {bytes} unsynced bytes from the metadata log, which now ends at {end}");
        }
        let (machine, seed) = (machine_name(), u64::from_le_bytes(super::random_bytes()));
        let raft = raft_config(config, broker_config, (directory.id, Machine(&machine)), seed);
        let settings = QuorumSettings {
            static_voters: static_voters(config),
            raft,
            local_broker: registration.map(|registration| LocalBroker { registration, unfenced: true }),
            broker_life: last_life::to_compare(directories, config.node_id, broker_config),
            controller: ControllerSettings {
                cluster_id: cluster_id.clone(),
                config: broker_config.clone(),
                has_authorizer: broker_config
                    .value("authorizer.class.name")
                    .is_some_and(|class| !class.is_empty()),
            },
            idle_interval: DurationMs(broker_config.long("metadata.max.idle.interval.ms")),
            snapshot_bytes: u64::try_from(
                broker_config.long("metadata.log.max.record.bytes.between.snapshots"),
            )
            .unwrap_or(20 << 20),
            snapshot_interval: DurationMs(broker_config.long("metadata.log.max.snapshot.interval.ms")),
        };
        let at = |error: QuorumError, files: &MetadataFiles| format!("{}: {error}", files.dir().display());
        let mut starting = Quorum::start(settings, files.stored()?).map_err(|error| at(error, &files))?;
        files.feed(&mut starting)?;
        for repair in starting.repairs() {
            tracing::warn!("{}: {repair}", files.dir().display());
        }
        let now = Now { wall: clock.wall(), monotonic: clock.monotonic() };
        let quorum = starting.finish(now, &mut || random_uuid().0).map_err(|error| at(error, &files))?;
        Ok((quorum, files))
    }
}

/// Waits until this node knows what the cluster is like: at once where it leads alone. Returns `false` where a signal
/// stops the node before that: nothing of its partitions was touched.
///
/// # Errors
/// The node cannot go on.
pub async fn wait_for_image(node: &Arc<Node>, signals: &mut Signals) -> Result<bool, Failure> {
    if node.peers.controller.has_image() {
        return Ok(true);
    }
    let failed = || Failure::from("the node failed while it looked for the leader of the metadata quorum");
    let mut watch = node.peers.controller.watch_image();
    loop {
        tokio::select! {
            known = watch.wait_for(|has_image| *has_image) => {
                return known.map(|_| true).map_err(|_| failed());
            }
            signal = signals.next() => {
                tracing::info!(
                    "stopped by {signal} while it looked for the leader of the metadata quorum of cluster {}: no partition was opened",
                    node.identity.cluster_id
                );
                return Ok(false);
            }
            () = node.shutdown.wanted() => return Err(failed()),
            () = tokio::time::sleep(LEADER_PATIENCE) => {
                tracing::warn!(
                    "still looking for the leader of the metadata quorum of cluster {}: {}",
                    node.identity.cluster_id,
                    node.peers.controller.standing()
                );
            }
        }
    }
}

/// A metadata log cannot be abandoned as partitions can.
fn with_remedy(failure: Failure) -> Failure {
    let storage = match failure.downcast_ref::<MetadataError>() {
        Some(MetadataError::Storage(error)) => Some(error),
        _ => failure.downcast_ref::<StorageError>(),
    };
    match storage {
        Some(StorageError::Damaged { .. }) => format!("{failure}. {}", METADATA_LOG).into(),
        _ => failure,
    }
}
