//! Client metrics (KIP-714) over the wire: what a client is asked for, which pushes are refused, and the metrics page.

use crate::harness::{Client, TestNode, binary, free_port, metrics_page};
use barnabas_base::{ErrorCode, Uuid};
use barnabas_wire::messages::{
    ApiVersionsRequest, GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest, ResponseBody,
};
use bytes::Bytes;

/// One gauge `org.apache.kafka.consumer.lag` of 1.5, in OTLP.
const PUSH: &[u8] =
    b"\x0a0\x12.\x12,\x0a\x1dorg.apache.kafka.consumer.lag*\x0b\x0a\x09!\x00\x00\x00\x00\x00\x00\xf8?";

fn subscription(client: &mut Client, id: Uuid) -> GetTelemetrySubscriptionsResponse {
    let request = GetTelemetrySubscriptionsRequest { client_instance_id: id, ..Default::default() };
    match client.call(request, 0) {
        ResponseBody::GetTelemetrySubscriptions(response) => *response,
        other => panic!("{other:?}"),
    }
}

fn push(client: &mut Client, request: PushTelemetryRequest) -> i16 {
    match client.call(request, 0) {
        ResponseBody::PushTelemetry(response) => response.error_code,
        other => panic!("{other:?}"),
    }
}

fn subscribe(node: &TestNode, words: &str) -> String {
    let address = format!("127.0.0.1:{}", node.port);
    let ran = binary()
        .args(["client-metrics", "--bootstrap-server", &address, "--alter"])
        .args(words.split(' '))
        .output()
        .expect("the tool runs");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn push_of_a_subscribed_client_is_on_the_metrics_page() {
    let port = free_port();
    let mut node = TestNode::start_with(&[&format!("metrics.listener=127.0.0.1:{port}")]);
    subscribe(
        &node,
        "--name s --metrics org.apache.kafka. --interval 60000 --match client_software_name=tester",
    );
    let mut client = node.client();
    // It has not named its software yet.
    let asked = subscription(&mut client, Uuid::ZERO);
    assert_eq!((asked.error_code, asked.requested_metrics.len(), asked.push_interval_ms), (0, 0, 300_000));
    let named = ApiVersionsRequest {
        client_software_name: "tester".into(),
        client_software_version: "1".into(),
        ..ApiVersionsRequest::default()
    };
    client.call(named, 3);
    let asked = subscription(&mut client, Uuid::ZERO);
    assert!(!asked.client_instance_id.is_zero());
    assert_eq!(asked.requested_metrics.len(), 1);
    assert_eq!((asked.push_interval_ms, asked.telemetry_max_bytes), (60_000, 1 << 20));
    let sound = PushTelemetryRequest {
        client_instance_id: asked.client_instance_id,
        subscription_id: asked.subscription_id,
        metrics: Bytes::from_static(PUSH),
        ..PushTelemetryRequest::default()
    };
    assert_eq!(push(&mut client, sound.clone()), 0);
    assert_eq!(push(&mut client, sound.clone()), ErrorCode::ThrottlingQuotaExceeded.code());
    let broken =
        PushTelemetryRequest { metrics: Bytes::from_static(&[0xff]), terminating: true, ..sound.clone() };
    assert_eq!(push(&mut client, broken), ErrorCode::InvalidRecord.code());
    assert_eq!(push(&mut client, sound), ErrorCode::InvalidRequest.code());
    let page = metrics_page(port).expect("a page");
    let id = asked.client_instance_id;
    let sample = page.lines().find(|line| line.starts_with("barnabas_telemetry_consumer_lag{"));
    let sample = sample.unwrap_or_else(|| panic!("{page}"));
    assert!(sample.contains(&format!("client_instance_id=\"{id}\"")) && sample.ends_with(" 1.5"), "{sample}");
    assert!(page.contains("barnabas_client_metrics_pushes_total{result=\"malformed\"} 1"), "{page}");
    assert!(node.stop().success());
}

#[test]
fn match_that_is_no_expression_is_refused_when_it_is_set() {
    let mut node = TestNode::start();
    let said = subscribe(&node, "--name s --match client_id=[a");
    assert!(
        said.contains("Illegal client matching pattern: client_id=[a (unclosed character class)"),
        "{said}"
    );
    let said = subscribe(&node, "--name s --match client_id=a.*");
    assert_eq!(said.trim(), "Altered client metrics config for s.");
    assert!(node.stop().success());
}
