//! Replicas follow: brokers of one process against each other over real sockets, under an image that the test writes.

mod rig;

use barnabas_base::ErrorCode;
use rig::Cluster;
use std::time::{Duration, Instant};

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
    let begun = Instant::now();
    for number in 0..50 {
        let partition = number % 4;
        let acked = cluster.produce_over(&link, topic, partition, -1, &values(&format!("{number}"), 2));
        assert_eq!(acked, Ok(3 + i64::from(number / 4) * 2));
    }
    let each = begun.elapsed() / 50;
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
    // Whoever has everything is in sync, dead or not, until there is more (the controller fences the dead).
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
