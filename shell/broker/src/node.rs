//! What all threads of a node share, as eight handles. Data: what acts on it imports this file, and nothing here
//! imports that.
//!
//! | handle | what it holds |
//! |---|---|
//! | [`Identity`] | who this node is, where it listens |
//! | [`ClusterView`] | the image and the configuration of this moment |
//! | [`LogDirs`] | its log directories, and what is under way in them |
//! | [`Workers`] | mailboxes, counters, the memory and sessions that workers share |
//! | [`Peers`] | the controller, and links to other nodes |
//! | [`Audit`] | what the audit log hears of |
//! | [`Logins`] | who may log in, and what this node logs in with |
//! | [`Doctor`] | what is wrong with this node |
//!
//! Immutable but for what is made to be shared: the image and the configuration are swapped as a whole, the meter
//! counts, the directories
//! go offline.

pub mod audit;
pub mod cluster;
pub mod cluster_events;
pub mod doctor;
pub mod identity;
pub mod log_dirs;
pub mod log_rate_limit;
pub mod logins;
pub mod peers;
pub mod shutdown;
pub mod topic_settings;
pub mod workers;

use crate::config::tls::NodeTls;
use crate::log_dirs::directories::Directories;
use crate::mailbox::Mailbox;
use crate::node::shutdown::Shutdown;
use audit::Audit;
use barnabas_base::{BrokerId, DurationMs, MonotonicMs, Text, Uuid};
use barnabas_clock::Clock;
use barnabas_config::Listener;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::Meter;
use barnabas_net::links::LinkThread;
use cluster::ClusterView;
use doctor::Doctor;
use identity::Identity;
use log_dirs::LogDirs;
use log_dirs::deletions::Deletions;
use logins::Logins;
use peers::Peers;
use peers::controller::ControllerHandle;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use workers::Workers;
use workers::connection_places::ConnectionPlaces;

/// One node. See the file's header.
#[derive(Debug)]
pub struct Node {
    pub clock: Clock,
    pub identity: Identity,
    pub cluster: ClusterView,
    pub log_dirs: LogDirs,
    pub workers: Workers,
    pub peers: Peers,
    pub logins: Arc<Logins>,
    pub audit: Audit,
    pub doctor: Doctor,
    pub shutdown: Shutdown,
    /// When something was last handed on to a partition's next leader, in milliseconds of the process's clock and one
    /// more; 0: never.
    forwarded_at: AtomicU64,
}

/// What a node is made of.
#[derive(Debug)]
pub struct NodeParts {
    pub broker_id: BrokerId,
    pub incarnation: Uuid,
    pub cluster_id: Text,
    pub is_broker: bool,
    pub clock: Clock,
    pub links: LinkThread,
    pub tls: NodeTls,
    pub mailboxes: Vec<Mailbox>,
    pub listeners: Vec<(Listener, SocketAddr)>,
    pub connection_places: ConnectionPlaces,
    pub directories: Directories,
    pub config: BrokerConfig,
    pub controller: ControllerHandle,
    pub meter: Arc<Meter>,
    pub open_files_max: usize,
    /// Of the machine.
    pub memory_bytes: u64,
    pub file_bytes_max: u64,
    pub shutdown: Shutdown,
    pub deletions: Deletions,
    pub logins: Arc<Logins>,
    pub audit: Audit,
}

impl Node {
    pub fn new(parts: NodeParts) -> Self {
        let config = parts.config;
        let NodeParts { broker_id, incarnation, cluster_id, is_broker, listeners, .. } = parts;
        let limits = (parts.memory_bytes, parts.file_bytes_max, parts.open_files_max);
        let doors = (&*listeners, parts.connection_places);
        let workers = Workers::new(&config, doors, parts.mailboxes, parts.meter, parts.memory_bytes);
        Self {
            clock: parts.clock,
            identity: Identity::new(broker_id, incarnation, cluster_id, is_broker, listeners),
            log_dirs: LogDirs::new(&config, parts.directories, parts.deletions, limits),
            workers,
            peers: Peers::new(&config, parts.controller, parts.links, parts.tls),
            cluster: ClusterView::new(config),
            logins: parts.logins,
            audit: parts.audit,
            doctor: Doctor::default(),
            shutdown: parts.shutdown,
            forwarded_at: AtomicU64::new(0),
        }
    }

    /// A producer's batches went to their partitions' next leader.
    pub fn note_forwarded(&self) {
        self.forwarded_at.store(self.clock.monotonic().0 + 1, Ordering::Relaxed);
    }

    /// Whether that happened within so long.
    pub fn forwards(&self, within: DurationMs) -> bool {
        let last = self.forwarded_at.load(Ordering::Relaxed);
        last > 0 && self.clock.monotonic().since(MonotonicMs(last - 1)) < within
    }

    /// What one worker keeps of recent batches in memory.
    pub fn cache_share(&self) -> u64 {
        self.log_dirs.cache_bytes_max / self.workers.count.max(1) as u64
    }
}
