//! The command line: version, help, suggestions, tools on a dead address; and the signals and lines of a node.

use crate::harness::{TestNode, binary, free_port};
use std::process::{Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    binary().args(arguments).stdin(Stdio::null()).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn version_names_the_release_and_the_commit() {
    for arguments in [["version"], ["--version"]] {
        let shown = text(&run(&arguments).stdout);
        assert!(shown.starts_with("barnabas 0.1.0 (commit "), "{shown}");
    }
}

#[test]
fn help_lists_tools_as_commands() {
    let help = text(&run(&["--help"]).stdout);
    for line in ["  topics ", "  console-producer ", "  server ", "  version "] {
        assert!(help.lines().any(|shown| shown.starts_with(line)), "{line}: {help}");
    }
}

#[test]
fn help_of_a_tool_shows_its_flags_and_name_as_typed() {
    for arguments in [&["help", "topics"][..], &["topics", "--help"]] {
        let help = text(&run(arguments).stdout);
        assert!(help.contains("--bootstrap-server") && help.contains("Usage: barnabas topics"), "{help}");
    }
    let wrong = text(&run(&["topics", "--bootstrap-sever", "x"]).stderr);
    assert!(wrong.contains("Usage: barnabas topics") && wrong.contains("--bootstrap-server"), "{wrong}");
}

#[test]
fn unknown_command_is_refused_with_the_nearest() {
    for (typed, nearest) in
        [("topcis", "topics"), ("sever", "server"), ("console-prodcuer", "console-producer")]
    {
        let output = run(&[typed]);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(nearest), "{typed}: {said}");
    }
}

#[test]
fn tools_report_a_dead_address_at_once() {
    let address = format!("127.0.0.1:{}", free_port());
    let topic = ["--topic", "t"];
    let latency = ["--num-records", "1", "--producer-acks", "1", "--record-size", "10"];
    let producer_perf = ["--num-records", "1", "--record-size", "10", "--throughput", "-1"];
    let tools: [(&str, &[&str]); 5] = [
        ("console-producer", &["--command-property", "max.block.ms=300"]),
        ("console-consumer", &[]),
        ("consumer-perf-test", &["--messages", "1"]),
        ("producer-perf-test", &producer_perf),
        ("e2e-latency", &latency),
    ];
    for (tool, more) in tools {
        let mut command = binary();
        command.args([tool, "--bootstrap-server", &address]).args(topic).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut said = String::new();
        let stderr = child.stderr.as_mut().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut said).expect("reads");
        let _ = child.kill();
        child.wait().expect("reaped");
        assert!(said.contains(tool) && said.contains(&address) && said.contains("refused"), "{tool}: {said}");
    }
}

#[test]
fn tools_refuse_an_address_without_a_port() {
    let tools: [(&str, &[&str]); 9] = [
        ("topics", &["--list"]),
        ("configs", &["--describe", "--entity-type", "topics"]),
        ("log-dirs", &["--describe"]),
        ("leader-election", &["--election-type", "preferred", "--all-topic-partitions"]),
        ("metadata-quorum", &["describe", "--status"]),
        ("console-producer", &["--topic", "t"]),
        ("console-consumer", &["--topic", "t"]),
        ("consumer-perf-test", &["--topic", "t", "--num-records", "1"]),
        (
            "producer-perf-test",
            &["--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1"],
        ),
    ];
    for (tool, more) in tools {
        let output = run(&[&[tool, "--bootstrap-server", "nonsense"], more].concat());
        let expected = format!(
            "{tool}: --bootstrap-server: 'nonsense' is not host:port. Example: 127.0.0.1:9092, or host1:9092,host2:9092\n"
        );
        assert_eq!((text(&output.stderr), output.status.code()), (expected, Some(1)), "{tool}");
    }
}

#[test]
fn wrong_flags_are_exit_code_1_in_every_command() {
    for words in [
        &["topics", "--nonsense"][..],
        &["storage", "format", "--nonsense"],
        &["server", "--nonsense"],
        &["security", "init", "--nonsense"],
        &["nonsense"],
    ] {
        assert_eq!(run(words).status.code(), Some(1), "{words:?}");
    }
    assert_eq!(run(&["security", "init", "--help"]).status.code(), Some(0));
}

#[test]
fn topics_refuses_numbers_below_one() {
    for (flag, given) in [("--partitions", "-3"), ("--partitions", "0"), ("--replication-factor", "-1")] {
        let output =
            run(&["topics", "--bootstrap-server", "127.0.0.1:1", "--create", "--topic", "t", flag, given]);
        let expected = format!(
            "topics: {flag} takes a number from 1 on, not {given}; leave it out for the cluster's default\n"
        );
        assert_eq!((text(&output.stderr), output.status.code()), (expected, Some(1)));
    }
    let output = run(&[
        "topics",
        "--bootstrap-server",
        "127.0.0.1:1",
        "--create",
        "--topic",
        "t",
        "--partitions",
        "a",
    ]);
    let expected = "topics: --partitions takes a number, not 'a'. Example: --partitions 3\n";
    assert_eq!((text(&output.stderr), output.status.code()), (expected.to_owned(), Some(1)));
}

