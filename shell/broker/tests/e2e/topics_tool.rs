//! `barnabas topics` on three nodes: what `--describe` shows of missing replicas, its messages while half of the
//! quorum is down, and the nodes' log lines about an unclean election.
//!
//! With `KAFKA_CLASSPATH` set to Kafka's jars (kafka-tools and what it needs), Apache's own `kafka-topics` runs
//! beside ours on the same nodes, and both must print the same lines; without it that part says so and is left out.

use crate::harness::quorum::{Three, eventually, quorum_leader, until};
use crate::harness::{TestNode, binary};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::{CreateTopicsRequest, ResponseBody};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const REPORTS: [&str; 4] = [
    "--under-replicated-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
    "--unavailable-partitions",
];

fn tool(node: &TestNode, name: &str, words: &str) -> Command {
    let mut command = binary();
    let address = format!("127.0.0.1:{}", node.port);
    command.arg(name).args(["--bootstrap-server", &address]).args(words.split_whitespace());
    command
}

fn lines(command: &mut Command) -> Vec<String> {
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

fn describe(node: &TestNode, words: &str) -> Vec<String> {
    lines(&mut tool(node, "topics", &format!("--describe {words}")))
}

/// One topic, described as it is and by each report.
fn described(node: &TestNode, topic: &str) -> [Vec<String>; 5] {
    let report = |report: &str| describe(node, &format!("--topic {topic} {report}"));
    let [first, second, third, fourth] = REPORTS.map(report);
    [report(""), first, second, third, fourth]
}

/// The same by Apache's tool, if there is one.
fn by_apache(node: &TestNode, topic: &str) -> Option<[Vec<String>; 5]> {
    let Ok(classpath) = std::env::var("KAFKA_CLASSPATH") else {
        println!("SKIP: KAFKA_CLASSPATH names no jars of Kafka");
        return None;
    };
    let address = format!("127.0.0.1:{}", node.port);
    let report = |report: &str| {
        let mut command = Command::new("java");
        command.args([
            "-cp",
            &classpath,
            "org.apache.kafka.tools.TopicCommand",
            "--bootstrap-server",
            &address,
        ]);
        command.args(["--describe", "--topic", topic]).args(report.split_whitespace());
        let mut told = lines(&mut command);
        told.retain(|line| !line.contains("SLF4J"));
        told
    };
    let [first, second, third, fourth] = REPORTS.map(report);
    Some([report(""), first, second, third, fourth])
}

/// Two partitions with these replicas.
fn create(cluster: &Three, asked: i32, name: &str, replicas: &[i32], min_isr: &str) {
    let assignment = |partition_index| CreatableReplicaAssignment {
        partition_index,
        broker_ids: replicas.to_vec(),
        ..Default::default()
    };
    let config = CreatableTopicConfig {
        name: "min.insync.replicas".into(),
        value: Some(min_isr.into()),
        ..Default::default()
    };
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: -1,
        replication_factor: -1,
        assignments: [0, 1].map(assignment).to_vec(),
        configs: vec![config],
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 20_000, ..Default::default() };
    let ResponseBody::CreateTopics(response) = cluster.client(asked).call(request, 7) else {
        panic!("another response")
    };
    assert_eq!(response.topics[0].error_code, 0, "{response:?}");
}

/// Without the header.
fn rows(node: &TestNode, topic: &str) -> Vec<String> {
    describe(node, &format!("--topic {topic}")).into_iter().skip(1).collect()
}

fn row(topic: &str, partition: i32, rest: &str) -> String {
    format!("\tTopic: {topic}\tPartition: {partition}\t{rest}")
}

