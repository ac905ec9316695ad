//! What all threads of a node share. Data, and the few decisions that need several of its parts.
//!
//! Immutable but for what is made to be shared: the image and the configuration are swapped as a whole, the meter counts,
//! the directories go offline. Whoever takes the image sees one moment of the cluster.

use crate::broker_links::BrokerLinks;
use crate::compaction::Compaction;
use crate::complaints::Complaints;
use crate::controller::ControllerHandle;
use crate::coordinator_memory::CoordinatorMemory;
use crate::damages::Damages;
use crate::deleted::DeletedTopics;
use crate::deletions::Deletions;
use crate::directories::Directories;
use crate::dispatch::fetch_sessions::FetchSessionShards;
use crate::lost_touch::LostTouch;
use crate::mailbox::{Mailbox, PartitionKey};
use crate::moves::Moves;
use crate::node_config::Listener;
use crate::not_to_lead::NotToLead;
use crate::pending::Pending;
use crate::producer_ids::ProducerIds;
use crate::replication::Replication;
use crate::shutdown::Shutdown;
use crate::strangers::Strangers;
use crate::topic_creation::TopicCreation;
use crate::unpacking::Unpacking;
use crate::written::WrittenPartitions;
use arc_swap::ArcSwap;
use barnabas_api::share::{Connection, ShareSessions};
use barnabas_base::{BrokerEpoch, BrokerId, DurationMs, MonotonicMs, Text, Uuid};
use barnabas_clock::Clock;
use barnabas_metadata::Image;
use barnabas_metadata::config::BrokerConfig;
use barnabas_metrics::Meter;
use barnabas_metrics::Metering;
use barnabas_net::Budget;
use barnabas_net::links::LinkThread;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One node. See the file's header.
#[derive(Debug)]
pub struct Node {
    pub broker_id: BrokerId,
    /// Drawn anew by each process.
    pub incarnation: Uuid,
    pub cluster_id: Text,
    /// Whether it serves clients, or is a controller alone.
    pub is_broker: bool,
    pub clock: Clock,
    /// Where connections to other nodes live.
    pub links: LinkThread,
    pub workers: usize,
    /// One for each worker.
    pub mailboxes: Vec<Mailbox>,
    pub listeners: Vec<(Listener, SocketAddr)>,
    pub directories: Directories,
    pub image: ArcSwap<Image>,
    pub config: ArcSwap<BrokerConfig>,
    pub controller: ControllerHandle,
    pub meter: Arc<Meter>,
    pub metering: Metering,
    pub budget: Budget,
    pub shutdown: Shutdown,
    pub deletions: Deletions,
    pub deleted: DeletedTopics,
    pub damages: Damages,
    pub compaction: Compaction,
    pub written: WrittenPartitions,
    pub pending: Pending,
    pub moves: Moves,
    pub producer_ids: ProducerIds,
    pub replication: Replication,
    pub lost_touch: LostTouch,
    pub not_to_lead: NotToLead,
    pub strangers: Strangers,
    pub topic_creation: TopicCreation,
    pub unpacking: Unpacking,
    pub complaints: Complaints,
    /// To other brokers, for coordinators.
    pub broker_links: BrokerLinks,
    pub fetch_sessions: FetchSessionShards,
    /// Locked for a moment by each request of a share group's member.
    pub share_sessions: Mutex<ShareSessions>,
    pub coordinator_memory: CoordinatorMemory,
    /// Somebody has asked this broker for a group since the start.
    pub groups_are_wanted: AtomicBool,
    connections: AtomicU64,
    /// `log.ack.durability=synced`: an ack means on disk.
    pub acks_are_synced: bool,
    /// What one partition appends at once goes through the journal up to so many bytes.
    pub journal_append_bytes_max: u64,
    /// Recent batches that are in segments and in memory: so many bytes in all.
    pub cache_bytes_max: u64,
    /// Of the machine.
    pub memory_bytes: u64,
    /// Of a file that this process may write.
    pub file_bytes_max: u64,
    pub request_bytes_max: usize,
    /// Memory that one request may take once it is decoded.
    pub decode_bytes_max: usize,
    /// The largest answer that describes or lists (`answer.bytes.max`).
    pub answer_bytes_max: usize,
    pub open_files_max: usize,
    broker_epoch: AtomicI64,
    /// When something was last handed on to a partition's next leader, in milliseconds of the process's clock and one more; 0: never.
    handed_on: AtomicU64,
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
    pub mailboxes: Vec<Mailbox>,
    pub listeners: Vec<(Listener, SocketAddr)>,
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
}

