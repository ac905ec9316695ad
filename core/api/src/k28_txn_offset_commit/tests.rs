use super::*;
use crate::testing::{Fixture, ORDERS, UNKNOWN, carried, versions};
use barnabas_wire::messages::txn_offset_commit_request::TxnOffsetCommitRequestPartition;

/// The group "b" falls on partition 0 of two, which is led here; "a" on 1, which is not.
fn request(group: &str, topics: &[(&str, TopicId, &[i32])]) -> TxnOffsetCommitRequest {
    let partition = |partition_index: &i32| TxnOffsetCommitRequestPartition {
        partition_index: *partition_index,
        committed_offset: 7,
        ..TxnOffsetCommitRequestPartition::default()
    };
    let topic = |(name, topic_id, partitions): &(&str, TopicId, &[i32])| TxnOffsetCommitRequestTopic {
        name: (*name).into(),
        topic_id: *topic_id,
        partitions: partitions.iter().map(partition).collect(),
        ..TxnOffsetCommitRequestTopic::default()
    };
    TxnOffsetCommitRequest {
        transactional_id: "x".into(),
        group_id: group.into(),
        topics: topics.iter().map(topic).collect(),
        ..TxnOffsetCommitRequest::default()
    }
}

/// Partition and code, topic by topic. `shard`: what it says of everything.
fn ask(request: TxnOffsetCommitRequest, version: i16, shard: ErrorCode) -> Vec<Vec<(i32, i16)>> {
    let fixture = Fixture::with_transactions();
    let response = match plan(request, version, &fixture.ctx()) {
        Plan::Answer(response) => response,
        Plan::Work(work) => {
            let topics = work.commit.request.topics.iter().map(|topic| {
                assert_eq!((&*topic.name, topic.topic_id), ("orders", ORDERS), "both are filled in");
                refuse(topic, topic.partitions.iter().map(|partition| partition.partition_index), shard)
            });
            let topics = topics.collect();
            work.pending.respond(TxnOffsetCommitResponse { topics, ..TxnOffsetCommitResponse::default() })
        }
    };
    let topics = carried(response, version).topics.into_iter();
    topics
        .map(|topic| topic.partitions.iter().map(|part| (part.partition_index, part.error_code)).collect())
        .collect()
}

fn orders(version: i16, partitions: &[i32]) -> (&str, TopicId, &[i32]) {
    if version >= 6 { ("", ORDERS, partitions) } else { ("orders", TopicId::ZERO, partitions) }
}

#[test]
fn every_version_commits() {
    for version in versions::<TxnOffsetCommitResponse>() {
        let said = ask(request("b", &[orders(version, &[0, 1])]), version, ErrorCode::None);
        assert_eq!(said, [[(0, 0), (1, 0)]], "version {version}");
        let said = ask(request("a", &[orders(version, &[0])]), version, ErrorCode::None);
        assert_eq!(said, [[(0, 16)]], "NOT_COORDINATOR");
        let said = ask(request("b", &[orders(version, &[0])]), version, ErrorCode::CoordinatorLoadInProgress);
        assert_eq!(said, [[(0, if version < 2 { 15 } else { 14 })]], "KAFKA-7296");
    }
}

#[test]
fn what_does_not_exist_is_refused_alone() {
    let said = ask(request("b", &[orders(5, &[0, 9]), ("missing", TopicId::ZERO, &[0])]), 5, ErrorCode::None);
    assert_eq!(said, [vec![(0, 0), (9, 3)], vec![(0, 3)]]);
    let said = ask(request("b", &[("", UNKNOWN, &[0])]), 6, ErrorCode::None);
    assert_eq!(said, [[(0, 100)]], "UNKNOWN_TOPIC_ID");
}
