use super::*;
use crate::testing::{Fixture, carried, versions};
use barnabas_wire::messages::leave_group_response::MemberResponse;

#[test]
fn a_request_goes_to_its_groups_shard_or_is_refused() {
    let fixture = Fixture::with_groups();
    let request = |group: &str| LeaveGroupRequest { group_id: group.into(), ..LeaveGroupRequest::default() };
    assert!(matches!(plan(request("b"), &fixture.ctx()), Plan::Work(to) if to.shard.get() == 0));
    for version in versions::<LeaveGroupResponse>() {
        let Plan::Answer(response) = plan(request("a"), &fixture.ctx()) else { panic!("not here") };
        assert_eq!(carried(response, version).error_code, 16);
    }
}

#[test]
fn one_members_error_is_the_answers_before_version_3() {
    for version in versions::<LeaveGroupResponse>() {
        let member = MemberResponse { member_id: "m".into(), error_code: 25, ..MemberResponse::default() };
        let of_shard = LeaveGroupResponse { members: vec![member], ..LeaveGroupResponse::default() };
        let response = carried(respond(of_shard, version), version);
        let expect = if version >= 3 { (0, 1) } else { (25, 0) };
        assert_eq!((response.error_code, response.members.len()), expect);
    }
}
