use super::*;
use crate::testing::{Fixture, carried, share_groups, versions};

fn request(group: &str) -> ShareGroupHeartbeatRequest {
    ShareGroupHeartbeatRequest { group_id: group.into(), member_id: "m".into(), ..Default::default() }
}

/// "b" is looked after here, "a" by node 2.
#[test]
fn it_goes_to_the_groups_shard() {
    let fixture = share_groups();
    let Plan::Work(work) = plan(request("b"), &fixture.ctx()) else { panic!("no work") };
    assert_eq!((work.shard.get(), work.request), (0, request("b")));
    for version in versions::<ShareGroupHeartbeatResponse>() {
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
fn a_member_must_have_an_id_of_a_uuids_length_at_most() {
    let fixture = share_groups();
    for id in ["", "0123456789012345678901234567890123456"] {
        let request = ShareGroupHeartbeatRequest { member_id: id.into(), ..request("b") };
        let Plan::Answer(response) = plan(request, &fixture.ctx()) else { panic!("no answer") };
        assert_eq!(response.error_code, 42, "INVALID_REQUEST");
    }
}
