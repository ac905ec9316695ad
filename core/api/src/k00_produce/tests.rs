use super::*;
use crate::testing::{Fixture, ORDERS, UNKNOWN, carried, versions};
use barnabas_wire::messages::produce_request::PartitionProduceData;

/// One topic, one partition each.
fn request(topics: &[(&str, TopicId, i32)], acks: i16) -> ProduceRequest {
    let topic = |(name, topic_id, index): &(&str, TopicId, i32)| TopicProduceData {
        name: (*name).into(),
        topic_id: *topic_id,
        partition_data: vec![PartitionProduceData {
            index: *index,
            records: Some(Bytes::from_static(b"records")),
            ..PartitionProduceData::default()
        }],
        ..TopicProduceData::default()
    };
    ProduceRequest {
        acks,
        timeout_ms: 30_000,
        topic_data: topics.iter().map(topic).collect(),
        ..ProduceRequest::default()
    }
}

fn answered(plan: Plan<Work, Reply>) -> ProduceResponse {
    match plan {
        Plan::Answer(Reply::Respond(response)) => response,
        other => panic!("no answer: {other:?}"),
    }
}

fn work(plan: Plan<Work, Reply>) -> Work {
    match plan {
        Plan::Work(work) => work,
        Plan::Answer(reply) => panic!("no work: {reply:?}"),
    }
}

fn respond(pending: Pending) -> ProduceResponse {
    answered(Plan::Answer(pending.respond()))
}

fn only(response: &ProduceResponse) -> &PartitionProduceResponse {
    &response.responses[0].partition_responses[0]
}

/// The code with which one partition is refused before its owner is asked.
fn refused(topic: (&str, TopicId, i32), acks: i16, version: i16) -> i16 {
    let fixture = Fixture::with_groups();
    let response = match plan(request(&[topic], acks), version, &fixture.ctx()) {
        Plan::Work(work) if work.parts.is_empty() && work.elsewhere.is_empty() => respond(work.pending),
        plan => answered(plan),
    };
    only(&carried(response, version)).error_code
}

#[test]
fn batches_for_what_is_not_known_are_named_as_the_request_does() {
    let fixture = Fixture::with_groups();
    let unknown = |topic, version| -> Vec<(TopicRef, i32)> {
        let Plan::Work(work) = plan(request(&[topic], -1), version, &fixture.ctx()) else {
            panic!("no work")
        };
        work.unknown.into_iter().map(|unknown| (unknown.topic, unknown.partition.get())).collect()
    };
    assert_eq!(unknown(("missing", TopicId::ZERO, 1), 12), [(TopicRef::Name("missing".into()), 1)]);
    assert_eq!(unknown(("", UNKNOWN, 0), 13), [(TopicRef::Id(UNKNOWN), 0)]);
    assert_eq!(unknown(("", ORDERS, 9), 13), [(TopicRef::Id(ORDERS), 9)]);
    assert_eq!(unknown(("orders", TopicId::ZERO, 0), 12), []);
    assert!(matches!(
        plan(request(&[("missing", TopicId::ZERO, 0)], 0), 12, &fixture.ctx()),
        Plan::Answer(_)
    ));
}

#[test]
fn every_version_carries_an_append() {
    let fixture = Fixture::new();
    for version in versions::<ProduceResponse>() {
        let asked = if version >= 13 { ("", ORDERS, 0) } else { ("orders", TopicId::ZERO, 0) };
        let mut work = work(plan(request(&[asked], -1), version, &fixture.ctx()));
        assert_eq!((work.acks, work.timeout, work.parts.len()), (Acks::All, DurationMs(30_000), 1));
        assert_eq!(&*work.parts[0].topic.name, "orders");
        let done = Outcome::Appended {
            base: Offset(7),
            append_time: (version >= 2).then_some(TimestampMs(9)),
            log_start: Offset(if version >= 5 { 3 } else { -1 }),
        };
        work.pending.set(work.parts[0].slot, done, &fixture.ctx());
        let response = carried(respond(work.pending), version);
        assert_eq!((only(&response).error_code, only(&response).base_offset), (0, 7));
        assert_eq!(only(&response).log_append_time_ms, if version >= 2 { 9 } else { -1 });
        assert_eq!(&*response.responses[0].name, if version >= 13 { "" } else { "orders" });
    }
}