/// `barnabas topics --create` of a node that reaches no active controller: said before `mend` brings one back, and
/// done then.
fn create_without_a_controller(node: &TestNode, mend: impl FnOnce()) {
    let mut creating = tool(node, "topics", "--create --topic later --partitions 1");
    let mut creating = creating.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let mut errors = BufReader::new(creating.stderr.take().expect("piped"));
    let mut said = String::new();
    while !said.to_lowercase().contains("no active controller") {
        let length = errors.read_line(&mut said).expect("text");
        assert!(length > 0, "it has ended: {said}");
    }
    assert!(said.starts_with("topics: not done yet"), "{said}");
    mend();
    let mut told = String::new();
    creating.stdout.take().expect("piped").read_to_string(&mut told).expect("text");
    errors.read_to_string(&mut said).expect("text");
    assert!(creating.wait().expect("ends").success(), "{said}");
    assert_eq!(told, "Created topic later.\n");
}

#[test]
fn describe_shows_missing_replicas_and_a_missing_controller() {
    let mut cluster = Three::start();
    create(&cluster, 1, "t", &[2, 3, 1], "2");
    let both = |rest: &str| [0, 1].map(|index| row("t", index, rest)).to_vec();
    let whole = both("Leader: 2\tReplicas: 2,3,1\tIsr: 2,3,1\tElr: \tLastKnownElr: ");
    eventually("all are in sync", || rows(&cluster.nodes[&1], "t") == whole);
    let [told, reports @ ..] = described(&cluster.nodes[&1], "t");
    let (begin, end) = told[0].split_once("\tPartitionCount: ").expect("a count");
    assert!(begin.starts_with("Topic: t\tTopicId: "), "{told:?}");
    assert_eq!(end, "2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2");
    assert!(reports.iter().all(Vec::is_empty), "{reports:?}");

    // One is missed: as many are in sync as must be.
    cluster.nodes.get_mut(&2).expect("there").kill();
    let missed = both("Leader: 3\tReplicas: 2,3,1\tIsr: 3,1\tElr: \tLastKnownElr: ");
    for node in [1, 3] {
        eventually("one is missed", || rows(&cluster.nodes[&node], "t") == missed);
    }
    let ours = described(&cluster.nodes[&1], "t");
    assert_eq!(ours[1..], [missed.clone(), Vec::new(), missed.clone(), Vec::new()]);
    if let Some(theirs) = by_apache(&cluster.nodes[&1], "t") {
        assert_eq!(ours, theirs);
    }
    let of_all = describe(&cluster.nodes[&1], "--under-replicated-partitions");
    assert_eq!(of_all, missed, "of all topics, where none is named");

    // Who leads the quorum goes too: the other one has none.
    let leader = until("a leader", || quorum_leader(&mut cluster.client(1)).filter(|leader| *leader != 2));
    let left = 4 - leader;
    cluster.nodes.get_mut(&leader).expect("there").kill();
    assert_eq!(rows(&cluster.nodes[&left], "t").len(), 2, "it still tells what it knows");
    let mut back = cluster.nodes.remove(&leader).expect("there");
    create_without_a_controller(&cluster.nodes[&left], || back.launch());
    cluster.nodes.insert(leader, back);
    cluster.nodes.get_mut(&2).expect("there").launch();
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}

