//! Replicas follow: brokers of one process against each other over real sockets, under an image that the test writes.

mod rig;

use crate::mailbox::{Declined, PartitionKey, Report};
use crate::node::peers::planted::Mistake;
use crate::worker::partition_worker::PartitionWorker;
use barnabas_base::{ErrorCode, Offset, PartitionIndex};
use barnabas_metadata::ResourceType;
use barnabas_metrics::RoundTimes;
use rig::Cluster;
use std::rc::Rc;
use std::time::Duration;

fn values(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}-{number}")).collect()
}

fn told(seen: &[(i64, String)]) -> Vec<&str> {
    seen.iter().map(|(_, value)| value.as_str()).collect()
}

#[test]
fn what_all_in_sync_replicas_have_is_acknowledged_without_a_timer() {
    let cluster = Cluster::start(3, &[]);
    let topic = cluster.create_topic(1, 4, &[1, 2, 3], &[1, 2, 3]);
    let link = cluster.connect(1);
    // The first waits for connections and sessions.
    for partition in 0..4 {
        assert_eq!(cluster.produce_over(&link, topic, partition, -1, &values("first", 3)), Ok(0));
    }
    let begun = barnabas_clock::now();
    for number in 0..50 {
        let partition = number % 4;
        let acked = cluster.produce_over(&link, topic, partition, -1, &values(&format!("{number}"), 2));
        assert_eq!(acked, Ok(3 + i64::from(number / 4) * 2));
    }
    let each = barnabas_clock::since(begun) / 50;
    println!("an append is acknowledged by three replicas after {each:?}");
    assert!(each < Duration::from_millis(100), "{each:?}");
    let (seen, high_watermark) = cluster.consume(1, topic, 0);
    assert_eq!((seen.len(), high_watermark), (29, 29));
    assert_eq!(cluster.isr(topic, 0), [1, 2, 3]);
    assert_eq!(cluster.produce(2, topic, 0, -1, &values("x", 1)), Err(ErrorCode::NotLeaderOrFollower));
}

#[test]
fn the_next_leader_has_all_that_was_acknowledged() {
    let mut cluster = Cluster::start(3, &[]);
    let topic = cluster.create_topic(1, 2, &[1, 2, 3], &[1, 2, 3]);
    let mut expected = Vec::new();
    for number in 0..20 {
        let sent = values(&format!("{number}"), 5);
        cluster.produce(1, topic, 0, -1, &sent).expect("acknowledged");
        expected.extend(sent);
    }
    cluster.kill(1);
    cluster.elect(topic, 2, 2, &[2, 3]);
    let sent = values("after", 5);
    assert_eq!(cluster.produce(2, topic, 0, -1, &sent), Ok(100));
    expected.extend(sent);
    let seen = cluster.await_records(2, topic, 0, expected.len());
    assert_eq!(told(&seen), expected);
    // And the one after that.
    cluster.elect(topic, 2, 3, &[2, 3]);
    let sent = values("again", 5);
    cluster.produce(3, topic, 0, -1, &sent).expect("acknowledged");
    expected.extend(sent);
    let seen = cluster.await_records(3, topic, 0, expected.len());
    assert_eq!(told(&seen), expected);
}

#[test]
fn a_leader_without_company_refuses_and_who_comes_back_empty_catches_up() {
    let settings = [("replica.lag.time.max.ms", "1000"), ("min.insync.replicas", "2")];
    let mut cluster = Cluster::start(2, &settings);
    let topic = cluster.create_topic(1, 1, &[1, 2], &[1, 2]);
    let mut expected = Vec::new();
    for number in 0..40 {
        // Some of them large.
        let sent = vec![format!("{number}-{}", "x".repeat(if number % 8 == 7 { 700_000 } else { 100 }))];
        cluster.produce(1, topic, 0, -1, &sent).expect("acknowledged");
        expected.extend(sent);
    }
    cluster.kill(2);
    // A replica that has everything stays in sync, dead or not, until the leader appends (the controller fences dead
    // brokers).
    let sent = values("leader", 1);
    cluster.produce(1, topic, 0, 1, &sent).expect("acknowledged");
    expected.extend(sent);
    cluster.await_isr(topic, 0, &[1]);
    let refused = cluster.produce(1, topic, 0, -1, &values("alone", 1));
    assert_eq!(refused, Err(ErrorCode::NotEnoughReplicas));
    cluster.start_broker(2);
    cluster.await_isr(topic, 0, &[1, 2]);
    let sent = values("together", 3);
    cluster.produce(1, topic, 0, -1, &sent).expect("acknowledged");
    expected.extend(sent);
    // All of it came over.
    cluster.elect(topic, 1, 2, &[1, 2]);
    let seen = cluster.await_records(2, topic, 0, expected.len());
    assert!(told(&seen) == expected);
}

