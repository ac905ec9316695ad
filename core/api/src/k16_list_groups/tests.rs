use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::list_groups_response::ListedGroup;

fn of_shard(error_code: i16) -> ListGroupsResponse {
    let group = ListedGroup {
        group_id: "g".into(),
        group_state: "Stable".into(),
        group_type: "classic".into(),
        ..ListedGroup::default()
    };
    ListGroupsResponse { error_code, groups: vec![group], ..ListGroupsResponse::default() }
}

#[test]
fn every_version_lists_what_the_shards_say() {
    let fixture = Fixture::with_groups();
    for version in versions::<ListGroupsResponse>() {
        let Plan::Work(mut work) = plan(ListGroupsRequest::default(), version, &fixture.ctx()) else {
            panic!("no work")
        };
        assert_eq!(work.shards, [PartitionIndex(0)], "only the shard that is here");
        work.pending.add(of_shard(0), &crate::AnswerRoom::unlimited(), &crate::Access::OPEN);
        work.pending.add(of_shard(16), &crate::AnswerRoom::unlimited(), &crate::Access::OPEN);
        let response = carried(work.pending.respond(), version);
        assert_eq!((response.error_code, response.groups.len()), (0, 1));
        let group = &response.groups[0];
        assert_eq!(&*group.group_state, if version >= 4 { "Stable" } else { "" });
        assert_eq!(&*group.group_type, if version >= 5 { "classic" } else { "" });
    }
}

#[test]
fn a_shard_that_is_loading_spoils_the_list() {
    let fixture = Fixture::with_groups();
    let Plan::Work(mut work) = plan(ListGroupsRequest::default(), 5, &fixture.ctx()) else {
        panic!("no work")
    };
    work.pending.add(of_shard(0), &crate::AnswerRoom::unlimited(), &crate::Access::OPEN);
    work.pending.add(of_shard(14), &crate::AnswerRoom::unlimited(), &crate::Access::OPEN);
    let response = work.pending.respond();
    assert_eq!((response.error_code, response.groups.len()), (14, 0));
}

#[test]
fn without_shards_there_are_no_groups() {
    let fixture = Fixture::new();
    assert!(
        matches!(plan(ListGroupsRequest::default(), 5, &fixture.ctx()), Plan::Answer(response) if response.groups.is_empty())
    );
}
