//! Deleting topics with many written partitions: all files go, also after a kill, and other topics are not affected.

use crate::harness::three_dirs::{all_values, eventually, produce};
use crate::harness::{Client, TestNode, batch};
use barnabas_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use barnabas_wire::messages::{DeleteTopicsRequest, ProduceRequest, ResponseBody};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const STORAGE_ERROR: i16 = 56;

/// Writes one record into each of these partitions; error code and base offset of each.
fn write(client: &mut Client, topic: &str, partitions: &[i32]) -> Vec<(i32, i16, i64)> {
    let data = partitions.iter().map(|&index| PartitionProduceData {
        index,
        records: Some(batch(&[&format!("{topic} {index}")])),
        ..Default::default()
    });
    let topic = TopicProduceData { name: topic.into(), partition_data: data.collect(), ..Default::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() };
    let ResponseBody::Produce(response) = client.call(request, 9) else { panic!("another response") };
    let answers = &response.responses[0].partition_responses;
    answers.iter().map(|answer| (answer.index, answer.error_code, answer.base_offset)).collect()
}

/// The partitions' first records; where a predecessor is being closed, it is asked again.
fn begin(client: &mut Client, topic: &str, partitions: i32) {
    let mut left: Vec<i32> = (0..partitions).collect();
    eventually("every partition begins", || {
        let mut again = Vec::new();
        for some in left.chunks(500) {
            for (index, error, base) in write(client, topic, some) {
                match error {
                    STORAGE_ERROR => again.push(index),
                    _ => assert_eq!((error, base), (0, 0), "{topic}-{index}"),
                }
            }
        }
        left = again;
        left.is_empty()
    });
}

fn delete(client: &mut Client, topic: &str) {
    let names = vec![topic.into()];
    let request = DeleteTopicsRequest { topic_names: names, timeout_ms: 30_000, ..Default::default() };
    let ResponseBody::DeleteTopics(response) = client.call(request, 5) else { panic!("another response") };
    assert_eq!(response.responses[0].error_code, 0);
}

/// Ends the producer.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Folders of a topic that end with this, and what checkpoints say of it.
fn traces(node: &TestNode, topic: &str, kind: &str) -> usize {
    let entries = std::fs::read_dir(node.data()).expect("lists").map(|entry| entry.expect("an entry"));
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_its = |name: &String| name.starts_with(&format!("{topic}-")) && name.ends_with(kind);
    let is_plain = |name: &String| !name.contains('.');
    names.filter(|name| is_its(name) && (!kind.is_empty() || is_plain(name))).count()
}

fn checkpointed(node: &TestNode, topic: &str) -> usize {
    let of = |file: &str| {
        let text = std::fs::read_to_string(node.data().join(file)).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(&format!("{topic} "))).count()
    };
    of("recovery-point-offset-checkpoint") + of("replication-offset-checkpoint")
}

#[test]
fn a_large_topic_goes_while_another_is_written_and_may_come_back_at_once() {
    const PARTITIONS: i32 = 2_000;
    let mut node = TestNode::start();
    let mut client = node.client();
    client.create_topic("large", PARTITIONS, &[]);
    client.create_topic("other", 1, &[]);
    begin(&mut client, "large", PARTITIONS);
    eventually("checkpoints name them", || checkpointed(&node, "large") >= PARTITIONS as usize);
    let is_over = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let mut producer = node.client();
        let is_over = &is_over;
        // Also where something below fails.
        let end = Over(is_over);
        let producer = scope.spawn(move || {
            let mut written = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let value = format!("value {}", written.len());
                assert_eq!(produce(&mut producer, "other", 0, &value), 0);
                written.push(value);
            }
            written
        });
        delete(&mut client, "large");
        eventually("no folder has its name", || traces(&node, "large", "") == 0);
        eventually("no checkpoint names it", || checkpointed(&node, "large") == 0);
        // Once more, this time without waiting.
        client.create_topic("large", PARTITIONS, &[]);
        begin(&mut client, "large", PARTITIONS);
        delete(&mut client, "large");
        client.create_topic("large", PARTITIONS, &[]);
        begin(&mut client, "large", PARTITIONS);
        drop(end);
        producer.join().expect("the producer")
    });
    let new_ones = |node: &TestNode| {
        let mut client = node.client();
        let large = client.topic_id("large");
        for partition in [0, 1, 2, 3, PARTITIONS / 2, PARTITIONS - 1] {
            assert_eq!(all_values(&mut client, large, partition), [format!("large {partition}")]);
        }
        let other = client.topic_id("other");
        assert_eq!(all_values(&mut client, other, 0), written);
    };
    new_ones(&node);
    assert_eq!(traces(&node, "large", "-stray"), 0, "nothing of it is anybody else's");
    node.kill();
    node.launch();
    new_ones(&node);
    assert!(node.stop().success());
    assert_eq!(traces(&node, "large", ""), PARTITIONS as usize);
}

#[test]
fn a_deletion_that_a_kill_or_a_stop_meets_is_finished() {
    const PARTITIONS: i32 = 300;
    let mut node = TestNode::start();
    for (life, pause_ms) in [0, 0, 2, 5, 10, 20, 40].into_iter().enumerate() {
        let topic = format!("t{life}");
        let mut client = node.client();
        client.create_topic(&topic, PARTITIONS, &[]);
        begin(&mut client, &topic, PARTITIONS);
        delete(&mut client, &topic);
        std::thread::sleep(Duration::from_millis(pause_ms));
        if life == 0 {
            assert!(node.stop().success());
            assert_eq!(traces(&node, &topic, ""), 0, "a clean stop leaves nothing to finish");
        } else {
            node.kill();
        }
        node.launch();
        eventually("all of it is gone", || traces(&node, &topic, "") + traces(&node, &topic, "-delete") == 0);
        assert_eq!(traces(&node, &topic, "-stray"), 0, "{}", node.log());
    }
    assert!(node.stop().success());
}
