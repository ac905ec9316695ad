//! What was seen of a cluster: the input of the rules.
//!
//! A fact that could not be had is an [`Unseen`] with the reason, not an empty list: a rule that needs it reports
//! "not seen". Every value is plain data; edge/doctor fills it in.

mod figures;
mod machine;
mod pages;
mod sample;

pub use figures::{Client, DirFigures, Figures, Histogram, Shared};
pub use machine::{Holder, Interface, Machine};
pub use pages::figures_between;
pub use sample::RecordSample;

use std::collections::BTreeMap;

/// Brokers and controllers fetch the metadata log twice a second.
const HEARD_MS: i64 = 3_000;

/// Why a fact is missing: one clause, as in "node 3 does not answer".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unseen(pub String);

pub type Seen<T> = Result<T, Unseen>;

/// One look at a cluster, or two with `seconds` between them.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The flags with which a command reaches the same cluster: `--bootstrap-server 127.0.0.1:9092`.
    pub connect: String,
    pub now_ms: i64,
    /// Between the two looks.
    pub seconds: f64,
    pub nodes: Vec<Node>,
    pub topics: Seen<Vec<Topic>>,
    pub groups: Seen<Vec<Group>>,
    pub quorum: Seen<Quorum>,
    /// How the question for the quorum's leader ended where there is none; `None`: there is one, or it was not seen.
    pub no_leader: Option<String>,
    /// Those that the brokers' settings name, asked only where there is no leader.
    pub controllers: Seen<Vec<Controller>>,
    /// Partitions that are being reassigned.
    pub reassigning: Seen<Vec<(String, i32)>>,
    pub quotas: Seen<Vec<Quota>>,
    pub acls: Seen<Vec<Acl>>,
    pub scram: Seen<Vec<Scram>>,
    /// Open transactions alone.
    pub transactions: Seen<Vec<Transaction>>,
    /// Of the topics that took the most records between the looks, those of them that could be read.
    pub samples: Seen<Vec<Seen<RecordSample>>>,
}

/// A broker.
#[derive(Debug, Clone)]
pub struct Node {
    pub id: i32,
    pub host: String,
    pub port: i32,
    pub rack: Option<String>,
    pub is_fenced: bool,
    /// Whether a connection to the advertised address could be opened from here.
    pub reached: Seen<()>,
    pub configs: Seen<Configs>,
    pub features: Seen<Features>,
    pub dirs: Seen<Vec<Dir>>,
    /// Only Barnabas has them.
    pub figures: Seen<Figures>,
}

/// Settings by key.
pub type Configs = BTreeMap<String, Config>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// `None`: sensitive, or without a value.
    pub value: Option<String>,
    pub source: Source,
}

/// Where a value comes from. Kafka's `ConfigEntry.ConfigSource`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    Topic,
    DynamicBroker,
    DynamicDefault,
    Static,
    #[default]
    Default,
}

/// The feature levels of one node.
#[derive(Debug, Clone, Default)]
pub struct Features {
    pub finalized: BTreeMap<String, i16>,
    /// The newest level of each feature that the node supports.
    pub supported: BTreeMap<String, i16>,
}

/// A log directory, as DescribeLogDirs shows it.
#[derive(Debug, Clone, Default)]
pub struct Dir {
    pub path: String,
    /// The error's name where the directory is offline.
    pub error: Option<String>,
    /// `None` before Kafka 3.3 (KIP-827).
    pub bytes: Option<Room>,
    pub replicas: Vec<Replica>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub total: i64,
    pub usable: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub topic: String,
    pub partition: i32,
    pub bytes: i64,
}

#[derive(Debug, Clone)]
pub struct Topic {
    pub name: String,
    pub is_internal: bool,
    pub partitions: Vec<Partition>,
    pub configs: Seen<Configs>,
}

