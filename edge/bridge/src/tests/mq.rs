//! Queues of a queue manager and topics: what a crash, a lost answer and a message that does not fit lead to.

use super::Running;
use super::kafka::{Kafka, Stored};
use super::mq_peer::QueueManager;
use crate::BridgeError;
use bytes::Bytes;
use std::time::Duration;

const MAX: usize = usize::MAX;

fn file(kafka: &Kafka, queue_manager: &QueueManager, more: &str) -> String {
    format!(
        "name=n\nbootstrap.servers={}\nmq.protocol=experimental\nmq.queue=q\nmq.channel.name=APP\n\
         mq.connection.name.list=127.0.0.1({})\n{more}\n",
        kafka.address, queue_manager.port
    )
}

fn source(kafka: &Kafka, queue_manager: &QueueManager, more: &str) -> Running {
    let more = format!("connector.class=source\ntopic=t\nmq.record.builder=JsonRecordBuilder\n{more}");
    Running::start(&file(kafka, queue_manager, &more), None)
}

fn sink(kafka: &Kafka, queue_manager: &QueueManager, more: &str) -> Running {
    let more = format!("connector.class=sink\ntopics=t\nerrors.deadletterqueue.topic.name=dead\n{more}");
    Running::start(&file(kafka, queue_manager, &more), Some("t"))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}");
}

fn values(records: &[Stored]) -> Vec<&[u8]> {
    records.iter().filter_map(|record| record.value.as_deref()).collect()
}

#[tokio::test]
async fn messages_become_records_and_a_stop_ends_in_order() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q"]).await);
    for id in 0..7 {
        manager.put("q", id, &id.to_string());
    }
    let more = "mq.batch.size=3\nmq.jms.properties.copy.to.kafka.headers=true";
    let running = source(&kafka, &manager, more);
    until("seven are counted", || running.counted("messages_total") == 7).await;
    let records = kafka.records("t");
    assert_eq!(values(&records), [b"0", b"1", b"2", b"3", b"4", b"5", b"6"]);
    let id = "ID:030303030303030303030303030303030303030303030303";
    assert_eq!(records[3].header("JMSMessageID"), Some(id));
    assert_eq!(records[3].header("JMSTimestamp"), Some("951827696780"));
    assert!(running.counted("commits_total") >= 3, "a unit has three at most");
    running.stop();
    running.ended().await.expect("in order");
    assert!(manager.bodies("q").is_empty());
    assert_eq!(manager.world().disconnects, 1);
}

#[tokio::test]
async fn unit_that_is_backed_out_after_its_transaction_is_skipped() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q"]).await);
    (0..5).for_each(|id| manager.put("q", id, &id.to_string()));
    manager.world().lost_commits = 1;
    let lost = source(&kafka, &manager, "mq.commit.interval.ms=500").ended().await;
    assert!(matches!(lost, Err(BridgeError::Lost { .. })), "{lost:?}");
    until("it is backed out", || manager.bodies("q").len() == 5).await;
    assert_eq!(kafka.records("t").len(), 5);
    manager.put("q", 5, "5");
    let running = source(&kafka, &manager, "");
    until("the queue is empty", || running.counted("skipped_total") == 5 && manager.bodies("q").is_empty())
        .await;
    until("the new one is there", || kafka.records("t").len() == 6).await;
    running.stop();
    running.ended().await.expect("in order");
    assert_eq!(values(&kafka.records("t")).len(), 6);
}

#[tokio::test]
async fn source_whose_task_ends_anywhere_loses_and_doubles_nothing() {
    const MESSAGES: u8 = 120;
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q"]).await);
    (0..MESSAGES).for_each(|id| manager.put("q", id, &id.to_string()));
    for turn in 1..=20 {
        let running = source(&kafka, &manager, "mq.batch.size=7");
        let wait = if turn < 20 { turn * 3 } else { 10_000 };
        let done =
            until("all are there", || manager.bodies("q").is_empty() && kafka.records("t").len() >= 120);
        let _ = tokio::time::timeout(Duration::from_millis(wait), done).await;
        running.task.abort();
        // The queue manager finds the end of the connection, and backs the unit out.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(manager.bodies("q"), Vec::<String>::new());
    let mut numbers: Vec<u8> = kafka
        .records("t")
        .iter()
        .map(|record| {
            String::from_utf8_lossy(record.value.as_ref().expect("a value")).parse().expect("a number")
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..MESSAGES).collect::<Vec<_>>());
}

#[tokio::test]
async fn poison_moves_to_the_backout_queue_or_stays() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q", "back"]).await);
    for (id, body) in ["1", "{not json", "2"].into_iter().enumerate() {
        manager.put("q", id as u8, body);
    }
    let held = source(&kafka, &manager, "").ended().await.expect_err("it has no place");
    let said = held.to_string();
    assert!(
        said.contains("ID:0101") && said.contains("not JSON") && said.contains("stays in the queue"),
        "{said}"
    );
    assert!(held.cure().expect("a cure").contains("mq.backout.queue"));
    until("it is backed out", || manager.bodies("q").len() == 3).await;
    assert!(kafka.records("t").is_empty());

    let running = source(&kafka, &manager, "mq.backout.queue=back");
    until("it is moved", || manager.bodies("back") == ["{not json"]).await;
    assert_eq!(values(&kafka.records("t")), [b"1", b"2"]);
    assert_eq!(manager.world().queues["back"][0].0.msg_id, [1; 24]);
    until("it is counted", || running.counted("rejected_total") == 1).await;
    running.stop();
    running.ended().await.expect("in order");
}

