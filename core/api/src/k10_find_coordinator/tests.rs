use super::*;
use crate::testing::{Fixture, ORDERS, carried, share_groups, versions};

/// Group names and the partition of two that they fall on: "a" is 97, "b" is 98 in Java's hash.
const LED_HERE: &str = "b";
const LED_BY_NODE_2: &str = "a";

fn request(key_type: i8, key: &str, version: i16) -> FindCoordinatorRequest {
    let (single, several) = if version >= 4 { ("", vec![key.into()]) } else { (key, vec![]) };
    FindCoordinatorRequest {
        key: single.into(),
        key_type,
        coordinator_keys: several,
        ..FindCoordinatorRequest::default()
    }
}

/// Error code and node, whichever way the version says it; and whether the topic is to be created.
fn ask(fixture: &Fixture, key_type: i8, key: &str, version: i16) -> (i16, i32, bool) {
    let (response, creates) = match plan(request(key_type, key, version), version, &fixture.ctx()) {
        Plan::Answer(response) => (response, false),
        Plan::Work(work) => {
            let topic = match key_type {
                GROUP => "__consumer_offsets",
                TRANSACTION => "__transaction_state",
                _ => "__share_group_state",
            };
            assert_eq!(&*work.create.topics[0].name, topic);
            (work.response, true)
        }
    };
    let response = carried(response, version);
    match response.coordinators.first() {
        Some(coordinator) => {
            assert_eq!(&*coordinator.key, key);
            (coordinator.error_code, coordinator.node_id, creates)
        }
        None => (response.error_code, response.node_id, creates),
    }
}

#[test]
fn every_version_names_the_coordinator() {
    let fixture = Fixture::with_groups();
    for version in versions::<FindCoordinatorResponse>() {
        assert_eq!(ask(&fixture, GROUP, LED_HERE, version), (0, 1, false));
        assert_eq!(ask(&fixture, GROUP, LED_BY_NODE_2, version), (0, 2, false));
    }
}

#[test]
fn the_first_question_creates_the_topic() {
    let fixture = Fixture::new();
    for version in versions::<FindCoordinatorResponse>() {
        assert_eq!(ask(&fixture, GROUP, LED_HERE, version), (15, -1, true));
    }
}

#[test]
fn transactions_have_coordinators_too() {
    for version in 1..=6 {
        assert_eq!(ask(&Fixture::new(), TRANSACTION, LED_HERE, version), (15, -1, true));
        let fixture = Fixture::with_transactions();
        assert_eq!(ask(&fixture, TRANSACTION, LED_HERE, version), (0, 1, false));
        assert_eq!(ask(&fixture, TRANSACTION, LED_BY_NODE_2, version), (0, 2, false));
    }
}

#[test]
fn share_partitions_have_coordinators_too() {
    let key = |group: &str| format!("{group}:{ORDERS}:0");
    let fixture = share_groups();
    assert_eq!(ask(&fixture, 2, &key("g"), 5), (42, -1, false), "INVALID_REQUEST before version 6");
    let (error, node, creates) = ask(&fixture, 2, &key("g"), 6);
    assert!(error == 0 && (node == 1 || node == 2) && !creates);
    assert_eq!(ask(&fixture, 2, &key("with:colons"), 6).0, 0);
    assert_eq!(ask(&Fixture::with_groups(), 2, &key("g"), 6), (15, -1, true));
    for bad in
        ["g:t:0", "g", "g:AAAAAAAAAAAAAAAAAAAAAA", ":AAAAAAAAAAAAAAAAAAAAAA:0", "g:AAAAAAAAAAAAAAAAAAAAAA:x"]
    {
        assert_eq!(ask(&fixture, 2, bad, 6), (42, -1, false), "{bad}");
    }
}

#[test]
fn version_0_knows_groups_only() {
    let asked = FindCoordinatorRequest { key_type: TRANSACTION, ..request(GROUP, LED_HERE, 0) };
    let fixture = Fixture::with_groups();
    assert!(matches!(plan(asked, 0, &fixture.ctx()), Plan::Answer(response) if response.node_id == 1));
}
