use super::*;
use crate::testing::{Fixture, carried, share_groups, versions};

fn request(group: &str) -> AlterShareGroupOffsetsRequest {
    AlterShareGroupOffsetsRequest { group_id: group.into(), ..Default::default() }
}

/// "b" is looked after here, "a" by node 2.
#[test]
fn it_goes_to_the_groups_shard() {
    let fixture = share_groups();
    let Plan::Work(work) = plan(request("b"), &fixture.ctx()) else { panic!("no work") };
    assert_eq!((work.asked.shard.get(), work.asked.request), (0, request("b")));
    for version in versions::<AlterShareGroupOffsetsResponse>() {
        let Plan::Answer(response) = plan(request("a"), &fixture.ctx()) else { panic!("no answer") };
        assert_eq!(carried(response, version).error_code, 16, "NOT_COORDINATOR");
    }
}

#[test]
fn where_there_are_no_such_groups_it_is_unsupported() {
    let fixture = Fixture::with_groups();
    let Plan::Answer(response) = plan(request("b"), &fixture.ctx()) else { panic!("no answer") };
    assert_eq!(response.error_code, 35, "UNSUPPORTED_VERSION");
}

#[test]
fn a_group_needs_a_name() {
    let fixture = share_groups();
    let Plan::Answer(response) = plan(request(""), &fixture.ctx()) else { panic!("no answer") };
    assert_eq!(response.error_code, 24, "INVALID_GROUP_ID");
}