#[tokio::test]
async fn message_that_is_too_large_stays_in_the_queue() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q"]).await);
    manager.put("q", 1, "\"12345678901234567890\"");
    let held = source(&kafka, &manager, "mq.message.bytes.max=10").ended().await.expect_err("too large");
    assert!(held.to_string().contains("has 22 bytes, and 10 is the most"), "{held}");
    assert!(held.cure().expect("a cure").contains("mq.message.bytes.max"));
    until("it is backed out", || manager.bodies("q").len() == 1).await;
}

#[tokio::test]
async fn queue_that_is_not_there_is_refused_with_a_cure() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&[]).await);
    let refused = source(&kafka, &manager, "").ended().await.expect_err("no queue");
    assert!(
        refused.to_string().contains("refuses MQOPEN of q at QM1: 2085 MQRC_UNKNOWN_OBJECT_NAME"),
        "{refused}"
    );
    assert!(refused.cure().expect("a cure").contains("mq.queue"));
}

#[tokio::test]
async fn records_are_put_and_offsets_follow_the_commit() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q"]).await);
    (0..5).for_each(|n| kafka.put("t", &n.to_string()));
    let running = sink(&kafka, &manager, "bridge.in.flight.max=2");
    until("all offsets are committed", || kafka.world().committed == 5).await;
    assert_eq!(manager.bodies("q"), ["0", "1", "2", "3", "4"]);
    running.stop();
    running.ended().await.expect("in order");
    let disconnects = manager.world().disconnects;
    assert_eq!((disconnects, kafka.asked("LeaveGroup")), (1, 1));
}

#[tokio::test]
async fn unit_whose_answer_is_lost_is_put_again_with_the_same_ids() {
    let (kafka, manager) = (Kafka::start(&[("t", MAX)]).await, QueueManager::start(&["q"]).await);
    (0..3).for_each(|n| kafka.put("t", &n.to_string()));
    manager.world().lost_answers = 1;
    let lost = sink(&kafka, &manager, "").ended().await;
    assert!(matches!(lost, Err(BridgeError::Lost { .. })), "{lost:?}");
    let running = sink(&kafka, &manager, "");
    until("all offsets are committed", || kafka.world().committed == 3).await;
    let ids: Vec<_> = manager.world().queues["q"].iter().map(|(md, _)| md.msg_id).collect();
    assert!(ids.len() > 3 && ids[ids.len() - 3..].iter().all(|id| ids[..3].contains(id)), "{ids:?}");
    running.stop();
    running.ended().await.expect("in order");
}

#[tokio::test]
async fn record_that_is_refused_for_itself_is_a_dead_letter_and_others_end_the_run() {
    let (kafka, manager) =
        (Kafka::start(&[("t", MAX), ("dead", MAX)]).await, QueueManager::start(&["q"]).await);
    kafka.put("t", "1");
    manager.world().refused_put = barnabas_mq::reason::MSG_TOO_BIG_FOR_Q;
    let running = sink(&kafka, &manager, "");
    until("the letter is there", || kafka.world().committed == 1).await;
    let letters = kafka.records("dead");
    let why = letters[0].header("__connect.errors.exception.message").expect("a reason");
    assert_eq!(why, "the queue manager refuses it: 2030 MQRC_MSG_TOO_BIG_FOR_Q");
    assert_eq!(letters[0].value, Some(Bytes::from_static(b"1")));
    manager.world().refused_put = 2053;
    kafka.put("t", "2");
    let full = running.ended().await.expect_err("the queue is full");
    assert!(full.to_string().contains("refuses MQPUT of q at QM1: 2053 MQRC_Q_FULL"), "{full}");
    let committed = kafka.world().committed;
    assert_eq!((committed, kafka.records("dead").len()), (1, 1));
}