/// What the tool refused.
fn refused(node: &TestNode, words: &str) -> String {
    let output = tool(node, "topics", words).output().expect("runs");
    assert!(!output.status.success(), "{words}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn topics_are_assigned_chosen_and_deleted_by_expressions() {
    let mut node = TestNode::start();
    let topics = |words: &str| lines(&mut tool(&node, "topics", words));
    assert_eq!(topics("--create --topic logs.1 --replica-assignment 1,1,1"), ["Created topic logs.1."]);
    assert_eq!(topics("--create --topic logs-2 --config retention.ms=7"), ["Created topic logs-2."]);
    assert_eq!(topics("--create --topic logs-2 --if-not-exists"), Vec::<String>::new());
    assert!(refused(&node, "--create --topic logs-2").contains("TOPIC_ALREADY_EXISTS"));
    let unknown = refused(&node, "--create --topic other --replica-assignment 7,7");
    assert!(unknown.contains("INVALID_REPLICA_ASSIGNMENT"), "{unknown}");
    topics("--alter --topic logs.1 --partitions 5 --replica-assignment 1,1,1,1,1");
    let described = describe(&node, "--topic logs.1");
    assert_eq!(described.len(), 6, "{described:?}");
    assert!(described[0].contains("PartitionCount: 5"), "{described:?}");
    // The cluster's min.insync.replicas counts too, as in Kafka.
    let overridden = describe(&node, "--topics-with-overrides");
    let configs: Vec<&str> = overridden.iter().filter_map(|line| line.split("Configs: ").nth(1)).collect();
    assert_eq!(configs, ["min.insync.replicas=1,retention.ms=7", "min.insync.replicas=1"], "{overridden:?}");
    let id = described[0].split_once("TopicId: ").expect("an id").1.split('\t').next().expect("an id");
    assert_eq!(describe(&node, &format!("--topic-id {id} --partition-size-limit-per-response 2")), described);
    assert_eq!(
        refused(&node, "--describe --topic-id AAAAAAAAAAAAAAAAAAAAAQ"),
        "topics: no topic has the id AAAAAAAAAAAAAAAAAAAAAQ\n"
    );

    assert_eq!(topics("--list --topic logs.*"), ["logs-2", "logs.1"]);
    assert_eq!(topics("--list --topic logs.2"), ["logs-2"], "a dot is any letter");
    assert_eq!(topics("--delete --topic logs.1"), Vec::<String>::new());
    assert_eq!(topics("--list"), ["logs-2"], "but where a topic has that name");
    let missing =
        "topics: topic 'none' does not exist, or you may not describe it; --list shows those that you may\n";
    for words in ["--delete --topic none", "--describe --topic none", "--alter --topic none --partitions 2"] {
        assert_eq!(refused(&node, words), missing, "{words}");
        topics(&format!("{words} --if-exists"));
    }
    assert_eq!(topics("--delete --topic logs.*,none"), Vec::<String>::new());
    assert_eq!(topics("--list"), Vec::<String>::new());
    assert!(node.stop().success());
}

#[test]
fn an_unclean_election_is_named_in_every_log_and_eligible_leaders_are_shown_before() {
    let mut cluster = Three::start();
    create(&cluster, 1, "t", &[2, 3], "1");
    eventually("all know it", || (1..=3).all(|node| rows(&cluster.nodes[&node], "t").len() == 2));
    cluster.nodes.get_mut(&3).expect("there").kill();
    let alone = "Leader: 2\tReplicas: 2,3\tIsr: 2\tElr: \tLastKnownElr: ";
    eventually("2 is in sync alone", || {
        rows(&cluster.nodes[&1], "t") == [0, 1].map(|index| row("t", index, alone))
    });
    // 3 comes back after 2 is gone, and lacks what 2 has.
    cluster.nodes.get_mut(&2).expect("there").kill();
    cluster.nodes.get_mut(&3).expect("there").launch();
    let gone = "Leader: none\tReplicas: 2,3\tIsr: \tElr: 2\tLastKnownElr: 2";
    let gone = [0, 1].map(|index| row("t", index, gone)).to_vec();
    eventually("there is no leader", || rows(&cluster.nodes[&1], "t") == gone);
    let ours = described(&cluster.nodes[&1], "t");
    assert_eq!(ours[1..], [gone.clone(), gone.clone(), Vec::new(), gone]);
    if let Some(theirs) = by_apache(&cluster.nodes[&1], "t") {
        assert_eq!(ours, theirs);
    }
    let elect = "--election-type unclean --topic t --partition 1";
    eventually("3 may lead", || {
        tool(&cluster.nodes[&1], "leader-election", elect).output().expect("runs").status.success()
    });
    let wanted = "unclean election of t-1 (now led by 3): the leader was neither in sync nor eligible";
    for node in [1, 3] {
        eventually("it is named", || {
            cluster.nodes[&node].log().lines().any(|line| line.contains(" ERROR ") && line.contains(wanted))
        });
    }
    assert!(!cluster.nodes[&1].log().contains("unclean election of t-0"));
    cluster.nodes.get_mut(&2).expect("there").launch();
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
    }
}
