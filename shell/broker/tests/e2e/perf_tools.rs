//! The load tools against a running node: the lines that scripts read, odd flags, a node that stops, dies and comes
//! back.
//!
//! With `KAFKA_CLASSPATH` set to Kafka's jars (kafka-tools and what it needs), Apache's own tools run beside ours on
//! the same node and the lines of both must have one shape; without it that test says so and ends.

use crate::harness::{TestNode, binary};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Told {
    out: Vec<String>,
    err: String,
    is_success: bool,
}

impl Told {
    fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            out: text(&output.stdout).lines().map(str::to_owned).collect(),
            err: text(&output.stderr),
            is_success: output.status.success(),
        }
    }

    fn json(&self) -> serde_json::Value {
        assert!(self.is_success, "{}", self.err);
        serde_json::from_str(self.out.last().expect("a line")).expect("JSON")
    }
}

fn tool(node: &TestNode, words: &str) -> Command {
    let mut command = binary();
    let address = format!("127.0.0.1:{}", node.port);
    let mut words = words.split_whitespace();
    command.arg(words.next().expect("a tool")).args(["--bootstrap-server", &address]).args(words);
    command
}

fn run(node: &TestNode, words: &str) -> Told {
    Told::new(&tool(node, words).output().expect("runs"))
}

/// Every number is a 9, so that only the shape is left.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for letter in line.chars() {
        let letter = if letter.is_ascii_digit() { '9' } else { letter };
        if letter != '9' || !shape.ends_with('9') {
            shape.push(letter);
        }
    }
    shape
}

const TOTAL: &str = "9 records sent, 9.9 records/sec (9.9 MB/sec), 9.9 ms avg latency, 9.9 ms max latency, 9 ms 9th, 9 ms 9th, 9 ms 9th, 9 ms 9.9th.";
const WINDOW: &str = "9 records sent, 9.9 records/sec (9.9 MB/sec), 9.9 ms avg latency, 9.9 ms max latency.";
const CONSUMED: &str = "9-9-9 9:9:9:9, 9-9-9 9:9:9:9, 9.9, 9.9, 9, 9.9, 9, 9, 9.9, 9.9";

/// What stands in a topic, or in several: told by reading one record more than there can be.
fn count(node: &TestNode, which: &str) -> u64 {
    let told = run(
        node,
        &format!("consumer-perf-test {which} --num-records 999999999 --timeout 1500 --json --hide-header"),
    );
    assert!(told.out[0].starts_with("WARNING: Exiting before consuming"), "{:?}", told.out);
    told.json()["records"].as_u64().expect("a number")
}

fn topic(node: &TestNode, name: &str, partitions: u32) {
    let told = run(
        node,
        &format!("topics --create --topic {name} --partitions {partitions} --replication-factor 1"),
    );
    assert!(told.is_success, "{}", told.err);
}

#[test]
fn what_is_sent_is_there_once_with_every_codec_and_spread() {
    let mut node = TestNode::start();
    for (number, more) in [
        "",
        "compression.type=gzip",
        "compression.type=snappy linger.ms=0",
        "compression.type=lz4 batch.size=1000",
        "compression.type=zstd acks=1",
        "acks=0",
        "batch.size=0 max.in.flight.requests.per.connection=1",
        "buffer.memory=20000 --spread round-robin --producers 3",
        "enable.idempotence=false --spread random",
        "batch.size=200000 --spread 2",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("t{number}");
        topic(&node, &name, 5);
        let properties = if more.is_empty() { String::new() } else { format!("--command-property {more}") };
        let told = run(
            &node,
            &format!(
                "producer-perf-test --topic {name} --num-records 5000 --record-size 90 --throughput -1 --json {properties}"
            ),
        );
        assert_eq!(told.json()["records"], 5_000, "{more}: {}", told.err);
        assert_eq!(shape(&told.out[told.out.len() - 2]), TOTAL);
        let told =
            run(&node, &format!("consumer-perf-test --topic {name} --num-records 5000 --json --hide-header"));
        assert_eq!(told.json()["records"], 5_000, "{more}");
    }
    assert_eq!(count(&node, "--include t\\d"), 50_000, "each once");
    node.stop();
}

