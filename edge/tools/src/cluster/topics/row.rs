//! A topic and its partitions as `--describe` shows them, and which partitions its reports show. Pure.
//!
//! What it prints is Kafka's to the tab, since scripts read it. Source: Kafka 4.4 `TopicCommand.TopicDescription`,
//! `TopicCommand.PartitionDescription`.

use barnabas_base::TopicId;
use serde_json::{Map, Value, json};

/// One topic.
#[derive(Debug)]
pub struct Topic {
    pub name: String,
    /// Zero where the cluster has none.
    pub id: TopicId,
    pub partitions: Vec<Partition>,
    /// The configs that are set for the topic, for a broker, or for all brokers.
    pub configs: Vec<(String, String)>,
    /// `min.insync.replicas`, from whichever level sets it.
    pub min_isr: usize,
}

/// One partition.
#[derive(Debug, Clone, Default)]
pub struct Partition {
    pub partition: i32,
    /// `None`: the partition has no leader, or its leader is not alive.
    pub leader: Option<i32>,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
    pub reassignment: Option<Reassignment>,
    /// Eligible leader replicas (KIP-966); `None` where the broker does not tell them.
    pub elr: Option<Vec<i32>>,
    pub last_known_elr: Option<Vec<i32>>,
}

/// A partition that gets other replicas.
#[derive(Debug, Clone, Default)]
pub struct Reassignment {
    /// Those that come and those that go included.
    pub replicas: Vec<i32>,
    pub adding: Vec<i32>,
    pub removing: Vec<i32>,
}

/// A flag of `--describe` that shows some partitions only, without their topics.
pub struct Report {
    pub flag: &'static str,
    pub help: &'static str,
    /// With the topic's `min.insync.replicas`.
    pub shows: fn(&Partition, usize) -> bool,
}

/// Of several, each partition is shown that one of them shows.
pub const REPORTS: [Report; 4] = [
    Report {
        flag: "under-replicated-partitions",
        help: "With --describe: only partitions of which a replica is not in sync",
        shows: |partition, _| partition.replication_factor() > partition.isr.len(),
    },
    Report {
        flag: "under-min-isr-partitions",
        help: "With --describe: only partitions with fewer replicas in sync than min.insync.replicas, or without a leader",
        shows: |partition, min_isr| partition.leader.is_none() || partition.isr.len() < min_isr,
    },
    Report {
        flag: "at-min-isr-partitions",
        help: "With --describe: only partitions with just as many replicas in sync as min.insync.replicas",
        shows: |partition, min_isr| partition.isr.len() == min_isr,
    },
    Report {
        flag: "unavailable-partitions",
        help: "With --describe: only partitions without a leader that is there",
        shows: |partition, _| partition.leader.is_none(),
    },
];

impl Topic {
    /// The line above its partitions.
    pub fn words(&self) -> String {
        let id = if self.id.is_zero() { String::new() } else { format!("\tTopicId: {}", self.id) };
        let configs: Vec<String> = self.configs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!(
            "Topic: {}{id}\tPartitionCount: {}\tReplicationFactor: {}\tConfigs: {}",
            self.name,
            self.partitions.len(),
            self.partitions.first().map_or(0, Partition::replication_factor),
            configs.join(",")
        )
    }
}

impl Topic {
    /// The topic with these of its partitions, for `--output json`.
    pub fn json(&self, partitions: Vec<Value>) -> Value {
        let configs: Map<String, Value> =
            self.configs.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        json!({
            "topic": self.name,
            "topicId": (!self.id.is_zero()).then(|| self.id.to_string()),
            "partitionCount": self.partitions.len(),
            "replicationFactor": self.partitions.first().map_or(0, Partition::replication_factor),
            "configs": configs,
            "partitions": partitions,
        })
    }
}

impl Partition {
    /// For `--output json`.
    pub fn json(&self) -> Value {
        let reassignment = self.reassignment.as_ref();
        json!({
            "partition": self.partition,
            "leader": self.leader,
            "replicas": self.replicas,
            "isr": self.isr,
            "addingReplicas": reassignment.map(|of| of.adding.clone()).unwrap_or_default(),
            "removingReplicas": reassignment.map(|of| of.removing.clone()).unwrap_or_default(),
            "elr": self.elr,
            "lastKnownElr": self.last_known_elr,
        })
    }

    /// How many replicas it had before it was reassigned, if it is: those that come are not missed yet.
    fn replication_factor(&self) -> usize {
        let is_under_way = |of: &&Reassignment| {
            let changes = |id| of.adding.contains(id) || of.removing.contains(id);
            self.replicas.iter().any(changes)
        };
        match self.reassignment.as_ref().filter(is_under_way) {
            Some(of) => of.replicas.len().saturating_sub(of.adding.len()),
            None => self.replicas.len(),
        }
    }

    /// Its line.
    pub fn words(&self, topic: &str) -> String {
        let leader = self.leader.map_or_else(|| "none".to_owned(), |leader| leader.to_string());
        let told = |ids: &Option<Vec<i32>>| ids.as_deref().map_or_else(|| "N/A".to_owned(), list);
        let mut words = format!(
            "\tTopic: {topic}\tPartition: {}\tLeader: {leader}\tReplicas: {}\tIsr: {}",
            self.partition,
            list(&self.replicas),
            list(&self.isr)
        );
        if let Some(Reassignment { adding, removing, .. }) = &self.reassignment {
            words += &format!("\tAdding Replicas: {}\tRemoving Replicas: {}", list(adding), list(removing));
        }
        words + &format!("\tElr: {}\tLastKnownElr: {}", told(&self.elr), told(&self.last_known_elr))
    }
}

fn list(nodes: &[i32]) -> String {
    nodes.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}
