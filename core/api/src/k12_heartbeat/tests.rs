use super::*;
use crate::testing::{Fixture, carried, versions};

#[test]
fn a_request_goes_to_its_groups_shard_or_is_refused() {
    let fixture = Fixture::with_groups();
    let request = |group: &str| HeartbeatRequest { group_id: group.into(), ..HeartbeatRequest::default() };
    assert!(matches!(plan(request("b"), &fixture.ctx()), Plan::Work(to) if to.shard.get() == 0));
    for version in versions::<HeartbeatResponse>() {
        let Plan::Answer(response) = plan(request("a"), &fixture.ctx()) else { panic!("not here") };
        assert_eq!(carried(response, version).error_code, 16);
    }
}
