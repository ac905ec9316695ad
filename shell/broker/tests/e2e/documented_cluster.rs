//! The cluster that docs/CONFIGURATION.md writes out: its three files start, form a cluster and replicate.

use crate::harness::TestNode;
use crate::harness::cluster::{eventually, metadata};
use crate::harness::free_port;
use crate::harness::quorum::{create, format, random_uuid};

/// The files between "```properties" and "```", in the order of the page.
fn files_of(page: &str) -> Vec<&str> {
    let blocks = page.split("```properties\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn files_of_the_page_make_a_cluster() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CONFIGURATION.md"));
    let page = page.expect("the page");
    let files = files_of(&page);
    assert_eq!(files.len(), 3);

    // Other tests run beside this one: each port of the page stands for a free one.
    let ports: Vec<(String, u16)> = ["19092", "19093", "29092", "29093", "39092", "39093"]
        .iter()
        .map(|port| ((*port).to_owned(), free_port()))
        .collect();
    let id = random_uuid();
    let mut nodes: Vec<TestNode> = Vec::new();
    for (number, text) in files.iter().enumerate() {
        let mut node = TestNode::new(None, &[]);
        let mut text =
            text.replace(&std::format!("./data-{}", number + 1), &node.data().display().to_string());
        for (of_page, free) in &ports {
            text = text.replace(&std::format!(":{of_page}"), &std::format!(":{free}"));
        }
        let file = node.dir.path().join("server.properties");
        std::fs::write(&file, text).expect("written");
        let (ok, output) = format(&file, &id, &[]);
        assert!(ok, "{output}");
        node.set_file(file.to_str().expect("a path"), (ports[2 * number].1, ports[2 * number + 1].1));
        nodes.push(node);
    }
    nodes.iter_mut().for_each(TestNode::launch_unawaited);
    nodes.iter_mut().for_each(TestNode::await_answer);

    for node in &nodes {
        eventually("three brokers are known", || {
            metadata(&mut node.client()).is_some_and(|known| known.brokers.len() == 3)
        });
    }
    assert_eq!(create(&mut nodes[0].client(), 7, "orders", 6, -1), 0, "{}", nodes[0].log());
    eventually("each partition has three replicas in sync", || {
        let topics = metadata(&mut nodes[2].client()).map(|known| known.topics).unwrap_or_default();
        let orders = topics.iter().find(|topic| topic.name.as_ref().is_some_and(|name| &**name == "orders"));
        orders.is_some_and(|topic| topic.partitions.iter().all(|partition| partition.isr_nodes.len() == 3))
    });
    for node in &mut nodes {
        assert!(node.stop().success(), "{}", node.log());
    }
}
