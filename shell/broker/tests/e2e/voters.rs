//! Who votes in the metadata quorum: from files into the log (`kraft.version` 0 → 1), added, removed, joined by
//! themselves, forgotten.

use crate::harness::quorum::{
    Three, create, eventually, format, prepared, properties, quorum, random_uuid, topics,
};
use crate::harness::{Client, TempDir, TestNode, binary, free_port};
use barnabas_base::{DirectoryId, Uuid};
use barnabas_wire::messages::update_features_request::FeatureUpdateKey;
use barnabas_wire::messages::{
    AddRaftVoterRequest, ApiVersionsRequest, DescribeClusterRequest, RemoveRaftVoterRequest, ResponseBody,
    UnregisterControllerRequest, UpdateFeaturesRequest, VoteRequest, add_raft_voter_request, vote_request,
};
use std::collections::BTreeMap;

fn raise_level(client: &mut Client, validate_only: bool) -> (i16, String) {
    let update =
        FeatureUpdateKey { feature: "kraft.version".into(), max_version_level: 1, ..Default::default() };
    let request =
        UpdateFeaturesRequest { feature_updates: vec![update], validate_only, ..Default::default() };
    let ResponseBody::UpdateFeatures(response) = client.call(request, 2) else { panic!("another") };
    (response.error_code, response.error_message.unwrap_or_default().to_string())
}