#[test]
fn the_lines_are_kafkas() {
    let mut node = TestNode::start();
    topic(&node, "lines", 3);
    let told = run(
        &node,
        "producer-perf-test --topic lines --num-records 3000 --payload-monotonic --throughput 2000 \
         --reporting-interval 400 --warmup-records 1000 --print-metrics --producer-props linger.ms=1 nonsense.key=1",
    );
    assert!(told.is_success, "{}", told.err);
    assert!(told.out[0].starts_with("Option --producer-props has been deprecated"), "{:?}", told.out);
    assert_eq!(
        told.out[1],
        "Warmup first 1000 records. Steady state results will print after the complete test summary."
    );
    let shapes: Vec<String> = told.out.iter().map(|line| shape(line)).collect();
    let steady = shapes.iter().position(|line| line == "In steady state.").expect("the steady state begins");
    assert_eq!(shapes[2], WINDOW);
    assert_eq!(shapes[steady + 1], WINDOW);
    let total = shapes.iter().position(|line| line == TOTAL).expect("a summary");
    assert!(told.out[total].starts_with("3000 records sent, "));
    assert!(told.out[total + 1].starts_with("2000 steady state records sent, "), "{}", told.out[total + 1]);
    assert!(told.out.iter().any(|line| line.starts_with("Metric Name")));
    assert!(told.out.iter().any(|line| line.contains("record-send-total") && line.ends_with(": 3000.000")));
    assert!(told.err.contains("nonsense.key"), "{}", told.err);

    let told = run(&node, "consumer-perf-test --topic lines --messages 3000");
    assert_eq!(told.out[0], "Warning: --messages is deprecated. Use --num-records instead.");
    assert_eq!(
        told.out[1],
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
         fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    );
    assert_eq!(shape(&told.out[2]), CONSUMED);
    let told = run(
        &node,
        "consumer-perf-test --include li.* --num-records 5000 --timeout 900 --show-detailed-stats \
         --reporting-interval 300 --date-format HH:mm",
    );
    assert!(told.out[0].starts_with("time, threadId, data.consumed.in.MB"), "{:?}", told.out);
    assert_eq!(shape(&told.out[1]), "9:9, 9, 9.9, 9.9, 9, 9.9, 9, 9, 9.9, 9.9");
    let told =
        run(&node, "consumer-perf-test --topic lines --num-records 3000 --group g --hide-header --json");
    assert_eq!(told.json()["records"], 3_000);
    // The group has read it all.
    let told = run(
        &node,
        "consumer-perf-test --topic lines --num-records 1 --group g --hide-header --json --timeout 500",
    );
    assert_eq!(told.json()["records"], 0, "{:?}", told.out);
    node.stop();
}

#[test]
fn one_record_at_a_time() {
    let mut node = TestNode::start();
    let histogram = node.dir.path().join("e2e.hgrm");
    let told = run(
        &node,
        &format!(
            "e2e-latency --topic e2e --num-records 30 --producer-acks all --record-size 20 --record-key-size 5 \
             --num-headers 2 --record-header-key-size 3 --record-header-size -1 --json --histogram {}",
            histogram.display()
        ),
    );
    assert_eq!(told.json()["records"], 30, "{}", told.err);
    assert_eq!(
        told.out[0],
        "Topic \"e2e\" does not exist. Will create topic with 1 partition(s) and replication factor = 1"
    );
    let shapes: Vec<String> = told.out.iter().map(|line| shape(line)).collect();
    assert_eq!(shapes[1], "9\t9.9");
    assert_eq!(shapes[2], "Avg latency: 9.9 ms");
    assert_eq!(shapes[3], "Percentiles: 9th = 9, 9th = 9, 9.9th = 9");
    assert!(std::fs::read_to_string(histogram).expect("written").contains("Total count    =           30]"));

    let address = format!("127.0.0.1:{}", node.port);
    let old = binary().args(["kafka-e2e-latency.sh", &address, "e2e", "3", "1", "7"]).output();
    let told = Told::new(&old.expect("runs"));
    assert!(told.is_success, "{}", told.err);
    assert!(told.out[0].starts_with("WARNING: Positional argument usage is deprecated"));
    node.stop();
}

