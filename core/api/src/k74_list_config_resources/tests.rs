use super::*;
use crate::testing::{Fixture, carried, config};

fn ask(resource_types: &[i8], version: i16) -> ListConfigResourcesResponse {
    let mut fixture = Fixture::new();
    fixture.add(&[config(16, "sub", "interval.ms", "1"), config(32, "g", "share.session.timeout.ms", "1")]);
    let request =
        ListConfigResourcesRequest { resource_types: resource_types.to_vec(), ..Default::default() };
    carried(answer(&request, version, &fixture.ctx()), version)
}

fn names(response: &ListConfigResourcesResponse) -> Vec<(&str, i8)> {
    let resources = response.config_resources.iter();
    resources.map(|resource| (&*resource.resource_name, resource.resource_type)).collect()
}

#[test]
fn version_0_lists_subscriptions() {
    assert_eq!(names(&ask(&[], 0)), [("sub", 16)]);
}

#[test]
fn version_1_lists_everything_or_what_is_wanted() {
    assert_eq!(names(&ask(&[2], 1)), [("compacted", 2), ("orders", 2)]);
    assert_eq!(names(&ask(&[4], 1)), [("1", 4), ("2", 4), ("3", 4)]);
    assert_eq!(names(&ask(&[16, 32], 1)), [("g", 32), ("sub", 16)]);
    assert_eq!(ask(&[], 1).config_resources.len(), 2 + 3 + 3 + 2);
    assert_eq!(ask(&[2, 3], 1).error_code, 35);
}
