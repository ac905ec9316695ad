use super::*;
use crate::testing::{COMPACTED, Fixture, ORDERS};
use barnabas_wire::messages::produce_response::TopicProduceResponse;

fn key(partition: i32) -> Key {
    (ORDERS, PartitionIndex(partition))
}

fn kept(key: Key, topic: &str, records: &'static [u8]) -> Kept {
    let slot = Slot::new(0, usize::try_from(key.1.get()).unwrap());
    Kept { slot, key, topic: topic.into(), records: Bytes::from_static(records) }
}

fn order(partition: i32, records: &'static [u8]) -> Kept {
    kept(key(partition), "orders", records)
}

fn at(ms: i64) -> MonotonicMs {
    MonotonicMs(0).plus(DurationMs(ms))
}

fn records(batches: &[Kept]) -> Vec<&[u8]> {
    batches.iter().map(|batch| &*batch.records).collect()
}

fn answer(index: i32, error: ErrorCode, time: i64) -> ProduceResponse {
    let partition = PartitionProduceResponse {
        index,
        error_code: error.code(),
        base_offset: 40,
        log_append_time_ms: time,
        log_start_offset: 3,
        ..PartitionProduceResponse::default()
    };
    let topic = TopicProduceResponse {
        name: "orders".into(),
        partition_responses: vec![partition],
        ..TopicProduceResponse::default()
    };
    ProduceResponse { responses: vec![topic], ..ProduceResponse::default() }
}

#[test]
fn partition_is_forwarded_for_a_moment_in_each_epoch() {
    let mut forwarding = Forwarding::default();
    let mut goes_on = |epoch, ms| forwarding.goes_on(key(1), LeaderEpoch(epoch), at(ms));
    assert!(goes_on(1, 0) && goes_on(1, FORWARD_FOR.0 - 1));
    assert!(!goes_on(1, FORWARD_FOR.0) && !goes_on(1, 100 * FORWARD_FOR.0));
    assert!(goes_on(2, 100 * FORWARD_FOR.0));
    forwarding.give_up(key(1), at(100 * FORWARD_FOR.0 + 1));
    let mut goes_on = |epoch, ms| forwarding.goes_on(key(1), LeaderEpoch(epoch), at(ms));
    assert!(!goes_on(2, 100 * FORWARD_FOR.0 + 1) && goes_on(3, 100 * FORWARD_FOR.0 + 1));
}

/// A producer with more partitions than are remembered is not forwarded for ever, one being forgotten for another.
#[test]
fn more_partitions_than_are_remembered_are_not_forwarded() {
    let mut forwarding = Forwarding::default();
    let mut going = |ms| {
        let all = 0..2 * REMEMBERED_MAX as i32;
        all.filter(|&partition| forwarding.goes_on(key(partition), LeaderEpoch(1), at(ms))).count()
    };
    assert_eq!(going(0), REMEMBERED_MAX);
    assert_eq!(going(FORWARD_FOR.0), 0);
    assert_eq!(going(2 * FORWARD_FOR.0), 0);
    assert_eq!(forwarding.until.len(), REMEMBERED_MAX);
    let last = 9 * REMEMBERED_MAX as i32;
    forwarding.goes_on(key(last), LeaderEpoch(1), at(REMEMBERED_FOR.0 + FORWARD_FOR.0));
    assert_eq!(forwarding.until.len(), 1);
}

#[test]
fn batches_wait_for_earlier_ones_of_the_same_partition() {
    let mut forwarding = Forwarding::default();
    let first = forwarding.begin(vec![key(0), key(1)]);
    let second = forwarding.begin(vec![key(1), key(2)]);
    assert!(forwarding.is_turn_of(first, &[key(0), key(1)]));
    assert!(!forwarding.is_turn_of(second, &[key(1)]));
    assert!(forwarding.is_turn_of(second, &[key(2)]), "only partition 1 is in both");
    forwarding.ended(first);
    assert!(forwarding.is_turn_of(second, &[key(1), key(2)]));
}

#[test]
fn next_takes_one_batch_of_each_partition_of_one_leader() {
    let fixture = Fixture::new();
    let mut forwarding = Forwarding::default();
    // Partition 0 is led by node 1, partition 1 by node 2, partition 2 by no broker.
    let mut left = vec![
        order(1, b"a"),
        order(2, b"lost"),
        order(0, b"b"),
        order(1, b"c"),
        kept((COMPACTED, PartitionIndex(0)), "compacted", b"d"),
    ];
    let mut next = || forwarding.next(&mut left, &fixture.image, at(0));
    let (leader, batches) = next().unwrap();
    assert_eq!((leader, records(&batches)), (BrokerId(2), vec![&b"a"[..]]));
    let (leader, batches) = next().unwrap();
    assert_eq!((leader, records(&batches)), (BrokerId(1), vec![&b"b"[..], b"d"]));
    let (leader, batches) = next().unwrap();
    assert_eq!((leader, records(&batches)), (BrokerId(2), vec![&b"c"[..]]));
    assert!(next().is_none());
}

