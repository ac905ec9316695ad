use super::*;
use crate::testing::{CLUSTER, Fixture, carried, versions};

fn request() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "a-client".into(),
        client_software_version: "1.0.0".into(),
        node_id: -1,
        ..ApiVersionsRequest::default()
    }
}

fn check(request: &ApiVersionsRequest, version: i16, expect: ErrorCode) -> ApiVersionsResponse {
    let fixture = Fixture::new();
    let response = answer(request, version, Listener::Broker, 1, &fixture.ctx());
    assert_eq!(ErrorCode::from_code(response.error_code), expect, "version {version}");
    carried(response, version)
}

#[test]
fn every_version_is_answered_in_its_words() {
    for version in versions::<ApiVersionsResponse>() {
        let response = check(&request(), version, ErrorCode::None);
        let produce = response.api_keys.iter().find(|row| row.api_key == 0).unwrap();
        assert_eq!((produce.min_version, produce.max_version), (0, 13));
        assert_eq!(response.finalized_features.is_empty(), version < 3);
    }
}

#[test]
fn a_lowest_level_of_zero_is_kept_from_version_3() {
    let has_group = |response: &ApiVersionsResponse| {
        response.supported_features.iter().any(|row| row.name == "group.version")
    };
    assert!(!has_group(&check(&request(), 3, ErrorCode::None)));
    assert!(has_group(&check(&request(), 4, ErrorCode::None)));
}

#[test]
fn finalized_features_are_those_of_the_image_and_the_quorum() {
    let response = check(&request(), 4, ErrorCode::None);
    let level = |name: &str| {
        let row = response.finalized_features.iter().find(|row| row.name == *name);
        row.map(|row| (row.min_version_level, row.max_version_level))
    };
    assert_eq!(level("metadata.version"), Some((33, 33)));
    assert_eq!(level("kraft.version"), Some((1, 1)));
    assert_eq!(level("share.version"), None);
    assert_eq!(response.finalized_features_epoch, 99);
}

#[test]
fn the_name_of_the_software_is_checked_from_version_3() {
    for name in ["", "-a", "a b", "a\n", "ä"] {
        let bad = ApiVersionsRequest { client_software_name: name.into(), ..request() };
        check(&bad, 2, ErrorCode::None);
        check(&bad, 3, ErrorCode::InvalidRequest);
    }
    let good = ApiVersionsRequest { client_software_name: "apache-kafka.java".into(), ..request() };
    check(&good, 3, ErrorCode::None);
}

#[test]
fn another_cluster_id_is_refused() {
    let to = |cluster: Option<&str>, node| ApiVersionsRequest {
        cluster_id: cluster.map(Str::from),
        node_id: node,
        ..request()
    };
    check(&to(Some(CLUSTER), 1), 5, ErrorCode::None);
    check(&to(Some(CLUSTER), 2), 5, ErrorCode::RebootstrapRequired);
    check(&to(Some("another"), 1), 5, ErrorCode::RebootstrapRequired);
    check(&to(None, 1), 5, ErrorCode::InvalidRequest);
    check(&to(Some(CLUSTER), -1), 5, ErrorCode::InvalidRequest);
}

#[test]
fn a_version_that_does_not_exist_is_answered_readably() {
    let response = carried(unsupported_version(), 0);
    assert_eq!(response.error_code, 35);
    assert_eq!((response.api_keys[0].api_key, response.api_keys[0].max_version), (18, 5));
}

#[test]
fn a_controllers_listener_answers_less() {
    assert!(is_answered(ApiKey::Produce, Listener::Broker));
    assert!(!is_answered(ApiKey::Produce, Listener::Controller));
    assert!(is_answered(ApiKey::DescribeQuorum, Listener::Controller));
    assert!(is_answered(ApiKey::EndTxn, Listener::Broker));
    assert!(!is_answered(ApiKey::EndTxn, Listener::Controller));
    assert!(is_answered(ApiKey::ShareFetch, Listener::Broker));
}

/// Kafka names 41 APIs on a controller's listener.
#[test]
fn controller_listener_names_what_kafkas_does() {
    let left_out: Vec<i16> = (0..=100)
        .filter_map(ApiKey::from_number)
        .filter(|key| key.on_controller() && !is_answered(*key, Listener::Controller))
        .map(ApiKey::number)
        .collect();
    assert_eq!(left_out, <[i16; 0]>::default());
}
