use super::*;
use crate::testing::{Fixture, carried, versions};

fn request(groups: &[&str]) -> DescribeGroupsRequest {
    let groups = groups.iter().map(|group| Str::from(*group)).collect();
    DescribeGroupsRequest { groups, include_authorized_operations: true, ..DescribeGroupsRequest::default() }
}

/// "b" and "d" are looked after here, "a" by node 2.
#[test]
fn groups_are_answered_in_their_order() {
    let fixture = Fixture::with_groups();
    for version in versions::<DescribeGroupsResponse>() {
        let Plan::Work(mut work) = plan(request(&["d", "a", "b", "d"]), version, &fixture.ctx()) else {
            panic!("no work")
        };
        assert_eq!(work.parts.len(), 1, "one shard");
        assert_eq!(work.parts[0].request.groups, ["d", "b"]);
        let found = DescribedGroup {
            group_id: "b".into(),
            group_state: "Stable".into(),
            ..DescribedGroup::default()
        };
        let missing = DescribedGroup {
            group_id: "d".into(),
            error_code: 69,
            error_message: Some("no such group".into()),
            ..DescribedGroup::default()
        };
        work.pending.add(
            DescribeGroupsResponse { groups: vec![found, missing], ..Default::default() },
            &fixture.room,
            &crate::Access::OPEN,
        );
        let response = carried(work.pending.respond(), version);
        let said: Vec<_> = response.groups.iter().map(|group| (&*group.group_id, group.error_code)).collect();
        assert_eq!(said, [("d", 69), ("a", 16), ("b", 0), ("d", 69)]);
        let operations: Vec<i32> = response.groups.iter().map(|group| group.authorized_operations).collect();
        assert_eq!(operations, [i32::MIN, i32::MIN, if version >= 3 { 3400 } else { i32::MIN }, i32::MIN]);
        assert_eq!(response.groups[0].error_message.is_some(), version >= 6);
    }
}
