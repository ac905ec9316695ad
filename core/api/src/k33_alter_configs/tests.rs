use super::*;
use crate::testing::{Fixture, carried, config, versions};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::alter_configs_request::AlterableConfig;

fn resource(kind: i8, name: &str, configs: &[(&str, Option<&str>)]) -> AlterConfigsResource {
    let of = |(name, value): &(&str, Option<&str>)| AlterableConfig {
        name: (*name).into(),
        value: value.map(Str::from),
        ..AlterableConfig::default()
    };
    AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs: configs.iter().map(of).collect(),
        ..AlterConfigsResource::default()
    }
}

fn ask(resources: Vec<AlterConfigsResource>) -> Plan<Work, AlterConfigsResponse> {
    let mut fixture = Fixture::new();
    fixture.add(&[config(4, "1", "log.cleaner.threads", "2")]);
    plan(AlterConfigsRequest { resources, ..AlterConfigsRequest::default() }, Route::ToBroker, &fixture.ctx())
}

/// The code with which a resource is refused before the controller is asked; 0 if it is not.
fn refused(kind: i8, name: &str, configs: &[(&str, Option<&str>)]) -> i16 {
    match ask(vec![resource(kind, name, configs)]) {
        Plan::Answer(response) => response.responses[0].error_code,
        Plan::Work(_) => 0,
    }
}

#[test]
fn a_broker_is_checked_here() {
    assert_eq!(refused(4, "1", &[("log.cleaner.threads", Some("3"))]), 0);
    assert_eq!(refused(4, "", &[("log.cleaner.threads", Some("3"))]), 0);
    assert_eq!(refused(4, "2", &[("log.cleaner.threads", Some("3"))]), 42, "another broker");
    assert_eq!(refused(4, "one", &[("log.cleaner.threads", Some("3"))]), 42, "no number");
    assert_eq!(refused(4, "1", &[("num.partitions", Some("3"))]), 42, "not while it runs");
    assert_eq!(refused(4, "", &[("ssl.keystore.location", Some("/k"))]), 42, "one broker at a time");
    assert_eq!(refused(4, "1", &[("log.cleaner.threads", Some("three"))]), 42, "no value");
    assert_eq!(refused(4, "1", &[("log.cleaner.threads", None)]), 42, "null");
    assert_eq!(refused(4, "1", &[("a.plugin.of.mine", Some("x"))]), 0, "unknown keys are kept");
}

#[test]
fn what_a_broker_passes_on_is_not_checked_by_another_node() {
    let fixture = Fixture::new();
    let resources = vec![resource(4, "2", &[("log.cleaner.threads", Some("3"))])];
    let request = AlterConfigsRequest { resources, ..AlterConfigsRequest::default() };
    assert!(matches!(plan(request, Route::ThroughBroker, &fixture.ctx()), Plan::Work(_)));
}

#[test]
fn other_resources_are_the_controllers() {
    assert_eq!(refused(2, "orders", &[("retention.ms", Some("not checked here"))]), 0);
    assert_eq!(refused(8, "1", &[("root", Some("DEBUG"))]), 42);
    assert_eq!(refused(3, "x", &[]), 42);
    assert_eq!(refused(2, "orders", &[("a", Some("1")), ("a", Some("2"))]), 42);
}

#[test]
fn answers_come_in_the_order_of_the_request() {
    for version in versions::<AlterConfigsResponse>() {
        let twice = resource(2, "twice", &[]);
        let resources = vec![twice.clone(), resource(2, "orders", &[]), twice, resource(2, "lost", &[])];
        let Plan::Work(work) = ask(resources) else { panic!("no work") };
        let asked: Vec<_> = work.request.resources.iter().map(|resource| &*resource.resource_name).collect();
        assert_eq!(asked, ["orders", "lost"]);
        let done = AlterConfigsResourceResponse {
            resource_type: 2,
            resource_name: "orders".into(),
            error_message: None,
            ..AlterConfigsResourceResponse::default()
        };
        let of_controller = AlterConfigsResponse { responses: vec![done], ..AlterConfigsResponse::default() };
        let response = carried(work.pending.respond(Ok(of_controller)), version);
        let said: Vec<_> =
            response.responses.iter().map(|answer| (&*answer.resource_name, answer.error_code)).collect();
        assert_eq!(said, [("twice", 42), ("orders", 0), ("twice", 42), ("lost", -1)]);
    }
}

#[test]
fn without_a_controller_every_resource_is_refused() {
    let Plan::Work(work) = ask(vec![resource(2, "orders", &[])]) else { panic!("no work") };
    let response = work.pending.respond(Err(ErrorCode::NotController.into()));
    assert_eq!(response.responses[0].error_code, 41);
}
