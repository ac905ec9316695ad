use super::*;
use crate::testing::{Fixture, broker_config, carried, versions};

fn request(groups: &[&str]) -> StreamsGroupDescribeRequest {
    let group_ids = groups.iter().map(|group| Str::from(*group)).collect();
    StreamsGroupDescribeRequest { group_ids, include_authorized_operations: true, ..Default::default() }
}

/// "b" and "d" are looked after here, "a" by node 2.
#[test]
fn groups_are_answered_in_their_order() {
    let fixture = Fixture::with_groups();
    for version in versions::<StreamsGroupDescribeResponse>() {
        let Plan::Work(mut work) = plan(request(&["d", "a", "b", "d"]), &fixture.ctx()) else {
            panic!("no work")
        };
        assert_eq!(work.parts.len(), 1, "one shard");
        assert_eq!(work.parts[0].request.group_ids, ["d", "b"]);
        let found = DescribedGroup { group_id: "b".into(), group_epoch: 3, ..Default::default() };
        let missing = DescribedGroup { group_id: "d".into(), error_code: 69, ..Default::default() };
        work.pending.add(
            StreamsGroupDescribeResponse { groups: vec![found, missing], ..Default::default() },
            &fixture.room,
            &crate::Access::OPEN,
        );
        let response = carried(work.pending.respond(), version);
        let said: Vec<_> = response.groups.iter().map(|group| (&*group.group_id, group.error_code)).collect();
        assert_eq!(said, [("d", 69), ("a", 16), ("b", 0), ("d", 69)]);
        let operations: Vec<i32> = response.groups.iter().map(|group| group.authorized_operations).collect();
        assert_eq!(operations, [i32::MIN, i32::MIN, 3400, i32::MIN]);
    }
}

#[test]
fn shard_is_asked_for_descriptions_only_if_the_client_asks() {
    let fixture = Fixture::with_groups();
    for asks in [false, true] {
        let request =
            StreamsGroupDescribeRequest { include_topology_description: asks, ..request(&["b", "d"]) };
        let Plan::Work(work) = plan(request, &fixture.ctx()) else { panic!("no work") };
        assert_eq!(work.parts[0].request.include_topology_description, asks);
    }
}

#[test]
fn where_there_are_no_such_groups_it_is_unsupported() {
    let mut fixture = Fixture::with_groups();
    fixture.config = broker_config(&[("group.coordinator.rebalance.protocols", "classic")]);
    let Plan::Answer(response) = plan(request(&["b"]), &fixture.ctx()) else { panic!("no answer") };
    assert_eq!(response.groups[0].error_code, 35, "UNSUPPORTED_VERSION");
}