#[test]
fn what_the_new_leader_does_not_have_is_cut_off() {
    for durability in ["synced", "written"] {
        let cluster = Cluster::start(2, &[("log.ack.durability", durability)]);
        let topic = cluster.create_topic(1, 1, &[1, 2], &[1, 2]);
        let shared = values("shared", 10);
        cluster.produce(1, topic, 0, -1, &shared).expect("acknowledged");
        // Only broker 1 hears that it leads alone, in a new epoch: what it takes from now on is nowhere else.
        cluster.elect_telling(&[1], topic, 1, 1, &[1]);
        for number in 0..5 {
            cluster.produce(1, topic, 0, 1, &values(&format!("lost-{number}"), 4)).expect("acknowledged");
        }
        cluster.elect(topic, 1, 2, &[2]);
        let kept = values("kept", 7);
        cluster.produce(2, topic, 0, 1, &kept).expect("acknowledged");
        cluster.await_isr(topic, 0, &[1, 2]);
        let more = values("more", 3);
        cluster.produce(2, topic, 0, -1, &more).expect("acknowledged");
        let expected: Vec<String> = [shared, kept, more].concat();
        cluster.elect(topic, 1, 1, &[1, 2]);
        let seen = cluster.await_records(1, topic, 0, expected.len());
        assert_eq!(told(&seen), expected);
    }
}

/// Whether a record that was acknowledged is missing on the next leader, which never had it.
fn loses_what_only_the_leader_had(planted: Option<Mistake>) -> bool {
    let mut cluster = Cluster::start(2, &[]);
    planted.into_iter().for_each(|mistake| cluster.plant(mistake));
    let topic = cluster.create_topic(1, 1, &[1, 2], &[1, 2]);
    let link = cluster.connect(1);
    assert_eq!(cluster.produce_over(&link, topic, 0, -1, &values("both", 3)), Ok(0));
    // The second gets no more answers, and counts as in sync until the controller removes it.
    cluster.kill(2);
    let answer = cluster.produce_within(500, &link, topic, (0, -1), &values("leader", 1));
    assert_eq!(answer.err(), planted.is_none().then_some(ErrorCode::RequestTimedOut));
    answer.is_ok()
}

#[test]
fn an_acknowledgement_before_the_isr_would_be_noticed() {
    assert!(!loses_what_only_the_leader_had(None));
    assert!(loses_what_only_the_leader_had(Some(Mistake::AcksBeforeTheIsr)));
}

/// Whether a follower that is in sync loses acknowledged records because the leader changes: it hears of the next
/// leader, which has not heard yet that it leads, and then leads itself (KIP-101's first story).
fn loses_by_two_elections(planted: Option<Mistake>) -> bool {
    let cluster = Cluster::start(3, &[]);
    planted.into_iter().for_each(|mistake| cluster.plant(mistake));
    let topic = cluster.create_topic(1, 1, &[1, 2, 3], &[1, 2, 3]);
    let link = cluster.connect(1);
    let mut expected = Vec::new();
    for number in 0..20 {
        let sent = values(&format!("{number}"), 2);
        cluster.produce_over(&link, topic, 0, -1, &sent).expect("acknowledged");
        expected.extend(sent);
    }
    // Followers hear that the last of it is safe with the answer to their next fetch: not yet.
    cluster.elect_telling(&[3], topic, 1, 2, &[1, 2, 3]);
    std::thread::sleep(Duration::from_millis(100));
    cluster.elect(topic, 1, 3, &[1, 2, 3]);
    cluster.produce(3, topic, 0, -1, &values("next", 1)).expect("acknowledged");
    expected.extend(values("next", 1));
    let (seen, _) = cluster.consume(3, topic, 0);
    told(&seen) != expected
}

#[test]
fn a_truncation_to_the_high_watermark_would_be_noticed() {
    assert!(!loses_by_two_elections(None));
    assert!(loses_by_two_elections(Some(Mistake::TruncatesToHighWatermark)));
}

#[test]
fn a_batch_that_comes_before_the_election_waits_for_it() {
    let cluster = Cluster::start(2, &[]);
    let topic = cluster.create_topic(1, 1, &[1, 2], &[1, 2]);
    let link = cluster.connect(2);
    cluster.produce(1, topic, 0, -1, &values("first", 2)).expect("acknowledged");
    std::thread::scope(|scope| {
        let early = scope.spawn(|| cluster.produce_over(&link, topic, 0, -1, &values("early", 1)));
        std::thread::sleep(Duration::from_millis(30));
        assert!(!early.is_finished());
        cluster.elect(topic, 1, 2, &[1, 2]);
        assert_eq!(early.join().expect("no panic"), Ok(2));
    });
    // Who led before only hears from those who do not know better.
    let link = cluster.connect(1);
    // One that was held would take 100 ms each time; one that is not takes that long where the machine is busy.
    let took = (0..10).map(|_| {
        let begun = barnabas_clock::now();
        let stale = cluster.produce_over(&link, topic, 0, -1, &values("stale", 1));
        assert_eq!(stale, Err(ErrorCode::NotLeaderOrFollower));
        barnabas_clock::since(begun)
    });
    let shortest = took.min().expect("ten of them");
    assert!(shortest < Duration::from_millis(90), "{shortest:?}");
}