#[derive(Debug, Clone)]
pub struct Partition {
    pub index: i32,
    /// `None`: it has none.
    pub leader: Option<i32>,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    /// Whether the ISR was too small at the first look too.
    pub was_under_replicated: bool,
    pub offsets: Seen<Offsets>,
    /// Its leader answered ListOffsets with `KAFKA_STORAGE_ERROR`.
    pub is_unreadable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    pub start: i64,
    pub end: i64,
    pub end_before: i64,
    /// The newest timestamp of a record; `Ok(None)`: the log is empty.
    pub newest_ms: Seen<Option<i64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    Classic,
    Consumer,
    Share,
    Streams,
}

#[derive(Debug, Clone)]
pub struct Group {
    pub name: String,
    pub kind: GroupKind,
    pub state: String,
    pub assignor: String,
    pub members: Seen<Vec<Member>>,
    pub committed: Seen<Vec<Committed>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: String,
    pub client_id: String,
    pub host: String,
    /// `client.rack`, which groups of the consumer protocol show.
    pub rack: Option<String>,
    pub assigned: Vec<(String, i32)>,
}

/// What a group has committed for a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
    pub offset_before: i64,
    /// The timestamp of the first record that the group has not read; `Ok(None)`: it has read everything.
    pub oldest_unread_ms: Seen<Option<i64>>,
}

#[derive(Debug, Clone)]
pub struct Quorum {
    pub leader: i32,
    pub voters: Vec<Voter>,
    /// Nodes that follow the quorum and do not vote: brokers, and controllers that are none yet.
    pub observers: Vec<Voter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    pub id: i32,
    pub directory: String,
    /// Since it last had all that the leader had; `Ok(None)`: not since this leader was elected.
    pub behind_ms: Seen<Option<i64>>,
    /// Since it last fetched; `None`: the leader does not tell.
    pub silent_ms: Option<i64>,
}

/// A controller, by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    pub address: String,
    /// Whether it takes connections and does something with them.
    pub answers: Seen<()>,
}

/// A client quota.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Type and name; `None`: the default of the type.
    pub entity: Vec<(String, Option<String>)>,
    pub key: String,
    pub value: f64,
}

/// An ACL, in the words of Kafka's tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    pub resource_type: String,
    pub resource: String,
    pub is_prefixed: bool,
    pub principal: String,
    pub host: String,
    pub operation: String,
    pub is_allow: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scram {
    pub user: String,
    pub mechanism: String,
    pub iterations: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    pub id: String,
    pub producer_id: i64,
    pub started_ms: i64,
    pub timeout_ms: i32,
    pub partitions: Vec<(String, i32)>,
}

impl Topic {
    /// How many replicas each partition has, where they agree on it; else the smallest number.
    pub fn replication_factor(&self) -> usize {
        self.partitions.iter().map(|partition| partition.replicas.len()).min().unwrap_or(0)
    }
}

impl Facts {
    /// Brokers that take part: registered and not fenced.
    pub fn alive(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.is_fenced)
    }

    /// Whether the quorum's leader has heard of this broker a moment ago, so that it runs.
    pub fn is_heard(&self, node: i32) -> bool {
        let Ok(quorum) = &self.quorum else { return false };
        let known = quorum.voters.iter().chain(&quorum.observers).find(|known| known.id == node);
        // A leader that tells no times fences brokers that it does not hear.
        let tells = quorum.voters.iter().any(|voter| voter.silent_ms.is_some());
        node == quorum.leader
            || !tells
            || known.and_then(|known| known.silent_ms).is_some_and(|ms| ms < HEARD_MS)
    }

    /// The racks of the brokers that take part, each once.
    pub fn racks(&self) -> Vec<&str> {
        let mut racks: Vec<&str> = self.alive().filter_map(|node| node.rack.as_deref()).collect();
        racks.sort_unstable();
        racks.dedup();
        racks
    }

    pub fn rack(&self, node: i32) -> Option<&str> {
        self.nodes.iter().find(|known| known.id == node).and_then(|known| known.rack.as_deref())
    }
}

/// A setting's value as a number.
pub fn number(configs: &Configs, key: &str) -> Option<f64> {
    configs.get(key)?.value.as_deref()?.parse().ok()
}

/// A setting's value.
pub fn text<'a>(configs: &'a Configs, key: &str) -> Option<&'a str> {
    configs.get(key)?.value.as_deref()
}
