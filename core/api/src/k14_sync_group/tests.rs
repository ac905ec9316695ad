use super::*;
use crate::testing::{Fixture, carried, versions};

fn request(group: &str, protocol: Option<&str>) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: group.into(),
        protocol_type: protocol.map(Into::into),
        protocol_name: protocol.map(Into::into),
        ..SyncGroupRequest::default()
    }
}

/// The code of the refusal; 0 where the request goes to its shard.
fn refused(request: SyncGroupRequest, version: i16) -> i16 {
    match plan(request, version, &Fixture::with_groups().ctx()) {
        Plan::Work(to) => i16::from(to.shard.get() != 0),
        Plan::Answer(response) => carried(response, version).error_code,
    }
}

#[test]
fn every_version_says_that_the_group_is_elsewhere() {
    for version in versions::<SyncGroupResponse>() {
        assert_eq!(refused(request("a", Some("p")), version), 16);
        assert_eq!(refused(request("b", Some("p")), version), 0);
    }
}

#[test]
fn the_protocol_must_be_said_from_version_5() {
    assert_eq!(refused(request("b", None), 4), 0);
    assert_eq!(refused(request("b", None), 5), 23);
}
