//! One of three brokers has no room: the others lead its partitions within a second, until it has some.
//!
//! The operator asks for more room than there is, so that no disk need be filled; `make disk-full` fills one.

use crate::harness::cluster::{Cluster, ask, comes_back, eventually, leaders, until};
use crate::harness::{BROKER, batch};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ProduceRequest, ResponseBody};
use std::time::{Duration, Instant};

const PARTITIONS: i32 = 6;
const FULL: i32 = 2;
/// The lines at WARN and ERROR.
const EXPECTED: [&str; 2] = ["nearly full", "log.dir.min.free.bytes="];
/// The balance looks every second whether the preferred leaders could lead.
const SETTINGS: &str = "offsets.topic.num.partitions=6\nauto.leader.rebalance.enable=true\n\
     leader.imbalance.check.interval.seconds=1";

/// Sets `log.dir.min.free.bytes` of the broker, or takes it back.
fn keep_free(cluster: &Cluster, bytes: Option<&str>) {
    let mut client = cluster.nodes[&FULL].client();
    assert_eq!(client.alter_config(1, (BROKER, &FULL.to_string()), "log.dir.min.free.bytes", bytes), 0);
}

/// Sends one record for a partition to its leader, until it is acknowledged.
fn produce(cluster: &Cluster, index: i32) {
    until("an acknowledgement", || {
        let data = PartitionProduceData { index, records: Some(batch(&["a"])), ..Default::default() };
        let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
        let mut client = cluster.client_of_leader("t", index);
        let ResponseBody::Produce(response) = ask(&mut client, request, 8)? else {
            panic!("another response")
        };
        let code = response.responses[0].partition_responses[0].error_code;
        assert!(code == 0 || comes_back(code), "{code}");
        (code == 0).then_some(())
    });
}

#[test]
fn leadership_leaves_a_broker_without_room_and_comes_back_with_it() {
    let mut cluster = Cluster::start(SETTINGS);
    cluster.create("t", PARTITIONS);
    cluster.await_in_sync();
    eventually("each leads some", || leaders(&cluster, "t", PARTITIONS).len() == 3);
    (0..PARTITIONS).for_each(|index| produce(&cluster, index));

    let no_room = crate::harness::no_room(&cluster.nodes[&FULL].data());
    let (_, bytes) = no_room.split_once('=').expect("a line of properties");
    keep_free(&cluster, Some(bytes));
    let said = Instant::now();
    eventually("producers would be refused", || cluster.nodes[&FULL].log().contains("nearly full"));
    (0..PARTITIONS).for_each(|index| produce(&cluster, index));
    println!("full: all partitions were acknowledged after {:?}", said.elapsed());
    eventually("the others lead all of it", || !leaders(&cluster, "t", PARTITIONS).contains(&FULL));

    // Neither the balance gives it back, nor does it get a new one.
    cluster.create("u", PARTITIONS);
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        for topic in ["t", "u"] {
            assert!(!leaders(&cluster, topic, PARTITIONS).contains(&FULL), "{topic}");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    cluster.await_in_sync();
    eventually("it says why", || {
        cluster.nodes[&FULL].log().contains("moves to in-sync replicas on other brokers")
    });

    // A new active controller hears it again.
    let other = cluster.nodes.keys().copied().find(|&node| node != FULL).expect("there are three");
    cluster.kill(other);
    cluster.launch(other);
    cluster.await_in_sync();
    eventually("the others lead all of it again", || !leaders(&cluster, "t", PARTITIONS).contains(&FULL));

    keep_free(&cluster, None);
    eventually("it leads again", || leaders(&cluster, "t", PARTITIONS).contains(&FULL));
    (0..PARTITIONS).for_each(|index| produce(&cluster, index));
    for node in cluster.nodes.values_mut() {
        assert!(node.stop_expecting_trouble().success(), "{}", node.log());
        let log = node.log();
        let mut trouble = crate::harness::trouble(&log);
        let expected = |line: &str| EXPECTED.iter().any(|words| line.contains(words));
        assert_eq!(trouble.find(|line| !expected(line)), None);
    }
}
