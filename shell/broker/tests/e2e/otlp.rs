//! Metrics pushed as OTLP: a receiver of this test reads them and compares them with the metrics page.

use crate::harness::patience::until;
use crate::harness::three_dirs::produce;
use crate::harness::{TestNode, free_port};
use barnabas_telemetry::otlp::{Attribute, Item, ReadSpan, Value, read, read_spans};
use barnabas_wire::records::Codec;
use barnabas_wire::records::compression::inflate_within;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// One push: its headers in lower case, and its body as it came.
struct Push {
    headers: Vec<String>,
    body: Vec<u8>,
}

/// Takes one push and answers it.
fn take(listener: &TcpListener, status: &str) -> Push {
    let (stream, _) = listener.accept().expect("the node connects");
    let mut reader = BufReader::new(stream);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim().is_empty() {
            break;
        }
        headers.push(line.trim().to_ascii_lowercase());
    }
    let length = headers.iter().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    reader.read_exact(&mut body).expect("a body");
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes()).expect("answers");
    Push { headers, body }
}

/// Counters and gauges by name and labels, as the page writes them; and the resource.
fn points(push: &Push) -> (BTreeMap<String, f64>, Vec<String>) {
    let bytes = inflate_within(Codec::Gzip, push.body.clone().into(), 64 << 20).expect("gzip");
    let (mut points, mut resource) = (BTreeMap::new(), Vec::new());
    let text = |value: &Attribute<'_>| match value {
        Attribute::Text(text) => (*text).to_owned(),
        other => panic!("{other:?}"),
    };
    let mut each = |item: Item<'_>| match item {
        Item::Resource(attributes) => {
            resource.extend(attributes.iter().map(|(name, value)| format!("{name}={}", text(value))));
        }
        Item::Number(number) => {
            let labels: Vec<String> =
                number.attributes.iter().map(|(name, value)| format!("{name}=\"{}\"", text(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let Value::Double(value) = number.value else { panic!("{number:?}") };
            points.insert(format!("{}{labels}", number.name), value);
        }
        Item::OtherKind => {}
    };
    read(&bytes, &mut each).expect("OTLP");
    (points, resource)
}

fn page(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sends");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}

#[test]
fn pushed_metrics_are_those_of_the_page() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (to, port) = (listener.local_addr().expect("an address"), free_port());
    let mut node = TestNode::start_with(&[
        &format!("otlp.endpoint=http://{to}"),
        "otlp.interval.ms=1000",
        "otlp.headers=api-key=s3cret%2C1",
        &format!("metrics.listener=127.0.0.1:{port}"),
    ]);
    let push = take(&listener, "200 OK");
    assert_eq!(push.headers[0], "post /v1/metrics http/1.1");
    for header in ["api-key: s3cret,1", "content-type: application/x-protobuf", "content-encoding: gzip"] {
        assert!(push.headers.iter().any(|line| line == header), "{header}: {:?}", push.headers);
    }
    let (points, resource) = points(&push);
    assert!(resource.contains(&"service.name=barnabas".to_owned()), "{resource:?}");
    assert!(resource.contains(&"service.instance.id=1".to_owned()), "{resource:?}");
    // All series of counters and gauges are there, and what does not move has the page's value.
    let page = page(port);
    let wanted: Vec<&str> = page
        .lines()
        .filter(|line| {
            line.starts_with("barnabas_log_directory_total_bytes")
                || line.starts_with("process_max_fds")
                || line.starts_with("barnabas_request_memory_limit_bytes")
                || line.starts_with("kafka_controller_")
        })
        .collect();
    assert!(wanted.len() > 10, "{page}");
    for line in wanted {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        if name.contains("offset") || name.contains("records") {
            continue;
        }
        assert_eq!(points.get(name).copied(), value.parse().ok(), "{line}");
    }
    let counters = points.keys().filter(|name| name.starts_with("kafka_server_brokertopicmetrics_")).count();
    assert!(counters >= 8, "{points:?}");
    assert!(!node.log().contains("s3cret"));
    assert!(node.stop().success());
}

#[test]
fn receiver_that_refuses_makes_one_line_and_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (to, port) = (listener.local_addr().expect("an address"), free_port());
    let mut node = TestNode::start_with(&[
        &format!("otlp.endpoint=http://{to}/in"),
        "otlp.interval.ms=1000",
        &format!("metrics.listener=127.0.0.1:{port}"),
    ]);
    for _ in 0..2 {
        assert_eq!(take(&listener, "503 Busy").headers[0], "post /in http/1.1");
    }
    take(&listener, "200 OK");
    until("it is taken again", || node.log().contains("otlp.endpoint takes metrics again").then_some(()));
    assert_eq!(node.log().matches("metrics cannot be pushed to otlp.endpoint").count(), 1, "{}", node.log());
    let page = page(port);
    for line in
        ["barnabas_otlp_pushes_total{result=\"failed\"} 2", "barnabas_otlp_pushes_total{result=\"taken\"} 1"]
    {
        assert!(page.contains(line), "{line}");
    }
    // The next one is not taken, and the stop does not wait for it.
    assert!(node.stop_expecting_trouble().success());
}

/// The spans of the first push to `/v1/traces` that has one of `name`; pushes of metrics before it are taken.
fn spans_with(listener: &TcpListener, name: &str) -> Vec<ReadSpan> {
    loop {
        let push = take(listener, "200 OK");
        if push.headers[0] != "post /v1/traces http/1.1" {
            assert_eq!(push.headers[0], "post /v1/metrics http/1.1");
            continue;
        }
        let bytes = inflate_within(Codec::Gzip, push.body.into(), 64 << 20).expect("gzip");
        let spans = read_spans(&bytes).expect("OTLP");
        if spans.iter().any(|span| span.name == name) {
            return spans;
        }
    }
}

#[test]
fn sampled_requests_are_pushed_as_spans_with_their_phases() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (to, port) = (listener.local_addr().expect("an address"), free_port());
    let mut node = TestNode::start_with(&[
        &format!("otlp.endpoint=http://{to}"),
        "otlp.traces.sample.ratio=1",
        "otlp.traces.per.second.max=1000",
        &format!("metrics.listener=127.0.0.1:{port}"),
    ]);
    let mut client = node.client();
    client.create_topic("spans", 1, &[]);
    assert_eq!(produce(&mut client, "spans", 0, "a"), 0);
    let spans = spans_with(&listener, "Produce");
    let root = spans.iter().find(|span| span.name == "Produce").expect("it is there");
    assert_eq!((root.trace.len(), root.id.len(), root.kind, root.is_error), (16, 8, 2, false));
    for attribute in ["kafka.api.name=Produce", "kafka.error_code=0", "messaging.system=kafka"] {
        assert!(root.attributes.iter().any(|one| one == attribute), "{attribute}: {root:?}");
    }
    let children: Vec<&ReadSpan> = spans.iter().filter(|span| span.parent == root.id).collect();
    assert!(children.iter().any(|span| span.name == "sync"), "{children:?}");
    assert!(children.iter().all(|span| span.trace == root.trace));
    let took: u64 = children.iter().map(|span| span.end_ns - span.start_ns).sum();
    assert_eq!(took, root.end_ns - root.start_ns, "phases add up");
    until("it is counted", || {
        let page = page(port);
        let taken = "barnabas_otlp_span_requests_total{result=\"taken\"} ";
        let line = page.lines().find_map(|line| line.strip_prefix(taken)).expect("a counter");
        (line != "0").then_some(())
    });
    // The next pushes are not taken, and the stop does not wait for them.
    drop(listener);
    assert!(node.stop_expecting_trouble().success());
}
