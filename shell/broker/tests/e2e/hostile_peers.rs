//! What one peer can take from others: memory by frames that it does not end, by answers that it does not read;
//! connections.
//!
//! A good producer of the same address is served all the while, and what the peer held comes back.

use crate::harness::patience::eventually;
use crate::harness::{Client, TestNode, batch};
use barnabas_wire::ApiKey;
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{DescribeConfigsRequest, MetadataRequest, ProduceRequest, ResponseBody};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// A batch is taken, on a connection that lives or on a new one.
fn produce(client: &mut Client) {
    let records = batch(&["v"; 100]);
    let data = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
}

/// Sends until the node reads no more.
fn send_some(stream: &mut TcpStream, bytes: &[u8]) {
    stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let _ = stream.write_all(bytes);
}

fn connect(node: &TestNode, from: [u8; 4]) -> std::io::Result<TcpStream> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, node.port)).into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// Whether the node has closed the connection, which it is to do within a minute.
fn is_closed(stream: &mut TcpStream) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    match stream.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => !matches!(error.kind(), TimedOut | WouldBlock),
    }
}

#[test]
fn half_sent_frames_do_not_hold_up_a_producer() {
    let mut node = TestNode::start_with(&["queued.max.request.bytes=33554432"]);
    node.client().create_topic("t", 1, &[]);
    let mut good = node.client();
    produce(&mut good);
    let mut slow: Vec<TcpStream> =
        (0..4).map(|_| connect(&node, [127, 0, 0, 1]).expect("connects")).collect();
    let half = [&(99i32 << 20).to_be_bytes()[..], &vec![0; 20 * MIB]].concat();
    slow.iter_mut().for_each(|stream| send_some(stream, &half));
    for _ in 0..50 {
        produce(&mut good);
        produce(&mut node.client());
    }
    let given_up = |node: &TestNode| node.log().contains("others wait for the memory that it holds");
    for _ in 0..300 {
        if given_up(&node) {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(given_up(&node), "{}", node.log());
    produce(&mut good);
    assert!(node.stop().success());
}

/// Metadata, version 4, of topics that there are not: the answer names each.
fn metadata_of_unknown(topics: usize) -> Vec<u8> {
    let mut body = vec![0, 3, 0, 4, 0, 0, 0, 7, 0xff, 0xff];
    body.extend_from_slice(&(topics as i32).to_be_bytes());
    for topic in 0..topics {
        body.extend_from_slice(&[0, 10]);
        body.extend_from_slice(format!("none-{topic:05}").as_bytes());
    }
    body.push(0);
    [&(body.len() as i32).to_be_bytes()[..], &body].concat()
}

#[test]
fn answers_that_are_not_read_are_bounded() {
    let mut node = TestNode::start();
    node.client().create_topic("t", 1, &[]);
    let mut good = node.client();
    produce(&mut good);
    let base = node.rss_bytes();
    let requests = metadata_of_unknown(2_000).repeat(128);
    let mut lazy: Vec<TcpStream> =
        (0..8).map(|_| connect(&node, [127, 0, 0, 1]).expect("connects")).collect();
    std::thread::scope(|scope| {
        lazy.iter_mut().for_each(|stream| drop(scope.spawn(|| send_some(stream, &requests))));
    });
    for _ in 0..50 {
        produce(&mut good);
        std::thread::sleep(Duration::from_millis(50));
    }
    let grown = node.rss_bytes().saturating_sub(base) as usize;
    assert!(grown < 48 * MIB, "{} MiB more for {} connections", grown / MIB, lazy.len());
    assert!(node.stop().success());
}

#[test]
fn pipelined_requests_are_answered_when_they_are_read() {
    let mut node = TestNode::start();
    let mut client = node.client();
    let all = DescribeConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configuration_keys: None,
        ..Default::default()
    };
    let request =
        DescribeConfigsRequest { resources: vec![all], include_synonyms: true, ..Default::default() };
    for _ in 0..300 {
        client.send(request.clone(), 1);
    }
    for sent in 1..=300 {
        let (correlation_id, _) = client.receive(ApiKey::DescribeConfigs, 1);
        assert_eq!(correlation_id, sent);
    }
    assert!(node.stop().success());
}

#[test]
fn connections_of_one_address_leave_room_for_others() {
    let mut node = TestNode::start_with(&["max.connections=200"]);
    node.client().create_topic("t", 1, &[]);
    // Two bytes of a length, and nothing more: Kafka's clients send a request as soon as they are connected.
    let mut silent: Vec<TcpStream> = Vec::new();
    for _ in 0..300 {
        let mut stream = connect(&node, [127, 0, 0, 1]).expect("the kernel connects");
        let _ = stream.write_all(&[0, 0]);
        silent.push(stream);
    }
    let mut other = connect(&node, [127, 0, 0, 2]).expect("connects");
    // Metadata, version 1, of all topics.
    other
        .write_all(&[0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
        .expect("sends");
    let mut length = [0; 4];
    other.read_exact(&mut length).expect("an answer");
    // Those that are one too many, and the rest of the last half, are closed: the same address is served again.
    silent.iter().for_each(|stream| stream.set_nonblocking(true).expect("a socket"));
    let closed =
        |silent: &mut Vec<TcpStream>| silent.iter_mut().map(is_closed).filter(|is_so| *is_so).count();
    eventually("half of the places are free", || closed(&mut silent) >= 200);
    produce(&mut node.client());
    let log = node.log();
    let lines =
        log.lines().filter(|line| line.contains("connection refused") || line.contains("connection closed"));
    assert!(lines.count() <= 4, "{log}");
    let is_refused = log.contains("for other addresses") || log.contains("a new one has its place");
    assert!(is_refused && log.contains("no request came"), "{log}");
    assert!(node.stop().success());
}

/// While not half of all places are taken, a connection may be silent for half a minute.
#[test]
fn silent_connections_give_way_to_a_client_of_their_address() {
    const PER_ADDRESS: usize = 20;
    let limit = format!("max.connections.per.ip={PER_ADDRESS}");
    let mut node = TestNode::start_with(&[&limit, "max.connections=1000"]);
    node.client().create_topic("t", 1, &[]);
    let connected = || {
        let mut stream = connect(&node, [127, 0, 0, 1]).expect("the kernel connects");
        let _ = stream.write_all(&[0, 0]);
        stream.set_nonblocking(true).expect("a socket");
        stream
    };
    let mut silent: Vec<TcpStream> = (0..2 * PER_ADDRESS).map(|_| connected()).collect();
    let held = |silent: &mut Vec<TcpStream>| silent.iter_mut().map(is_closed).filter(|is_so| !is_so).count();
    // The client that made the topic may have left its place after the others were refused.
    eventually("no place is left", || {
        let missing = PER_ADDRESS.saturating_sub(held(&mut silent));
        silent.extend((0..missing).map(|_| connected()));
        missing == 0 && held(&mut silent) == PER_ADDRESS
    });
    // Kafka's clients come back until they are served.
    for _ in 0..5 {
        eventually("it is served", || {
            let client = Client::try_connect(node.port).ok();
            client.is_some_and(|mut client| client.try_call(MetadataRequest::default(), 1).is_some())
        });
    }
    assert!(held(&mut silent) > 0, "no more of them than have to go");
    let log = node.log();
    assert!(log.contains("a new one has its place") && !log.contains("no request came within"), "{log}");
    assert!(node.stop().success());
}

/// Ten connections for each that one address may make in a second.
#[test]
fn address_that_connects_again_and_again_is_refused() {
    const MAX: usize = 100;
    let mut node = TestNode::start_with(&[&format!("connections.per.ip.second.max={MAX}")]);
    node.client().create_topic("t", 1, &[]);
    let mut good = node.client();
    let begun = Instant::now();
    let mut streams: Vec<TcpStream> =
        (0..10 * MAX).map(|_| connect(&node, [127, 0, 0, 2]).expect("the kernel connects")).collect();
    // Another address is served meanwhile.
    produce(&mut good);
    produce(&mut node.client());
    let decided = || node.log().contains("connections.per.ip.second.max allows");
    crate::harness::patience::until("a refusal", || decided().then_some(()));
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let is_refused = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).expect("a socket");
        is_closed(stream)
    };
    let served = || streams.iter_mut().filter_map(|stream| (!is_refused(stream)).then_some(())).count();
    let served = crate::harness::patience::until("the last connection", {
        let mut served = served;
        move || Some(served()).filter(|served| *served <= (seconds + 1) * MAX)
    });
    println!("{served} of {} served in {seconds} s", 10 * MAX);
    let log = node.log();
    let lines = log.lines().filter(|line| line.contains("connections.per.ip.second.max allows"));
    assert_eq!(lines.count(), 1, "once a minute");
    assert!(node.stop().success());
}
