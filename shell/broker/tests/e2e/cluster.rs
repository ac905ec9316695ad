//! Three processes on loopback are one cluster: a quorum, its leader's death, nodes that come back, what is refused.

use crate::harness::quorum::{
    create, describe_quorum, eventually, format, metadata, prepared, quorum_leader, random_uuid, topics,
    until, within_patience,
};
use crate::harness::{Client, TestNode, free_port};
use barnabas_wire::messages::{DescribeClusterRequest, ResponseBody, UnregisterBrokerRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// With these nothing is noticed by waiting for it while a test lasts: neither that the leader of the quorum answers no
/// more, nor that a broker is silent. What is noticed all the same was told by closed connections.
const LONG_TIMEOUTS: &str = "controller.quorum.fetch.timeout.ms=600000\nbroker.session.timeout.ms=600000";

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

fn data(node: &TestNode) -> PathBuf {
    node.dir.path().join("data")
}

impl Cluster {
    fn start(voters: Voters) -> Self {
        Self::start_with(voters, "")
    }

    /// `settings`: lines for the files of all nodes.
    fn start_with(voters: Voters, settings: &str) -> Self {
        Self::start_at(None, voters, settings)
    }

    /// `release`: the level that the cluster begins at, if not the newest.
    fn start_at(release: Option<&str>, voters: Voters, settings: &str) -> Self {
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
        let release = release.iter().flat_map(|release| ["--release-version", release]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(release).collect();
        let node = |&(node, port, controller): &(i32, u16, u16)| {
            (node, prepared(None, node, "broker,controller", (port, controller), &id, &more, &flags))
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
            let mut seen = Vec::new();
            let is_so = || {
                seen = metadata(&mut self.client(node)).brokers.iter().map(|broker| broker.node_id).collect();
                seen.sort_unstable();
                seen == brokers
            };
            if !within_patience(is_so) {
                let logs: String = self.nodes.values().map(TestNode::log).collect();
                panic!("node {node} sees brokers {seen:?}, not {brokers:?}:\n{logs}");
            }
        }
    }

    fn leader(&self, asked: i32) -> i32 {
        until("a leader of the quorum", || quorum_leader(&mut self.client(asked)))
    }

    /// Waits until the logs of the metadata are the same on all nodes.
    fn await_equal_logs(&self) {
        let logs = || -> Vec<Vec<(String, Vec<u8>)>> {
            self.nodes.values().map(|node| segments(&data(node))).collect()
        };
        eventually("the metadata logs are equal", || {
            let logs = logs();
            !logs[0].is_empty() && logs.iter().all(|log| *log == logs[0])
        });
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

/// The snapshots of the metadata: its log begins where the oldest ends.
fn checkpoints(node: &TestNode) -> BTreeSet<String> {
    let found = std::fs::read_dir(data(node).join("__cluster_metadata-0")).into_iter().flatten().flatten();
    let names = found.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".checkpoint")).collect()
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
    let mut cluster = Cluster::start_with(voters, LONG_TIMEOUTS);
    // Created by whichever node is asked, spread over all of them, and known to all.
    for asked in 1..=3 {
        let name = format!("by-{asked}");
        assert_eq!(create(&mut cluster.client(asked), 7, &name, 6, 1), 0);
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

    // The active controller dies. Another one leads without any timeout.
    let killed = Instant::now();
    cluster.nodes.get_mut(&leader).expect("it is there").kill();
    let others: Vec<i32> = (1..=3).filter(|&node| node != leader).collect();
    assert_eq!(create(&mut cluster.client(others[0]), 7, "after", 4, 1), 0);
    println!("killed the active controller: a topic was created after {:?}", killed.elapsed());
    let next = cluster.leader(others[0]);
    assert!(others.contains(&next), "node {next} leads");
    cluster.await_brokers(&others, &others);

    // It comes back, follows, and serves again.
    cluster.nodes.get_mut(&leader).expect("it is there").launch();
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
    assert_eq!(cluster.leader(leader), next, "coming back does not take the lead");
    assert_eq!(create(&mut cluster.client(leader), 7, "again", 6, 1), 0);
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
    assert_eq!(create(&mut cluster.client(others[0]), 7, "two-are-enough", 2, 1), 0);

    // A second one goes: the last one serves what it has, and creates nothing.
    cluster.nodes.get_mut(&others[1]).expect("there").kill();
    assert_eq!(metadata(&mut cluster.client(others[0])).brokers.len(), 2, "nothing shows that it is gone");
    let waiting = {
        let mut client = cluster.client(others[0]);
        std::thread::spawn(move || create(&mut client, 7, "when-there-are-two-again", 2, 1))
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
    eventually("the broker that was asked has forgotten it", || {
        let ResponseBody::DescribeCluster(known) = cluster.client(others[0]).call(all.clone(), 2) else {
            panic!("another response")
        };
        known.brokers.len() == 2
    });
    cluster.nodes.remove(&gone);
    cluster.stop();
}

/// Raises `metadata.version`.
fn raise(client: &mut Client, level: i16) -> i16 {
    use barnabas_wire::messages::UpdateFeaturesRequest;
    use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
    let feature_updates = vec![FeatureUpdateKey {
        feature: "metadata.version".into(),
        max_version_level: level,
        ..Default::default()
    }];
    let request = UpdateFeaturesRequest { feature_updates, timeout_ms: 20_000, ..Default::default() };
    match client.call(request, 2) {
        ResponseBody::UpdateFeatures(response) => response.error_code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_that_is_raised_while_it_runs_learns_of_log_directories() {
    let cluster = Cluster::start_at(Some("3.6"), Voters::Static, "");
    assert_eq!(create(&mut cluster.client(1), 7, "before", 3, 3), 0);
    let told = "registers again with its directories";
    assert!(cluster.nodes.values().all(|node| !node.log().contains(told)));
    assert_eq!(raise(&mut cluster.client(2), 33), 0);
    for (id, node) in &cluster.nodes {
        eventually(&format!("node {id} names its directories"), || node.log().contains(told));
    }
    // In the same life, under which it is served as before.
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
    assert_eq!(create(&mut cluster.client(3), 7, "after", 3, 3), 0);
    for node in cluster.nodes.values() {
        assert_eq!(node.log().matches(told).count(), 1, "{}", node.log());
        assert_eq!(node.log().matches("metadata.version raised from 3.6").count(), 1, "{}", node.log());
    }
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
    assert_eq!(create(&mut cluster.client(leader), 7, "goes", 3, 1), 0);
    eventually("it is known", || topics(&mut cluster.client(away)) == ["goes"]);

    // One that hangs while the log that it needs goes.
    signal(&cluster.nodes[&away], "-STOP");
    let before = checkpoints(&cluster.nodes[&leader]);
    assert_eq!(delete(&mut cluster.client(leader), "goes"), 0);
    for number in 0..40 {
        assert_eq!(create(&mut cluster.client(leader), 7, &format!("t-{number}"), 3, 1), 0);
    }
    eventually("the leader has no snapshot that the other could go on from", || {
        checkpoints(&cluster.nodes[&leader]).is_disjoint(&before)
    });
    signal(&cluster.nodes[&away], "-CONT");
    let expected = until("another one knows all of them", || {
        Some(topics(&mut cluster.client(other))).filter(|known| known.len() == 40)
    });
    eventually("it has what the others have", || topics(&mut cluster.client(away)) == expected);
    let log = cluster.nodes[&away].log();
    assert!(log.contains("the metadata log restarts at offset"), "{log}");
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
    assert_eq!(create(&mut cluster.client(away), 7, "new", 3, 1), 0);
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
    let voters = format!("controller.quorum.voters=1@127.0.0.1:{controller_port}\n{LONG_TIMEOUTS}");
    let mut controller = prepared(None, 1, "controller", (0, controller_port), &id, &voters, &[]);
    controller.launch_unawaited();
    let mut brokers: BTreeMap<i32, TestNode> = [11, 12]
        .map(|node| (node, prepared(None, node, "broker", (free_port(), 0), &id, &voters, &[])))
        .into_iter()
        .collect();
    brokers.values_mut().for_each(TestNode::launch);
    let cluster = Cluster { nodes: brokers, id };
    cluster.await_brokers(&[11, 12], &[11, 12]);
    assert_eq!(create(&mut cluster.client(12), 7, "on-both", 4, 1), 0);
    let spread = BTreeMap::from([(11, 2), (12, 2)]);
    eventually("both know it", || leaders(&mut cluster.client(11), "on-both") == spread);
    let described = describe_quorum(&mut cluster.client(11), 2);
    assert_eq!(described.topics[0].partitions[0].leader_id, 1, "{described:?}");
    eventually("both observe", || {
        let described = describe_quorum(&mut cluster.client(11), 2);
        described.topics[0].partitions[0].observers.len() == 2
    });
    // The controller fences the killed broker although its session has not timed out. The broker may register again
    // although its old session was never ended.
    let mut cluster = cluster;
    cluster.nodes.get_mut(&12).expect("there").kill();
    cluster.await_brokers(&[11], &[11]);
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
    let mut stranger = prepared(None, 7, "broker", (free_port(), 0), &foreign, &more, &[]);
    stranger.launch_unawaited();
    let here = format!("belongs to cluster {id} and refuses this node, which belongs to cluster {foreign}");
    eventually("the stranger hears of it", || stranger.log().contains(&here));
    let there = format!("it is meant for cluster {foreign}, and this node belongs to cluster {id}");
    eventually("and so are those whom it asked", || {
        cluster.nodes.values().any(|node| node.log().contains(&there))
    });
    // It goes on asking, many times a second; each side hears of each other one once.
    std::thread::sleep(Duration::from_secs(3));
    let times = |node: &TestNode, what: &str| node.log().matches(what).count();
    assert!(times(&stranger, "and refuses this node") <= controllers.len(), "{}", stranger.log());
    for node in cluster.nodes.values() {
        assert!(times(node, "rejected ") <= 1, "{}", node.log());
    }
    stranger.kill();

    // A second process under a name that is taken, with a disk of its own: that of the quorum's leader, and that of
    // another.
    let hurried = format!("{more}\ninitial.broker.registration.timeout.ms=1000");
    let leader = cluster.leader(1);
    for (taken, who) in [(leader, "leads the metadata quorum"), (leader % 3 + 1, "active controller (node")] {
        let mut double = prepared(None, taken, "broker", (free_port(), 0), &id, &hurried, &[]);
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

#[test]
fn two_living_brokers_of_one_id_are_told_of_on_both_sides() {
    let sessions = "broker.heartbeat.interval.ms=500\nbroker.session.timeout.ms=3000";
    let cluster = Cluster::start_with(Voters::Static, sessions);
    let servers: Vec<String> =
        cluster.nodes.values().map(|node| format!("127.0.0.1:{}", node.controller_port)).collect();
    let more = format!("controller.quorum.bootstrap.servers={}\n{sessions}", servers.join(","));
    let leader = cluster.leader(1);
    let taken = leader % 3 + 1;
    let port = free_port();
    let mut double = prepared(None, taken, "broker", (port, 0), &cluster.id, &more, &[]);
    double.launch_unawaited();
    let (first, second) = (
        format!("listening at 127.0.0.1:{}", cluster.nodes[&taken].port),
        format!("listening at 127.0.0.1:{port}"),
    );
    let is_told = |log: &str| {
        let told = |line: &&str| line.contains(" WARN ") && line.contains("two nodes have the same node.id");
        let lines: Vec<&str> = log.lines().filter(told).collect();
        assert!(lines.len() <= 1, "once a minute: {lines:#?}");
        lines.iter().any(|line| line.contains(&first) && line.contains(&second))
    };
    eventually("the second hears of it", || is_told(&double.log()));
    // Another one may lead the quorum by now.
    eventually("the controller hears of it", || cluster.nodes.values().any(|node| is_told(&node.log())));
    double.kill();
    cluster.await_brokers(&[1, 2, 3], &[1, 2, 3]);
    for mut node in cluster.nodes.into_values() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}
