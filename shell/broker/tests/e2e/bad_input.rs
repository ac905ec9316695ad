//! What strangers send: each thing costs its sender its connection or an error, one line and a counter; never the node.

use crate::harness::{Client, TestNode, batch};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{ApiVersionsRequest, MetadataRequest, ProduceRequest, ResponseBody};
use barnabas_wire::{ApiKey, decode_response};
use bytes::Bytes;

fn is_alive(node: &TestNode) -> bool {
    node.client().try_call(MetadataRequest::default(), 1).is_some()
}

/// The first eight bytes of a request, and what follows.
fn frame(key: i16, version: i16, rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&key.to_be_bytes());
    body.extend_from_slice(&version.to_be_bytes());
    body.extend_from_slice(&7i32.to_be_bytes());
    body.extend_from_slice(rest);
    let mut frame = (body.len() as i32).to_be_bytes().to_vec();
    frame.extend_from_slice(&body);
    frame
}

#[test]
fn garbage_costs_one_connection_and_one_line() {
    let mut node = TestNode::start();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("negative length", (-1i32).to_be_bytes().to_vec()),
        ("a length of 2 GiB", i32::MAX.to_be_bytes().to_vec()),
        ("http", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
        ("an empty frame", 0i32.to_be_bytes().to_vec()),
        ("half a header", [0, 0, 0, 2, 0, 3].to_vec()),
        ("an API that there is not", frame(999, 0, &[0, 0])),
        ("an API of controllers", frame(ApiKey::Vote.number(), 0, &[0, 0])),
        ("a version that there is not", frame(ApiKey::Metadata.number(), 99, &[0, 0])),
        ("a version of −1", frame(ApiKey::Metadata.number(), -1, &[0, 0])),
        ("an array of 2^31−1", frame(ApiKey::Metadata.number(), 1, &[0, 0, 0x7f, 0xff, 0xff, 0xff])),
        ("a body that ends too soon", frame(ApiKey::Produce.number(), 9, &[0, 0])),
    ];
    for (what, bytes) in &cases {
        let mut client = node.client();
        client.send_raw(bytes);
        assert!(client.is_closed(), "{what}");
        assert!(is_alive(&node), "{what}");
    }
    // The two lengths above the limit, unknown APIs, unknown versions of Metadata: each kind is logged once.
    let kinds = [
        "negative length",
        "speaks HTTP",
        "allows",
        "without a header",
        "is not served here",
        "version 99",
        "version 1: ",
        "Produce",
    ];
    let log = node.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("connection closed")).collect();
    assert!(kinds.iter().all(|kind| lines.iter().any(|line| line.contains(kind))), "{log}");
    assert!(lines.len() < cases.len(), "{log}");
    assert!(node.stop().success());
}

#[test]
fn an_unknown_version_of_api_versions_is_answered_in_version_0() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.send_raw(&frame(ApiKey::ApiVersions.number(), 99, &[0, 0]));
    let answer = client.receive_frame().expect("an answer");
    let (header, body) = decode_response(answer, ApiKey::ApiVersions, 0).expect("version 0");
    let ResponseBody::ApiVersions(response) = body else { panic!("another response") };
    assert_eq!((header.correlation_id, response.error_code), (7, 35));
    // The connection goes on.
    assert!(client.try_call(ApiVersionsRequest::default(), 0).is_some());
    assert!(node.stop().success());
}

#[test]
fn bytes_behind_a_request_are_passed_over() {
    let mut node = TestNode::start();
    let mut client = node.client();
    // Metadata 13 for all topics as librdkafka 2.16 sends it.
    let body = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    client.send_raw(&frame(ApiKey::Metadata.number(), 13, &body));
    let (correlation_id, response) = client.receive(ApiKey::Metadata, 13);
    assert!(correlation_id == 7 && matches!(response, ResponseBody::Metadata(_)));
    assert!(node.stop().success());
}

fn produce(client: &mut Client, records: Bytes) -> i16 {
    let data = PartitionProduceData { index: 0, records: Some(records), ..Default::default() };
    let topic = TopicProduceData { name: "t".into(), partition_data: vec![data], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 5_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    response.responses[0].partition_responses[0].error_code
}

#[test]
fn broken_batches_get_kafkas_codes() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("t", 1, &[("max.message.bytes", "1000")]);
    let sound = batch(&["a"]);
    let mut wrong_crc = sound.to_vec();
    *wrong_crc.last_mut().expect("bytes") ^= 1;
    assert_eq!(produce(&mut client, Bytes::from(wrong_crc)), 2, "CORRUPT_MESSAGE");
    assert_eq!(
        produce(&mut client, Bytes::from_static(b"garbage that is long enough to look like a batch")),
        2
    );
    assert_eq!(produce(&mut client, batch(&[&"x".repeat(2000)])), 10, "MESSAGE_TOO_LARGE");
    assert_eq!(produce(&mut client, sound), 0);
    assert!(node.stop().success());
}

#[test]
fn a_slow_sender_of_a_large_frame_takes_only_what_it_has_sent() {
    let mut node = TestNode::start();
    let before = node.rss_bytes();
    let mut slow: Vec<Client> = (0..50).map(|_| node.client()).collect();
    for client in &mut slow {
        client.send_raw(&(90i32 << 20).to_be_bytes());
        client.send_raw(&[0; 1000]);
    }
    assert!(is_alive(&node));
    let grown = node.rss_bytes().saturating_sub(before);
    assert!(grown < 20 << 20, "{grown} bytes for 50 half frames");
    drop(slow);
    assert!(node.stop().success());
}

#[test]
fn tls_and_http_clients_are_each_named_once_a_minute() {
    let mut node = TestNode::start();
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 500]].concat();
    let hosts: [(&str, &[u8]); 2] =
        [("speaks TLS", &hello), ("speaks HTTP", b"GET /metrics HTTP/1.1\r\n\r\n")];
    for (word, bytes) in hosts {
        for _ in 0..20 {
            let mut client = node.client();
            client.send_raw(bytes);
            assert!(client.is_closed(), "{word}");
        }
    }
    let log = node.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("connection closed")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains("Set security.protocol=PLAINTEXT at the client"), "{log}");
    assert!(lines[0].contains("the peer speaks TLS") && lines[1].contains("the peer speaks HTTP"), "{log}");
    assert!(node.stop().success());
}

/// Bytes that are no letters become replacement characters, three bytes each: the answer could not name what was asked
/// for.
#[test]
fn name_that_cannot_be_echoed_costs_no_error_line() {
    let mut node = TestNode::start();
    let name = [&20_000i16.to_be_bytes()[..], &[0xff; 20_000]].concat();
    let mut client = node.client();
    client.send_raw(&frame(ApiKey::Metadata.number(), 1, &[&[0, 0, 0, 0, 0, 1][..], &name].concat()));
    assert!(client.is_closed());
    assert!(is_alive(&node));
    // No WARN and no ERROR.
    assert!(node.stop().success());
}