#[test]
fn flags_of_tools_may_be_cut_short_and_each_has_a_version() {
    let shown = text(&run(&["topics", "--version"]).stdout);
    assert!(shown.starts_with("barnabas 0.1.0"), "{shown}");
    let output = run(&["topics", "--boot", "nonsense", "--list"]);
    assert!(text(&output.stderr).contains("'nonsense' is not host:port"), "{}", text(&output.stderr));
}

#[test]
fn hangup_stops_a_node_cleanly() {
    let mut node = TestNode::start();
    assert!(node.stop_by(barnabas_harness::Signal::HUP).success(), "{}", node.log());
    assert!(node.log().contains("stopped"), "{}", node.log());
}

#[test]
fn hangup_is_ignored_by_a_node_under_nohup() {
    let mut node = TestNode::start_limited(Some("trap '' HUP"), &[]);
    let sent = std::process::Command::new("kill").args(["-HUP", &node.pid().to_string()]).status();
    assert!(sent.expect("kill").success());
    node.client();
    assert!(node.stop().success());
    assert_eq!(node.log().matches("stopping").count(), 1, "{}", node.log());
}

#[test]
fn first_line_names_version_and_configuration() {
    let mut node = TestNode::start();
    assert!(node.stop().success());
    let log = node.log();
    let first = log.lines().next().unwrap_or_default();
    assert!(first.contains("barnabas 0.1.0 (commit ") && first.contains("configuration=no file"), "{first}");
}

#[test]
fn log_level_decides_which_lines_are_written() {
    let mut node = TestNode::start_with(&["log.level=error"]);
    assert!(node.stop().success());
    assert_eq!(node.log(), "");
    let refused = run(&["server", "--override", "log.level=loud"]);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("log.level"), "{said}");
}

#[test]
fn json_log_has_an_object_a_line() {
    let mut node = TestNode::start_with(&["log.format=json"]);
    assert!(node.stop().success());
    let log = node.log();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    assert!(lines.len() > 3, "{log}");
    for line in &lines {
        for key in ["time", "level", "logger", "message"] {
            assert!(line[key].is_string(), "no {key}: {line}");
        }
    }
    assert!(
        lines[0]["message"].as_str().is_some_and(|message| message.starts_with("barnabas 0.1.0")),
        "{log}"
    );
    let refused = run(&["server", "--override", "log.format=xml"]);
    let said = text(&refused.stderr);
    assert!(!refused.status.success() && said.contains("log.format"), "{said}");
}

/// BROKER_LOGGER.
const LOGGER: i8 = 8;

#[test]
fn environment_decides_log_levels_before_the_settings() {
    // `(before the node starts, root's level, that of barnabas::requests)`; the settings say TRACE.
    let cases = [
        ("export RUST_LOG=warn,barnabas::requests=debug", "WARN", "DEBUG"),
        ("export RUST_LOG=trace BARNABAS_LOG=error", "ERROR", "ERROR"),
        ("export RUST_LOG=warn BARNABAS_LOG=loud", "WARN", "WARN"),
        ("export RUST_LOG=loud", "TRACE", "TRACE"),
    ];
    for (environment, root, requests) in cases {
        let mut node = TestNode::start_limited(Some(environment), &["log.level=trace"]);
        let shown = node.client().configs(LOGGER, "1");
        assert_eq!((&*shown["root"], &*shown["barnabas::requests"]), (root, requests), "{environment}");
        assert!(node.stop().success());
        let has_info = node.log().contains(" INFO ");
        assert_eq!(has_info, root == "TRACE", "{environment}: {}", node.log());
    }
}

#[test]
fn level_that_is_set_again_and_again_is_one_line() {
    let mut node = TestNode::start();
    let mut client = node.client();
    for _ in 0..50 {
        assert_eq!(client.alter_config(0, (LOGGER, "1"), "barnabas_net", Some("WARN")), 0);
    }
    let lines = || node.log().matches("log levels changed: barnabas_net=WARN").count();
    assert_eq!(lines(), 1, "{}", node.log());
    assert!(node.stop().success());
}

#[test]
fn logger_levels_are_shown_and_altered_while_running() {
    let mut node = TestNode::start();
    let mut client = node.client();
    let shown = client.configs(LOGGER, "1");
    assert_eq!(shown.get("root").map(String::as_str), Some("INFO"), "{shown:?}");
    assert_eq!(client.alter_config(0, (LOGGER, "1"), "barnabas::requests::connection", Some("DEBUG")), 0);
    assert_eq!(client.configs(LOGGER, "1")["barnabas::requests::connection"], "DEBUG");
    assert_eq!(client.alter_config(1, (LOGGER, "1"), "barnabas::requests::connection", None), 0);
    assert_eq!(client.configs(LOGGER, "1")["barnabas::requests::connection"], "INFO");
    let invalid_config = 40;
    assert_eq!(client.alter_config(0, (LOGGER, "1"), "kafka.Kafka", Some("DEBUG")), invalid_config);
    assert!(node.stop().success());
    assert!(
        node.log().contains("log levels changed: barnabas::requests::connection=DEBUG"),
        "{}",
        node.log()
    );
}
