use super::*;
use crate::share::Connection;
use crate::testing::{Fixture, ORDERS, UNKNOWN, carried, opener};
use barnabas_wire::messages::share_acknowledge_request::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch,
};

fn request(epoch: i32) -> ShareAcknowledgeRequest {
    let of = |topic_id, partition_index, acknowledge_types: &[i8]| AcknowledgeTopic {
        topic_id,
        partitions: vec![AcknowledgePartition {
            partition_index,
            acknowledgement_batches: vec![AcknowledgementBatch {
                first_offset: 3,
                last_offset: 4,
                acknowledge_types: acknowledge_types.to_vec(),
                ..AcknowledgementBatch::default()
            }],
            ..AcknowledgePartition::default()
        }],
        ..AcknowledgeTopic::default()
    };
    ShareAcknowledgeRequest {
        group_id: Some("g".into()),
        member_id: Some("m".into()),
        share_session_epoch: epoch,
        topics: vec![of(ORDERS, 0, &[1]), of(ORDERS, 9, &[1]), of(UNKNOWN, 0, &[1]), of(ORDERS, 1, &[4])],
        ..ShareAcknowledgeRequest::default()
    }
}

#[test]
fn each_partition_gets_its_own_word() {
    let (mut sessions, mut fixture) = (ShareSessions::new(10), Fixture::new());
    let asked = |sessions: &mut ShareSessions, fixture: &Fixture, epoch| match plan(
        &request(epoch),
        2,
        sessions,
        &fixture.ctx(),
    ) {
        Plan::Answer(response) => Err(response.error_code),
        Plan::Work(work) => Ok(work),
    };
    let code = |result: Result<Work, i16>| result.err();
    let unsupported = asked(&mut sessions, &fixture, 1);
    assert_eq!(code(unsupported), Some(ErrorCode::UnsupportedVersion.code()));
    fixture.share_groups();
    let not_found = ErrorCode::ShareSessionNotFound.code();
    assert_eq!(code(asked(&mut sessions, &fixture, 1)), Some(not_found));
    let key = MemberKey { group: "g".into(), member: "m".into() };
    sessions.open(&key, 0, &[], &[], false, &opener(Connection(1))).unwrap();
    let wrong = ErrorCode::InvalidShareSessionEpoch.code();
    assert_eq!(code(asked(&mut sessions, &fixture, 0)), Some(wrong));
    let Work { acknowledge, mut pending, is_last, .. } = asked(&mut sessions, &fixture, 1).unwrap();
    assert!(acknowledge.len() == 1 && !is_last);
    pending.acknowledged(acknowledge[0].slot, Err(ErrorCode::NotLeaderOrFollower.into()), &fixture.ctx());
    let answer = carried(pending.respond(&fixture.ctx()), 2);
    assert_eq!(answer.acquisition_lock_timeout_ms, 30_000);
    let codes: Vec<(i32, i16)> = answer
        .responses
        .iter()
        .flat_map(|topic| topic.partitions.iter())
        .map(|partition| (partition.partition_index, partition.error_code))
        .collect();
    let expected = [
        (0, ErrorCode::NotLeaderOrFollower.code()),
        (9, ErrorCode::UnknownTopicOrPartition.code()),
        (1, ErrorCode::InvalidRequest.code()),
        (0, ErrorCode::UnknownTopicId.code()),
    ];
    assert_eq!(codes, expected);
    assert_eq!(answer.responses[0].partitions[0].current_leader.leader_id, 1);
    assert!(asked(&mut sessions, &fixture, -1).unwrap().is_last);
}