impl Node {
    pub fn new(parts: NodeParts) -> Self {
        let config = parts.config;
        let workers = parts.mailboxes.len();
        let pending = Pending::new(parts.directories.len());
        // Kafka sets no limit by default; here requests in flight never take more than a quarter of the machine's memory.
        let budget_bytes =
            u64::try_from(config.long("queued.max.request.bytes")).ok().filter(|&bytes| bytes > 0);
        let request_bytes_max = usize::try_from(config.long("socket.request.max.bytes")).unwrap_or(100 << 20);
        Self {
            broker_id: parts.broker_id,
            incarnation: parts.incarnation,
            cluster_id: parts.cluster_id,
            is_broker: parts.is_broker,
            clock: parts.clock,
            links: parts.links,
            workers,
            metering: Metering::new(parts.mailboxes.len()),
            mailboxes: parts.mailboxes,
            listeners: parts.listeners,
            directories: parts.directories,
            image: ArcSwap::default(),
            controller: parts.controller,
            meter: parts.meter,
            budget: Budget::new(budget_bytes.unwrap_or(parts.memory_bytes / 4)),
            shutdown: parts.shutdown,
            deletions: parts.deletions,
            deleted: DeletedTopics::default(),
            damages: Damages::default(),
            compaction: Compaction::default(),
            written: WrittenPartitions::default(),
            pending,
            moves: Moves::default(),
            producer_ids: ProducerIds::default(),
            replication: Replication::new(&config),
            lost_touch: LostTouch::default(),
            topic_creation: TopicCreation::default(),
            not_to_lead: NotToLead::default(),
            strangers: Strangers::default(),
            unpacking: Unpacking::new(workers),
            complaints: Complaints::default(),
            broker_links: BrokerLinks::default(),
            fetch_sessions: FetchSessionShards::new(config.fetch_sessions_max, workers),
            share_sessions: Mutex::new(ShareSessions::new(share_sessions_max(&config))),
            coordinator_memory: CoordinatorMemory::default(),
            groups_are_wanted: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            journal_append_bytes_max: u64::try_from(config.long("log.journal.append.bytes.max")).unwrap_or(0),
            cache_bytes_max: cache_bytes_max(&config, parts.memory_bytes),
            memory_bytes: parts.memory_bytes,
            file_bytes_max: parts.file_bytes_max,
            acks_are_synced: config.value("log.ack.durability") != Some("written"),
            request_bytes_max,
            decode_bytes_max: barnabas_wire::MEMORY_BYTES_MAX,
            answer_bytes_max: usize::try_from(config.long("answer.bytes.max")).unwrap_or(100 << 20),
            open_files_max: parts.open_files_max,
            broker_epoch: AtomicI64::new(BrokerEpoch::NONE.get()),
            handed_on: AtomicU64::new(0),
            config: ArcSwap::from_pointee(config),
        }
    }

    pub fn broker_epoch(&self) -> BrokerEpoch {
        BrokerEpoch(self.broker_epoch.load(Ordering::Acquire))
    }

    pub fn set_broker_epoch(&self, epoch: BrokerEpoch) {
        self.broker_epoch.store(epoch.get(), Ordering::Release);
    }

    /// Takes the epoch that the cluster knows this process under. A former life's is not its own.
    pub fn follow_broker_epoch(&self, image: &Image) {
        if let Some(broker) = image.cluster.broker(self.broker_id)
            && broker.incarnation == self.incarnation
        {
            self.set_broker_epoch(broker.epoch);
        }
    }

    /// A producer's batches went to their partitions' next leader.
    pub fn note_handed_on(&self) {
        self.handed_on.store(self.clock.monotonic().0 + 1, Ordering::Relaxed);
    }

    /// Whether that happened within so long.
    pub fn hands_on(&self, within: DurationMs) -> bool {
        let last = self.handed_on.load(Ordering::Relaxed);
        last > 0 && self.clock.monotonic().since(MonotonicMs(last - 1)) < within
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
        &self.mailboxes[key.owner(self.workers)]
    }

    /// What one worker keeps of recent batches in memory.
    pub fn cache_share(&self) -> u64 {
        self.cache_bytes_max / self.workers.max(1) as u64
    }
}

fn share_sessions_max(config: &BrokerConfig) -> usize {
    usize::try_from(config.long("group.share.max.share.sessions")).unwrap_or(usize::MAX)
}

/// `log.cache.bytes`, or a share of the memory.
fn cache_bytes_max(config: &BrokerConfig, memory_bytes: u64) -> u64 {
    const SHARE: u64 = 16;
    const MOST: u64 = 512 << 20;
    let set = u64::try_from(config.long("log.cache.bytes")).ok();
    set.unwrap_or((memory_bytes / SHARE).min(MOST))
}
