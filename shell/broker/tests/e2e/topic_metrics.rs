//! What the metrics page says by topic, by partition and in other programs' names, on a running node.

use crate::harness::quorum::eventually;
use crate::harness::{Client, TestNode, batch, free_port};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{DeleteTopicsRequest, FetchRequest, ProduceRequest, ResponseBody};
use std::io::{Read, Write};
use std::net::TcpStream;

struct Metered {
    node: TestNode,
    port: u16,
}

impl Metered {
    fn start(settings: &[&str]) -> Self {
        let port = free_port();
        let listener = format!("metrics.listener=127.0.0.1:{port}");
        let settings: Vec<&str> = settings.iter().copied().chain([&*listener]).collect();
        Self { node: TestNode::start_with(&settings), port }
    }

    /// Head and body.
    fn ask(&self, query: &str, header: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        let request = format!("GET /metrics{query} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
        stream.write_all(request.as_bytes()).expect("sends");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }

    fn page(&self, query: &str) -> String {
        let (head, body) = self.ask(query, "");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body
    }

    fn get(&self, series: &str) -> Option<f64> {
        value(&self.page(""), series)
    }

    fn of_topic(&self, figure: &str, topic: &str) -> Option<f64> {
        self.get(&format!("kafka_server_brokertopicmetrics_{figure}_total{{topic=\"{topic}\"}}"))
    }

    fn of_all(&self, figure: &str) -> Option<f64> {
        self.get(&format!("kafka_server_brokertopicmetrics_{figure}_total"))
    }
}

fn value(page: &str, series: &str) -> Option<f64> {
    let line =
        page.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

/// The answer's error code.
fn produce(client: &mut Client, topic: &str, values: &[&str]) -> i16 {
    let partition = PartitionProduceData { index: 0, records: Some(batch(values)), ..Default::default() };
    let topic =
        TopicProduceData { name: topic.into(), partition_data: vec![partition], ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    response.responses[0].partition_responses[0].error_code
}

/// The error code of a Fetch.
fn fetch(client: &mut Client, topic: &str, offset: i64) -> i16 {
    let partition =
        FetchPartition { fetch_offset: offset, partition_max_bytes: 1 << 20, ..Default::default() };
    let topic = FetchTopic { topic: topic.into(), partitions: vec![partition], ..Default::default() };
    let request = FetchRequest {
        replica_id: -1,
        max_bytes: 1 << 20,
        session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
    response.responses[0].partitions[0].error_code
}

const OFFSET_OUT_OF_RANGE: i16 = 1;
const MESSAGE_TOO_LARGE: i16 = 10;

#[test]
fn topic_has_figures_of_its_own_until_it_is_deleted() {
    let mut metered = Metered::start(&["metrics.topics.max=1"]);
    let mut client = metered.node.client();
    client.create_topic("first", 1, &[("max.message.bytes", "200")]);
    client.create_topic("second", 1, &[]);
    assert_eq!(produce(&mut client, "first", &["a", "b"]), 0);
    assert_eq!(produce(&mut client, "first", &["c"]), 0);
    assert_eq!(produce(&mut client, "second", &["d"]), 0);
    let large = "x".repeat(500);
    assert_eq!(produce(&mut client, "first", &[&large]), MESSAGE_TOO_LARGE);
    assert_eq!(fetch(&mut client, "first", 0), 0);
    assert_eq!(fetch(&mut client, "first", 9), OFFSET_OUT_OF_RANGE);
    for (figure, expected) in [
        ("messagesin", 3.0),
        ("totalproducerequests", 3.0),
        ("failedproducerequests", 1.0),
        ("totalfetchrequests", 2.0),
        ("failedfetchrequests", 1.0),
    ] {
        assert_eq!(metered.of_topic(figure, "first"), Some(expected), "{figure}");
    }
    let bytes = |figure| metered.of_topic(figure, "first").expect("there");
    assert_eq!(bytes("bytesin"), bytes("bytesout"));
    assert!(bytes("bytesin") > 0.0 && bytes("bytesrejected") > 500.0);
    // The other one has no place.
    assert_eq!(metered.of_topic("messagesin", "second"), None);
    assert_eq!(metered.of_topic("messagesin", "(others)"), Some(1.0));
    assert_eq!(metered.get("barnabas_topics_unlisted"), Some(1.0));
    assert_eq!(metered.of_all("messagesin"), Some(4.0));
    assert_eq!(metered.of_all("totalproducerequests"), Some(4.0));

    let names = vec!["first".into()];
    let request = DeleteTopicsRequest { topic_names: names, timeout_ms: 10_000, ..Default::default() };
    client.call(request, 5);
    eventually("its series have gone", || metered.of_topic("messagesin", "first").is_none());
    assert_eq!(metered.get("barnabas_topics_unlisted"), Some(0.0));
    assert_eq!(produce(&mut client, "second", &["e", "f"]), 0);
    assert_eq!(metered.of_topic("messagesin", "second"), Some(2.0));
    assert_eq!(metered.of_all("messagesin"), Some(6.0));
    assert!(metered.node.stop().success());
}

#[test]
fn query_gives_partitions_and_other_programs_names() {
    let mut metered = Metered::start(&[]);
    let mut client = metered.node.client();
    client.create_topic("t", 2, &[]);
    assert_eq!(produce(&mut client, "t", &["a", "b"]), 0);
    let partition = "{topic=\"t\",partition=\"0\"}";
    assert!(!metered.page("").contains(partition), "only where it is asked for");
    for query in ["?topic=t", "?names=strimzi", "?names=reporter", "?names=confluent"] {
        let page = metered.page(query);
        let get = |name: &str| value(&page, &format!("{name}{partition}"));
        assert_eq!(get("kafka_log_log_logendoffset"), Some(2.0), "{query}");
        assert_eq!(get("kafka_log_log_logstartoffset"), Some(0.0), "{query}");
        assert_eq!(get("kafka_cluster_partition_replicascount"), Some(1.0), "{query}");
        assert_eq!(get("kafka_cluster_partition_atminisr"), Some(1.0), "{query}");
        assert_eq!(get("kafka_cluster_partition_underminisr"), Some(0.0), "{query}");
        assert!(get("kafka_log_log_size").is_some(), "{query}");
    }
    for (query, series) in [
        ("?names=strimzi", "kafka_server_raftmetrics_current_state{current_state=\"leader\"}"),
        ("?names=reporter", "kafka_server_brokertopicmetrics_messagesinpersec_total{topic=\"t\"}"),
        ("?names=confluent", "kafka_server_replicafetchermanager_maxlag{clientid=\"Replica\"}"),
        ("?names=exporter", "kafka_topic_partition_current_offset{topic=\"t\",partition=\"1\"}"),
        ("?names=exporter", "kafka_topic_partitions{topic=\"t\"}"),
    ] {
        assert!(value(&metered.page(query), series).is_some(), "{series} at {query}");
    }
    let exporter = metered.page("?names=exporter");
    assert_eq!(value(&exporter, &format!("kafka_topic_partition_current_offset{partition}")), Some(2.0));
    assert!(!exporter.contains("barnabas_"), "it is another program's page");
    assert!(metered.page("?names=lag-exporter").contains("kafka_partition_latest_offset{cluster_name="));
    assert!(metered.ask("?names=nonsense", "").0.starts_with("HTTP/1.1 400"));
    let some = metered.page("?families=process_,barnabas_uptime");
    let names: Vec<&str> = some.lines().filter(|line| !line.starts_with('#')).collect();
    let is_wanted = |name: &&str| name.starts_with("process_") || name.starts_with("barnabas_uptime");
    assert!(names.len() >= 4 && names.iter().all(is_wanted), "{some}");
    assert!(metered.node.stop().success());
}

#[test]
fn reader_that_prefers_open_metrics_gets_it() {
    let mut metered = Metered::start(&[]);
    let prometheus = "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n";
    let (head, body) = metered.ask("", prometheus);
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("\n# EOF\n"));
    assert!(body.contains("# TYPE kafka_server_brokertopicmetrics_bytesin counter\n"));
    assert!(body.contains("\nkafka_server_brokertopicmetrics_bytesin_total 0\n"));
    let (head, body) = metered.ask("", "Accept: text/plain\r\n");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4") && !body.contains("# EOF"), "{head}");
    assert!(metered.node.stop().success());
}