#[test]
fn odd_flags_are_refused_in_a_line() {
    let mut node = TestNode::start();
    let produce = "producer-perf-test --topic t --num-records 10 --throughput -1";
    for (words, refusal) in [
        (produce.to_owned(), "exactly one of --record-size, --payload-file and --payload-monotonic"),
        (format!("{produce} --record-size 1 --payload-monotonic"), "exactly one of"),
        (format!("{produce} --record-size 0"), "--record-size should be greater than zero."),
        (format!("{produce} --record-size 1 --num-producers 2"), "unexpected argument"),
        (format!("{produce} --record-size 1 --warmup-records 10"), "must be strictly fewer"),
        (format!("{produce} --record-size 1 --transactional-id x"), "this producer has no transactions yet"),
        (
            format!("{produce} --record-size 1 --command-property transactional.id=x"),
            "this producer has no transactions yet",
        ),
        (format!("{produce} --record-size 1 --command-property acks=3"), "acks takes 0, 1 or all"),
        (format!("{produce} --record-size 1 --command-property acks"), "Invalid property: acks"),
        (format!("{produce} --record-size 1 --spread wide"), "--spread takes"),
        (format!("{produce} --payload-file /nowhere"), "File does not exist or empty file provided."),
        (
            "producer-perf-test --topic t --num-records 0 --record-size 1 --throughput -1".to_owned(),
            "--num-records should be",
        ),
        (
            "producer-perf-test --topic t --num-records 1 --record-size 1 --throughput 0".to_owned(),
            "--throughput 0",
        ),
        (
            "producer-perf-test --topic t --num-records x --record-size 1 --throughput 1".to_owned(),
            "--num-records takes a number",
        ),
        ("consumer-perf-test --topic t".to_owned(), "exactly one of --num-records and --messages"),
        ("consumer-perf-test --num-records 1".to_owned(), "exactly one of --topic and --include"),
        ("consumer-perf-test --topic t --num-records 1 --date-format YYYY".to_owned(), "letter 'Y'"),
        ("consumer-perf-test --num-records 1 --include ((".to_owned(), "--include"),
        (
            "e2e-latency --topic t --num-records 1 --producer-acks 0 --record-size 1".to_owned(),
            "Invalid value for --producer-acks",
        ),
        (
            "e2e-latency --topic t --num-records 1 --record-size 1".to_owned(),
            "Missing required argument \"[producer-acks]\"",
        ),
        (
            "e2e-latency --topic t --num-records 0 --producer-acks 1 --record-size 1".to_owned(),
            "positive integer",
        ),
    ] {
        let told = run(&node, &words);
        assert!(!told.is_success && told.err.contains(refusal), "{words}: {}", told.err);
        assert!(!told.err.contains("panicked"), "{words}: {}", told.err);
    }
    // A record that is too large and a partition that does not exist are reported at once.
    let told = run(&node, &format!("{produce} --record-size 2000000"));
    assert!(!told.is_success && told.err.contains("max.request.size"), "{}", told.err);
    let told = run(&node, &format!("{produce} --record-size 1 --spread 99"));
    assert!(!told.is_success && told.err.contains("no partition 99"), "{}", told.err);
    node.stop();
}

#[test]
fn refusals_are_reported_and_later_records_are_sent() {
    let mut node = TestNode::start();
    let told = run(
        &node,
        "topics --create --topic small --partitions 1 --replication-factor 1 --config max.message.bytes=2000",
    );
    assert!(told.is_success, "{}", told.err);
    // Batches grow beyond what the topic takes: each is refused, none is sent for ever.
    let told = run(
        &node,
        "producer-perf-test --topic small --num-records 200 --record-size 500 --throughput -1 --json \
         --command-property linger.ms=50",
    );
    assert!(!told.is_success && told.err.contains("MESSAGE_TOO_LARGE"), "{} {:?}", told.err, told.out);
    // Small ones of another producer go through.
    let told = run(
        &node,
        "producer-perf-test --topic small --num-records 20 --record-size 500 --throughput -1 --json \
         --command-property batch.size=1000",
    );
    assert_eq!(told.json()["records"], 20);
    node.stop();
}

/// The node dies twice while records go to it and comes back: each is acknowledged, and stands there once, in order.
#[test]
fn a_node_that_dies_loses_and_doubles_nothing() {
    let mut node = TestNode::start();
    topic(&node, "killed", 4);
    let mut sending = tool(
        &node,
        "producer-perf-test --topic killed --num-records 40000 --payload-monotonic --throughput 10000 --json \
         --command-property request.timeout.ms=5000",
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("runs");
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(900));
        assert!(sending.try_wait().expect("a child").is_none(), "it was to be under way");
        node.kill();
        std::thread::sleep(Duration::from_millis(300));
        node.launch();
    }
    let told = Told::new(&sending.wait_with_output().expect("ends"));
    let json = told.json();
    assert_eq!(json["records"], 40_000, "{}", told.err);
    // What was meant to be sent while no server listened waited for it: that is in the figures.
    assert!(json["max_ms"].as_f64().expect("a number") >= 250.0, "{json}");
    assert_eq!(count(&node, "--topic killed"), 40_000);
    let told = run(
        &node,
        "console-consumer --topic killed --from-beginning --max-messages 40000 --property print.partition=true",
    );
    let mut last = std::collections::HashMap::new();
    for line in &told.out {
        let (partition, number) = line.split_once('\t').expect("two columns");
        let number: i64 = number.parse().expect("a number");
        let before = last.insert(partition, number).unwrap_or(-1);
        assert!(before < number, "{partition}: {number} after {before}");
    }
    assert_eq!(told.out.len(), 40_000);
    node.stop_expecting_trouble();
}

