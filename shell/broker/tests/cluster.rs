//! Three processes on loopback are one cluster: a quorum, its leader's death, nodes that come back, what is refused.

mod harness;

use barnabas_wire::messages::create_topics_request::CreatableTopic;
use barnabas_wire::messages::describe_quorum_request::{PartitionData, TopicData};
use barnabas_wire::messages::{
    CreateTopicsRequest, DescribeClusterRequest, DescribeQuorumRequest, DescribeQuorumResponse,
    MetadataRequest, MetadataResponse, ResponseBody, UnregisterBrokerRequest,
};
use harness::{Client, TestNode, binary, free_port};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Cluster {
    nodes: BTreeMap<i32, TestNode>,
    id: String,
}

/// How the quorum's voters are named.
#[derive(Clone, Copy, PartialEq)]
enum Voters {
    /// `controller.quorum.voters`
    Static,
    /// `--initial-controllers`
    Dynamic,
}

fn random_uuid() -> String {
    let output = binary().args(["storage", "random-uuid"]).output().expect("runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// Formats, and returns the exit code with what was said.
fn format(file: &Path, cluster: &str, more: &[&str]) -> (bool, String) {
    let file = file.to_str().expect("a path");
    let output = binary().args(["storage", "format", "-t", cluster, "-c", file]).args(more).output();
    let output = output.expect("runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn data(node: &TestNode) -> PathBuf {
    node.dir.path().join("data")
}

/// A node's file of settings.
fn properties(dir: &Path, id: i32, roles: &str, ports: (u16, u16), more: &str) -> PathBuf {
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
fn prepared(id: i32, roles: &str, ports: (u16, u16), cluster: &str, more: &str, flags: &[&str]) -> TestNode {
    let mut node = TestNode::new(None, &[]);
    let file = properties(node.dir.path(), id, roles, ports, more);
    let (ok, said) = format(&file, cluster, flags);
    assert!(ok, "{said}");
    node.set_file(file.to_str().expect("a path"), ports);
    node
}

impl Cluster {
    fn start(voters: Voters) -> Self {
        Self::start_with(voters, "")
    }

    /// `settings`: lines for the files of all nodes.
    fn start_with(voters: Voters, settings: &str) -> Self {
        let id = random_uuid();
        let ports: Vec<(i32, u16, u16)> = (1..=3).map(|node| (node, free_port(), free_port())).collect();
        let list =
            |each: &dyn Fn(&(i32, u16, u16)) -> String| ports.iter().map(each).collect::<Vec<_>>().join(",");
        let (more, flags) = match voters {
            Voters::Static => {
                let voters = list(&|(node, _, port)| format!("{node}@127.0.0.1:{port}"));
                (format!("controller.quorum.voters={voters}"), Vec::new())
            }
            Voters::Dynamic => {
                let servers = list(&|(_, _, port)| format!("127.0.0.1:{port}"));
                let initial = list(&|(node, _, port)| format!("{node}@127.0.0.1:{port}:{}", random_uuid()));
                (
                    format!("controller.quorum.bootstrap.servers={servers}"),
                    vec!["--initial-controllers".to_owned(), initial],
                )
            }
        };
        let more = format!("{more}\n{settings}");
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let node = |&(node, port, controller): &(i32, u16, u16)| {
            (node, prepared(node, "broker,controller", (port, controller), &id, &more, &flags))
        };
        let mut nodes: BTreeMap<i32, TestNode> = ports.iter().map(node).collect();
        nodes.values_mut().for_each(TestNode::launch_unawaited);
        let mut cluster = Self { nodes, id };
        cluster.nodes.values_mut().for_each(TestNode::await_answer);
        cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
        cluster
    }

    fn client(&self, node: i32) -> Client {
        self.nodes[&node].client()
    }

    /// Waits until the nodes in `asked` see exactly these brokers.
    fn await_brokers(&self, asked: &[i32], brokers: &[i32]) {
        for &node in asked {
            eventually(&format!("node {node} sees brokers {brokers:?}"), || {
                let mut seen: Vec<i32> =
                    metadata(&mut self.client(node)).brokers.iter().map(|broker| broker.node_id).collect();
                seen.sort_unstable();
                seen == brokers
            });
        }
    }

    fn leader(&self, asked: i32) -> i32 {
        describe_quorum(&mut self.client(asked)).topics[0].partitions[0].leader_id
    }

    /// Waits until the logs of the metadata are the same on all nodes.
    fn await_equal_logs(&self) {
        let logs = || -> Vec<Vec<(String, Vec<u8>)>> {
            self.nodes.values().map(|node| segments(&data(node))).collect()
        };
        let started = Instant::now();
        loop {
            let logs = logs();
            if !logs[0].is_empty() && logs.iter().all(|log| *log == logs[0]) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "the metadata logs differ");
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    fn stop(mut self) {
        for node in self.nodes.values_mut() {
            assert!(node.stop().success(), "{}", node.log());
        }
    }
}

/// Names and contents of the metadata log's segments.
fn segments(data: &Path) -> Vec<(String, Vec<u8>)> {
    let dir = data.join("__cluster_metadata-0");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if name.ends_with(".log") {
            found.push((name, std::fs::read(entry.path()).unwrap_or_default()));
        }
    }
    found.sort();
    found
}

fn metadata(client: &mut Client) -> MetadataResponse {
    match client.call(MetadataRequest { topics: None, ..Default::default() }, 12) {
        ResponseBody::Metadata(response) => *response,
        other => panic!("{other:?}"),
    }
}

fn describe_quorum(client: &mut Client) -> DescribeQuorumResponse {
    let topic = TopicData {
        topic_name: "__cluster_metadata".into(),
        partitions: vec![PartitionData::default()],
        ..Default::default()
    };
    match client.call(DescribeQuorumRequest { topics: vec![topic], ..Default::default() }, 2) {
        ResponseBody::DescribeQuorum(response) => *response,
        other => panic!("{other:?}"),
    }
}

fn create(client: &mut Client, name: &str, partitions: i32, replicas: i16) -> i16 {
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: partitions,
        replication_factor: replicas,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
    match client.call(request, 7) {
        ResponseBody::CreateTopics(response) => response.topics[0].error_code,
        other => panic!("{other:?}"),
    }
}

/// Who leads how many partitions of a topic.
fn leaders(client: &mut Client, topic: &str) -> BTreeMap<i32, usize> {
    let mut found = BTreeMap::new();
    let response = metadata(client);
    let known = response.topics.iter().find(|known| known.name.as_deref() == Some(topic));
    for partition in known.iter().flat_map(|topic| &topic.partitions) {
        *found.entry(partition.leader_id).or_default() += 1;
    }
    found
}

fn survives_its_leader(voters: Voters) {
    let mut cluster = Cluster::start(voters);
    // Created by whichever node is asked, spread over all of them, and known to all.
    for asked in 1..=3 {
        let name = format!("by-{asked}");
        assert_eq!(create(&mut cluster.client(asked), &name, 6, 1), 0);
        for node in 1..=3 {
            let spread = BTreeMap::from([(1, 2), (2, 2), (3, 2)]);
            eventually("every node knows the topic", || leaders(&mut cluster.client(node), &name) == spread);
        }
    }
    eventually("controllers know each other", || {
        let request = DescribeClusterRequest { endpoint_type: 2, ..Default::default() };
        let port = cluster.nodes[&2].controller_port;
        let answer = Client::try_connect(port).expect("connects").call(request, 1);
        let ResponseBody::DescribeCluster(answer) = answer else { panic!("another response") };
        answer.brokers.len() == 3 && answer.controller_id == cluster.leader(1)
    });
    let leader = cluster.leader(1);
    assert!([2, 3].iter().all(|&node| cluster.leader(node) == leader), "one leader");

    // The active controller dies. Another one is there before anybody's session could run out.
    let killed = Instant::now();
    cluster.nodes.get_mut(&leader).expect("it is there").kill();
    let others: Vec<i32> = (1..=3).filter(|&node| node != leader).collect();
    assert_eq!(create(&mut cluster.client(others[0]), "after", 4, 1), 0);
    let gap = killed.elapsed();
    assert!(gap < Duration::from_secs(6), "{gap:?} until a topic could be created again");
    println!("killed the active controller: a topic was created after {gap:?}");
    let next = cluster.leader(others[0]);
    assert!(others.contains(&next), "node {next} leads");
    cluster.await_brokers(&others, &others);

    // It comes back, follows, and serves again.
    cluster.nodes.get_mut(&leader).expect("it is there").launch();
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
    assert_eq!(cluster.leader(leader), next, "coming back takes nobody's place");
    assert_eq!(create(&mut cluster.client(leader), "again", 6, 1), 0);
    for node in 1..=3 {
        eventually("partitions on all three", || leaders(&mut cluster.client(node), "again").len() == 3);
    }
    cluster.await_equal_logs();
    cluster.stop();
}

#[test]
fn three_nodes_with_voters_in_their_files_survive_their_leader() {
    survives_its_leader(Voters::Static);
}

#[test]
fn three_nodes_with_voters_in_the_log_survive_their_leader() {
    survives_its_leader(Voters::Dynamic);
}

#[test]
fn a_planned_stop_hands_over_and_half_a_quorum_is_waited_out() {
    let mut cluster = Cluster::start(Voters::Static);
    let leader = cluster.leader(1);
    assert!(cluster.nodes.get_mut(&leader).expect("there").stop().success());
    let others: Vec<i32> = (1..=3).filter(|&node| node != leader).collect();
    cluster.await_brokers(&others, &others);
    assert_eq!(create(&mut cluster.client(others[0]), "two-are-enough", 2, 1), 0);

    // A second one goes: the last one serves what it has, and creates nothing.
    cluster.nodes.get_mut(&others[1]).expect("there").kill();
    assert_eq!(metadata(&mut cluster.client(others[0])).brokers.len(), 2, "nobody can say that it is gone");
    let waiting = {
        let mut client = cluster.client(others[0]);
        std::thread::spawn(move || create(&mut client, "when-there-are-two-again", 2, 1))
    };
    std::thread::sleep(Duration::from_millis(500));
    cluster.nodes.get_mut(&others[1]).expect("there").launch();
    assert_eq!(
        waiting.join().expect("no panic"),
        0,
        "what was asked meanwhile is done once there is a majority"
    );
    cluster.nodes.get_mut(&leader).expect("there").launch();
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
    cluster.await_equal_logs();

    // Of a broker that will not come back the cluster forgets.
    let gone = leader;
    assert!(cluster.nodes.get_mut(&gone).expect("there").stop().success());
    cluster.await_brokers(&others, &others);
    let request = UnregisterBrokerRequest { broker_id: gone, ..Default::default() };
    let ResponseBody::UnregisterBroker(answer) = cluster.client(others[0]).call(request, 0) else {
        panic!("another response")
    };
    assert_eq!(answer.error_code, 0, "{answer:?}");
    let all = DescribeClusterRequest { include_fenced_brokers: true, endpoint_type: 1, ..Default::default() };
    let ResponseBody::DescribeCluster(known) = cluster.client(others[0]).call(all, 2) else {
        panic!("another response")
    };
    assert_eq!(known.brokers.len(), 2, "{known:?}");
    cluster.nodes.remove(&gone);
    cluster.stop();
}

fn delete(client: &mut Client, name: &str) -> i16 {
    use barnabas_wire::messages::DeleteTopicsRequest;
    let request =
        DeleteTopicsRequest { topic_names: vec![name.into()], timeout_ms: 20_000, ..Default::default() };
    match client.call(request, 5) {
        ResponseBody::DeleteTopics(response) => response.responses[0].error_code,
        other => panic!("{other:?}"),
    }
}

fn topics(client: &mut Client) -> Vec<String> {
    let mut names: Vec<String> = metadata(client)
        .topics
        .iter()
        .filter_map(|topic| topic.name.as_ref().map(|name| name.to_string()))
        .collect();
    names.sort();
    names
}

fn signal(node: &TestNode, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &node.pid().to_string()]).status();
    assert!(sent.expect("kill").success());
}

#[test]
fn a_node_that_was_away_for_long_or_lost_its_disk_is_given_a_snapshot() {
    let mut cluster =
        Cluster::start_with(Voters::Static, "metadata.log.max.record.bytes.between.snapshots=2000");
    let leader = cluster.leader(1);
    let [away, other] = [1, 2, 3].into_iter().filter(|&node| node != leader).collect::<Vec<_>>()[..] else {
        panic!("two others")
    };
    assert_eq!(create(&mut cluster.client(leader), "goes", 3, 1), 0);
    eventually("it is known", || topics(&mut cluster.client(away)) == ["goes"]);

    // One that hangs while the log that it needs goes.
    signal(&cluster.nodes[&away], "-STOP");
    assert_eq!(delete(&mut cluster.client(leader), "goes"), 0);
    for number in 0..40 {
        assert_eq!(create(&mut cluster.client(leader), &format!("t-{number}"), 3, 1), 0);
    }
    signal(&cluster.nodes[&away], "-CONT");
    let expected = topics(&mut cluster.client(other));
    assert_eq!(expected.len(), 40);
    eventually("it has what the others have", || topics(&mut cluster.client(away)) == expected);
    let log = cluster.nodes[&away].log();
    assert!(log.contains("the metadata log begins anew at"), "{log}");
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);

    // One that comes back without its disk.
    let node = cluster.nodes.get_mut(&away).expect("there");
    node.kill();
    std::fs::remove_dir_all(data(node)).expect("removed");
    let file = node.dir.path().join("server.properties");
    let (ok, said) = format(&file, &cluster.id, &[]);
    assert!(ok, "{said}");
    let node = cluster.nodes.get_mut(&away).expect("there");
    node.launch();
    eventually("it has what the others have", || topics(&mut cluster.client(away)) == expected);
    assert_eq!(create(&mut cluster.client(away), "new", 3, 1), 0);
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);

    // What it has been given it can start from.
    let node = cluster.nodes.get_mut(&away).expect("there");
    node.kill();
    node.launch();
    eventually("and still", || topics(&mut cluster.client(away)).len() == 41);
    for mut node in cluster.nodes.into_values() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

#[test]
fn brokers_and_controllers_may_be_processes_of_their_own() {
    let id = random_uuid();
    let controller_port = free_port();
    let voters = format!("controller.quorum.voters=1@127.0.0.1:{controller_port}");
    let mut controller = prepared(1, "controller", (0, controller_port), &id, &voters, &[]);
    controller.launch_unawaited();
    let mut brokers: BTreeMap<i32, TestNode> = [11, 12]
        .map(|node| (node, prepared(node, "broker", (free_port(), 0), &id, &voters, &[])))
        .into_iter()
        .collect();
    brokers.values_mut().for_each(TestNode::launch);
    let cluster = Cluster { nodes: brokers, id };
    cluster.await_brokers(&[11, 12], &[11, 12]);
    assert_eq!(create(&mut cluster.client(12), "on-both", 4, 1), 0);
    let spread = BTreeMap::from([(11, 2), (12, 2)]);
    eventually("both know it", || leaders(&mut cluster.client(11), "on-both") == spread);
    let described = describe_quorum(&mut cluster.client(11));
    let partition = &described.topics[0].partitions[0];
    assert_eq!((partition.leader_id, partition.observers.len()), (1, 2), "{described:?}");
    // The broker that is killed is missed at once, and back under its own name at once.
    let mut cluster = cluster;
    cluster.nodes.get_mut(&12).expect("there").kill();
    let killed = Instant::now();
    cluster.await_brokers(&[11], &[11]);
    assert!(killed.elapsed() < Duration::from_secs(3), "missed after {:?}", killed.elapsed());
    cluster.nodes.get_mut(&12).expect("there").launch();
    cluster.await_brokers(&[11, 12], &[11, 12]);
    cluster.stop();
    assert!(controller.stop().success(), "{}", controller.log());
}

#[test]
fn strangers_and_doubles_are_refused_with_both_sides_named() {
    let cluster = Cluster::start(Voters::Static);
    let id = cluster.id.clone();
    let controllers: Vec<u16> = cluster.nodes.values().map(|node| node.controller_port).collect();
    let servers: Vec<String> = controllers.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let more = format!("controller.quorum.bootstrap.servers={}", servers.join(","));

    // A node of another cluster looks for its quorum here.
    let foreign = random_uuid();
    let mut stranger = prepared(7, "broker", (free_port(), 0), &foreign, &more, &[]);
    stranger.launch_unawaited();
    eventually("the stranger is told", || stranger.log().contains("of another cluster than"));
    assert!(stranger.log().contains(&foreign), "{}", stranger.log());
    eventually("and so are those whom it asked", || {
        cluster
            .nodes
            .values()
            .any(|node| node.log().contains(&id) && node.log().contains("is not for this one"))
    });
    stranger.kill();

    // A second process under a name that is taken, with a disk of its own: that of the quorum's leader, and that of another.
    let hurried = format!("{more}\ninitial.broker.registration.timeout.ms=1000");
    let leader = cluster.leader(1);
    for (taken, who) in [(leader, "leads the metadata quorum"), (leader % 3 + 1, "active controller (node")] {
        let mut double = prepared(taken, "broker", (free_port(), 0), &id, &hurried, &[]);
        double.launch_unawaited();
        assert!(!double.wait().success(), "it does not stay");
        let log = double.log();
        assert!(log.contains("the same node.id") && log.contains(who), "{log}");
    }
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
    for mut node in cluster.nodes.into_values() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}
