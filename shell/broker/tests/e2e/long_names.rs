//! Topics with the longest name that Kafka allows: every file that belongs to one of their partitions has a name that
//! the file system takes.

use crate::harness::TestNode;
use crate::harness::three_dirs::{Rig, STORAGE_ERROR, all_values, alter, eventually, produce};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::{DeleteTopicsRequest, ResponseBody};
use std::path::{Path, PathBuf};

const INVALID_TOPIC: i16 = 17;

fn entries(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path()).collect()
}

fn delete(node: &TestNode, name: &str) {
    let topic = DeleteTopicState { name: Some(name.into()), ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    let ResponseBody::DeleteTopics(response) = node.client().call(request, 6) else { panic!("another") };
    assert_eq!(response.responses[0].error_code, 0, "{response:?}");
}

#[test]
fn longest_name_and_partition_99999_live_through_it_all() {
    let name = "n".repeat(249);
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic(&name, 100_000, &[]);
    let topic = client.topic_id(&name);
    assert_eq!(produce(&mut client, &name, 99_999, "a"), 0);
    rig.node.kill();
    rig.node.launch();
    let mut client = rig.node.client();
    assert_eq!(all_values(&mut client, topic, 99_999), ["a"]);
    assert_eq!(produce(&mut client, &name, 99_999, "b"), 0);
    assert!(rig.node.stop().success());
    rig.node.launch();
    assert_eq!(all_values(&mut rig.node.client(), topic, 99_999), ["a", "b"]);
    // As with Kafka: the copy's directory would need a longer name than there is.
    let dir = format!("{name}-99999");
    let held = (0..3).find(|&at| rig.dirs[at].join(&dir).exists()).expect("it lies somewhere");
    assert_eq!(alter(&mut rig.node.client(), &rig.path((held + 1) % 3), &name, 99_999), INVALID_TOPIC);
    delete(&rig.node, &name);
    eventually("its directory has made way", || rig.dirs.iter().all(|held| !held.join(&dir).exists()));
    assert!(rig.node.stop().success());
    let mut left = rig.dirs.iter().flat_map(|dir| entries(dir)).map(|path| path.display().to_string());
    assert!(left.all(|path| !path.contains("nnnn") || path.ends_with("-delete")));
}

#[test]
fn longest_name_that_can_move_moves() {
    // Kafka's name of a copy: the topic, `-0.`, 32 digits and `-future`.
    let name = "n".repeat(255 - "-0.".len() - 32 - "-future".len());
    let mut rig = Rig::start(&[]);
    let mut client = rig.node.client();
    client.create_topic(&name, 1, &[]);
    let topic = client.topic_id(&name);
    assert_eq!(produce(&mut client, &name, 0, "a"), 0);
    let (from, _) = rig.place(&name);
    let to = (from[0] + 1) % 3;
    assert_eq!(alter(&mut client, &rig.path(to), &name, 0), 0);
    eventually("it has moved", || rig.place(&name) == (vec![to], vec![]));
    rig.node.kill();
    rig.node.launch();
    assert_eq!(all_values(&mut rig.node.client(), topic, 0), ["a"]);
    assert!(rig.node.stop().success());
}

/// What the journal holds of a partition whose segment is damaged is kept in a file, and the operator gives the
/// partition up with another.
#[test]
fn longest_name_is_kept_aside_and_given_up() {
    let name = "n".repeat(249);
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic(&name, 1, &[]);
    let topic = client.topic_id(&name);
    assert_eq!(produce(&mut client, &name, 0, "a"), 0);
    assert!(node.stop().success());
    node.launch();
    assert_eq!(produce(&mut node.client(), &name, 0, "b"), 0);
    node.kill();
    let segment = node.data().join(format!("{name}-0/00000000000000000000.log"));
    let mut bytes = std::fs::read(&segment).expect("a segment");
    bytes[16] ^= 1;
    std::fs::write(&segment, bytes).expect("damaged");
    node.launch();
    assert_eq!(produce(&mut node.client(), &name, 0, "c"), STORAGE_ERROR);
    let kept =
        |dir: &Path| entries(dir).iter().filter(|path| path.to_string_lossy().contains("unreplayed")).count();
    assert_eq!(kept(&node.data()), 1);
    node.stop_expecting_trouble();
    std::fs::write(node.data().join(format!("barnabas-abandon-{topic}-0")), "").expect("written");
    node.launch();
    // It begins once the journal has its removal.
    eventually("it begins", || produce(&mut node.client(), &name, 0, "d") == 0);
    assert_eq!(all_values(&mut node.client(), topic, 0), ["d"]);
    assert_eq!(kept(&node.data()), 0);
    let stray = entries(&node.data()).into_iter().find(|path| path.to_string_lossy().ends_with("-stray"));
    let mut aside = entries(&stray.expect("renamed")).into_iter();
    assert!(aside.any(|path| path.to_string_lossy().contains("/given-up-nnnn")));
    node.stop_expecting_trouble();
}
