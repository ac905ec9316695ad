use super::*;
use crate::testing::{Fixture, broker_config, carried, versions};

const PLUG_IN: (&str, &str) = (
    "group.streams.topology.description.plugin.class",
    "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin",
);

/// "b" is looked after here, "a" by node 2.
fn fixture() -> Fixture {
    let mut fixture = Fixture::with_groups();
    fixture.config = broker_config(&[PLUG_IN]);
    fixture
}

fn request(group: &str, member: &str) -> StreamsGroupTopologyDescriptionUpdateRequest {
    StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: group.into(),
        member_id: member.into(),
        topology_epoch: 3,
        ..Default::default()
    }
}

fn answer(fixture: &Fixture, group: &str, member: &str) -> (i16, Option<String>) {
    let Plan::Answer(response) = plan(request(group, member), &fixture.ctx()) else { panic!("no answer") };
    for version in versions::<StreamsGroupTopologyDescriptionUpdateResponse>() {
        assert_eq!(carried(response.clone(), version), response);
    }
    (response.error_code, response.error_message.map(|why| why.to_string()))
}

#[test]
fn description_goes_to_the_groups_shard() {
    let fixture = fixture();
    let Plan::Work(work) = plan(request("b", "m"), &fixture.ctx()) else { panic!("no work") };
    assert_eq!((work.shard.get(), work.request), (0, request("b", "m")));
    assert_eq!(answer(&fixture, "a", "m"), (16, None), "NOT_COORDINATOR");
}

#[test]
fn blank_names_are_refused_before_the_coordinator_is_looked_for() {
    let fixture = fixture();
    let said = |why: &str| (42, Some(why.to_owned()));
    assert_eq!(answer(&fixture, "a", " "), said("MemberId can't be empty."));
    assert_eq!(answer(&fixture, " ", "m"), said("GroupId can't be empty."));
    assert_eq!(answer(&fixture, "", ""), said("MemberId can't be empty."));
}

#[test]
fn without_a_plug_in_every_description_is_refused_with_a_reason() {
    let mut fixture = Fixture::with_groups();
    let said = (35, Some(NO_PLUG_IN.to_owned()));
    assert_eq!(answer(&fixture, "b", "m"), said);
    assert_eq!(answer(&fixture, "a", ""), said, "before anything else is looked at");
    fixture.config = broker_config(&[(PLUG_IN.0, "org.example.Store")]);
    assert_eq!(answer(&fixture, "b", "m"), said, "a class that cannot run here");
}

#[test]
fn client_without_read_access_does_not_learn_of_the_plug_in() {
    for mut fixture in [fixture(), Fixture::with_groups()] {
        fixture.allow(&[]);
        assert_eq!(answer(&fixture, "b", ""), (30, None), "GROUP_AUTHORIZATION_FAILED");
    }
}

#[test]
fn where_there_are_no_streams_groups_it_is_unsupported() {
    let mut fixture = fixture();
    fixture.config = broker_config(&[PLUG_IN, ("group.coordinator.rebalance.protocols", "classic,consumer")]);
    fixture.allow(&[]);
    assert_eq!(answer(&fixture, "b", "m"), (35, None));
}
