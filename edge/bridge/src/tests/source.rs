//! A queue's messages that do not get into their topic as they are.

use super::kafka::Kafka;
use super::peer::{Peer, listen};
use super::{Running, source_file};
use crate::dead_letters::VALUE_BYTES;
use barnabas_amqp::Outcome;
use bytes::Bytes;

const MAX: usize = usize::MAX;

async fn end(running: Running, peer: &mut Peer) {
    running.is_there().await;
    running.stop();
    let (ended, ()) = tokio::join!(running.ended(), peer.end());
    ended.expect("in order");
}

#[tokio::test]
async fn poison_without_dead_letters_is_rejected_and_others_are_committed() {
    let (kafka, (listener, port)) = (Kafka::start(&[("t", MAX)]).await, listen().await);
    let running = Running::start(&source_file(&kafka, port, ""), None);
    let mut peer = Peer::begin(&listener, None).await;
    for (id, body) in ["1", "{not json", "2"].into_iter().enumerate() {
        peer.put(id as u32, body).await;
    }
    let outcomes = peer.settled(3).await;
    assert_eq!((&outcomes[0], &outcomes[2]), (&Outcome::Accepted, &Outcome::Accepted));
    let Outcome::Rejected(why) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert!(why.description.contains("not JSON"), "{why}");
    let values: Vec<_> = kafka.records("t").into_iter().map(|record| record.value).collect();
    assert_eq!(values, [Some(Bytes::from_static(b"1")), Some(Bytes::from_static(b"2"))]);
    assert_eq!(running.counted("rejected_total"), 1);
    end(running, &mut peer).await;
}

#[tokio::test]
async fn record_and_letter_that_are_too_large_end_as_a_cut_letter() {
    let kafka = Kafka::start(&[("t", 2000), ("dead", 3000)]).await;
    let (listener, port) = listen().await;
    let file = source_file(&kafka, port, "errors.deadletterqueue.topic.name=dead");
    let running = Running::start(&file, None);
    let mut peer = Peer::begin(&listener, None).await;
    peer.put(0, "\"small\"").await;
    peer.put(1, &format!("\"{}\"", "x".repeat(50_000))).await;
    assert_eq!(peer.settled(2).await, [Outcome::Accepted, Outcome::Accepted]);
    assert_eq!(kafka.records("t").len(), 1);
    let letters = kafka.records("dead");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].value.as_ref().map(Bytes::len), Some(1024));
    assert_eq!(letters[0].header(VALUE_BYTES), Some("50002"));
    let why = letters[0].header("__connect.errors.exception.message").expect("a reason");
    assert!(why.starts_with("message id-1: its record of"), "{why}");
    assert!(why.ends_with("is larger than max.message.bytes of topic t"), "{why}");
    peer.put(2, "\"after\"").await;
    assert_eq!(peer.settled(1).await, [Outcome::Accepted]);
    assert_eq!((running.counted("dead_letters_total"), running.counted("messages_total")), (1, 3));
    end(running, &mut peer).await;
}

#[tokio::test]
async fn letter_that_no_topic_takes_is_rejected_at_the_peer() {
    let kafka = Kafka::start(&[("t", 1000), ("dead", 200)]).await;
    let (listener, port) = listen().await;
    let file = source_file(&kafka, port, "errors.deadletterqueue.topic.name=dead");
    let running = Running::start(&file, None);
    let mut peer = Peer::begin(&listener, None).await;
    peer.put(0, &format!("\"{}\"", "x".repeat(5000))).await;
    let outcomes = peer.settled(1).await;
    let Outcome::Rejected(why) = &outcomes[0] else { panic!("{outcomes:?}") };
    assert!(why.description.contains("message id-0"), "{why}");
    assert!(why.description.contains("max.message.bytes of topic dead"), "{why}");
    assert!(kafka.records("t").is_empty() && kafka.records("dead").is_empty());
    end(running, &mut peer).await;
}

#[tokio::test]
async fn batch_that_is_too_large_goes_record_by_record() {
    let (kafka, (listener, port)) = (Kafka::start(&[("t", 1000)]).await, listen().await);
    let running = Running::start(&source_file(&kafka, port, "mq.commit.interval.ms=500"), None);
    let mut peer = Peer::begin(&listener, None).await;
    for id in 0..10 {
        peer.put(id, &format!("\"{}\"", "x".repeat(300))).await;
    }
    assert!(peer.settled(10).await.iter().all(|outcome| *outcome == Outcome::Accepted));
    assert_eq!(kafka.records("t").len(), 10);
    end(running, &mut peer).await;
}

#[tokio::test]
async fn state_topic_is_created_once() {
    let (kafka, (listener, port)) = (Kafka::start(&[("t", MAX)]).await, listen().await);
    for _ in 0..3 {
        let running = Running::start(&source_file(&kafka, port, ""), None);
        let mut peer = Peer::begin(&listener, None).await;
        end(running, &mut peer).await;
    }
    assert_eq!(kafka.asked("CreateTopics"), 1);
}