#[test]
fn forwarded_batches_are_not_forwarded_again() {
    let fixture = Fixture::new();
    assert!(may_forward(Some("a-client"), &fixture.image) && may_forward(None, &fixture.image));
    assert!(!may_forward(Some(FORWARDING_CLIENT_ID), &fixture.image));
    assert!(!may_forward(None, &Image::default()), "there is no other broker");
}

#[test]
fn acknowledgement_names_the_leader_unless_the_producer_is_busy() {
    let mut forwarding = Forwarding::default();
    let acked = answer(1, ErrorCode::None, -1);
    let (base, log_start) = (Offset(40), Offset(3));
    let elsewhere = Outcome::AppendedElsewhere { base, append_time: None, log_start };
    assert_eq!(forwarding.verdict(&acked, &order(1, b"a"), at(0)), Verdict::Acked(elsewhere));
    for _ in 0..BUSY {
        forwarding.begin(vec![key(1)]);
    }
    let append_time = Some(TimestampMs(7));
    let appended = Outcome::Appended { base, append_time, log_start };
    let dated = answer(1, ErrorCode::None, 7);
    assert_eq!(forwarding.verdict(&dated, &order(1, b"a"), at(0)), Verdict::Acked(appended));
    assert_eq!(forwarding.verdict(&dated, &order(0, b"a"), at(0)), Verdict::Silent);
}

#[test]
fn refusal_ends_forwarding_and_an_early_leader_is_asked_again() {
    let (fixture, mut forwarding) = (Fixture::new(), Forwarding::default());
    let going = |forwarding: &mut Forwarding| {
        forwarding.next(&mut vec![order(1, b"a")], &fixture.image, at(0)).is_some()
    };
    assert!(going(&mut forwarding));
    for early in
        [ErrorCode::NotLeaderOrFollower, ErrorCode::UnknownTopicOrPartition, ErrorCode::UnknownTopicId]
    {
        let verdict = forwarding.verdict(&answer(1, early, -1), &order(1, b"a"), at(0));
        assert_eq!(verdict, Verdict::Early);
    }
    assert!(going(&mut forwarding));
    let code = ErrorCode::OutOfOrderSequenceNumber;
    let refused = Verdict::Refused(Outcome::refused(code));
    assert_eq!(forwarding.verdict(&answer(1, code, -1), &order(1, b"a"), at(0)), refused);
    assert!(!going(&mut forwarding), "those behind it would come without it");
}

#[test]
fn request_names_topics_as_its_version_does() {
    let other = kept((COMPACTED, PartitionIndex(0)), "compacted", b"c");
    let batches = [order(0, b"a"), other, order(1, b"b")];
    let named = |version| {
        let request = request(&batches, Acks::All, 5_000, version);
        assert_eq!((request.acks, request.timeout_ms), (-1, 5_000));
        let topics = request.topic_data.into_iter().map(|topic| {
            let indexes = topic.partition_data.iter().map(|data| data.index).collect::<Vec<_>>();
            (topic.name.to_string(), topic.topic_id, indexes)
        });
        topics.collect::<Vec<_>>()
    };
    let (orders, compacted) = ("orders".to_owned(), "compacted".to_owned());
    let none = TopicId::ZERO;
    assert_eq!(named(12), [(orders, none, vec![0, 1]), (compacted, none, vec![0])]);
    assert_eq!(named(13), [(String::new(), ORDERS, vec![0, 1]), (String::new(), COMPACTED, vec![0])]);
    assert_eq!(request(&batches, Acks::Leader, 0, 9).acks, 1);
}

#[test]
fn denial_of_the_broker_leaves_the_producers_refusal() {
    let (fixture, mut forwarding) = (Fixture::new(), Forwarding::default());
    assert!(forwarding.next(&mut vec![order(1, b"a")], &fixture.image, at(0)).is_some());
    let denied = answer(1, ErrorCode::TopicAuthorizationFailed, -1);
    assert_eq!(forwarding.verdict(&denied, &order(1, b"a"), at(0)), Verdict::Denied);
    assert!(forwarding.next(&mut vec![order(1, b"b")], &fixture.image, at(0)).is_none());
}
