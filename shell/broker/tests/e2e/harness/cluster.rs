//! Three nodes in processes of their own that form a cluster, asked by clients that look for who is responsible, and
//! come back.

pub use super::patience::{eventually, until};
use super::quorum::{prepared, random_uuid};
use super::{Client, TestNode, free_port};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use barnabas_wire::messages::{
    CreateTopicsRequest, FindCoordinatorRequest, MetadataRequest, MetadataResponse, OffsetFetchRequest,
    RequestBody, ResponseBody,
};
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of coordinators.
pub const GROUP: i8 = 0;
pub const TRANSACTION: i8 = 1;
pub const SHARE: i8 = 2;

/// Few partitions of internal topics; leaders move when a node dies, and only then.
pub const SETTINGS: &str = "offsets.topic.num.partitions=6\ntransaction.state.log.num.partitions=6\n\
     share.coordinator.state.topic.num.partitions=6\nauto.leader.rebalance.enable=false\n\
     replica.lag.time.max.ms=3000\ngroup.initial.rebalance.delay.ms=0";

/// What a client comes back after: a leader or coordinator that moves, loads, is busy or not there, too few replicas, a
/// request that waited too long.
pub fn comes_back(code: i16) -> bool {
    [3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 51, 56].contains(&code)
}

/// Three brokers that are controllers too.
pub struct Cluster {
    pub nodes: BTreeMap<i32, TestNode>,
    /// Those that run.
    pub alive: BTreeSet<i32>,
}

impl Cluster {
    /// `settings`: lines for the files of all nodes.
    pub fn start(settings: &str) -> Self {
        let id = random_uuid();
        let ports: Vec<(i32, u16, u16)> = (1..=3).map(|node| (node, free_port(), free_port())).collect();
        let voters: Vec<String> =
            ports.iter().map(|(node, _, port)| format!("{node}@127.0.0.1:{port}")).collect();
        let more = format!("controller.quorum.voters={}\n{settings}", voters.join(","));
        let node = |(node, port, controller)| {
            (node, prepared(None, node, "broker,controller", (port, controller), &id, &more, &[]))
        };
        let mut nodes: BTreeMap<i32, TestNode> = ports.into_iter().map(node).collect();
        nodes.values_mut().for_each(TestNode::launch_unawaited);
        nodes.values_mut().for_each(TestNode::await_answer);
        let alive = nodes.keys().copied().collect();
        let cluster = Self { nodes, alive };
        for node in cluster.nodes.values() {
            eventually("all brokers are known", || {
                metadata(&mut node.client()).is_some_and(|known| known.brokers.len() == 3)
            });
        }
        cluster
    }

    /// kill −9.
    pub fn kill(&mut self, node: i32) {
        self.nodes.get_mut(&node).expect("a node").kill();
        self.alive.remove(&node);
    }

    pub fn launch(&mut self, node: i32) {
        self.nodes.get_mut(&node).expect("a node").launch();
        self.alive.insert(node);
    }

    /// Ends all nodes; none has said WARN or ERROR.
    pub fn stop(mut self) {
        for node in self.nodes.values_mut() {
            assert!(node.stop().success(), "{}", node.log());
        }
    }

    /// Asks one node, over a connection of its own. `None`: it is not there, or did not answer.
    pub fn ask(&self, node: i32, body: impl Into<RequestBody>, version: i16) -> Option<ResponseBody> {
        ask(&mut Client::try_connect(self.nodes.get(&node)?.port).ok()?, body, version)
    }

    /// What a node that runs knows of the cluster.
    pub fn metadata(&self) -> MetadataResponse {
        until("metadata", || {
            self.alive.iter().find_map(|node| metadata(&mut Client::try_connect(self.nodes[node].port).ok()?))
        })
    }

