//! `barnabas top --once`: one screen as text, and all views as JSON.

use crate::harness::three_dirs::produce;
use crate::harness::{TestNode, binary};
use serde_json::Value;
use std::process::Output;

/// Runs `top` while a producer writes to topic `hot`.
fn top_under_load(node: &TestNode, words: &'static str) -> Output {
    let address = format!("127.0.0.1:{}", node.port);
    let mut tool = binary();
    tool.args(["top", "--bootstrap-server", &address, "--once", "--interval", "1"]).args(words.split(' '));
    let running = std::thread::spawn(move || tool.output().expect("runs"));
    let mut client = node.client();
    while !running.is_finished() {
        assert_eq!(produce(&mut client, "hot", 0, "a record"), 0);
    }
    running.join().expect("joined")
}

#[test]
fn one_screen_shows_what_a_node_does() {
    let mut node = TestNode::start();
    node.client().create_topic("hot", 3, &[]);
    let told = top_under_load(&node, "--view topics");
    let text = String::from_utf8(told.stdout).expect("text");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    assert!(lines[1].contains("[2 topics]"), "{text}");
    let row = lines.iter().find(|line| line.starts_with("hot ")).expect("the topic");
    assert_eq!(row.split_whitespace().nth(1), Some("3"), "its partitions: {row}");

    let told = top_under_load(&node, "--output json");
    let views = serde_json::from_slice::<Value>(&told.stdout).expect("JSON");
    assert!(told.status.success() && views["notes"] == Value::Array(Vec::new()), "{views}");
    let views = &views["views"];
    let topic = &views["topics"]["rows"][0];
    assert_eq!(topic["topic"], "hot");
    let is_above_zero = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
    assert!(is_above_zero(&topic["records_in_per_second"]) && is_above_zero(&topic["bytes"]), "{topic}");
    let of_node = &views["nodes"]["rows"][0];
    assert!(
        is_above_zero(&of_node["requests_per_second"]) && is_above_zero(&of_node["disk_used"]),
        "{of_node}"
    );
    let clients = views["clients"]["rows"].as_array().expect("rows");
    assert!(
        clients.iter().any(|row| row["client_id"] == "test" && is_above_zero(&row["time"])),
        "{clients:?}"
    );
    assert!(views["hotspots"]["notes"][0].as_str().is_some_and(|note| note.starts_with("Node 1: ")));
    assert!(node.stop().success());
}

#[test]
fn top_without_a_terminal_names_the_flag_for_scripts() {
    let told = binary().args(["top", "--bootstrap-server", "127.0.0.1:1"]).output().expect("runs");
    assert!(!told.status.success());
    assert!(String::from_utf8_lossy(&told.stderr).contains("top --once"), "{told:?}");
    let told = binary().args(["top", "--bootstrap-server", "127.0.0.1:1", "--once"]).output().expect("runs");
    assert!(!told.status.success() && told.stdout.is_empty(), "{told:?}");
}
