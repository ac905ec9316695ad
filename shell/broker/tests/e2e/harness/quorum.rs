//! Several nodes in processes of their own that are one cluster: formatted, started, asked.

pub use super::patience::{eventually, until, within_patience};
use super::{Client, TestNode, binary, free_port};
use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::describe_quorum_request::{PartitionData, TopicData};
use barnabas_wire::messages::{
    CreateTopicsRequest, DescribeQuorumRequest, DescribeQuorumResponse, MetadataRequest, MetadataResponse,
    ResponseBody, describe_quorum_response,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub fn random_uuid() -> String {
    let output = binary().args(["storage", "random-uuid"]).output().expect("runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Formats, and returns whether it succeeded with what was said.
pub fn format(file: &Path, cluster: &str, more: &[&str]) -> (bool, String) {
    let file = file.to_str().expect("a path");
    let output = binary().args(["storage", "format", "-t", cluster, "-c", file]).args(more).output();
    let output = output.expect("runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Writes a node's file of settings.
pub fn properties(dir: &Path, id: i32, roles: &str, ports: (u16, u16), more: &str) -> PathBuf {
    let (port, controller_port) = ports;
    let mut listeners = Vec::new();
    if roles.contains("broker") {
        listeners.push(format!("PLAINTEXT://127.0.0.1:{port}"));
    }
    if roles.contains("controller") {
        listeners.push(format!("CONTROLLER://127.0.0.1:{controller_port}"));
    }
    let text = format!(
        "process.roles={roles}\nnode.id={id}\nlisteners={}\ncontroller.listener.names=CONTROLLER\nlog.dirs={}\n{more}\n",
        listeners.join(","),
        dir.join("data").display()
    );
    let file = dir.join("server.properties");
    std::fs::write(&file, text).expect("written");
    file
}

/// A node that was given its file and is formatted; not started.
pub fn prepared(
    before: Option<&str>,
    id: i32,
    roles: &str,
    ports: (u16, u16),
    cluster: &str,
    more: &str,
    flags: &[&str],
) -> TestNode {
    let mut node = TestNode::new(before, &[]);
    let file = properties(node.dir.path(), id, roles, ports, more);
    let (ok, said) = format(&file, cluster, flags);
    assert!(ok, "{said}");
    node.set_file(file.to_str().expect("a path"), ports);
    node
}

/// Three nodes, brokers and controllers, with their voters in their files.
pub struct Three {
    pub nodes: BTreeMap<i32, TestNode>,
    pub id: String,
}

impl Three {
    pub fn start() -> Self {
        Self::start_as(&|_| None)
    }

    /// `before`: what a node's shell runs before it becomes the node.
    pub fn start_as(before: &dyn Fn(i32) -> Option<String>) -> Self {
        let id = random_uuid();
        let ports: Vec<(i32, u16, u16)> = (1..=3).map(|node| (node, free_port(), free_port())).collect();
        let voters: Vec<String> =
            ports.iter().map(|(node, _, port)| format!("{node}@127.0.0.1:{port}")).collect();
        let more = format!("controller.quorum.voters={}", voters.join(","));
        let node = |&(node, port, controller): &(i32, u16, u16)| {
            let ports = (port, controller);
            (node, prepared(before(node).as_deref(), node, "broker,controller", ports, &id, &more, &[]))
        };
        let mut nodes: BTreeMap<i32, TestNode> = ports.iter().map(node).collect();
        nodes.values_mut().for_each(TestNode::launch_unawaited);
        nodes.values_mut().for_each(TestNode::await_answer);
        let three = Self { nodes, id };
        three.await_brokers(&[1, 2, 3]);
        three
    }

    pub fn client(&self, node: i32) -> Client {
        self.nodes[&node].client()
    }

    /// Waits until all that run see exactly these brokers.
    pub fn await_brokers(&self, brokers: &[i32]) {
        for &asked in brokers {
            eventually(&format!("node {asked} sees brokers {brokers:?}"), || {
                let known = metadata(&mut self.client(asked));
                let mut seen: Vec<i32> = known.brokers.iter().map(|broker| broker.node_id).collect();
                seen.sort_unstable();
                seen == brokers
            });
        }
    }

    /// Who leads the quorum, as `asked` knows it, once it knows anybody.
    pub fn leader(&self, asked: i32) -> i32 {
        until("a leader of the quorum", || quorum_leader(&mut self.client(asked)))
    }

    /// One that does not lead the quorum.
    pub fn follower(&self) -> i32 {
        let leader = self.leader(1);
        (1..=3).find(|&node| node != leader).expect("three nodes")
    }

    pub fn stop(mut self) {
        for node in self.nodes.values_mut() {
            assert!(node.stop().success(), "{}", node.log());
        }
    }
}

pub fn metadata(client: &mut Client) -> MetadataResponse {
    match client.call(MetadataRequest { topics: None, ..Default::default() }, 12) {
        ResponseBody::Metadata(response) => *response,
        other => panic!("{other:?}"),
    }
}

pub fn topics(client: &mut Client) -> Vec<String> {
    let known = metadata(client).topics;
    let mut names: Vec<String> =
        known.iter().filter_map(|topic| topic.name.as_ref().map(|name| name.to_string())).collect();
    names.sort();
    names
}

pub fn describe_quorum(client: &mut Client, version: i16) -> DescribeQuorumResponse {
    let topic = TopicData {
        topic_name: "__cluster_metadata".into(),
        partitions: vec![PartitionData::default()],
        ..Default::default()
    };
    match client.call(DescribeQuorumRequest { topics: vec![topic], ..Default::default() }, version) {
        ResponseBody::DescribeQuorum(response) => *response,
        other => panic!("{other:?}"),
    }
}

/// The metadata quorum as this node describes it.
pub fn quorum(client: &mut Client) -> describe_quorum_response::PartitionData {
    let described = describe_quorum(client, 2);
    let partition = described.topics.into_iter().next().and_then(|topic| topic.partitions.into_iter().next());
    partition.expect("the metadata's partition")
}

/// Who leads the quorum, as this node knows it; `None`: no node so far.
pub fn quorum_leader(client: &mut Client) -> Option<i32> {
    let described = describe_quorum(client, 2);
    let leader = described.topics.first()?.partitions.first()?.leader_id;
    (leader >= 0).then_some(leader)
}

pub fn create(client: &mut Client, version: i16, name: &str, partitions: i32, replicas: i16) -> i16 {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: replicas,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
    match client.call(request, version) {
        ResponseBody::CreateTopics(response) => response.topics[0].error_code,
        other => panic!("{other:?}"),
    }
}