    /// Who leads a partition, by any node's metadata; `None`: no running node.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        let known = self.metadata();
        let topic = known.topics.iter().find(|known| known.name.as_deref() == Some(topic))?;
        let row = topic.partitions.iter().find(|row| row.partition_index == partition)?;
        self.alive.contains(&row.leader_id).then_some(row.leader_id)
    }

    /// A connection to a partition's leader.
    pub fn client_of_leader(&self, topic: &str, partition: i32) -> Client {
        self.nodes[&until("a leader", || self.leader(topic, partition))].client()
    }

    /// Who coordinates, by the word of any node that runs.
    pub fn coordinator(&self, kind: i8, key: &str) -> Option<i32> {
        self.alive.iter().find_map(|&node| {
            let request = FindCoordinatorRequest {
                key_type: kind,
                coordinator_keys: vec![key.into()],
                ..Default::default()
            };
            let Some(ResponseBody::FindCoordinator(response)) = self.ask(node, request, 6) else {
                return None;
            };
            let found = &response.coordinators[0];
            (found.error_code == 0 && self.alive.contains(&found.node_id)).then_some(found.node_id)
        })
    }

    pub fn await_coordinator(&self, kind: i8, key: &str) -> i32 {
        until("a coordinator", || self.coordinator(kind, key))
    }

    /// Makes a topic of three replicas of which two must be in sync, known to all.
    pub fn create(&self, name: &str, partitions: i32) {
        let config = CreatableTopicConfig {
            name: "min.insync.replicas".into(),
            value: Some("2".into()),
            ..Default::default()
        };
        let topic = CreatableTopic {
            name: name.into(),
            num_partitions: partitions,
            replication_factor: 3,
            configs: vec![config],
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
        match self.ask(1, request, 7) {
            Some(ResponseBody::CreateTopics(response)) => {
                assert_eq!(response.topics[0].error_code, 0, "{response:?}");
            }
            other => panic!("{other:?}"),
        }
        for node in self.nodes.values() {
            eventually("every node knows the topic", || {
                let known = metadata(&mut node.client());
                known.is_some_and(|known| {
                    let topic = known.topics.iter().find(|topic| topic.name.as_deref() == Some(name));
                    topic.is_some_and(|topic| topic.partitions.iter().all(|row| row.leader_id >= 0))
                })
            });
        }
    }

    /// Waits until every replica of every partition is in sync, by the metadata of all nodes that run.
    pub fn await_in_sync(&self) {
        for node in &self.alive {
            eventually("all replicas are in sync", || {
                metadata(&mut self.nodes[node].client()).is_some_and(|known| {
                    let mut rows = known.topics.iter().flat_map(|topic| &topic.partitions);
                    rows.all(|row| row.isr_nodes.len() == row.replica_nodes.len())
                })
            });
        }
    }
}

/// `None`: there was no answer.
pub fn ask(client: &mut Client, body: impl Into<RequestBody>, version: i16) -> Option<ResponseBody> {
    let body = body.into();
    let key = body.key();
    if !client.try_send(body, version) {
        return None;
    }
    client.try_receive(key, version).map(|(_, response)| response)
}

pub fn metadata(client: &mut Client) -> Option<MetadataResponse> {
    match ask(client, MetadataRequest { topics: None, ..Default::default() }, 12)? {
        ResponseBody::Metadata(response) => Some(*response),
        other => panic!("{other:?}"),
    }
}

/// What a group has committed for partition 0 of "t", once no transaction has anything to say about it.
pub fn committed(cluster: &Cluster, group: &str) -> i64 {
    until("a group's offset", || {
        let topic =
            OffsetFetchRequestTopics { name: "t".into(), partition_indexes: vec![0], ..Default::default() };
        let asked = OffsetFetchRequestGroup {
            group_id: group.into(),
            topics: Some(vec![topic]),
            ..Default::default()
        };
        let request = OffsetFetchRequest { groups: vec![asked], require_stable: true, ..Default::default() };
        let node = cluster.coordinator(GROUP, group)?;
        let ResponseBody::OffsetFetch(response) = cluster.ask(node, request, 8)? else {
            panic!("another response")
        };
        let group = &response.groups[0];
        if comes_back(group.error_code) {
            return None;
        }
        assert_eq!(group.error_code, 0);
        let partition = &group.topics[0].partitions[0];
        if partition.error_code == ErrorCode::UnstableOffsetCommit.code() {
            return None;
        }
        assert_eq!(partition.error_code, 0);
        Some(partition.committed_offset)
    })
}

/// Who leads partitions of a topic.
pub fn leaders(cluster: &Cluster, topic: &str, partitions: i32) -> BTreeSet<i32> {
    (0..partitions).map(|partition| until("a leader", || cluster.leader(topic, partition))).collect()
}
