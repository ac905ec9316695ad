//! Links to other brokers for what coordinators ask of them: which there are, and what waits for an answer. Data only.
//!
//! One link for each broker and each [`Purpose`]: answers on a connection come in the order of the requests, and a
//! marker that waits for
//! its replicas must not hold up a producer that waits for a coordinator's verdict.
//!
//! Neighbours: broker_requests.rs, which opens links and sends.

use crate::mailbox::PartitionKey;
use barnabas_api::k00_produce::forwarding::FORWARDING_CLIENT_ID;
use barnabas_api::k24_add_partitions_to_txn::Part;
use barnabas_api::k27_write_txn_markers::Ask;
use barnabas_base::{BrokerId, ErrorCode, Map, TopicPartition};
use barnabas_net::links::{Awaited, Entry, Link};
use barnabas_wire::messages::add_partitions_to_txn_response::AddPartitionsToTxnResult;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    Markers,
    Verification,
    ShareState,
    LogEnds,
    DeadLetters,
    ProduceForwarding,
    AuditTopic,
}

impl Purpose {
    pub const ALL: [Self; 7] = [
        Self::Markers,
        Self::Verification,
        Self::ShareState,
        Self::LogEnds,
        Self::DeadLetters,
        Self::ProduceForwarding,
        Self::AuditTopic,
    ];

    /// As metrics call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Markers => "markers",
            Self::Verification => "verification",
            Self::ShareState => "share_state",
            Self::LogEnds => "log_ends",
            Self::DeadLetters => "dead_letters",
            Self::ProduceForwarding => "handing_on",
            Self::AuditTopic => "audit_topic",
        }
    }

    /// What the other broker sees as the client id.
    pub fn client_id(self) -> &'static str {
        match self {
            Self::Markers => "transaction-markers",
            Self::Verification => "transaction-verification",
            Self::ShareState => "share-state",
            Self::LogEnds => "log-ends",
            Self::DeadLetters => "share-group-dead-letters",
            Self::ProduceForwarding => FORWARDING_CLIENT_ID,
            Self::AuditTopic => "audit-topic",
        }
    }
}

/// See the file's header.
#[derive(Debug, Default)]
pub struct BrokerLinks {
    pub known: Mutex<BTreeMap<(BrokerId, Purpose), Link>>,
    /// By [`Purpose::ALL`]'s places.
    awaited: [Arc<Awaited>; Purpose::ALL.len()],
    pub markers: Courier<MarkerParcel>,
    pub verification: Courier<Verification>,
}

impl BrokerLinks {
    /// What was handed in for this and has no answer.
    pub fn awaited(&self, purpose: Purpose) -> &Arc<Awaited> {
        &self.awaited[purpose as usize]
    }
}

/// A parcel, counted as long as it has no answer.
pub type Waiting<P> = (P, Entry);

/// See the file's header.
#[derive(Debug)]
pub struct Courier<P> {
    pub queues: Mutex<Map<BrokerId, mpsc::Sender<Waiting<P>>>>,
}

impl<P> Default for Courier<P> {
    fn default() -> Self {
        Self { queues: Mutex::new(Map::default()) }
    }
}

/// One transaction's outcomes on partitions of one broker.
pub type Outcomes = Vec<(TopicPartition, ErrorCode)>;

/// One transaction's markers for partitions that one broker leads.
#[derive(Debug)]
pub struct MarkerParcel {
    /// Of the coordinator that ordered them.
    pub shard: PartitionKey,
    pub ask: Ask,
    pub reply: oneshot::Sender<Outcomes>,
}

/// One transaction's question to a coordinator that is on another broker.
#[derive(Debug)]
pub struct Verification {
    pub part: Part,
    pub reply: oneshot::Sender<Result<AddPartitionsToTxnResult, ErrorCode>>,
}
