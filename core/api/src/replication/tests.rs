//! Each request and response is decoded to what was encoded, in each version.

use barnabas_base::{
    BrokerEpoch, BrokerId, DurationMs, ErrorCode, LeaderEpoch, Offset, PartitionEpoch, PartitionIndex, Text,
    Uuid,
};
use barnabas_wire::messages::{alter_partition_response, fetch_response, list_offsets_response};
use bytes::Bytes;

use super::{alter_partition, fetch, list_offsets};
use crate::testing::carried;

const A: Uuid = Uuid([1; 16]);
const B: Uuid = Uuid([2; 16]);

fn follower() -> fetch::Follower {
    fetch::Follower {
        broker: BrokerId(2),
        broker_epoch: BrokerEpoch(12),
        cluster_id: Text::from("c"),
        wait_max: DurationMs(500),
        bytes_min: 1,
        bytes_max: 10 << 20,
        partition_bytes_max: 1 << 20,
    }
}

fn ask(topic: Uuid, partition: i32) -> fetch::Ask {
    fetch::Ask {
        topic,
        partition: PartitionIndex(partition),
        leader_epoch: LeaderEpoch(3),
        offset: Offset(7),
        last_epoch: Some(LeaderEpoch(2)),
        log_start: Offset(1),
        high_watermark: Offset(5),
    }
}

#[test]
fn a_followers_fetch_is_carried_by_every_version() {
    for version in 13..=18 {
        let asks = [ask(A, 0), ask(A, 1), ask(B, 0)];
        let forgotten = [(A, PartitionIndex(4)), (B, PartitionIndex(5))];
        let request = fetch::request(&follower(), version, (9, 4), asks, forgotten);
        let read = carried(request.clone(), version);
        assert_eq!(read, request, "version {version}");
        assert_eq!((read.session_id, read.session_epoch), (9, 4));
        assert_eq!((read.topics.len(), read.topics[0].partitions.len()), (2, 2));
        assert_eq!(read.forgotten_topics_data.len(), 2);
        let id = if version >= 15 { read.replica_state.replica_id } else { read.replica_id };
        assert_eq!(id, 2);
        let known = read.topics[0].partitions[0].high_watermark;
        assert_eq!(known == 5, version >= 18);
    }
}

#[test]
fn repair_request_is_a_consumers_outside_of_sessions() {
    for version in 13..=18 {
        let request = fetch::repair_request(&follower(), &ask(A, 1));
        let read = carried(request.clone(), version);
        assert_eq!(read, request, "version {version}");
        assert_eq!((read.replica_id, read.replica_state.replica_id), (-1, -1));
        assert_eq!((read.session_id, read.session_epoch, read.max_wait_ms), (0, -1, 0));
        let asked = &read.topics[0].partitions[0];
        assert_eq!((asked.fetch_offset, asked.current_leader_epoch, asked.log_start_offset), (7, 3, -1));
    }
}

#[test]
fn an_answer_says_where_logs_part_only_if_it_says_so() {
    let records = Some(Bytes::from_static(b"r"));
    let whole = fetch_response::PartitionData {
        partition_index: 1,
        high_watermark: 8,
        records,
        ..Default::default()
    };
    let diverging = fetch_response::EpochEndOffset { epoch: 2, end_offset: 6, ..Default::default() };
    let parts = fetch_response::PartitionData { diverging_epoch: diverging, ..Default::default() };
    let leader = fetch_response::LeaderIdAndEpoch { leader_id: 4, leader_epoch: 9, ..Default::default() };
    let elsewhere = fetch_response::PartitionData {
        error_code: ErrorCode::NotLeaderOrFollower.code(),
        current_leader: leader,
        ..Default::default()
    };
    let topic = fetch_response::FetchableTopicResponse {
        topic_id: A,
        partitions: vec![whole, parts, elsewhere],
        ..Default::default()
    };
    let response = fetch_response::FetchResponse { responses: vec![topic], ..Default::default() };
    let answers: Vec<_> = fetch::answers(response).collect();
    assert_eq!(answers[0].records.len(), 1);
    assert_eq!((answers[0].diverging, answers[0].current_leader), (None, None));
    assert_eq!(answers[1].diverging, Some((LeaderEpoch(2), Offset(6))));
    assert_eq!(answers[2].current_leader, Some((BrokerId(4), LeaderEpoch(9))));
}