/// Ports at which the quorum's leader is reached, as the answer to a vote says that comes too late.
fn leader_ports(controller_port: u16) -> Vec<u16> {
    let partition = vote_request::PartitionData { replica_id: 2, ..Default::default() };
    let topic = vote_request::TopicData {
        topic_name: "__cluster_metadata".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = VoteRequest { voter_id: -1, topics: vec![topic], ..Default::default() };
    let mut client = Client::try_connect(controller_port).expect("connects");
    let ResponseBody::Vote(response) = client.call(request, 1) else { panic!("another") };
    assert_eq!(response.topics[0].partitions[0].leader_id, 1, "{response:?}");
    response.node_endpoints.iter().map(|node| node.port).collect()
}

/// A cluster moves to another controllers' listener node by node: those that have not moved connect to the old one.
#[test]
fn leader_is_named_on_the_listener_that_was_asked() {
    let (port, old, new) = (free_port(), free_port(), free_port());
    let more = std::format!(
        "listeners=PLAINTEXT://127.0.0.1:{port},OLD://127.0.0.1:{old},NEW://127.0.0.1:{new}\n\
         controller.listener.names=NEW,OLD\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,NEW:PLAINTEXT,OLD:PLAINTEXT\n\
         controller.quorum.voters=1@127.0.0.1:{new}"
    );
    let ports = (port, new);
    let mut node = prepared(None, 1, "broker,controller", ports, &random_uuid(), &more, &[]);
    node.launch();
    assert_eq!(leader_ports(new), [new]);
    assert_eq!(leader_ports(old), [old]);
    assert!(node.stop().success(), "{}", node.log());
}

/// The level of `kraft.version` that clients are shown; 0 is not shown.
fn level(client: &mut Client) -> i16 {
    let request = ApiVersionsRequest {
        client_software_name: "test".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    let ResponseBody::ApiVersions(response) = client.call(request, 3) else { panic!("another") };
    let known = response.finalized_features.iter().find(|feature| feature.name == *"kraft.version");
    known.map_or(0, |feature| feature.max_version_level)
}

/// Voters and the directories that they live on.
fn voters(client: &mut Client) -> BTreeMap<i32, DirectoryId> {
    let voters = quorum(client).current_voters;
    voters.iter().map(|voter| (voter.replica_id, voter.replica_directory_id)).collect()
}

/// The directory of a node's metadata.
fn directory(node: &TestNode) -> DirectoryId {
    let meta = std::fs::read_to_string(node.data().join("meta.properties")).expect("formatted");
    let line = meta.lines().find_map(|line| line.strip_prefix("directory.id=")).expect("an identity");
    Uuid::parse(line.trim()).expect("an id")
}

fn remove(client: &mut Client, id: i32, directory: DirectoryId) -> (i16, String) {
    let request = RemoveRaftVoterRequest {
        cluster_id: None,
        voter_id: id,
        voter_directory_id: directory,
        ..Default::default()
    };
    let ResponseBody::RemoveRaftVoter(response) = client.call(request, 0) else { panic!("another") };
    (response.error_code, response.error_message.unwrap_or_default().to_string())
}

/// Whether `barnabas metadata-quorum remove-controller` did it, and what it said.
fn remove_by_tool(asked: &TestNode, id: i32, directory: &str) -> (bool, String) {
    let (server, id) = (format!("127.0.0.1:{}", asked.port), id.to_string());
    let output = binary()
        .args(["metadata-quorum", "--bootstrap-server", &server, "remove-controller"])
        .args(["--controller-id", &id, "--controller-directory-id", directory])
        .output()
        .expect("runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Whether `barnabas metadata-quorum add-controller`, asked of a controller, added the node of this file.
fn add_by_tool(asked: &TestNode, id: i32, node: &TestNode) -> bool {
    let controller = format!("127.0.0.1:{}", asked.controller_port);
    let output = binary()
        .args([
            "metadata-quorum",
            "--bootstrap-controller",
            &controller,
            "add-controller",
            "--command-config",
        ])
        .arg(node.dir.path().join("server.properties"))
        .output()
        .expect("runs");
    let (directory, port) = (directory(node), node.controller_port);
    let added = format!(
        "Added controller {id} with directory id {directory} and endpoints: CONTROLLER://127.0.0.1:{port}\n"
    );
    output.status.success() && String::from_utf8_lossy(&output.stdout) == added
}

fn add(client: &mut Client, id: i32, node: &TestNode) -> (i16, String) {
    let listener = add_raft_voter_request::Listener {
        name: "CONTROLLER".into(),
        host: "127.0.0.1".into(),
        port: node.controller_port,
        ..Default::default()
    };
    let request = AddRaftVoterRequest {
        cluster_id: None,
        voter_id: id,
        voter_directory_id: directory(node),
        listeners: vec![listener],
        timeout_ms: 20_000,
        ..Default::default()
    };
    let ResponseBody::AddRaftVoter(response) = client.call(request, 1) else { panic!("another") };
    (response.error_code, response.error_message.unwrap_or_default().to_string())
}

/// Until a change is taken: the one before may not be committed yet, or the new voter not caught up.
fn patiently(what: &str, mut change: impl FnMut() -> (i16, String)) {
    eventually(what, || {
        let (code, why) = change();
        assert!([0, 7].contains(&code), "{what}: {code} {why}");
        code == 0
    });
}

/// Until a node has said this at INFO.
fn says(node: &TestNode, wanted: &str) {
    eventually(wanted, || node.log().lines().any(|line| line.contains(" INFO ") && line.contains(wanted)));
}

fn controllers(port: u16) -> Vec<i32> {
    let request = DescribeClusterRequest { endpoint_type: 2, ..Default::default() };
    let answer = Client::try_connect(port).expect("connects").call(request, 1);
    let ResponseBody::DescribeCluster(answer) = answer else { panic!("another response") };
    answer.brokers.iter().map(|broker| broker.broker_id).collect()
}

#[test]
fn voters_move_from_files_into_the_log_and_can_change_then() {
    let mut cluster = Three::start();
    let follower = cluster.follower();
    let (code, why) = remove(&mut cluster.client(follower), follower, directory(&cluster.nodes[&follower]));
    assert_eq!(code, 35, "kraft.version 0: {why}");
    // The leader must hear where each voter lives; they tell it within their fetch timeout.
    eventually("the level can be raised", || {
        let (code, why) = raise_level(&mut cluster.client(follower), true);
        assert!([0, 95].contains(&code), "{code} {why}");
        assert!(code == 0 || why.contains("directories of voters"), "{why}");
        code == 0
    });
    assert_eq!(level(&mut cluster.client(follower)), 0, "it was only asked");
    assert_eq!(raise_level(&mut cluster.client(follower), false), (0, String::new()));
    assert_eq!(raise_level(&mut cluster.client(follower), false).0, 0, "it is there already");
    for node in 1..=3 {
        eventually("every node shows the level", || level(&mut cluster.client(node)) == 1);
        eventually("and who votes from where", || voters(&mut cluster.client(node)) == lives(&cluster));
        let at = directory(&cluster.nodes[&1]);
        let said = format!(
            "voters of the metadata quorum: changed 1 (directory id {at}), which had no directory id; changed 2"
        );
        says(&cluster.nodes[&node], &said);
    }

    all_come_back(&mut cluster);
    let gone = cluster.follower();
    one_leaves(&mut cluster, gone);
    it_comes_back(&mut cluster, gone);
    cluster.stop();
}

/// Where each voter has its metadata log.
fn lives(cluster: &Three) -> BTreeMap<i32, DirectoryId> {
    cluster.nodes.iter().map(|(&id, node)| (id, directory(node))).collect()
}

/// From what they wrote, with the voters in their files, which count no longer.
fn all_come_back(cluster: &mut Three) {
    for node in cluster.nodes.values_mut() {
        node.kill();
    }
    cluster.nodes.values_mut().for_each(TestNode::launch_unawaited);
    cluster.nodes.values_mut().for_each(TestNode::await_answer);
    cluster.await_brokers(&[1, 2, 3]);
    eventually("it knows the level", || level(&mut cluster.client(1)) == 1);
    eventually("it knows who votes", || voters(&mut cluster.client(1)) == lives(cluster));
}

/// The others forget its registration once its process is gone.
fn one_leaves(cluster: &mut Three, gone: i32) {
    let asked = (1..=3).find(|&node| node != gone).expect("another");
    let at = directory(&cluster.nodes[&gone]);
    let told = format!("voter {gone} has directory id {at}, not ");
    eventually("another directory differs from it", || {
        let (is_gone, said) = remove_by_tool(&cluster.nodes[&asked], gone, &random_uuid());
        assert!(!is_gone, "{said}");
        said.contains(&told)
    });
    eventually("it is removed", || remove_by_tool(&cluster.nodes[&asked], gone, &at.to_string()).0);
    eventually("it votes no longer", || !voters(&mut cluster.client(asked)).contains_key(&gone));
    let removed = format!("voters of the metadata quorum: removed {gone} (directory id {at}); they are ");
    // Who is removed learns of it as well: it goes on as an observer.
    cluster.nodes.values().for_each(|node| says(node, &removed));
    let port = cluster.nodes[&asked].controller_port;
    eventually("it is registered still", || controllers(port).len() == 3);
    cluster.nodes.get_mut(&gone).expect("there").kill();
    let request = UnregisterControllerRequest { controller_id: gone, ..Default::default() };
    let ResponseBody::UnregisterController(answer) = cluster.client(asked).call(request.clone(), 0) else {
        panic!("another")
    };
    assert_eq!(answer.error_code, 0, "{answer:?}");
    eventually("it is forgotten", || controllers(port).len() == 2);
    let ResponseBody::UnregisterController(answer) = cluster.client(asked).call(request, 0) else {
        panic!("another")
    };
    assert_eq!(answer.error_code, 136, "{answer:?}");
}

/// As an observer; it registers again, and is added again.
fn it_comes_back(cluster: &mut Three, gone: i32) {
    let at = directory(&cluster.nodes[&gone]);
    let asked = (1..=3).find(|&node| node != gone).expect("another");
    let port = cluster.nodes[&asked].controller_port;
    cluster.nodes.get_mut(&gone).expect("there").launch();
    eventually("it is registered again", || controllers(port).len() == 3);
    patiently("it is added", || add(&mut cluster.client(asked), gone, &cluster.nodes[&gone]));
    eventually("it votes again", || voters(&mut cluster.client(asked)) == lives(cluster));
    let added =
        format!("voters of the metadata quorum: added {gone} (directory id {at}); they are 1 (directory id ");
    cluster.nodes.values().for_each(|node| says(node, &added));
    assert_eq!(create(&mut cluster.client(gone), 7, "after", 3, 3), 0);
}

#[test]
fn the_leader_can_be_removed_and_others_lead() {
    let cluster = Three::start();
    let leader = cluster.leader(1);
    let other = cluster.follower();
    patiently("the level is raised", || {
        let (code, why) = raise_level(&mut cluster.client(other), false);
        (if code == 95 { 7 } else { code }, why)
    });
    let at = directory(&cluster.nodes[&leader]);
    patiently("the leader is removed", || {
        let (code, why) = remove(&mut cluster.client(other), leader, at);
        // An answer that was lost on the way: it has come about.
        if code == 127 && !voters(&mut cluster.client(other)).contains_key(&leader) {
            return (0, why);
        }
        (code, why)
    });
    eventually("another leads", || cluster.leader(other) != leader);
    assert_eq!(create(&mut cluster.client(leader), 7, "after", 3, 3), 0, "it is a broker still");
    cluster.stop();
}

#[test]
fn a_quorum_grows_from_one_by_nodes_that_join_or_are_added() {
    let id = random_uuid();
    let ports: Vec<(u16, u16)> = (0..3).map(|_| (free_port(), free_port())).collect();
    let servers: Vec<String> = ports.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
    let dynamic = format!("controller.quorum.bootstrap.servers={}", servers.join(","));
    let joining = format!("{dynamic}\ncontroller.quorum.auto.join.enable=true");
    let roles = "broker,controller";
    let mut one = prepared(None, 1, roles, ports[0], &id, &dynamic, &["--standalone"]);
    one.launch();
    assert_eq!(voters(&mut one.client()), BTreeMap::from([(1, directory(&one))]));

    // One that joins by itself.
    let mut two = prepared(None, 2, roles, ports[1], &id, &joining, &["--no-initial-controllers"]);
    two.launch();
    let both = BTreeMap::from([(1, directory(&one)), (2, directory(&two))]);
    eventually("node 2 votes", || voters(&mut one.client()) == both);

    // One that is added by hand.
    let mut three = prepared(None, 3, roles, ports[2], &id, &dynamic, &["--no-initial-controllers"]);
    three.launch();
    eventually("node 3 observes", || {
        quorum(&mut one.client()).observers.iter().any(|observer| observer.replica_id == 3)
    });
    assert_eq!(voters(&mut one.client()), both, "it does not join by itself");
    eventually("node 3 is added", || add_by_tool(&two, 3, &three));
    eventually("node 3 votes", || voters(&mut one.client()).len() == 3);
    // Tools look for the active controller among those that are registered, the one that began alone too.
    for node in [&one, &two, &three] {
        eventually("all are registered", || controllers(node.controller_port) == [1, 2, 3]);
    }

    // The one that joins loses its disk: under its own name, on another directory, it joins again (KIP-1186).
    let before = directory(&two);
    two.kill();
    std::fs::remove_dir_all(two.data()).expect("removed");
    let file = two.dir.path().join("server.properties");
    let (ok, said) = format(&file, &id, &["--no-initial-controllers"]);
    assert!(ok, "{said}");
    two.launch();
    assert_ne!(directory(&two), before);
    eventually("node 2 votes from its new disk", || {
        voters(&mut one.client()).get(&2) == Some(&directory(&two))
    });
    says(&three, &format!("removed 2 (directory id {before}); they are "));
    says(&three, &format!("added 2 (directory id {}); they are ", directory(&two)));

    // The first one goes, and the others carry on.
    assert!(one.stop_expecting_trouble().success(), "{}", one.log());
    assert_eq!(create(&mut three.client(), 7, "after", 1, 1), 0);
    eventually("both know it", || topics(&mut two.client()) == ["after"]);
    eventually("three vote still", || voters(&mut two.client()).len() == 3);
    assert!(three.stop_expecting_trouble().success(), "{}", three.log());
    two.kill();
}

#[test]
fn the_format_tool_says_which_flag_is_missing_or_too_much() {
    let dir = TempDir::new();
    let ports = (free_port(), free_port());
    let static_voters = format!("controller.quorum.voters=1@127.0.0.1:{}", ports.1);
    let dynamic = format!("controller.quorum.bootstrap.servers=127.0.0.1:{}", ports.1);
    let both = "broker,controller";
    let one = format!("1@127.0.0.1:{}:{}", ports.1, random_uuid());
    for (roles, voters, flags, wanted) in [
        (both, &dynamic, vec![], "you must specify one of the following: --standalone"),
        (both, &static_voters, vec!["--standalone"], "You cannot specify controller.quorum.voters"),
        (both, &static_voters, vec!["-I", &one], "You cannot specify controller.quorum.voters"),
        (both, &dynamic, vec!["--standalone", "--no-initial-controllers"], "contradict each other"),
        (both, &dynamic, vec!["--standalone", "-I", &one], "contradict each other"),
        ("broker", &dynamic, vec!["--standalone"], "You can only use --standalone on a controller"),
    ] {
        let file = properties(dir.path(), 1, roles, ports, voters);
        let (ok, said) = format(&file, &random_uuid(), &flags);
        assert!(!ok && said.contains(wanted), "{roles} {voters} {flags:?}: {said}");
        assert!(!dir.path().join("data/meta.properties").exists(), "nothing was formatted");
    }
    // And what is right is done.
    for (roles, voters, flags) in [
        (both, &static_voters, vec![]),
        (both, &dynamic, vec!["--standalone"]),
        (both, &dynamic, vec!["--no-initial-controllers"]),
        (both, &dynamic, vec!["-I", &one]),
        ("broker", &dynamic, vec![]),
        ("broker", &dynamic, vec!["-I", &one]),
    ] {
        let dir = TempDir::new();
        let file = properties(dir.path(), 1, roles, ports, voters);
        let (ok, said) = format(&file, &random_uuid(), &flags);
        assert!(ok, "{roles} {voters} {flags:?}: {said}");
    }
}
