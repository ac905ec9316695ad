//! What every API may look at besides its request.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use barnabas_base::{BrokerId, ErrorCode, LeaderEpoch, PartitionIndex, Text, TimestampMs, TopicId};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Broker, Image, Partition, Topic};
use barnabas_wire::Str;

use crate::{Access, AnswerRoom};

/// Who sent a request, and over which listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The listener's name: addresses in answers are those of this listener.
    pub listener: Text,
    pub client_id: Option<Text>,
    /// As Kafka prints it: `/127.0.0.1`.
    pub host: Text,
    /// `User:ANONYMOUS` without authentication.
    pub principal: Text,
    /// It proved who it is: by SASL, by a certificate, or to the broker that forwards its request.
    pub is_authenticated: bool,
    /// It was proved by a delegation token (KIP-48): such a client gets no further tokens.
    pub token_authenticated: bool,
}

/// Each logger of this node with its level in Kafka's spelling; `root` is one of them.
pub type Levels = Vec<(&'static str, &'static str)>;

/// Replicas of this node whose logs cannot be opened: the metadata log does not have them.
pub type OfflineReplicas = BTreeSet<(TopicId, PartitionIndex)>;

/// One moment, as one request sees it.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub image: &'a Image,
    pub config: &'a BrokerConfig,
    pub cluster_id: &'a str,
    /// This node.
    pub node: BrokerId,
    /// `None`: there are none.
    pub offline: Option<&'a OfflineReplicas>,
    pub client: &'a Client,
    /// What the client may do.
    pub access: Access<'a>,
    pub now: TimestampMs,
    /// Levels of this node's loggers. A function, since one request in a million asks for them.
    pub loggers: fn() -> Levels,
    /// What the answer may take.
    pub room: &'a AnswerRoom,
}

/// A broker's address on the listener that the client came in by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: BrokerId,
    pub host: Str,
    pub port: i32,
    pub rack: Option<Str>,
}

/// The leader of a partition, for clients that sent a request to the wrong broker (KIP-951).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// [`BrokerId::NONE`]: the partition has no leader.
    pub id: BrokerId,
    pub epoch: LeaderEpoch,
    /// `None` where it cannot be reached by the client's listener.
    pub node: Option<Node>,
}

impl Context<'_> {
    /// Whether this node has a replica of the partition that serves nothing, since its log cannot be opened.
    pub fn is_offline_here(&self, partition: (TopicId, PartitionIndex)) -> bool {
        self.offline.is_some_and(|offline| offline.contains(&partition))
    }

    /// The broker's address for this client; `None` where the broker has no such listener.
    pub fn node_of(&self, broker: &Broker) -> Option<Node> {
        let endpoint = broker.endpoint(&self.client.listener)?;
        Some(Node {
            id: broker.id,
            host: Str::from(&endpoint.host),
            port: i32::from(endpoint.port),
            rack: broker.rack.as_ref().map(Str::from),
        })
    }

    /// Brokers that this client may be sent to, by id.
    pub fn alive_nodes(&self) -> impl Iterator<Item = Node> {
        self.image.cluster.alive().filter_map(|broker| self.node_of(broker))
    }

    /// A broker that the client may send what is meant for the controller: this one if it is not fenced.
    ///
    /// Brokers pass such requests on, so that Kafka names any live broker here.
    pub fn controller_id(&self) -> i32 {
        let own = self.image.cluster.is_alive(self.node).then_some(self.node);
        own.or_else(|| self.image.cluster.alive().next().map(|broker| broker.id))
            .unwrap_or(BrokerId::NONE)
            .get()
    }

    /// Who leads the partition, for a refusal to name.
    pub fn leader_of(&self, partition: &Partition) -> Leader {
        let broker = self.image.cluster.broker(partition.leader);
        let alive = broker.filter(|broker| !broker.fenced);
        let node = alive.and_then(|broker| self.node_of(broker));
        Leader { id: partition.leader, epoch: partition.leader_epoch, node }
    }

    /// The topic and the state of one of its partitions.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION.
    pub fn known_partition(
        &self,
        topic: &str,
        partition: PartitionIndex,
    ) -> Result<(Arc<Topic>, &Partition), ErrorCode> {
        let known = self.image.topics.by_name(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let state = known.partition(partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        Ok((Arc::clone(known), state))
    }

    /// The topic, if this node has a replica of the partition: leader or follower.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION; NOT_LEADER_OR_FOLLOWER where the replicas are elsewhere.
    pub fn replica_here(&self, topic: &str, partition: PartitionIndex) -> Result<Arc<Topic>, ErrorCode> {
        let (topic, state) = self.known_partition(topic, partition)?;
        if state.has_replica(self.node) { Ok(topic) } else { Err(ErrorCode::NotLeaderOrFollower) }
    }

    /// The topic, if this node leads the partition.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
    pub fn led_partition(&self, topic: &str, partition: PartitionIndex) -> Result<Arc<Topic>, ErrorCode> {
        let (topic, state) = self.known_partition(topic, partition)?;
        if state.leader == self.node { Ok(topic) } else { Err(self.not_leader(state)) }
    }

    /// The topic, if this node leads the partition. `epoch` is the leader epoch that the client knows.
    ///
    /// # Errors
    /// As [`Self::led_partition`]. A follower first compares the epochs: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
    ///
    /// # Source
    /// Kafka `Partition.getLocalLog`: the epoch is checked before the role. A broker without a replica has no epoch to
    /// check.
    pub fn led_partition_in(
        &self,
        topic: &str,
        partition: PartitionIndex,
        epoch: Option<LeaderEpoch>,
    ) -> Result<Arc<Topic>, ErrorCode> {
        let (topic, state) = self.known_partition(topic, partition)?;
        if state.leader == self.node {
            return Ok(topic);
        }
        let refusal = self.not_leader(state);
        let compared = epoch
            .filter(|_| refusal == ErrorCode::NotLeaderOrFollower && state.has_replica(self.node))
            .map(|epoch| epoch.cmp(&state.leader_epoch));
        Err(match compared {
            Some(Ordering::Less) => ErrorCode::FencedLeaderEpoch,
            Some(Ordering::Greater) => ErrorCode::UnknownLeaderEpoch,
            Some(Ordering::Equal) | None => refusal,
        })
    }

    /// Whether this node follows in sync: its client may have heard of an election that the image does not show yet.
    /// The partition's owner judges.
    pub fn may_lead_soon(&self, partition: &Partition) -> bool {
        partition.isr().contains(&self.node) && self.not_leader(partition) == ErrorCode::NotLeaderOrFollower
    }

    /// Why this node does not lead the partition: another broker leads it, or its log directory on
    /// this node has failed.
    ///
    /// # Source
    /// Kafka `ReplicaManager.getPartitionOrError`: a partition that is `HostedPartition.Offline` is no matter of
    /// leadership.
    pub fn not_leader(&self, partition: &Partition) -> ErrorCode {
        let directory = partition.directory(self.node);
        let broker = self.image.cluster.broker(self.node);
        let is_offline = broker.zip(directory).is_some_and(|(broker, at)| !broker.has_online_directory(at));
        if is_offline { ErrorCode::KafkaStorageError } else { ErrorCode::NotLeaderOrFollower }
    }
}