#[test]
fn a_question_names_lives_from_version_3_on() {
    for version in 2..=3 {
        let question = alter_partition::Question {
            topic: A,
            partition: PartitionIndex(0),
            leader_epoch: LeaderEpoch(3),
            partition_epoch: PartitionEpoch(8),
            in_sync: &[(BrokerId(2), BrokerEpoch(12)), (BrokerId(3), BrokerEpoch::NONE)],
        };
        let request = alter_partition::request(BrokerId(1), BrokerEpoch(11), version, [question]);
        let read = carried(request.clone(), version);
        assert_eq!(read, request);
        let partition = &read.topics[0].partitions[0];
        let lives: Vec<_> = partition
            .new_isr_with_epochs
            .iter()
            .map(|member| (member.broker_id, member.broker_epoch))
            .collect();
        match version {
            2 => assert_eq!((partition.new_isr.as_slice(), lives.len()), ([1, 2, 3].as_slice(), 0)),
            _ => assert_eq!(lives, [(1, 11), (2, 12), (3, -1)]),
        }
    }
}

#[test]
fn the_controllers_answers_are_told_apart() {
    let changed = alter_partition_response::PartitionData {
        leader_id: 1,
        leader_epoch: 3,
        partition_epoch: 9,
        isr: vec![1, 2],
        ..Default::default()
    };
    let refused = alter_partition_response::PartitionData {
        partition_index: 1,
        error_code: ErrorCode::IneligibleReplica.code(),
        ..Default::default()
    };
    let topic = alter_partition_response::TopicData {
        topic_id: B,
        partitions: vec![changed, refused],
        ..Default::default()
    };
    let response =
        alter_partition_response::AlterPartitionResponse { topics: vec![topic], ..Default::default() };
    let answers: Vec<_> = alter_partition::answers(response).collect();
    let altered = answers[0].result.clone().unwrap();
    assert_eq!(
        (altered.partition_epoch, altered.in_sync),
        (PartitionEpoch(9), vec![BrokerId(1), BrokerId(2)])
    );
    assert_eq!(answers[1].result, Err(ErrorCode::IneligibleReplica));
}

#[test]
fn a_followers_ends_are_asked_for_in_every_version() {
    let ask = |topic: &str, partition| list_offsets::Ask {
        topic: Text::from(topic),
        partition: PartitionIndex(partition),
        leader_epoch: LeaderEpoch(3),
    };
    for version in 7..=11 {
        // Version 10 added the timeout.
        let wait = DurationMs(if version >= 10 { 500 } else { 0 });
        let asks = [ask("a", 0), ask("a", 1), ask("b", 0)];
        let read = carried(list_offsets::request(BrokerId(2), list_offsets::End::Start, wait, asks), version);
        assert_eq!((read.replica_id, read.topics.len(), read.topics[0].partitions.len()), (2, 2, 2));
        assert_eq!(read.topics[1].partitions[0].timestamp, -2);
    }
    let known = list_offsets_response::ListOffsetsPartitionResponse { offset: 7, ..Default::default() };
    let refused = list_offsets_response::ListOffsetsPartitionResponse {
        partition_index: 1,
        error_code: ErrorCode::FencedLeaderEpoch.code(),
        ..Default::default()
    };
    let topic = list_offsets_response::ListOffsetsTopicResponse {
        name: "a".into(),
        partitions: vec![known, refused],
        ..Default::default()
    };
    let response = list_offsets_response::ListOffsetsResponse { topics: vec![topic], ..Default::default() };
    let results: Vec<_> = list_offsets::answers(response).map(|answer| answer.result).collect();
    assert_eq!(results, [Ok(Offset(7)), Err(ErrorCode::FencedLeaderEpoch)]);
}
