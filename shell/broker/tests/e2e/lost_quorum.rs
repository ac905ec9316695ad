//! `barnabas doctor` against a cluster that has lost two of its three voters.

use crate::harness::binary;
use crate::harness::quorum::Three;
use std::time::{Duration, Instant};

#[test]
fn doctor_names_the_lost_quorum_and_the_dead_nodes() {
    let mut cluster = Three::start();
    let alive = cluster.follower();
    let dead: Vec<i32> = (1..=3).filter(|node| *node != alive).collect();
    for node in &dead {
        cluster.nodes.get_mut(node).expect("a node").kill();
    }
    let server = format!("127.0.0.1:{}", cluster.nodes[&alive].port);
    let begun = Instant::now();
    let output =
        binary().args(["doctor", "--bootstrap-server", &server, "--interval", "1"]).output().expect("runs");
    let (took, said) = (begun.elapsed(), String::from_utf8_lossy(&output.stdout).into_owned());
    let waited = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{waited}");
    // The quorum is waited for once, 5 s, and nothing else for long.
    assert!(took < Duration::from_secs(20), "{took:?}: {said}");
    assert!(waited.contains("doctor: waiting for") && waited.contains("DescribeQuorum"), "{waited}");
    let line =
        |id: &str| said.lines().filter(|line| line.starts_with("critical") && line.contains(id)).count();
    let lost = said.lines().find(|line| line.contains(" C14 ")).unwrap_or_else(|| panic!("{said}"));
    assert!(lost.contains("2 of 3 controllers do not answer ("), "{lost}");
    for node in &dead {
        let silent =
            format!(" C15  node {node}: it does not answer at 127.0.0.1:{}", cluster.nodes[node].port);
        assert!(said.contains(&silent), "{said}");
        let start = format!(
            "$ systemctl start barnabas  # on the host of 127.0.0.1:{}",
            cluster.nodes[node].controller_port
        );
        assert!(said.contains(&start), "{said}");
    }
    assert_eq!((line(" C14 "), line(" C15 "), line(" N6 ")), (1, 2, 0), "{said}");
    let node = cluster.nodes.get_mut(&alive).expect("a node");
    node.kill();
}
