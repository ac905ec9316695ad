//! What strangers on the listeners of brokers and controllers cannot take: the memory and the connections that
//! replication and heartbeats need.

use crate::harness::cluster::{Cluster, eventually, until};
use crate::harness::quorum::{metadata, prepared, random_uuid};
use crate::harness::{Client, TestNode, batch, free_port};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ProduceRequest, ResponseBody};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// What requests may take, without the eighth for replication.
const MEMORY_BYTES: usize = 1 << 20;
const ADDRESSES: u8 = 8;
const CONNECTIONS: usize = 24;
/// Less than what is missed while claims wait, were it a client's.
const HALF_BYTES: usize = 10_000;

/// A cluster, and each node's port of metrics.
struct Metered {
    cluster: Cluster,
    metrics: BTreeMap<i32, u16>,
}

fn start() -> Metered {
    let id = random_uuid();
    let ports: BTreeMap<i32, [u16; 3]> = (1..=3).map(|node| (node, [(); 3].map(|()| free_port()))).collect();
    let voters: Vec<String> =
        ports.iter().map(|(node, ports)| format!("{node}@127.0.0.1:{}", ports[1])).collect();
    let node = |(&node, &[port, controller, metrics]): (&i32, &[u16; 3])| {
        let more = format!(
            "controller.quorum.voters={}\nmetrics.listener=127.0.0.1:{metrics}\n\
             queued.max.request.bytes={MEMORY_BYTES}\nbroker.session.timeout.ms=3000\n\
             broker.heartbeat.interval.ms=500\nauto.leader.rebalance.enable=false",
            voters.join(",")
        );
        (node, prepared(None, node, "broker,controller", (port, controller), &id, &more, &[]))
    };
    let mut nodes: BTreeMap<i32, TestNode> = ports.iter().map(node).collect();
    nodes.values_mut().for_each(TestNode::launch_unawaited);
    nodes.values_mut().for_each(TestNode::await_answer);
    eventually("all brokers", || metadata(&mut nodes[&1].client()).brokers.len() == 3);
    let alive = nodes.keys().copied().collect();
    Metered {
        cluster: Cluster { nodes, alive },
        metrics: ports.iter().map(|(id, of)| (*id, of[2])).collect(),
    }
}

impl Metered {
    /// One value of a node's page of metrics, which needs none of the memory for requests.
    fn value(&self, node: i32, name: &str) -> Option<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics[&node])).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
        let mut page = String::new();
        stream.read_to_string(&mut page).ok()?;
        let line = page.lines().find(|line| line.starts_with(name) && !line.starts_with('#'))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    fn high_watermark(&self, node: i32) -> f64 {
        until("a high watermark", || self.value(node, "kafka_server_raft_metrics_high_watermark"))
    }
}

fn connect(from: [u8; 4], port: u16) -> TcpStream {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("binds");
    socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).expect("connects");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// Connections that have had an answer: nothing tells them from another node's.
fn strangers(port: u16, first: u8) -> Vec<TcpStream> {
    let api_versions = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];
    let addresses = (first..first + ADDRESSES).flat_map(|last| std::iter::repeat_n(last, CONNECTIONS));
    addresses
        .map(|last| {
            let mut stream = connect([127, 0, 0, last], port);
            stream.write_all(&api_versions).expect("sends");
            let mut length = [0; 4];
            stream.read_exact(&mut length).expect("an answer");
            stream.read_exact(&mut vec![0; u32::from_be_bytes(length) as usize]).expect("all of it");
            stream
        })
        .collect()
}

/// The beginning of a Fetch that never ends.
fn send_half_a_fetch(stream: &mut TcpStream) {
    let mut half = vec![0; HALF_BYTES];
    half[..8].copy_from_slice(&[0, 13, 0, 0, 0, 1, 0, 17]);
    stream.write_all(&half).expect("the kernel takes it");
}

fn produce(client: &mut Client) -> Option<i16> {
    let data = PartitionProduceData { index: 0, records: Some(batch(&["v"])), ..Default::default() };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    match client.try_call(request, 9)? {
        ResponseBody::Produce(response) => Some(response.responses[0].partition_responses[0].error_code),
        other => panic!("{other:?}"),
    }
}

#[test]
fn half_frames_on_all_listeners_do_not_fence_brokers() {
    let metered = start();
    let cluster = &metered.cluster;
    cluster.create("t", 1);
    cluster.await_in_sync();
    let ports = || cluster.nodes.values().flat_map(|node| [node.port, node.controller_port]);
    let mut held: Vec<TcpStream> = ports().flat_map(|port| strangers(port, 2)).collect();
    let before: Vec<f64> = (1..=3).map(|node| metered.high_watermark(node)).collect();
    held.iter_mut().for_each(send_half_a_fetch);
    for (&node, before) in metered.metrics.keys().zip(before) {
        let spent = MEMORY_BYTES as f64 * 0.9;
        let is_spent = || metered.value(node, "barnabas_request_memory_bytes") > Some(spent);
        eventually("the memory for requests is spent", is_spent);
        // A NoOpRecord every 500 ms: sessions of brokers would have ended three times.
        eventually("the metadata log goes on", || metered.high_watermark(node) > before + 20.0);
        assert!(is_spent(), "the strangers still hold it");
    }
    for node in cluster.nodes.values() {
        let log = node.log();
        assert!(!log.contains(" fenced:") && !log.contains("replicas shrank"), "{log}");
    }
    drop(held);
    let leader = until("a leader", || cluster.leader("t", 0));
    until("a record on all replicas", || {
        let mut client = Client::try_connect(cluster.nodes[&leader].port).ok()?;
        (produce(&mut client) == Some(0)).then_some(())
    });
    metered.cluster.stop();
}
