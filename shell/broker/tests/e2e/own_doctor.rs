//! The doctor in the node: a finding is a metric and one line when it appears, and one line when it is gone.

use crate::harness::patience::until;
use crate::harness::{Client, TempDir, TestNode, free_port};
use std::io::{Read, Write};
use std::net::TcpStream;

fn page(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sends");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}

#[test]
fn finding_of_a_node_has_a_line_when_it_comes_and_goes() {
    let (dir, port) = (TempDir::new(), free_port());
    let file = dir.path().join("known.txt");
    let mut node = TestNode::start_with(&[
        "doctor.interval.ms=1000",
        &format!("doctor.silence.file={}", file.display()),
        &format!("metrics.listener=127.0.0.1:{port}"),
    ]);
    let count = |node: &TestNode, words: &str| node.log().matches(words).count();
    until("connections that come and go are found", || {
        (0..50).for_each(|_| drop(Client::try_connect(node.port)));
        page(port)
            .contains("barnabas_finding{id=\"N7\",severity=\"warning\",subject=\"node 1\"} 1")
            .then_some(())
    });
    assert_eq!(count(&node, "finding N7: "), 1, "{}", node.log());
    assert_eq!(count(&node, "doctor.silence.file: "), 1, "the file is missing: {}", node.log());
    std::fs::write(&file, "# nothing is known yet\n").expect("written");
    until("the finding is gone", || (count(&node, "finding N7 is gone") == 1).then_some(()));
    assert!(!page(port).contains("id=\"N7\""));
    assert_eq!(count(&node, "finding N7: "), 1, "{}", node.log());
    assert!(node.stop_expecting_trouble().success());
}
