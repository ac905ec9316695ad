use super::*;
use crate::testing::{Fixture, ORDERS, UNKNOWN, carried, versions};
use barnabas_wire::messages::offset_fetch_request::OffsetFetchRequestTopic;

/// One group; `None` asks for all. "b" is looked after here, "a" by node 2.
fn request(group: &str, topics: Option<&[(&str, TopicId)]>, version: i16) -> OffsetFetchRequest {
    if version < 8 {
        let topic = |(name, _): &(&str, TopicId)| OffsetFetchRequestTopic {
            name: (*name).into(),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopic::default()
        };
        return OffsetFetchRequest {
            group_id: group.into(),
            topics: topics.map(|topics| topics.iter().map(topic).collect()),
            ..OffsetFetchRequest::default()
        };
    }
    let topic = |(name, topic_id): &(&str, TopicId)| OffsetFetchRequestTopics {
        name: (*name).into(),
        topic_id: *topic_id,
        partition_indexes: vec![0],
        ..OffsetFetchRequestTopics::default()
    };
    let group = OffsetFetchRequestGroup {
        group_id: group.into(),
        topics: topics.map(|topics| topics.iter().map(topic).collect()),
        ..OffsetFetchRequestGroup::default()
    };
    OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() }
}

/// What a shard says in which every group has read `orders` up to 7.
fn fetched(part: &Part) -> OffsetFetchResponseGroup {
    let partition = OffsetFetchResponsePartitions {
        partition_index: 0,
        committed_offset: 7,
        committed_leader_epoch: 4,
        metadata: Some("note".into()),
        ..OffsetFetchResponsePartitions::default()
    };
    let topic = |name: &Str, topic_id| OffsetFetchResponseTopics {
        name: name.clone(),
        topic_id,
        partitions: vec![partition.clone()],
        ..OffsetFetchResponseTopics::default()
    };
    let topics = match &part.group.topics {
        Some(topics) => topics.iter().map(|asked| topic(&asked.name, asked.topic_id)).collect(),
        None => vec![topic(&"orders".into(), TopicId::ZERO), topic(&"gone".into(), TopicId::ZERO)],
    };
    OffsetFetchResponseGroup {
        group_id: part.group.group_id.clone(),
        topics,
        ..OffsetFetchResponseGroup::default()
    }
}

fn ask(request: OffsetFetchRequest, version: i16) -> OffsetFetchResponse {
    let fixture = Fixture::with_groups();
    let response = match plan(request, version, &fixture.ctx()) {
        Plan::Answer(response) => response,
        Plan::Work(mut work) => {
            for part in &work.parts {
                assert_eq!(part.shard, PartitionIndex(0));
                assert!(work.pending.set(part.slot, fetched(part), &fixture.room));
            }
            work.pending.respond(&fixture.ctx())
        }
    };
    carried(response, version)
}

#[test]
fn every_version_carries_an_offset() {
    for version in versions::<OffsetFetchResponse>().skip(1) {
        let topic = if version >= 10 { ("", ORDERS) } else { ("orders", TopicId::ZERO) };
        let response = ask(request("b", Some(&[topic]), version), version);
        let said = match response.groups.first() {
            Some(group) => {
                let part = &group.topics[0].partitions[0];
                (part.committed_offset, part.committed_leader_epoch, part.error_code)
            }
            None => {
                let part = &response.topics[0].partitions[0];
                (part.committed_offset, part.committed_leader_epoch, part.error_code)
            }
        };
        assert_eq!(said, (7, if version >= 5 { 4 } else { -1 }, 0), "version {version}");
    }
}

#[test]
fn error_is_in_the_field_that_the_version_has_for_it() {
    for version in versions::<OffsetFetchResponse>() {
        let response = ask(request("a", Some(&[("orders", ORDERS)]), version), version);
        let partition = response.topics.first().map(|topic| topic.partitions[0].error_code);
        let group = response.groups.first().map(|group| group.error_code);
        match version {
            0 => assert_eq!((response.error_code, partition, group), (0, Some(35), None)),
            1 => assert_eq!((response.error_code, partition, group), (0, Some(16), None)),
            2..=7 => assert_eq!((response.error_code, partition, group), (16, None, None)),
            _ => assert_eq!((response.error_code, partition, group), (0, None, Some(16))),
        }
    }
}

#[test]
fn all_partitions_are_asked_for_by_null() {
    let names = |version| {
        let response = ask(request("b", None, version), version);
        response.topics.len() + response.groups.first().map_or(0, |group| group.topics.len())
    };
    assert_eq!([names(2), names(9)], [2, 2]);
    assert_eq!(names(10), 1, "a topic that is gone has no id");
    assert_eq!(names(1), 0, "none named means none");
}

#[test]
fn an_unknown_id_is_refused_beside_the_rest() {
    let response = ask(request("b", Some(&[("", UNKNOWN), ("", ORDERS)]), 10), 10);
    let said: Vec<_> = response.groups[0]
        .topics
        .iter()
        .map(|topic| (topic.topic_id, topic.partitions[0].error_code))
        .collect();
    assert_eq!(said, [(ORDERS, 0), (UNKNOWN, 100)]);
}

#[test]
fn groups_are_answered_in_their_order() {
    let mut several = request("b", None, 8);
    several.groups.insert(0, request("a", None, 8).groups.remove(0));
    let response = ask(several, 8);
    let said: Vec<_> = response.groups.iter().map(|group| (&*group.group_id, group.error_code)).collect();
    assert_eq!(said, [("a", 16), ("b", 0)]);
}

#[test]
fn stable_offsets_are_for_version_7() {
    let fixture = Fixture::with_groups();
    let stable = |version| {
        let asked = OffsetFetchRequest { require_stable: true, ..request("b", None, version) };
        matches!(plan(asked, version, &fixture.ctx()), Plan::Work(work) if work.require_stable)
    };
    assert!(!stable(6) && stable(7));
}
