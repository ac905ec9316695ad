use super::*;
use crate::testing::{Fixture, carried, versions};

fn request(group: &str) -> JoinGroupRequest {
    JoinGroupRequest { group_id: group.into(), member_id: "m".into(), ..JoinGroupRequest::default() }
}

#[test]
fn a_request_goes_to_its_groups_shard() {
    let fixture = Fixture::with_groups();
    assert!(matches!(plan(request("b"), 9, &fixture.ctx()), Plan::Work(to) if to.shard.get() == 0));
}

#[test]
fn every_version_says_that_the_group_is_elsewhere() {
    let fixture = Fixture::with_groups();
    for version in versions::<JoinGroupResponse>() {
        let Plan::Answer(response) = plan(request("a"), version, &fixture.ctx()) else { panic!("not here") };
        let response = carried(response, version);
        assert_eq!((response.error_code, response.generation_id, &*response.member_id), (16, -1, "m"));
    }
}

#[test]
fn no_protocol_is_empty_or_null() {
    for version in versions::<JoinGroupResponse>() {
        for name in [None, Some("".into())] {
            let response = JoinGroupResponse { protocol_name: name, ..JoinGroupResponse::default() };
            let response = carried(respond(response, version), version);
            assert_eq!(response.protocol_name.as_deref(), if version >= 7 { None } else { Some("") });
        }
        let response =
            JoinGroupResponse { protocol_name: Some("range".into()), ..JoinGroupResponse::default() };
        assert_eq!(respond(response, version).protocol_name.as_deref(), Some("range"));
    }
}
