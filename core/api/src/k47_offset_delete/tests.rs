use super::*;
use crate::testing::{Fixture, carried};
use barnabas_wire::messages::offset_delete_request::OffsetDeleteRequestPartition;

fn request(group: &str, topics: &[(&str, &[i32])]) -> OffsetDeleteRequest {
    let partition = |partition_index: &i32| OffsetDeleteRequestPartition {
        partition_index: *partition_index,
        ..OffsetDeleteRequestPartition::default()
    };
    let topic = |(name, partitions): &(&str, &[i32])| OffsetDeleteRequestTopic {
        name: (*name).into(),
        partitions: partitions.iter().map(partition).collect(),
        ..OffsetDeleteRequestTopic::default()
    };
    OffsetDeleteRequest {
        group_id: group.into(),
        topics: topics.iter().map(topic).collect(),
        ..OffsetDeleteRequest::default()
    }
}

#[test]
fn what_does_not_exist_is_refused_and_the_rest_forgotten() {
    let fixture = Fixture::with_groups();
    let Plan::Work(work) = plan(request("b", &[("orders", &[0, 9]), ("unknown", &[0])]), &fixture.ctx())
    else {
        panic!("no work")
    };
    let asked: Vec<_> = work.delete.request.topics.iter().map(|topic| topic.partitions.len()).collect();
    assert_eq!(asked, [1]);
    let partitions = vec![OffsetDeleteResponsePartition::default()];
    let topic = OffsetDeleteResponseTopic { name: "orders".into(), partitions, ..Default::default() };
    let of_shard = OffsetDeleteResponse { topics: vec![topic], ..OffsetDeleteResponse::default() };
    let response = carried(work.pending.respond(of_shard), 0);
    let said: Vec<_> = response
        .topics
        .iter()
        .map(|topic| {
            topic.partitions.iter().map(|part| (part.partition_index, part.error_code)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(said, [vec![(0, 0), (9, 3)], vec![(0, 3)]]);
}

#[test]
fn an_error_of_the_group_is_all_there_is_to_say() {
    let fixture = Fixture::with_groups();
    let Plan::Work(work) = plan(request("b", &[("unknown", &[0])]), &fixture.ctx()) else {
        panic!("no work")
    };
    let of_shard = OffsetDeleteResponse { error_code: 69, ..OffsetDeleteResponse::default() };
    let response = work.pending.respond(of_shard);
    assert_eq!((response.error_code, response.topics.len()), (69, 0));
    let Plan::Answer(response) = plan(request("a", &[]), &fixture.ctx()) else { panic!("not here") };
    assert_eq!(response.error_code, 16);
}