#[test]
fn what_was_refused_and_then_handed_on_is_answered_as_appended() {
    let fixture = Fixture::new();
    let (append_time, log_start) = (None, Offset(3));
    let done = [
        Outcome::Appended { base: Offset(7), append_time, log_start },
        Outcome::AppendedElsewhere { base: Offset(7), append_time, log_start },
    ];
    for (names_leader, done) in [false, true].into_iter().zip(done) {
        let mut work = work(plan(request(&[("orders", TopicId::ZERO, 0)], -1), 10, &fixture.ctx()));
        let slot = work.parts[0].slot;
        work.pending.set(slot, Outcome::refused(ErrorCode::NotLeaderOrFollower), &fixture.ctx());
        work.pending.set(slot, done, &fixture.ctx());
        let response = respond(work.pending);
        let answer = only(&response);
        assert_eq!((answer.error_code, answer.base_offset, answer.error_message.as_deref()), (0, 7, None));
        assert_eq!(answer.current_leader.leader_id >= 0, names_leader);
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    assert_eq!(refused(("nobody", TopicId::ZERO, 0), 1, 9), 3);
    assert_eq!(refused(("orders", TopicId::ZERO, 3), 1, 9), 3);
    assert_eq!(refused(("orders", TopicId::ZERO, -1), 1, 9), 3);
    assert_eq!(refused(("", UNKNOWN, 0), 1, 13), 100);
    assert_eq!(refused(("", ORDERS, 3), 1, 13), 3);
}

#[test]
fn acks_are_minus_one_zero_or_one() {
    for acks in [-2, 2, i16::MAX] {
        assert_eq!(refused(("orders", TopicId::ZERO, 0), acks, 9), 21);
    }
    assert_eq!(refused(("nobody", TopicId::ZERO, 0), 2, 9), 3, "a missing topic comes first");
}

#[test]
fn internal_topics_are_for_the_admin_client() {
    assert_eq!(refused(("__consumer_offsets", TopicId::ZERO, 0), 1, 9), 17);
    let mut fixture = Fixture::with_groups();
    fixture.client.client_id = Some("__admin_client".into());
    let allowed = request(&[("__consumer_offsets", TopicId::ZERO, 0)], 1);
    assert_eq!(work(plan(allowed, 9, &fixture.ctx())).parts.len(), 1);
}

/// As much of a batch as is looked at before its owner sees it.
fn transactional(producer: i64, epoch: i16) -> Bytes {
    let mut batch = vec![0; 61];
    batch[16] = 2;
    batch[22] = 0x10;
    batch[43..51].copy_from_slice(&producer.to_be_bytes());
    batch[51..53].copy_from_slice(&epoch.to_be_bytes());
    Bytes::from(batch)
}

#[test]
fn who_names_no_transactional_id_writes_to_no_transaction() {
    let fixture = Fixture::new();
    for producer in [9, -1] {
        let mut asked = request(&[("orders", TopicId::ZERO, 0), ("orders", TopicId::ZERO, 0)], -1);
        asked.topic_data[1].partition_data[0].records = Some(transactional(producer, 3));
        let response = answered(plan(asked, 9, &fixture.ctx()));
        let codes = response.responses.iter().map(|topic| topic.partition_responses[0].error_code);
        assert!(codes.eq([53, 53]), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED");
    }
}

#[test]
fn a_transaction_has_one_producer() {
    let fixture = Fixture::new();
    let asked = |second: Bytes| {
        let mut asked = request(&[("orders", TopicId::ZERO, 0), ("orders", TopicId::ZERO, 0)], -1);
        asked.transactional_id = Some("payments".into());
        asked.topic_data[0].partition_data[0].records = Some(transactional(9, 3));
        asked.topic_data[1].partition_data[0].records = Some(second);
        asked
    };
    for version in 3..=12 {
        let work = work(plan(asked(Bytes::new()), version, &fixture.ctx()));
        let expected = Transaction {
            transactional_id: "payments".into(),
            producer_id: ProducerId(9),
            producer_epoch: ProducerEpoch(3),
            bumps: version >= 12,
        };
        assert_eq!(work.transaction, Some(expected));
        let said: Vec<bool> = work.parts.iter().map(|part| part.is_transactional).collect();
        assert_eq!(said, [true, false]);
        for other in [transactional(9, 4), transactional(8, 3)] {
            let response = answered(plan(asked(other), version, &fixture.ctx()));
            let codes = response.responses.iter().map(|topic| topic.partition_responses[0].error_code);
            assert!(codes.eq([49, 49]), "INVALID_PRODUCER_ID_MAPPING");
        }
    }
}

#[test]
fn what_was_not_verified_is_told_in_words_that_the_version_knows() {
    let told = |code, version| match unverified(code, version) {
        Outcome::Refused { refusal, .. } => refusal.code,
        other => panic!("{other:?}"),
    };
    use ErrorCode as E;
    assert_eq!(told(E::TransactionAbortable, 10), E::InvalidTxnState);
    assert_eq!(told(E::TransactionAbortable, 11), E::TransactionAbortable);
    assert_eq!(told(E::ProducerFenced, 12), E::InvalidProducerEpoch);
    assert_eq!(told(E::ConcurrentTransactions, 11), E::NotEnoughReplicas);
    assert_eq!(told(E::ConcurrentTransactions, 12), E::ConcurrentTransactions);
    assert_eq!(told(E::NotCoordinator, 12), E::NotEnoughReplicas);
    assert_eq!(told(E::InvalidProducerIdMapping, 12), E::InvalidProducerIdMapping);
}

/// KAFKA-14034, Redpanda 5355: on UNKNOWN_SERVER_ERROR a producer drops its batch, or sends it again under another
/// epoch, although the batch may have been appended. So no error code of a coordinator but UNKNOWN_SERVER_ERROR itself
/// becomes that code.
#[test]
fn what_was_not_verified_is_no_unknown_error() {
    for code in (-1..=200).map(ErrorCode::from_code).filter(|code| *code != ErrorCode::UnknownServerError) {
        for version in 3..=13 {
            let Outcome::Refused { refusal, .. } = unverified(code, version) else { continue };
            assert_ne!(refusal.code, ErrorCode::UnknownServerError, "{code} in version {version}");
        }
    }
}

#[test]
fn another_leader_is_named_from_version_10() {
    let fixture = Fixture::new();
    for version in 8..=12 {
        let asked = request(&[("orders", TopicId::ZERO, 1)], 1);
        let response = carried(answered(plan(asked, version, &fixture.ctx())), version);
        assert_eq!(only(&response).error_code, 6);
        let leader = &only(&response).current_leader;
        let named = version >= 10;
        assert_eq!((leader.leader_id, leader.leader_epoch), if named { (2, 5) } else { (-1, -1) });
        let addresses: Vec<_> =
            response.node_endpoints.iter().map(|node| (node.node_id, &*node.host)).collect();
        assert_eq!(addresses, if named { vec![(2, "host-2")] } else { vec![] });
    }
}

#[test]
fn one_leader_is_named_once() {
    let fixture = Fixture::new();
    let asked = request(&[("orders", TopicId::ZERO, 1), ("orders", TopicId::ZERO, 1)], 1);
    assert_eq!(answered(plan(asked, 10, &fixture.ctx())).node_endpoints.len(), 1);
}

#[test]
fn single_records_are_named_from_version_8() {
    let fixture = Fixture::new();
    for version in 7..=8 {
        let mut work = work(plan(request(&[("orders", TopicId::ZERO, 0)], 1), version, &fixture.ctx()));
        let error = RecordError { index: 4, message: "no key".to_owned() };
        let refusal = Refusal {
            code: ErrorCode::InvalidRecord,
            message: "a key is missing".to_owned(),
            record_errors: vec![error],
        };
        let outcome = Outcome::Refused { refusal, log_start: Offset(2) };
        work.pending.set(work.parts[0].slot, outcome, &fixture.ctx());
        let response = carried(respond(work.pending), version);
        let said = only(&response);
        assert_eq!((said.error_code, said.base_offset, said.log_start_offset), (87, -1, 2));
        let records: Vec<_> = said.record_errors.iter().map(|error| error.batch_index).collect();
        assert_eq!(records, if version >= 8 { vec![4] } else { vec![] });
        assert_eq!(said.error_message.as_deref(), (version >= 8).then_some("a key is missing"));
    }
}

#[test]
fn nobody_waits_for_acks_0() {
    let fixture = Fixture::new();
    let mut fine = work(plan(request(&[("orders", TopicId::ZERO, 0)], 0), 9, &fixture.ctx()));
    let done = Outcome::Appended { base: Offset(0), append_time: None, log_start: Offset(0) };
    fine.pending.set(fine.parts[0].slot, done, &fixture.ctx());
    assert_eq!(fine.pending.respond(), Reply::Nothing);
    let failed = plan(request(&[("nobody", TopicId::ZERO, 0)], 0), 9, &fixture.ctx());
    assert!(matches!(failed, Plan::Answer(Reply::Close)));
}

#[test]
fn a_request_without_topics_is_answered() {
    let fixture = Fixture::new();
    assert_eq!(answered(plan(request(&[], 1), 9, &fixture.ctx())).responses, []);
}

#[test]
fn rules_are_the_topics() {
    let config = TopicConfig::default().with_overrides([
        ("compression.type", "gzip"),
        ("cleanup.policy", "compact"),
        ("max.message.bytes", "5"),
    ]);
    let rules = rules("t", &config, 7, TimestampMs(1));
    let gzip = rules.compression.unwrap();
    assert_eq!((gzip.codec, gzip.level), (Codec::Gzip, None));
    assert!(rules.is_compacted && rules.message_bytes_max == 5 && rules.produce_version == 7);
}
