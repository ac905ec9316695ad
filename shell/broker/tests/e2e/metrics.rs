//! The metrics of a running node: the page and its grammar, phases against the latency that a client sees, `barnabas
//! hotspots`, and malformed requests to the endpoint.

use crate::harness::patience::until;
use crate::harness::quorum::{create, eventually, metadata, prepared, random_uuid};
use crate::harness::{Client, TestNode, batch, binary, free_port};
use barnabas_wire::messages::fetch_request::{FetchPartition, FetchTopic};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{FetchRequest, ProduceRequest, ResponseBody};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

struct Metered {
    node: TestNode,
    port: u16,
}

impl Metered {
    fn start() -> Self {
        let port = free_port();
        let node = TestNode::start_with(&[&format!("metrics.listener=127.0.0.1:{port}")]);
        Self { node, port }
    }

    /// What is answered to these bytes; empty where the connection ends without an answer.
    fn say(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connects");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        // The node may have had enough before it has heard everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The page once everything that was asked is counted: a client has its answer a moment before that.
    fn page(&self, query: &str) -> Page {
        loop {
            let page = self.page_now(query);
            if page.get("barnabas_requests_in_flight") == 0.0 {
                return page;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn page_now(&self, query: &str) -> Page {
        let answer = self.say(format!("GET /metrics{query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
        Page::parse(body)
    }
}

/// A page, read by the letter of Prometheus's text format 0.0.4 and what promtool says of names and histograms.
#[derive(Debug, Default)]
struct Page {
    kinds: BTreeMap<String, String>,
    /// By name and labels, as they stand.
    samples: HashMap<String, f64>,
}

impl Page {
    fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let (mut family, mut kind) = (String::new(), String::new());
        assert!(text.ends_with('\n'), "the last line ends too");
        let mut helped = String::new();
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').expect("a name and words");
                assert!(!words.is_empty() && is_name(name), "{line}");
                helped = name.to_owned();
            } else if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (name, of) = typed.split_once(' ').expect("a name and a type");
                assert_eq!(helped, name, "help goes before type");
                assert!(matches!(of, "counter" | "gauge" | "summary" | "histogram"), "{line}");
                assert!(page.kinds.insert(name.to_owned(), of.to_owned()).is_none(), "{name} twice");
                (family, kind) = (name.to_owned(), of.to_owned());
            } else {
                page.sample(line, &family, &kind);
            }
        }
        page.check_histograms();
        page
    }

    fn sample(&mut self, line: &str, family: &str, kind: &str) {
        let (series, value) = line.rsplit_once(' ').expect("a series and a value");
        let name = series.split('{').next().expect("a name");
        let endings: &[&str] = match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            "summary" => &["", "_sum", "_count"],
            _ => &[""],
        };
        let is_of_family = endings.iter().any(|ending| format!("{family}{ending}") == name);
        assert!(is_name(name) && is_of_family, "{line} in {family}");
        let value: f64 = value.parse().expect("a number");
        // A quorum without a leader and a node without a vote say -1, as in Kafka.
        let may_be_none =
            ["kafka_server_raft_metrics_current_leader", "kafka_server_raft_metrics_current_vote"];
        let least = if may_be_none.contains(&name) { -1.0 } else { 0.0 };
        assert!(value.is_finite() && value >= least, "{line}");
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            check_labels(labels);
        }
        assert!(self.samples.insert(series.to_owned(), value).is_none(), "{series} twice");
    }

    /// Buckets never fall, and the last one holds all.
    fn check_histograms(&self) {
        for family in self.kinds.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
            let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
            let prefix = format!("{family}_bucket{{");
            for (name, value) in self.samples.iter().filter(|(name, _)| name.starts_with(&prefix)) {
                let (labels, bound) = name.rsplit_once("le=\"").expect("a bound");
                let bound = bound.trim_end_matches("\"}").replace("+Inf", "inf").parse().expect("a number");
                let labels = labels.trim_start_matches(&prefix).trim_end_matches(',');
                series.entry(labels.to_owned()).or_default().push((bound, *value));
            }
            assert!(!series.is_empty(), "{family} has no buckets");
            for (labels, mut buckets) in series {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(
                    buckets.is_sorted_by(|one, other| one.1 <= other.1),
                    "{family} {labels}: {buckets:?}"
                );
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let last = buckets.last().expect("a bucket");
                assert_eq!(
                    *last,
                    (f64::INFINITY, self.samples[&format!("{family}_count{labels}")]),
                    "{family} {labels}"
                );
            }
        }
    }

    fn get(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no {series}"))
    }

    /// The sum over series that begin so.
    fn sum(&self, start: &str) -> f64 {
        self.samples.iter().filter(|(name, _)| name.starts_with(start)).map(|(_, value)| value).sum()
    }
}

fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':'))
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// `{name="value",…}`
fn check_labels(labels: &str) {
    let mut rest = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect("braces");
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(name) && !name.contains(':') && !name.starts_with("__"), "{labels}");
        let mut is_escaped = false;
        let end = after.find(|letter: char| {
            let is_end = letter == '"' && !is_escaped;
            assert!(!is_escaped || matches!(letter, '"' | '\\' | 'n'), "{labels}");
            is_escaped = letter == '\\' && !is_escaped;
            is_end
        });
        rest = &after[end.expect("a closing quote") + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn produce(name: &str, acks: i16) -> ProduceRequest {
    let records = Some(batch(&["one", "two", "three"]));
    let partition = PartitionProduceData { index: 0, records, ..Default::default() };
    let topic = TopicProduceData { name: name.into(), partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks, timeout_ms: 10_000, topic_data: vec![topic], ..Default::default() }
}

fn takes(client: &mut Client, topic: &str) -> bool {
    let ResponseBody::Produce(response) = client.call(produce(topic, -1), 9) else {
        panic!("another response")
    };
    response.responses[0].partition_responses[0].error_code == 0
}

const PHASES: [&str; 9] =
    ["decide", "queue", "read", "journal_wait", "sync", "replicate", "wait", "answer", "write"];

#[test]
fn phases_add_up_to_the_latency_that_a_client_sees() {
    let mut metered = Metered::start();
    let mut client = metered.node.client();
    client.create_topic("timed", 1, &[]);
    const COUNT: u32 = 50;
    let begun = Instant::now();
    for _ in 0..COUNT {
        assert!(takes(&mut client, "timed"));
    }
    // The last one is noted when its answer has gone out, which may be after the client has it.
    eventually("all are noted", || {
        metered.page("").get("barnabas_request_seconds_count{request=\"Produce\"}") >= f64::from(COUNT)
    });
    let seen = begun.elapsed().as_secs_f64();
    let page = metered.page("");
    let of = |what: &str, phase: &str| {
        page.get(&format!("barnabas_request_phase_seconds_{what}{{request=\"Produce\",phase=\"{phase}\"}}"))
    };
    let total = page.get("barnabas_request_seconds_sum{request=\"Produce\"}");
    let phases = page.sum("barnabas_request_phase_seconds_sum{request=\"Produce\"");
    assert!((total - phases).abs() < 1e-6, "{total} and {phases}");
    assert_eq!(page.get("barnabas_request_seconds_count{request=\"Produce\"}"), f64::from(COUNT));
    assert_eq!(
        page.get("kafka_network_requestmetrics_requests_total{request=\"Produce\",version=\"9\"}"),
        f64::from(COUNT)
    );
    // The node's own time lies within what the client saw, and each answer waited for a sync.
    assert!(total > 0.0 && total <= seen, "{total} of {seen}");
    assert_eq!(of("count", "sync"), f64::from(COUNT));
    assert!(
        of("sum", "sync") <= page.sum("barnabas_journal_write_seconds_sum"),
        "one request waits for each round"
    );
    assert!(of("sum", "decide") > 0.0 && of("sum", "answer") > 0.0 && of("sum", "write") > 0.0);
    assert_eq!(page.get("kafka_server_brokertopicmetrics_messagesin_total"), f64::from(COUNT * 3));
    // The same, by client id.
    let by_client = page.sum("barnabas_client_phase_seconds_total{client_id=\"test\",request=\"Produce\"");
    assert!((by_client - total).abs() < 1e-6, "{by_client} and {total}");
    assert!(metered.node.stop().success());
}

#[test]
fn a_consumers_wait_is_separate_from_its_reading() {
    let mut metered = Metered::start();
    let mut client = metered.node.client();
    client.create_topic("read", 1, &[]);
    assert!(takes(&mut client, "read"));
    let fetch = |offset: i64, wait_ms: i32| {
        let partition = FetchPartition {
            partition: 0,
            fetch_offset: offset,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        };
        let topic = FetchTopic { topic: "read".into(), partitions: vec![partition], ..Default::default() };
        FetchRequest {
            replica_id: -1,
            max_wait_ms: wait_ms,
            min_bytes: 1,
            max_bytes: 1 << 20,
            session_epoch: -1,
            topics: vec![topic],
            ..Default::default()
        }
    };
    client.call(fetch(0, 10_000), 11);
    client.call(fetch(3, 300), 11);
    // As above.
    eventually("both are noted", || {
        metered.page("").get("barnabas_request_seconds_count{request=\"Fetch\"}") >= 2.0
    });
    let page = metered.page("?topic=read");
    let sum = |phase: &str| {
        page.get(&format!("barnabas_request_phase_seconds_sum{{request=\"Fetch\",phase=\"{phase}\"}}"))
    };
    assert!(sum("wait") >= 0.29, "{}", sum("wait"));
    assert!(sum("read") > 0.0, "{}", sum("read"));
    assert!(page.get("kafka_network_requestmetrics_remotetimems_sum{request=\"FetchConsumer\"}") >= 290.0);
    assert!(page.get("kafka_server_brokertopicmetrics_bytesout_total") > 60.0);
    assert!(page.get("kafka_log_log_size{topic=\"read\",partition=\"0\"}") > 60.0);
    assert!(!metered.page("").kinds.contains_key("kafka_log_log_size"), "only where it is asked for");
    assert!(!metered.page("?topic=unknown").kinds.contains_key("kafka_log_log_size"));
    assert!(metered.node.stop().success());
}

#[test]
fn fetch_sessions_are_counted_as_kafka_counts_them() {
    let mut metered = Metered::start();
    let mut client = metered.node.client();
    client.create_topic("t", 2, &[]);
    let counts = |metered: &Metered| {
        let page = metered.page("");
        let name = |of: &str| format!("kafka_server_fetchsessioncache_numincrementalfetch{of}");
        (page.get(&name("sessions")), page.get(&name("partitionscached")))
    };
    assert_eq!(counts(&metered), (0.0, 0.0));
    let partitions = [0, 1].map(|partition| FetchPartition {
        partition,
        partition_max_bytes: 1 << 20,
        current_leader_epoch: -1,
        ..Default::default()
    });
    let topic = FetchTopic { topic: "t".into(), partitions: partitions.to_vec(), ..Default::default() };
    let request =
        FetchRequest { session_epoch: 0, max_wait_ms: 0, topics: vec![topic], ..Default::default() };
    let ResponseBody::Fetch(response) = client.call(request, 11) else { panic!("another response") };
    assert!(response.session_id > 0, "{response:?}");
    assert_eq!(counts(&metered), (1.0, 2.0));
    assert!(metered.node.stop().success());
}

#[test]
fn an_idle_node_shows_every_metric_and_none_by_partition() {
    let mut metered = Metered::start();
    metered.node.client().create_topic("many", 500, &[]);
    let page = metered.page("");
    for name in [
        "kafka_server_replicamanager_underreplicatedpartitions",
        "kafka_controller_kafkacontroller_offlinepartitionscount",
        "kafka_log_logmanager_offlinelogdirectorycount",
        "barnabas_compaction_dirty_bytes",
        "barnabas_requests_in_flight",
    ] {
        assert_eq!(page.get(name), 0.0, "{name}");
    }
    assert_eq!(page.get("kafka_server_replicamanager_partitioncount"), 500.0);
    assert_eq!(page.get("barnabas_connections"), 0.0);
    assert!(page.get("process_open_fds") > 10.0 && page.get("process_resident_memory_bytes") > 1e6);
    assert!(page.get("barnabas_request_memory_limit_bytes") > 0.0);
    assert!(page.sum("barnabas_log_directory_free_bytes") > 0.0);
    assert!(page.samples.len() < 3000, "{} samples", page.samples.len());
    assert!(metered.node.stop().success());
}

#[test]
fn a_cluster_tells_of_followers_their_isrs_and_its_quorum() {
    let (id, node_ports) = (random_uuid(), || (free_port(), free_port(), free_port()));
    let ports: BTreeMap<i32, (u16, u16, u16)> = (1..=3).map(|node| (node, node_ports())).collect();
    let voters: Vec<String> =
        ports.iter().map(|(node, ports)| format!("{node}@127.0.0.1:{}", ports.1)).collect();
    let metered = |(&node, &(port, controller, metrics)): (&i32, &(u16, u16, u16))| {
        let more =
            format!("controller.quorum.voters={}\nmetrics.listener=127.0.0.1:{metrics}", voters.join(","));
        let node_itself = prepared(None, node, "broker,controller", (port, controller), &id, &more, &[]);
        (node, Metered { node: node_itself, port: metrics })
    };
    let mut nodes: BTreeMap<i32, Metered> = ports.iter().map(metered).collect();
    nodes.values_mut().for_each(|metered| metered.node.launch_unawaited());
    nodes.values_mut().for_each(|metered| metered.node.await_answer());
    eventually("three brokers", || metadata(&mut nodes[&1].node.client()).brokers.len() == 3);
    assert_eq!(create(&mut nodes[&1].node.client(), 7, "t", 1, 3), 0);
    let leader = until("it is led, and node 1 has heard so", || {
        let known = metadata(&mut nodes[&1].node.client());
        known.topics.first().map(|topic| topic.partitions[0].leader_id).filter(|&leader| leader > 0)
    });
    eventually("it takes records", || takes(&mut nodes[&leader].node.client(), "t"));

    let fetches = |by: &str| format!("kafka_network_requestmetrics_totaltimems_count{{request=\"{by}\"}}");
    let page = until("fetches of its followers are noted", || {
        let page = nodes[&leader].page_now("");
        page.samples.get(&fetches("FetchFollower")).is_some_and(|&count| count >= 2.0).then_some(page)
    });
    assert_eq!(page.get(&fetches("FetchFollower")), page.get(&fetches("Fetch")));
    assert!(!page.samples.contains_key(&fetches("FetchConsumer")), "there is no consumer");
    let raft = |page: &Page, of: &str| page.get(&format!("kafka_server_raft_metrics_{of}"));
    let active = until("all name one leader", || {
        let named: BTreeSet<i32> =
            nodes.values().map(|metered| raft(&metered.page_now(""), "current_leader") as i32).collect();
        named.first().copied().filter(|&active| named.len() == 1 && active > 0)
    });
    for metered in nodes.values() {
        let page = until("it knows what is committed", || {
            Some(metered.page_now("")).filter(|page| raft(page, "high_watermark") > 10.0)
        });
        assert_eq!(raft(&page, "number_of_voters"), 3.0);
        assert!(raft(&page, "current_epoch") >= 1.0);
        assert!(raft(&page, "high_watermark") <= raft(&page, "log_end_offset"));
    }
    let page = nodes[&active].page_now("");
    let (average, longest) = (raft(&page, "commit_latency_avg"), raft(&page, "commit_latency_max"));
    assert!(average > 0.0 && average <= longest && longest < 60_000.0, "{average} {longest}");
    assert!(raft(&page, "election_latency_max") > 0.0);

    let replicas = |page: &Page, of: &str| page.get(&format!("kafka_server_replicamanager_{of}"));
    let gone = leader % 3 + 1;
    nodes.get_mut(&gone).expect("there").node.kill();
    eventually("a replica is missed", || {
        let page = nodes[&leader].page_now("");
        replicas(&page, "isrshrinks_total") == 1.0 && replicas(&page, "underreplicatedpartitions") == 1.0
    });
    nodes.get_mut(&gone).expect("there").node.launch();
    eventually("it is back", || replicas(&nodes[&leader].page_now(""), "isrexpands_total") == 1.0);
    let lag = "kafka_server_replicafetchermanager_maxlag{clientId=\"Replica\"}";
    eventually("it has everything", || nodes[&gone].page_now("").get(lag) == 0.0);
    assert_eq!(
        nodes[&gone].page_now("").get("kafka_controller_controllerstats_uncleanleaderelections_total"),
        0.0
    );
    for metered in nodes.values_mut() {
        assert!(metered.node.stop_expecting_trouble().success(), "{}", metered.node.log());
    }
}

#[test]
fn client_ids_are_bounded_and_may_be_anything() {
    let mut metered = Metered::start();
    let mut clients = Vec::new();
    for number in 0..100 {
        let mut client = metered.node.client();
        let name = format!("c{number}\"\\\n{{é}}{}", "x".repeat(number * 3));
        // ApiVersions, version 0, with this client id.
        let body = [
            &18_u16.to_be_bytes()[..],
            &[0, 0, 0, 0, 0, 1],
            &(name.len() as u16).to_be_bytes(),
            name.as_bytes(),
        ]
        .concat();
        client.send_raw(&[&(body.len() as u32).to_be_bytes()[..], &body].concat());
        client.receive_frame().expect("an answer");
        clients.push(client);
    }
    let page = metered.page("");
    let named =
        page.samples.keys().filter(|name| name.starts_with("barnabas_client_requests_total{")).count();
    assert!((64..=66).contains(&named), "{named}");
    assert!(page.get("barnabas_client_requests_total{client_id=\"(others)\",request=\"other\"}") >= 36.0);
    assert_eq!(page.get("barnabas_connections"), 100.0);
    assert!(metered.node.stop().success());
}

#[test]
fn malformed_requests_to_the_endpoint_do_no_harm() {
    let mut metered = Metered::start();
    let status = |answer: String| answer.split(' ').nth(1).unwrap_or("none").to_owned();
    assert_eq!(status(metered.say(b"GET / HTTP/1.1\r\n\r\n")), "404");
    assert_eq!(status(metered.say(b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")), "405");
    assert_eq!(status(metered.say(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")), "400");
    assert_eq!(
        status(metered.say(&[&b"GET /metrics HTTP/1.1\r\nX: "[..], &[b'x'; 1 << 20]].concat())),
        "431"
    );
    assert_eq!(status(metered.say(&[b'x'; 9000])), "431");
    let answer = metered.say(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    // Connections that say nothing, or too little, hold all places for some seconds, and then they are free.
    let mut silent: Vec<TcpStream> =
        (0..12).map(|_| TcpStream::connect(("127.0.0.1", metered.port)).expect("connects")).collect();
    silent.iter_mut().step_by(2).for_each(|stream| stream.write_all(b"GET /metr").expect("sends"));
    let begun = Instant::now();
    metered.page("");
    assert!(begun.elapsed() < Duration::from_secs(19));
    // A client of Kafka's that has the wrong port, and one that leaves in the middle.
    drop(silent);
    metered.say(&[0, 0, 0, 12, 0, 18, 0, 0, 0, 0, 0, 1, 0, 2, b'a', b'b', b'\n', b'\n']);
    metered.page("");
    assert!(metered.node.stop().success());
}

#[test]
fn an_address_that_cannot_be_is_refused_at_the_start() {
    for (value, reason) in
        [("nonsense", "host:port"), ("127.0.0.1:99999", "host:port"), ("192.0.2.1:9404", "cannot listen")]
    {
        let mut node = TestNode::new(None, &[&format!("metrics.listener={value}")]);
        node.launch_unawaited();
        assert!(!node.wait().success());
        assert!(node.log().contains("metrics.listener") && node.log().contains(reason), "{}", node.log());
    }
}

#[test]
fn hotspots_reach_a_node_that_has_no_endpoint() {
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("hot", 1, &[]);
    let address = format!("127.0.0.1:{}", node.port);
    let mut tool = binary();
    tool.args(["hotspots", "--bootstrap-server", &address, "--interval", "1.5"]);
    let running = std::thread::spawn(move || tool.output().expect("runs"));
    while !running.is_finished() {
        client.call(produce("hot", -1), 9);
    }
    let told = running.join().expect("joined");
    let out = String::from_utf8(told.stdout).expect("text");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    assert!(out.starts_with("Node 1, "), "{out}");
    for part in
        ["Produce sync", "Produce decide", "worker-", "journal-0", "client id", "  test\n", "log directory"]
    {
        assert!(out.contains(part), "no {part} in {out}");
    }
    for phase in out.lines().filter_map(|line| line.split_once("  Produce ")).map(|(_, phase)| phase) {
        assert!(PHASES.contains(&phase) || phase.starts_with("reading"), "{phase}");
    }
    for (words, problem) in
        [("--interval 0", "--interval"), ("--interval x", "--interval"), ("--broker-list 7", "no node 7")]
    {
        let told = binary()
            .args(["hotspots", "--bootstrap-server", &address])
            .args(words.split(' '))
            .output()
            .expect("runs");
        assert!(!told.status.success() && String::from_utf8_lossy(&told.stderr).contains(problem));
    }
    assert!(node.stop().success());
}
