use super::*;
use crate::testing::{Fixture, broker_config, carried, config, versions};
use barnabas_base::Text;
use barnabas_metadata::config::DynamicConfigs;

fn resource(kind: i8, name: &str, keys: &[&str]) -> DescribeConfigsResource {
    let keys: Vec<Str> = keys.iter().map(|key| Str::from(*key)).collect();
    DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configuration_keys: (!keys.is_empty()).then_some(keys),
        ..DescribeConfigsResource::default()
    }
}

fn fixture() -> Fixture {
    let given =
        broker_config(&[("log.retention.hours", "1"), ("message.max.bytes", "10"), ("my.plugin.key", "x")]);
    let all = |set: &[(&str, &str)]| {
        set.iter().map(|(key, value)| (Text::from(*key), Text::from(*value))).collect()
    };
    let dynamic = DynamicConfigs {
        broker: all(&[("log.cleaner.threads", "3"), ("leader.replication.throttled.rate", "1000")]),
        default: all(&[
            ("message.max.bytes", "20"),
            ("leader.replication.throttled.rate", "2000"),
            ("follower.replication.throttled.rate", "2000"),
        ]),
    };
    let mut fixture = Fixture { config: given.with_dynamic(dynamic), ..Fixture::new() };
    fixture.add(&[config(2, "orders", "max.message.bytes", "30"), config(16, "sub", "interval.ms", "60000")]);
    fixture.add(&[config(32, "a-group", "consumer.session.timeout.ms", "50000")]);
    fixture
}

fn ask(resource: DescribeConfigsResource, version: i16) -> DescribeConfigsResult {
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: true,
        ..DescribeConfigsRequest::default()
    };
    carried(answer(&request, version, &fixture().ctx()), version).results.remove(0)
}

/// "value source [synonym=value source, …]" of one key.
fn check(kind: i8, name: &str, key: &str, expect: &str) {
    let result = ask(resource(kind, name, &[key]), 4);
    let [config] = &result.configs[..] else { panic!("{result:?}") };
    let synonyms = config.synonyms.iter().map(|synonym| {
        format!("{}={} {}", synonym.name, synonym.value.as_deref().unwrap_or("null"), synonym.source)
    });
    let value = config.value.as_deref().unwrap_or("null");
    let said = format!("{value} {} [{}]", config.config_source, synonyms.collect::<Vec<_>>().join(", "));
    assert_eq!(said, expect, "{key}");
}

#[test]
fn a_topics_value_shows_where_it_comes_from() {
    check(
        2,
        "orders",
        "max.message.bytes",
        "30 1 [max.message.bytes=30 1, message.max.bytes=20 3, message.max.bytes=10 4, message.max.bytes=1048588 5]",
    );
    check(
        2,
        "compacted",
        "max.message.bytes",
        "20 3 [message.max.bytes=20 3, message.max.bytes=10 4, message.max.bytes=1048588 5]",
    );
    // Kafka shows no synonym where the first one, in milliseconds, is set nowhere.
    check(2, "orders", "retention.ms", "3600000 5 []");
    check(2, "orders", "segment.bytes", "1073741824 5 [log.segment.bytes=1073741824 5]");
}

#[test]
fn a_brokers_value_shows_where_it_comes_from() {
    check(4, "1", "log.cleaner.threads", "3 2 [log.cleaner.threads=3 2, log.cleaner.threads=1 5]");
    check(4, "1", "log.retention.hours", "1 4 [log.retention.hours=1 4, log.retention.hours=168 5]");
    check(4, "1", "log.retention.ms", "null 5 []");
    check(4, "1", "ssl.keystore.password", "null 5 []");
    check(4, "1", "my.plugin.key", "null 4 [my.plugin.key=null 4]");
    check(4, "", "message.max.bytes", "20 3 [message.max.bytes=20 3]");
}

#[test]
fn replication_rates_are_shown_where_they_are_set() {
    let (leader, follower) = ("leader.replication.throttled.rate", "follower.replication.throttled.rate");
    check(4, "1", leader, &format!("1000 2 [{leader}=1000 2, {leader}=2000 3]"));
    check(4, "1", follower, &format!("2000 3 [{follower}=2000 3]"));
    check(4, "", leader, &format!("2000 3 [{leader}=2000 3]"));
    let unset = ask(resource(4, "1", &["replica.alter.log.dirs.io.max.bytes.per.second"]), 4);
    assert_eq!(unset.configs, [], "Kafka does not list a rate that is not set");
    let shown = ask(resource(4, "1", &[leader]), 4);
    assert_eq!((shown.configs[0].read_only, shown.configs[0].config_type), (false, 5), "a long");
}

#[test]
fn groups_and_subscriptions_are_shown() {
    check(
        32,
        "a-group",
        "consumer.session.timeout.ms",
        "50000 8 [consumer.session.timeout.ms=50000 8, group.consumer.session.timeout.ms=45000 5]",
    );
    check(
        32,
        "b-group",
        "share.isolation.level",
        "read_uncommitted 5 [share.isolation.level=read_uncommitted 5]",
    );
    check(16, "sub", "interval.ms", "60000 7 [interval.ms=60000 7]");
    check(16, "sub", "metrics", " 5 []");
}

#[test]
fn every_version_shows_what_it_can() {
    for version in versions::<DescribeConfigsResponse>() {
        let result = ask(resource(2, "orders", &["max.message.bytes"]), version);
        let config = &result.configs[0];
        assert_eq!(config.config_source, if version >= 1 { 1 } else { -1 });
        assert_eq!(config.synonyms.len(), if version >= 1 { 4 } else { 0 });
        assert_eq!(config.config_type, if version >= 3 { 3 } else { 0 });
        assert_eq!(config.documentation.as_deref().is_some_and(|doc| !doc.is_empty()), version >= 3);
    }
    assert!(ask(resource(2, "compacted", &["segment.bytes"]), 0).configs[0].is_default);
}

#[test]
fn all_keys_are_shown_and_internal_ones_are_not() {
    let topic = ask(resource(2, "orders", &[]), 4);
    assert_eq!(topic.configs.len(), 37);
    let broker = ask(resource(4, "1", &[]), 4);
    assert!(broker.configs.len() > 330);
    assert!(broker.configs.iter().all(|config| !config.name.starts_with("internal.")));
    let fixed = |name: &str| broker.configs.iter().find(|config| config.name == *name).unwrap().read_only;
    assert!(fixed("num.partitions") && !fixed("message.max.bytes"));
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let code = |kind, name| ask(resource(kind, name, &[]), 4).error_code;
    assert_eq!(code(2, "unknown"), 3);
    assert_eq!(code(2, "bad name"), 17);
    assert_eq!(code(4, "2"), 42);
    assert_eq!(code(4, "one"), 42);
    assert_eq!(code(8, "1"), 0);
    assert_eq!(code(8, "2"), 42);
    assert_eq!(code(8, ""), 42);
    assert_eq!(code(16, ""), 42);
    assert_eq!(code(32, ""), 42);
    assert_eq!(code(1, "x"), 42);
}
