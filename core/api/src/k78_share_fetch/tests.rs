use super::*;
use crate::share::Connection;
use crate::testing::{Fixture, ORDERS, UNKNOWN, carried, opener};
use barnabas_base::{PartitionIndex, Uuid};
use barnabas_wire::messages::share_fetch_request::{AcknowledgementBatch, FetchTopic};

const HERE: Connection = Connection(1);

/// A partition, and what is acknowledged of it: first, last, type.
type Named<'a> = (Uuid, i32, &'a [(i64, i64, i8)]);

fn request(epoch: i32, parts: &[Named<'_>]) -> ShareFetchRequest {
    let topics = parts.iter().map(|(topic_id, partition_index, acks)| FetchTopic {
        topic_id: *topic_id,
        partitions: vec![FetchPartition {
            partition_index: *partition_index,
            acknowledgement_batches: acks
                .iter()
                .map(|&(first_offset, last_offset, kind)| AcknowledgementBatch {
                    first_offset,
                    last_offset,
                    acknowledge_types: vec![kind],
                    ..AcknowledgementBatch::default()
                })
                .collect(),
            ..FetchPartition::default()
        }],
        ..FetchTopic::default()
    });
    ShareFetchRequest {
        group_id: Some("g".into()),
        member_id: Some("m".into()),
        share_session_epoch: epoch,
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 1 << 20,
        max_records: 100,
        batch_size: 100,
        topics: topics.collect(),
        ..ShareFetchRequest::default()
    }
}

fn planned(request: &ShareFetchRequest, sessions: &mut ShareSessions, fixture: &Fixture) -> Work {
    match plan(request, 2, sessions, &opener(HERE), &fixture.ctx()) {
        Plan::Work(Next::Work(work)) => *work,
        other => panic!("{other:?}"),
    }
}

fn code(request: &ShareFetchRequest, sessions: &mut ShareSessions, fixture: &Fixture) -> i16 {
    match plan(request, 2, sessions, &opener(HERE), &fixture.ctx()) {
        Plan::Answer(response) | Plan::Work(Next::Late(_, response)) => response.error_code,
        Plan::Work(Next::Work(_)) => 0,
    }
}

#[test]
fn checks_come_in_kafkas_order() {
    let (mut sessions, mut fixture) = (ShareSessions::new(1), Fixture::new());
    let good = request(0, &[(ORDERS, 0, &[])]);
    assert_eq!(code(&good, &mut sessions, &fixture), ErrorCode::UnsupportedVersion.code());
    fixture.share_groups();
    let without_group = ShareFetchRequest { group_id: None, ..good.clone() };
    assert_eq!(code(&without_group, &mut sessions, &fixture), ErrorCode::InvalidRequest.code());
    let long = ShareFetchRequest { member_id: Some("x".repeat(37).into()), ..good.clone() };
    assert_eq!(code(&long, &mut sessions, &fixture), ErrorCode::InvalidRequest.code());
    let renewal = ShareFetchRequest { is_renew_ack: true, ..good.clone() };
    let Plan::Answer(answer) = plan(&renewal, 2, &mut sessions, &opener(HERE), &fixture.ctx()) else {
        panic!()
    };
    assert_eq!(answer.error_code, ErrorCode::InvalidRequest.code());
    let words = answer.error_message.unwrap();
    assert!(words.ends_with("maxWaitMs must be set to 0, if isRenewAck is true."), "{words:?}");
    assert_eq!(code(&request(1, &[]), &mut sessions, &fixture), ErrorCode::ShareSessionNotFound.code());
    assert_eq!(code(&good, &mut sessions, &fixture), 0);
    let other = ShareFetchRequest { member_id: Some("n".into()), ..good };
    match plan(&other, 2, &mut sessions, &opener(HERE), &fixture.ctx()) {
        Plan::Work(Next::Late(DurationMs(500), response)) => {
            assert_eq!(response.error_code, ErrorCode::ShareSessionLimitReached.code());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_from_the_first_fetch_to_the_last() {
    let (mut sessions, mut fixture) = (ShareSessions::new(10), Fixture::new());
    fixture.share_groups();
    let work = planned(
        &request(0, &[(ORDERS, 0, &[]), (UNKNOWN, 0, &[]), (ORDERS, 9, &[])]),
        &mut sessions,
        &fixture,
    );
    assert_eq!(work.fetch.len(), 1);
    let Work { fetch, mut pending, .. } = work;
    pending.fetched(fetch[0].slot, Fetched::default());
    assert!(!pending.has_news(), "one that can be read is waited for");
    let acquired = vec![(Offset(5), Offset(9), 1)];
    pending.fetched(fetch[0].slot, Fetched { records: Bytes::from_static(b"records"), acquired });
    let answer = carried(pending.respond(&mut sessions, &fixture.ctx()), 2);
    assert_eq!(answer.acquisition_lock_timeout_ms, 30_000);
    let of = |topic| answer.responses.iter().find(|response| response.topic_id == topic).unwrap();
    assert_eq!(of(UNKNOWN).partitions[0].error_code, ErrorCode::UnknownTopicId.code());
    let codes: Vec<i16> = of(ORDERS).partitions.iter().map(|partition| partition.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::UnknownTopicOrPartition.code()]);
    assert_eq!(of(ORDERS).partitions[0].acquired_records[0].last_offset, 9);

    // Acknowledged along with the next fetch, of which there is nothing to say.
    let next = request(1, &[(ORDERS, 0, &[(5, 9, 1)]), (UNKNOWN, 0, &[(0, 0, 1)])]);
    let Work { acknowledge, fetch, mut pending, .. } = planned(&next, &mut sessions, &fixture);
    let batches = vec![Acknowledgement { first: Offset(5), last: Offset(9), types: vec![1] }];
    let part = SharePart { topic: ORDERS, partition: PartitionIndex(0) };
    assert_eq!(acknowledge, [AckPart { slot: acknowledge[0].slot, part, batches }]);
    pending.acknowledged(acknowledge[0].slot, Err(ErrorCode::InvalidRecordState.into()), &fixture.ctx());
    pending.fetched(fetch[0].slot, Fetched::default());
    let answer = carried(pending.respond(&mut sessions, &fixture.ctx()), 2);
    let codes: Vec<(i16, i16)> = answer
        .responses
        .iter()
        .flat_map(|topic| topic.partitions.iter())
        .map(|partition| (partition.error_code, partition.acknowledge_error_code))
        .collect();
    assert!(codes.contains(&(0, ErrorCode::InvalidRecordState.code())), "{codes:?}");
    let unknown = ErrorCode::UnknownTopicId.code();
    assert!(codes.contains(&(unknown, unknown)), "{codes:?}");

    let last = planned(&request(-1, &[(ORDERS, 0, &[(5, 9, 1)])]), &mut sessions, &fixture);
    assert!(last.is_last && last.fetch.is_empty() && last.acknowledge.len() == 1);
    assert_eq!(last.pending.respond(&mut sessions, &fixture.ctx()).error_code, 0);
}

#[test]
fn answer_names_the_current_leader() {
    let (mut sessions, mut fixture) = (ShareSessions::new(10), Fixture::new());
    fixture.share_groups();
    let Work { fetch, mut pending, .. } = planned(&request(0, &[(ORDERS, 1, &[])]), &mut sessions, &fixture);
    pending.refused(fetch[0].slot, ErrorCode::NotLeaderOrFollower.into(), &fixture.ctx());
    assert!(pending.has_news(), "there is nothing to wait for");
    let answer = carried(pending.respond(&mut sessions, &fixture.ctx()), 1);
    assert_eq!(answer.responses[0].partitions[0].current_leader.leader_id, 2);
    assert_eq!((answer.node_endpoints[0].node_id, answer.node_endpoints[0].port), (2, 9092));
}

#[test]
fn another_partition_is_first_each_time() {
    let (mut sessions, mut fixture) = (ShareSessions::new(10), Fixture::new());
    fixture.share_groups();
    let all = request(0, &[(ORDERS, 0, &[]), (ORDERS, 1, &[]), (ORDERS, 2, &[])]);
    let first = |work: &Work| work.fetch[0].part.partition.get();
    assert_eq!(first(&planned(&all, &mut sessions, &fixture)), 0);
    assert_eq!(first(&planned(&request(1, &[]), &mut sessions, &fixture)), 1);
    assert_eq!(first(&planned(&request(2, &[]), &mut sessions, &fixture)), 2);
    assert_eq!(first(&planned(&request(3, &[]), &mut sessions, &fixture)), 0);
    let renewal = ShareFetchRequest {
        is_renew_ack: true,
        max_bytes: 0,
        min_bytes: 0,
        max_records: 0,
        max_wait_ms: 0,
        ..request(4, &[(ORDERS, 0, &[(0, 3, 4)])])
    };
    let work = planned(&renewal, &mut sessions, &fixture);
    assert!(work.fetch.is_empty() && work.acknowledge[0].batches[0].types == [4]);
}