#[test]
fn a_consumer_reads_from_the_replica_in_its_rack() {
    let selector = ("replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector");
    let cluster = Cluster::start(2, &[selector]);
    let topic = cluster.create_topic(1, 1, &[1, 2], &[1, 2]);
    cluster.produce(1, topic, 0, -1, &values("near", 5)).expect("acknowledged");
    let sent = cluster.fetch(1, topic, 0, "rack-2");
    assert_eq!((sent.error_code, sent.preferred_read_replica, sent.high_watermark), (0, 2, 5));
    assert!(sent.records.unwrap_or_default().is_empty());
    for rack in ["", "rack-1", "rack-9"] {
        let own = cluster.fetch(1, topic, 0, rack);
        assert_eq!((own.error_code, own.preferred_read_replica), (0, -1));
        assert!(!own.records.unwrap_or_default().is_empty(), "{rack}");
    }
    // The follower shows what it knows to be committed, once it does.
    let begun = barnabas_clock::now();
    loop {
        let near = cluster.fetch(2, topic, 0, "rack-2");
        assert_eq!((near.error_code, near.preferred_read_replica), (0, -1));
        assert_eq!(near.high_watermark == 0, near.records.unwrap_or_default().is_empty());
        if near.high_watermark == 5 {
            break;
        }
        assert!(barnabas_clock::since(begun) < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(5));
    }
    let beyond = cluster.fetch(2, topic, 9, "rack-2");
    assert_eq!(ErrorCode::from_code(beyond.error_code), ErrorCode::OffsetOutOfRange);
}

#[test]
fn throttled_replicas_come_as_slowly_as_they_may() {
    for side in ["leader", "follower"] {
        // A batch for each fetch.
        let mut cluster = Cluster::start(2, &[("replica.fetch.max.bytes", "1000")]);
        cluster.kill(2);
        let topic = cluster.create_topic(1, 1, &[1, 2], &[1]);
        for number in 0..4 {
            let sent = vec![format!("{number}-{}", "x".repeat(100_000))];
            cluster.produce(1, topic, 0, 1, &sent).expect("acknowledged");
        }
        let (replicas, rate) =
            (format!("{side}.replication.throttled.replicas"), format!("{side}.replication.throttled.rate"));
        let broker = if side == "leader" { "1" } else { "2" };
        cluster.configure(&[
            (ResourceType::Topic, "topic-1", &replicas, "*"),
            (ResourceType::Broker, broker, &rate, "100000"),
        ]);
        let begun = barnabas_clock::now();
        cluster.start_broker(2);
        cluster.await_isr(topic, 0, &[1, 2]);
        let (took, least) = (barnabas_clock::since(begun), Duration::from_millis(1_500));
        println!("400 kB at 100 kB/s by the {side}: {took:?}");
        assert!(took > least && took < 8 * least, "{side}: {took:?}");
    }
}

/// Its owner's turns are taken by the test: the broker's own worker is asked for nothing.
#[test]
fn abandoned_partition_begins_once_its_removal_is_durable() {
    let cluster = Cluster::start(1, &[]);
    let topic = cluster.create_topic(1, 1, &[1], &[1]);
    let node = cluster.broker(1).node.clone();
    let directory = &node.log_dirs.directories[0];
    let key = PartitionKey { topic, partition: PartitionIndex(0) };
    let owner = key.owner(node.workers.count);
    let recorder = Rc::new(node.workers.metering.recorder(owner));
    let mut worker = PartitionWorker::new(owner, node.clone(), recorder);
    let file = directory.path.join("barnabas-abandon-topic-1-0");
    std::fs::write(&file, "").expect("written");
    assert_eq!(worker.open(key), Err(Declined::Storage));
    assert!(file.exists(), "a crash now starts over");
    worker.finish_round();
    let begun = barnabas_clock::now();
    while directory.journal.life().is_none() {
        assert!(barnabas_clock::since(begun) < Duration::from_secs(20), "the journal has no removal");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(worker.open(key), Err(Declined::Storage), "no report says that it is durable");
    worker.hear(Report::Durable(0, vec![(key, Offset::NONE)], RoundTimes::default()));
    assert_eq!(worker.open(key), Ok(()));
    assert!(!file.exists());
}
