use super::*;
use crate::testing::{Fixture, carried, versions};

#[test]
fn every_version_says_what_became_of_each_group() {
    let fixture = Fixture::with_groups();
    for version in versions::<DeleteGroupsResponse>() {
        let groups_names = ["b", "a", "b", "d"].iter().map(|group| Str::from(*group)).collect();
        let request = DeleteGroupsRequest { groups_names, ..DeleteGroupsRequest::default() };
        let Plan::Work(mut work) = plan(request, version, &fixture.ctx()) else { panic!("no work") };
        assert_eq!(work.parts[0].request.groups_names, ["b", "d"], "one shard, each group once");
        let result = |group: &str, error_code| DeletableGroupResult {
            group_id: group.into(),
            error_code,
            error_message: Some("why".into()),
            ..DeletableGroupResult::default()
        };
        let results = vec![result("b", 0), result("d", 134)];
        work.pending.add(DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() });
        let response = carried(work.pending.respond(), version);
        let said: Vec<_> =
            response.results.iter().map(|result| (&*result.group_id, result.error_code)).collect();
        assert_eq!(said, [("a", 16), ("b", 0), ("d", if version >= 3 { 134 } else { -1 })]);
    }
}
