use super::*;
use crate::testing::{Fixture, ORDERS, carried, share_groups, versions};
use barnabas_wire::messages::describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestTopic;

fn group(id: &str, topics: Option<&[(&str, &[i32])]>) -> DescribeShareGroupOffsetsRequestGroup {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(name, partitions)| DescribeShareGroupOffsetsRequestTopic {
            topic_name: (*name).into(),
            partitions: partitions.to_vec(),
            ..Default::default()
        });
        topics.collect()
    });
    DescribeShareGroupOffsetsRequestGroup { group_id: id.into(), topics, ..Default::default() }
}

fn request(groups: Vec<DescribeShareGroupOffsetsRequestGroup>) -> DescribeShareGroupOffsetsRequest {
    DescribeShareGroupOffsetsRequest { groups, ..Default::default() }
}

const SUMMARY: Summary =
    Summary { state_epoch: 1, leader_epoch: 2, start_offset: 10, delivery_complete_count: 3 };

/// "b" is looked after here, "a" by node 2.
#[test]
fn each_group_is_answered_in_its_place() {
    let fixture = share_groups();
    for version in versions::<DescribeShareGroupOffsetsResponse>() {
        let asked = request(vec![
            group("a", None),
            group("b", None),
            group("a", Some(&[("orders", &[1]), ("nowhere", &[0])])),
            group("b", Some(&[])),
        ]);
        let Plan::Work(mut work) = plan(asked, version, &fixture.ctx()) else { panic!("no work") };
        let orders = Topic { id: ORDERS, name: "orders".into(), partitions: vec![1] };
        let wanted: Vec<_> = work.parts.iter().map(|part| (part.place, part.wanted.clone())).collect();
        assert_eq!(wanted, [(1, Wanted::All(PartitionIndex(0))), (2, Wanted::These(vec![orders.clone()]))]);
        work.pending.add(2, vec![(orders, vec![partition(1, Ok(SUMMARY), Some(Ok(20)))])]);
        work.pending.refuse(1, ErrorCode::CoordinatorLoadInProgress);
        let response = carried(work.pending.respond(version), version);
        let errors: Vec<i16> = response.groups.iter().map(|group| group.error_code).collect();
        assert_eq!(errors, [16, 14, 0, 0]);
        let topics = &response.groups[2].topics;
        assert_eq!((&*topics[0].topic_name, topics[0].partitions[0].start_offset), ("nowhere", -1));
        assert_eq!((&*topics[1].topic_name, topics[1].partitions[0].start_offset), ("orders", 10));
        assert_eq!(topics[1].partitions[0].lag, if version >= 1 { 7 } else { -1 });
    }
}

#[test]
fn lag_is_included_where_it_is_known() {
    let not_begun = Summary { start_offset: -1, ..SUMMARY };
    let not_counted = Summary { delivery_complete_count: -1, ..SUMMARY };
    assert!(has_lag(&Ok(SUMMARY)) && !has_lag(&Ok(not_begun)) && !has_lag(&Ok(not_counted)));
    assert_eq!(partition(0, Ok(not_begun), None).lag, -1);
    let refused = partition(0, Err(ErrorCode::NotCoordinator), None);
    assert_eq!((refused.error_code, refused.start_offset, refused.lag), (16, -1, -1));
}

#[test]
fn where_there_are_no_such_groups_it_is_unsupported() {
    let fixture = Fixture::with_groups();
    let Plan::Answer(response) = plan(request(vec![group("b", None)]), 1, &fixture.ctx()) else {
        panic!("no answer")
    };
    assert_eq!(response.groups[0].error_code, 35, "UNSUPPORTED_VERSION");
}
