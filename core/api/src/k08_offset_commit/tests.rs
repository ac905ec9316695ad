use super::*;
use crate::testing::{Fixture, ORDERS, UNKNOWN, carried, versions};
use barnabas_wire::messages::offset_commit_request::OffsetCommitRequestPartition;

/// The group "b" falls on partition 0 of two, which is led here; "a" on 1, which is not.
fn request(group: &str, topics: &[(&str, TopicId, &[i32])]) -> OffsetCommitRequest {
    let partition = |partition_index: &i32| OffsetCommitRequestPartition {
        partition_index: *partition_index,
        committed_offset: 7,
        ..OffsetCommitRequestPartition::default()
    };
    let topic = |(name, topic_id, partitions): &(&str, TopicId, &[i32])| OffsetCommitRequestTopic {
        name: (*name).into(),
        topic_id: *topic_id,
        partitions: partitions.iter().map(partition).collect(),
        ..OffsetCommitRequestTopic::default()
    };
    OffsetCommitRequest {
        group_id: group.into(),
        topics: topics.iter().map(topic).collect(),
        ..OffsetCommitRequest::default()
    }
}

/// What a shard says that commits everything.
fn committed(request: &OffsetCommitRequest) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        refuse(topic, partitions, ErrorCode::None)
    });
    OffsetCommitResponse { topics: topics.collect(), ..OffsetCommitResponse::default() }
}

/// Partition and code, topic by topic.
fn ask(request: OffsetCommitRequest, version: i16) -> Vec<Vec<(i32, i16)>> {
    let fixture = Fixture::with_groups();
    let response = match plan(request, version, &fixture.ctx()) {
        Plan::Answer(response) => response,
        Plan::Work(work) => {
            for topic in &work.commit.request.topics {
                assert_eq!((&*topic.name, topic.topic_id), ("orders", ORDERS), "both are filled in");
            }
            let of_shard = committed(&work.commit.request);
            work.pending.respond(of_shard)
        }
    };
    let topics = carried(response, version).topics.into_iter();
    topics
        .map(|topic| topic.partitions.iter().map(|part| (part.partition_index, part.error_code)).collect())
        .collect()
}

#[test]
fn every_version_commits() {
    for version in versions::<OffsetCommitResponse>() {
        let topic: (&str, TopicId, &[i32]) =
            if version >= 10 { ("", ORDERS, &[0]) } else { ("orders", TopicId::ZERO, &[0]) };
        let code = if version == 0 { 35 } else { 0 };
        assert_eq!(ask(request("b", &[topic]), version), [[(0, code)]], "version {version}");
    }
}

#[test]
fn what_does_not_exist_is_refused_and_the_rest_committed() {
    let zero = TopicId::ZERO;
    assert_eq!(
        ask(request("b", &[("orders", zero, &[0, 9]), ("unknown", zero, &[0])]), 9),
        [vec![(0, 0), (9, 3)], vec![(0, 3)]]
    );
    assert_eq!(ask(request("b", &[("", UNKNOWN, &[0]), ("", ORDERS, &[1])]), 10), [[(1, 0)], [(0, 100)]]);
    assert_eq!(ask(request("b", &[("unknown", zero, &[0])]), 9), [[(0, 3)]]);
    assert_eq!(ask(request("b", &[]), 9), Vec::<Vec<(i32, i16)>>::new());
}

#[test]
fn a_group_that_is_elsewhere_is_refused() {
    assert_eq!(ask(request("a", &[("orders", TopicId::ZERO, &[0, 1])]), 9), [[(0, 16), (1, 16)]]);
    let fixture = Fixture::new();
    let asked = request("b", &[("orders", TopicId::ZERO, &[0])]);
    let Plan::Answer(response) = plan(asked, 9, &fixture.ctx()) else { panic!("no topic, no shard") };
    assert_eq!(response.topics[0].partitions[0].error_code, 16, "as Kafka: NOT_COORDINATOR");
}
