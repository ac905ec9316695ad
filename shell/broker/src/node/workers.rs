//! The workers of this node: their mailboxes, what they count, and the memory and sessions that they share.

pub mod client_metrics;
pub mod complaints;
pub mod connection_places;
pub mod connection_quotas;
pub mod coordinator_memory;
pub mod fetch_sessions;
pub mod quotas;
pub mod repeated;
mod session_memory;
pub mod unpacking;

use crate::mailbox::{Mailbox, PartitionKey};
use barnabas_api::SessionShare;
use barnabas_api::share::{Connection, ShareSessions};
use barnabas_config::Listener;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::spans::{Samples, Sampling};
use barnabas_metrics::{Meter, Metering};
use barnabas_net::Budget;
use client_metrics::ClientMetrics;
use complaints::Complaints;
use connection_places::ConnectionPlaces;
use connection_quotas::ConnectionQuotas;
use coordinator_memory::CoordinatorMemory;
use fetch_sessions::FetchSessionShards;
use quotas::Quotas;
use repeated::RepeatedLines;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unpacking::Unpacking;

/// Sessions may take such a part of what requests and answers may.
const SESSIONS_PART: u64 = 8;

/// See the file's header.
#[derive(Debug)]
pub struct Workers {
    pub count: usize,
    /// One for each worker.
    pub mailboxes: Vec<Mailbox>,
    pub meter: Arc<Meter>,
    pub metering: Metering,
    pub budget: Budget,
    pub unpacking: Unpacking,
    pub complaints: Complaints,
    pub repeated: RepeatedLines,
    pub fetch_sessions: FetchSessionShards,
    /// What sessions of all kinds take.
    session_memory: Budget,
    /// Locked for a moment by each request of a share group's member.
    share_sessions: Mutex<ShareSessions>,
    pub coordinator_memory: CoordinatorMemory,
    pub quotas: Quotas,
    pub client_metrics: ClientMetrics,
    pub connection_quotas: ConnectionQuotas,
    pub connection_places: ConnectionPlaces,
    /// A client has asked this broker for a group since the start.
    pub groups_are_wanted: AtomicBool,
    connections: AtomicU64,
    /// Of the machine.
    pub memory_bytes: u64,
    pub request_bytes_max: usize,
    /// Memory that one request may take once it is decoded.
    pub decode_bytes_max: usize,
    /// The largest answer that describes or lists (`answer.bytes.max`).
    pub answer_bytes_max: usize,
}

impl Workers {
    pub fn new(
        config: &BrokerConfig,
        (listeners, connection_places): (&[(Listener, SocketAddr)], ConnectionPlaces),
        mailboxes: Vec<Mailbox>,
        meter: Arc<Meter>,
        memory_bytes: u64,
    ) -> Self {
        let count = mailboxes.len();
        // Kafka sets no limit by default; here requests in flight never take more than a quarter of the machine's
        // memory.
        let budget_bytes =
            u64::try_from(config.long("queued.max.request.bytes")).ok().filter(|&bytes| bytes > 0);
        let budget = Budget::new(budget_bytes.unwrap_or(memory_bytes / 4));
        let share_sessions_max =
            usize::try_from(config.long("group.share.max.share.sessions")).unwrap_or(usize::MAX);
        let sampling = Sampling {
            ratio: config.double("otlp.traces.sample.ratio"),
            per_second_max: u64::try_from(config.long("otlp.traces.per.second.max")).unwrap_or(0),
        };
        let topics_max = usize::try_from(config.long("metrics.topics.max")).unwrap_or(usize::MAX);
        Self {
            count,
            mailboxes,
            meter,
            metering: Metering::new(count, topics_max, Samples::new(sampling)),
            session_memory: Budget::new(budget.limit_bytes() / SESSIONS_PART),
            budget,
            unpacking: Unpacking::new(count),
            complaints: Complaints::default(),
            repeated: RepeatedLines::default(),
            fetch_sessions: FetchSessionShards::new(config.fetch_sessions_max, count),
            share_sessions: Mutex::new(ShareSessions::new(share_sessions_max)),
            coordinator_memory: CoordinatorMemory::default(),
            quotas: Quotas::new(config),
            client_metrics: ClientMetrics::new(config),
            connection_quotas: ConnectionQuotas::new(config, listeners),
            connection_places,
            groups_are_wanted: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            memory_bytes,
            request_bytes_max: usize::try_from(config.long("socket.request.max.bytes")).unwrap_or(100 << 20),
            decode_bytes_max: barnabas_wire::MEMORY_BYTES_MAX,
            answer_bytes_max: usize::try_from(config.long("answer.bytes.max")).unwrap_or(100 << 20),
        }
    }

    /// An empty share of the memory for sessions, of which one address has three quarters at most.
    pub fn session_share(&self, ip: IpAddr, is_follower: bool) -> SessionShare {
        session_memory::share(&self.session_memory, ip, is_follower)
    }

    /// The addresses of the cluster's other nodes, which replication's reserve is kept for.
    pub fn set_peers(&self, peers: &[IpAddr]) {
        self.budget.set_peers(peers);
        self.session_memory.set_peers(peers);
    }

    /// The sessions of share groups' members.
    pub fn share_sessions(&self) -> MutexGuard<'_, ShareSessions> {
        self.share_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no connection has had.
    pub fn next_connection(&self) -> Connection {
        Connection(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    /// The mailbox of the worker that owns a partition.
    pub fn owner(&self, key: PartitionKey) -> &Mailbox {
        &self.mailboxes[key.owner(self.count)]
    }
}
