//! `console-consumer` and `console-producer` where something is wrong: what they say on standard error, what they
//! print all the same, and how they end.

use crate::harness::{TestNode, binary};
use crate::hostile_records::{outcomes, request, rubbish};
use barnabas_wire::records::Codec;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Output, Stdio};

struct Told {
    out: Vec<String>,
    err: Vec<String>,
    code: Option<i32>,
}

impl Told {
    fn new(output: &Output) -> Self {
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        Self { out: lines(&output.stdout), err: lines(&output.stderr), code: output.status.code() }
    }
}

fn tool(node: &TestNode, words: &str) -> Command {
    let mut command = binary();
    let address = format!("127.0.0.1:{}", node.port);
    let mut words = words.split_whitespace();
    command.arg(words.next().expect("a tool")).args(["--bootstrap-server", &address]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(node: &TestNode, words: &str) -> Told {
    Told::new(&tool(node, words).output().expect("runs"))
}

/// With this standard input.
fn feed(node: &TestNode, words: &str, input: &str) -> Told {
    let mut child = tool(node, words).stdin(Stdio::piped()).spawn().expect("runs");
    // A tool that ends early closes its end.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    Told::new(&child.wait_with_output().expect("ends"))
}

fn create(node: &TestNode, words: &str) {
    let told = run(node, &format!("topics --create --topic {words}"));
    assert_eq!(told.code, Some(0), "{:?}", told.err);
}

/// `0`, `1`, … in one partition.
fn fill(node: &TestNode, topic: &str, partition: i32, records: i32) {
    let told = run(
        node,
        &format!(
            "producer-perf-test --topic {topic} --spread {partition} --num-records {records} --payload-monotonic --throughput -1"
        ),
    );
    assert_eq!(told.code, Some(0), "{:?}", told.err);
}

#[test]
fn consumer_of_a_damaged_partition_says_so_and_reads_the_others() {
    let mut node = TestNode::start();
    create(&node, "t --partitions 3");
    (0..3).for_each(|partition| fill(&node, "t", partition, 5));
    assert!(node.stop().success());
    let segment = node.data().join("t-1").join("00000000000000000000.log");
    let file = std::fs::File::options().read(true).write(true).open(segment).expect("a segment");
    let mut byte = [0];
    // Behind the header of the first batch.
    file.read_exact_at(&mut byte, 70).expect("a record");
    file.write_all_at(&[byte[0] ^ 1], 70).expect("damaged");
    node.launch();

    let told = run(&node, "console-consumer --topic t --from-beginning --timeout-ms 2500");
    let mut out = told.out.clone();
    out.sort();
    assert_eq!(out, ["0", "0", "1", "1", "2", "2", "3", "3", "4", "4"], "{:?}", told.err);
    let damaged = "t-1 cannot be read, trying again: broker 1: CORRUPT_MESSAGE: \
                   encountered corrupt message when fetching offset 0";
    let expected = [
        format!("console-consumer: {damaged}"),
        format!("console-consumer: at the end: {damaged}"),
        "console-consumer: no record came within 2500 ms (--timeout-ms)".to_owned(),
        "Processed a total of 10 messages".to_owned(),
    ];
    assert_eq!((told.err, told.code), (expected.to_vec(), Some(0)));

    // In a group too, where the damaged partition's share is read again and again.
    let told = run(&node, "console-consumer --topic t --from-beginning --max-messages 10 --group g");
    assert_eq!((told.out.len(), told.code), (10, Some(0)), "{:?}", told.err);
    assert_eq!(told.err.last().map(String::as_str), Some("Processed a total of 10 messages"));

    let told = run(&node, "consumer-perf-test --topic t --num-records 15 --timeout 1500 --hide-header");
    assert_eq!(told.code, Some(0));
    assert!(told.out[0].starts_with("WARNING: Exiting before consuming"), "{:?}", told.out);
    let damaged = format!("consumer-perf-test: {damaged}");
    assert_eq!(told.err.iter().filter(|line| **line == damaged).count(), 1, "{:?}", told.err);
    node.stop_expecting_trouble();
}

#[test]
fn consumer_of_records_that_no_client_can_read_says_so_and_reads_the_others() {
    let mut node = TestNode::start();
    create(&node, "t --partitions 3");
    let mut client = node.client();
    let mut rubbish = request("t", &vec![rubbish(Codec::Gzip); 3]);
    rubbish.topic_data[0].partition_data.retain(|partition| partition.index == 1);
    assert_eq!(outcomes(&client.call(rubbish, 9))[0].0, 0);
    (0..3).for_each(|partition| fill(&node, "t", partition, 5));

    let told = run(&node, "console-consumer --topic t --from-beginning --timeout-ms 2500");
    let mut out = told.out.clone();
    out.sort();
    assert_eq!(out, ["0", "0", "1", "1", "2", "2", "3", "3", "4", "4"], "{:?}", told.err);
    let unreadable = "t-1 cannot be read, trying again: broker 1: its records cannot be read: at offset 0: decompressing gzip: \
                      invalid gzip header";
    let expected = [
        format!("console-consumer: {unreadable}"),
        format!("console-consumer: at the end: {unreadable}"),
        "console-consumer: no record came within 2500 ms (--timeout-ms)".to_owned(),
        "Processed a total of 10 messages".to_owned(),
    ];
    assert_eq!((told.err, told.code), (expected.to_vec(), Some(0)));
    let told = run(&node, "consumer-perf-test --topic t --num-records 15 --timeout 1500 --hide-header");
    assert_eq!(told.code, Some(0), "{:?}", told.err);
    assert!(told.out[0].starts_with("WARNING: Exiting before consuming"), "{:?}", told.out);
    let unreadable = format!("consumer-perf-test: {unreadable}");
    assert_eq!(told.err.iter().filter(|line| **line == unreadable).count(), 1, "{:?}", told.err);
    assert!(node.stop().success());
}

#[test]
fn consumer_of_a_missing_topic_says_so() {
    let mut node = TestNode::start();
    let told = run(&node, "console-consumer --topic new --timeout-ms 1500");
    let expected = [
        "console-consumer: topic new does not exist; asking the cluster to create it",
        "console-consumer: topic new was created, partitions: 1",
        "console-consumer: no record came within 1500 ms (--timeout-ms)",
        "Processed a total of 0 messages",
    ];
    assert_eq!((told.err, told.code), (expected.map(str::to_owned).to_vec(), Some(0)));
    let told = run(
        &node,
        "console-consumer --topic no --timeout-ms 500 --command-property allow.auto.create.topics=false",
    );
    let expected = [
        "console-consumer: topic no does not exist; waiting for it",
        "console-consumer: no record came within 500 ms (--timeout-ms)",
        "Processed a total of 0 messages",
    ];
    assert_eq!((told.err, told.code), (expected.map(str::to_owned).to_vec(), Some(0)));
    assert_eq!(run(&node, "topics --list").out, ["new"]);
    let told = run(&node, "console-consumer --topic new --partition 7 --timeout-ms 500");
    assert_eq!(told.code, Some(1));
    assert_eq!(told.err.last().map(String::as_str), Some("console-consumer: topic new has no partition 7"));
    let told = run(&node, "console-consumer --topic a/b --timeout-ms 5000");
    assert_eq!(told.code, Some(1), "no wait makes a name valid: {:?}", told.err);
    assert!(told.err.last().is_some_and(|line| line.contains("INVALID_TOPIC_EXCEPTION")), "{:?}", told.err);
    assert!(node.stop().success());
}

#[test]
fn consumer_reads_several_topics() {
    let mut node = TestNode::start();
    for topic in ["log-a", "log-b", "other"] {
        create(&node, topic);
        fill(&node, topic, 0, 3);
    }
    let told = run(&node, "console-consumer --include log-.* --from-beginning --max-messages 6");
    let mut out = told.out.clone();
    out.sort();
    assert_eq!((out, told.code), (["0", "0", "1", "1", "2", "2"].map(str::to_owned).to_vec(), Some(0)));
    let told = run(&node, "console-consumer --include none-.* --from-beginning");
    assert_eq!(told.code, Some(1));
    assert!(
        told.err.last().is_some_and(|line| line.contains("--include matches no topic")),
        "{:?}",
        told.err
    );
    assert!(node.stop().success());
}

#[test]
fn consumer_that_is_interrupted_commits_and_says_how_many() {
    let mut node = TestNode::start();
    create(&node, "t");
    fill(&node, "t", 0, 3);
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let words = format!("console-consumer --topic t --from-beginning --group g{code}");
        let mut child = tool(&node, &words).spawn().expect("runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let read: Vec<String> = lines.by_ref().take(3).map(|line| line.expect("text")).collect();
        assert_eq!(read, ["0", "1", "2"]);
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert_eq!(child.wait().expect("ends").code(), Some(code), "{said}");
        assert!(said.ends_with("Processed a total of 3 messages\n"), "{said}");
        // All of it is committed.
        let told = run(&node, &format!("{words} --timeout-ms 1000"));
        assert_eq!((told.out, told.code), (Vec::new(), Some(0)), "{:?}", told.err);
    }
    assert!(node.stop().success());
}

#[test]
fn producer_names_the_lines_that_are_refused_and_goes_on() {
    let mut node = TestNode::start();
    create(&node, "t --config max.message.bytes=2000");
    let input = format!("first\n{}\nthird\n", "x".repeat(3_000));
    let told = feed(&node, "console-producer --topic t --batch-size 1", &input);
    assert_eq!(told.code, Some(0), "as Kafka's: {:?}", told.err);
    let [refused] = &told.err[..] else { panic!("{:?}", told.err) };
    let begin = "console-producer: ERROR line 2 not sent to t: sending to t-0: MESSAGE_TOO_LARGE";
    assert!(refused.starts_with(begin), "{refused}");
    let read = |records: i32| {
        run(&node, &format!("console-consumer --topic t --from-beginning --max-messages {records}")).out
    };
    assert_eq!(read(2), ["first", "third"]);

    let told = feed(&node, "console-producer --topic t --sync", &input);
    assert_eq!(told.code, Some(1), "{:?}", told.err);
    assert!(told.err[0].contains("MESSAGE_TOO_LARGE"), "{:?}", told.err);
    assert_eq!(read(3), ["first", "third", "first"], "it ended at the second line");

    let keyed =
        "console-producer --topic t --reader-property parse.key=true --reader-property key.separator=:";
    let told = feed(&node, keyed, "k:fourth\nno key\nk:never\n");
    assert_eq!((told.err, told.code), (vec!["console-producer: line 2 has no ':'".to_owned()], Some(1)));
    assert_eq!(read(4), ["first", "third", "first", "fourth"], "what was read before is sent");
    let told = feed(&node, "console-producer --topic t", &"y".repeat(1_100_000));
    assert_eq!(told.code, Some(0));
    assert!(
        told.err[0].contains("line 1 not sent to t: ") && told.err[0].contains("max.request.size"),
        "{:?}",
        told.err
    );
    assert!(node.stop().success());
}

#[test]
fn producer_says_what_it_waits_for() {
    let mut node = TestNode::start();
    let told = feed(&node, "console-producer --topic new", "one\n");
    let expected = [
        "console-producer: topic new does not exist; asking the cluster to create it",
        "console-producer: topic new was created, partitions: 1",
    ];
    assert_eq!((told.err, told.code), (expected.map(str::to_owned).to_vec(), Some(0)));

    create(&node, "t --partitions 1");
    let full = "configs --alter --entity-type brokers --entity-name 1 --add-config log.dir.min.free.bytes=1125899906842624";
    assert_eq!(run(&node, full).code, Some(0));
    let words =
        "console-producer --topic t --request-timeout-ms 500 --command-property delivery.timeout.ms=1500";
    let told = feed(&node, words, "one\n");
    assert_eq!(told.code, Some(0));
    let [waits, refused] = &told.err[..] else { panic!("{:?}", told.err) };
    let begin = "console-producer: t-0 cannot be written, trying again: broker 1: KAFKA_STORAGE_ERROR";
    assert!(waits.starts_with(begin), "{waits}");
    assert!(refused.starts_with("console-producer: ERROR line 1 not sent to t: "), "{refused}");
    node.stop_expecting_trouble();
}
