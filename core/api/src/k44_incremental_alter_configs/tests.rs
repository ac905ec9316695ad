use super::*;
use crate::testing::{Fixture, carried, config, versions};
use barnabas_wire::messages::incremental_alter_configs_request::AlterableConfig;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// The code with which a change of this broker is refused before the controller is asked; 0 if it is not.
fn refused(name: &str, operation: i8, value: Option<&str>) -> i16 {
    refused_of(4, "1", &[(name, operation, value)])
}

fn refused_of(kind: i8, resource: &str, changes: &[(&str, i8, Option<&str>)]) -> i16 {
    refused_on(Route::ToBroker, kind, resource, changes)
}

fn refused_on(route: Route, kind: i8, resource: &str, changes: &[(&str, i8, Option<&str>)]) -> i16 {
    let config = crate::testing::broker_config(&[("log.dirs", "/a,/b")]);
    refused_in(Fixture { config, ..Fixture::new() }, route, kind, resource, changes)
}

fn refused_in(
    mut fixture: Fixture,
    route: Route,
    kind: i8,
    resource: &str,
    changes: &[(&str, i8, Option<&str>)],
) -> i16 {
    fixture.add(&[config(4, "1", "log.cleanup.policy", "compact")]);
    fixture.add(&[config(4, "2", "cordoned.log.dirs", "/x, /y")]);
    let of = |(name, config_operation, value): &(&str, i8, Option<&str>)| AlterableConfig {
        name: (*name).into(),
        config_operation: *config_operation,
        value: value.map(Str::from),
        ..AlterableConfig::default()
    };
    let resource = AlterConfigsResource {
        resource_type: kind,
        resource_name: resource.into(),
        configs: changes.iter().map(of).collect(),
        ..AlterConfigsResource::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    match plan(request, route, &fixture.ctx()) {
        Plan::Work(_) => 0,
        Plan::Answer(response) => {
            for version in versions::<IncrementalAlterConfigsResponse>() {
                carried(response.clone(), version);
            }
            response.responses[0].error_code
        }
    }
}

#[test]
fn a_value_is_set_or_unset() {
    assert_eq!(refused("message.max.bytes", SET, Some("5")), 0);
    assert_eq!(refused("message.max.bytes", SET, Some("-5")), 42);
    assert_eq!(refused("message.max.bytes", SET, None), 42);
    assert_eq!(refused("message.max.bytes", DELETE, None), 0);
    assert_eq!(refused("message.max.bytes", 9, Some("5")), 42);
}

#[test]
fn lists_grow_and_shrink() {
    assert_eq!(refused("log.cleanup.policy", APPEND, Some("delete")), 0);
    assert_eq!(refused("log.cleanup.policy", APPEND, Some("shred")), 42);
    assert_eq!(refused("log.cleanup.policy", SUBTRACT, Some("compact")), 0);
    assert_eq!(refused("message.max.bytes", APPEND, Some("5")), 40, "no list");
}

#[test]
fn settings_that_contradict_others_are_refused() {
    let both = |threads| {
        let size = ("log.cleaner.dedupe.buffer.size", SET, Some("2097152"));
        [("", 4), ("1", 4)].map(|(broker, kind)| {
            refused_of(kind, broker, &[size, ("log.cleaner.threads", SET, Some(threads))])
        })
    };
    assert_eq!(both("1"), [0, 0]);
    assert_eq!(both("2"), [42, 42], "1 MiB for each thread is too little");
}

#[test]
fn broker_cordons_only_its_own_log_directories() {
    assert_eq!(refused("cordoned.log.dirs", SET, Some("/b")), 0);
    assert_eq!(refused("cordoned.log.dirs", SET, Some("*")), 0);
    assert_eq!(refused("cordoned.log.dirs", SET, Some("/b,/x")), 42);
    assert_eq!(refused("cordoned.log.dirs", APPEND, Some("/x")), 42);
    assert_eq!(refused("cordoned.log.dirs", SET, Some("")), 0);
}

#[test]
fn controller_uncordons_directories_and_cordons_none() {
    let change = |route, operation, value| {
        refused_on(
            route,
            4,
            "2",
            &[("cordoned.log.dirs", operation, Some(value)), ("log.cleaner.threads", SET, Some("2"))],
        )
    };
    for value in ["/x", "/y,/x", "", " "] {
        assert_eq!(change(Route::ToController, SET, value), 0, "{value}");
    }
    assert_eq!(change(Route::ToController, SUBTRACT, "/x"), 0);
    assert_eq!(change(Route::ToController, SET, "/x,/z"), 40);
    assert_eq!(change(Route::ToController, SET, "*"), 40);
    assert_eq!(change(Route::ToController, APPEND, "/z"), 40);
    assert_eq!(change(Route::ThroughBroker, SET, "/z"), 0, "broker 2 knows its directories");
    let unset = refused_on(Route::ToController, 4, "2", &[("cordoned.log.dirs", DELETE, None)]);
    assert_eq!(unset, 0);
}

#[test]
fn what_is_fixed_stays_fixed() {
    assert_eq!(refused("log.dirs", SET, Some("/d")), 42);
    assert_eq!(refused("log.dirs", DELETE, None), 0, "unsetting what is not set");
    assert_eq!(refused("listener.name.plaintext.ssl.keystore.location", SET, Some("/k")), 0);
    assert_eq!(refused_of(4, "", &[("listener.name.external.ssl.keystore.location", SET, Some("/k"))]), 42);
}

#[test]
fn change_without_effect_is_refused_unless_it_is_in_the_log() {
    let file = [("super.users", "User:a"), ("listeners", "SSL://:9092")];
    let change = |route, broker: &str, name: &str, value: &str| {
        let mut fixture = Fixture { config: crate::testing::broker_config(&file), ..Fixture::new() };
        fixture.add(&[config(4, "1", "listener.name.gone.ssl.keystore.location", "/k")]);
        refused_in(fixture, route, 4, broker, &[(name, SET, Some(value))])
    };
    let gone = "listener.name.gone.ssl.keystore.location";
    assert_eq!(change(Route::ToBroker, "1", gone, "/other"), 42);
    assert_eq!(change(Route::ToBroker, "1", gone, "/k"), 0, "as it is in the log");
    assert_eq!(change(Route::ToBroker, "1", "message.max.bytes", "5"), 0, "beside one that is in the log");
    assert_eq!(change(Route::ToController, "1", gone, "/other"), 0, "broker 1 knows its listeners");
    for route in [Route::ToBroker, Route::ToController] {
        for broker in ["", "1"] {
            assert_eq!(change(route, broker, "super.users", "User:b"), 42, "{route:?} {broker}");
            assert_eq!(change(route, broker, "super.users", "User:a"), 0, "as the file has it");
            assert_eq!(change(route, broker, "allow.everyone.if.no.acl.found", "true"), 42);
        }
    }
    assert_eq!(change(Route::ThroughBroker, "1", "super.users", "User:b"), 0, "its broker has checked");
}

#[test]
fn other_resources_are_the_controllers() {
    assert_eq!(refused_of(2, "orders", &[("retention.ms", SET, Some("x"))]), 0);
    assert_eq!(refused_of(32, "a-group", &[]), 0);
    assert_eq!(refused_of(8, "1", &[("root", SET, Some("DEBUG"))]), 42);
}

#[test]
fn broker_judges_a_change_before_its_client_and_a_controller_after() {
    let denied = |route, changes: &[(&str, i8, Option<&str>)]| {
        let mut fixture = Fixture::new();
        fixture.allow(&[]);
        refused_in(fixture, route, 4, "1", changes)
    };
    let (invalid, denial) = (42, 31);
    let sound = ("message.max.bytes", SET, Some("5"));
    for (changes, of_a_broker) in [
        (vec![sound], denial),
        (vec![sound, sound], invalid),
        (vec![("message.max.bytes", SET, Some("x"))], invalid),
    ] {
        assert_eq!(denied(Route::ToBroker, &changes), of_a_broker, "{changes:?}");
        assert_eq!(denied(Route::ThroughBroker, &changes), denial, "{changes:?}");
        assert_eq!(denied(Route::ToController, &changes), denial, "{changes:?}");
    }
}
