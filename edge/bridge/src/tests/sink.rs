//! A topic's records that a peer does not take.

use super::kafka::{Kafka, Stored};
use super::peer::{Peer, listen};
use super::{Running, sink_file};
use crate::dead_letters::VALUE_BYTES;
use barnabas_amqp::{Condition, Outcome};
use bytes::Bytes;

const MAX: usize = usize::MAX;

/// Ends the sink, and returns its dead letters.
async fn letters(running: Running, mut peer: Peer, kafka: &Kafka) -> Vec<Stored> {
    running.stop();
    let (ended, ()) = tokio::join!(running.ended(), peer.end());
    ended.expect("in order");
    kafka.records("dead")
}

async fn start(kafka: &Kafka, max_message_size: Option<u64>) -> (Running, Peer) {
    let (listener, port) = listen().await;
    let file = sink_file(kafka, port, "errors.deadletterqueue.topic.name=dead");
    let running = Running::start(&file, Some("t"));
    (running, Peer::begin(&listener, max_message_size).await)
}

#[tokio::test]
async fn rejected_messages_become_letters_of_one_producer() {
    let kafka = Kafka::start(&[("t", MAX)]).await;
    kafka.put("t", "a");
    let (running, mut peer) = start(&kafka, None).await;
    for value in ["b", "c", "d"] {
        let (transfer, _) = peer.sent().await;
        peer.settle(&transfer, Outcome::Rejected(Condition::new("amqp:not-allowed", "no"))).await;
        kafka.put("t", value);
    }
    let (transfer, _) = peer.sent().await;
    peer.settle(&transfer, Outcome::Accepted).await;
    let letters = letters(running, peer, &kafka).await;
    let values: Vec<_> = letters.iter().map(|letter| letter.value.clone().expect("a value")).collect();
    assert_eq!(values, ["a", "b", "c"].map(Bytes::from));
    let why = letters[0].header("__connect.errors.exception.message");
    assert_eq!(why, Some("the peer rejects it: amqp:not-allowed: no"));
    assert_eq!(letters[2].header("__connect.errors.offset"), Some("2"));
    assert_eq!(kafka.asked("InitProducerId"), 1);
    assert_eq!(kafka.asked("LeaveGroup"), 1);
    assert_eq!(kafka.world().committed, 4);
}

#[tokio::test]
async fn message_above_the_links_maximum_is_not_sent() {
    let kafka = Kafka::start(&[("t", MAX)]).await;
    kafka.put("t", &"x".repeat(5000));
    kafka.put("t", "small");
    let (running, mut peer) = start(&kafka, Some(1000)).await;
    let (transfer, payload) = peer.sent().await;
    assert_eq!(transfer.delivery_id, Some(0));
    assert!(payload.windows(5).any(|part| part == b"small"), "the large one was not sent");
    peer.settle(&transfer, Outcome::Accepted).await;
    let letters = letters(running, peer, &kafka).await;
    assert_eq!(letters.len(), 1);
    let why = letters[0].header("__connect.errors.exception.message").expect("a reason");
    assert!(why.contains("max-message-size 1000"), "{why}");
    assert_eq!(kafka.world().committed, 2);
}

#[tokio::test]
async fn letter_above_the_topics_limit_is_cut() {
    let kafka = Kafka::start(&[("t", MAX), ("dead", 3000)]).await;
    kafka.put("t", &"x".repeat(50_000));
    let (running, mut peer) = start(&kafka, None).await;
    let (transfer, _) = peer.sent().await;
    peer.settle(&transfer, Outcome::Rejected(Condition::default())).await;
    kafka.put("t", "after");
    let (transfer, _) = peer.sent().await;
    peer.settle(&transfer, Outcome::Accepted).await;
    let letters = letters(running, peer, &kafka).await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].value.as_ref().map(Bytes::len), Some(1024));
    assert_eq!(letters[0].header(VALUE_BYTES), Some("50000"));
    assert_eq!(kafka.world().committed, 2);
}

#[tokio::test]
async fn letter_that_its_topic_never_takes_ends_the_run_by_name() {
    let kafka = Kafka::start(&[("t", MAX), ("dead", 100)]).await;
    kafka.put("t", "x");
    let (running, mut peer) = start(&kafka, None).await;
    let (transfer, _) = peer.sent().await;
    peer.settle(&transfer, Outcome::Rejected(Condition::default())).await;
    let error = running.ended().await.expect_err("no place is left").to_string();
    assert!(error.contains("dead-letter topic dead") && error.contains("record t-0@0"), "{error}");
    assert!(error.contains("max.message.bytes"), "{error}");
    assert_eq!(kafka.world().committed, 0);
}
