use super::*;
use crate::testing::{CLUSTER, Fixture, carried, versions};
use barnabas_base::Uuid;
use barnabas_wire::messages::MetadataRecord;
use barnabas_wire::messages::register_controller_record::{ControllerEndpoint, RegisterControllerRecord};

fn ask(request: &DescribeClusterRequest, version: i16, listener: Listener) -> DescribeClusterResponse {
    let mut fixture = Fixture::new();
    let endpoint =
        ControllerEndpoint { name: "PLAINTEXT".into(), host: "c".into(), port: 9093, ..Default::default() };
    fixture.add(&[MetadataRecord::RegisterController(RegisterControllerRecord {
        controller_id: 1,
        incarnation_id: Uuid([7; 16]),
        end_points: vec![endpoint],
        ..RegisterControllerRecord::default()
    })]);
    carried(answer(request, version, listener, BrokerId(1), &fixture.ctx()), version)
}

fn ids(response: &DescribeClusterResponse) -> Vec<(i32, bool)> {
    response.brokers.iter().map(|broker| (broker.broker_id, broker.is_fenced)).collect()
}

#[test]
fn every_version_names_the_brokers() {
    let request = DescribeClusterRequest { endpoint_type: BROKERS, ..Default::default() };
    for version in versions::<DescribeClusterResponse>() {
        let response = ask(&request, version, Listener::Broker);
        assert_eq!(ids(&response), [(1, false), (2, false)]);
        assert_eq!((&*response.cluster_id, response.controller_id), (CLUSTER, 1));
        assert_eq!(response.cluster_authorized_operations, i32::MIN);
    }
}

#[test]
fn fenced_brokers_are_named_when_asked_for() {
    let request =
        DescribeClusterRequest { endpoint_type: BROKERS, include_fenced_brokers: true, ..Default::default() };
    assert_eq!(ids(&ask(&request, 2, Listener::Broker)), [(1, false), (2, false), (3, true)]);
}

#[test]
fn controllers_are_named_on_their_own_listener() {
    let request = DescribeClusterRequest { endpoint_type: CONTROLLERS, ..Default::default() };
    let response = ask(&request, 1, Listener::Controller);
    assert_eq!((ids(&response), response.controller_id), (vec![(1, false)], 1));
}

#[test]
fn the_wrong_kind_is_refused() {
    let request = |endpoint_type| DescribeClusterRequest { endpoint_type, ..Default::default() };
    let refused = ask(&request(CONTROLLERS), 1, Listener::Broker);
    assert_eq!(refused.error_code, 114);
    // Apache's words: its tools show them.
    let said =
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER";
    assert_eq!(refused.error_message.as_deref(), Some(said));
    assert_eq!(ask(&request(9), 1, Listener::Broker).error_code, 115);
    assert_eq!(ask(&request(BROKERS), 0, Listener::Controller).error_code, 42);
}

#[test]
fn operations_are_shown_when_asked_for() {
    let request = DescribeClusterRequest {
        endpoint_type: BROKERS,
        include_cluster_authorized_operations: true,
        ..Default::default()
    };
    assert_eq!(ask(&request, 0, Listener::Broker).cluster_authorized_operations, 8096);
}