/// A node that stops for a second is seen by every record that was due in that second, not by the one that was under
/// way.
#[test]
fn latency_counts_from_when_a_record_was_due() {
    let mut node = TestNode::start();
    topic(&node, "stopped", 1);
    let words =
        "producer-perf-test --topic stopped --num-records 3000 --record-size 100 --throughput 1000 --json";
    let mut sending = tool(&node, words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    std::thread::sleep(Duration::from_millis(1_000));
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &node.pid().to_string()]).status().expect("kill").success());
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_millis(1_000));
    signal("-CONT");
    assert!(sending.try_wait().expect("a child").is_none());
    let told = Told::new(&sending.wait_with_output().expect("ends"));
    let json = told.json();
    assert_eq!(json["latency_from"], "intended");
    assert!(told.err.contains("Latency counts from when --throughput meant a record to be sent"));
    // A third of all records was due while it stood still; the middle of those waited half a second.
    assert!(json["p95_ms"].as_f64().expect("a number") >= 500.0, "{json}");
    assert!(json["p50_ms"].as_f64().expect("a number") < 400.0, "{json}");
    node.stop();
}

#[test]
fn a_node_that_never_comes_is_given_up_in_time() {
    let mut node = TestNode::start();
    topic(&node, "gone", 1);
    let mut sending = tool(
        &node,
        "producer-perf-test --topic gone --num-records 100000 --record-size 100 --throughput 1000 --command-property \
         delivery.timeout.ms=1500 request.timeout.ms=1000 linger.ms=5",
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("runs");
    std::thread::sleep(Duration::from_millis(700));
    node.kill();
    let killed = Instant::now();
    std::thread::sleep(Duration::from_millis(3_500));
    sending.kill().expect("still trying, as Kafka's tool does");
    let told = Told::new(&sending.wait_with_output().expect("ends"));
    assert!(told.err.contains("not done within 1500 ms"), "{} after {:?}", told.err, killed.elapsed());
}

/// Apache's tools and ours on one node: same shape, line by line.
#[test]
fn apaches_tools_tell_the_same() {
    let Ok(classpath) = std::env::var("KAFKA_CLASSPATH") else {
        println!("SKIP: KAFKA_CLASSPATH names no jars of Kafka");
        return;
    };
    let mut node = TestNode::start();
    let address = format!("127.0.0.1:{}", node.port);
    let java = |class: &str, words: &str| {
        let mut command = Command::new("java");
        command.args([
            "-cp",
            &classpath,
            &format!("org.apache.kafka.tools.{class}"),
            "--bootstrap-server",
            &address,
        ]);
        let output = command.args(words.split_whitespace()).output().expect("java runs");
        Told::new(&output)
            .out
            .into_iter()
            .filter(|line| !line.contains("SLF4J"))
            .map(|line| shape(&line))
            .collect::<Vec<_>>()
    };
    for (class, name, words) in [
        (
            "ProducerPerformance",
            "producer-perf-test",
            "--topic both --num-records 2000 --record-size 50 --throughput 1000 --warmup-records 500 --reporting-interval 60000",
        ),
        ("ConsumerPerformance", "consumer-perf-test", "--topic both --num-records 2000"),
        (
            "EndToEndLatency",
            "e2e-latency",
            "--topic e2e --num-records 5 --producer-acks all --record-size 10",
        ),
    ] {
        let theirs = java(class, words);
        let ours = run(&node, &format!("{name} {words}"));
        let ours: Vec<String> = ours.out.iter().map(|line| shape(line)).collect();
        // The topic is there when the second of the two asks.
        let told = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(|line| !line.starts_with("Topic \"")).collect()
        };
        assert_eq!(told(theirs), told(ours), "{name}");
    }
    node.stop();
}
