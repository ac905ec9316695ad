//! What the tables promise, and what comes out of settings at every level.

use super::*;
use barnabas_base::Text;
use barnabas_wire::records::RecordValidation;

fn properties(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(name, value)| (Text::from(*name), Text::from(*value))).collect()
}

fn broker(given: &[(&str, &str)]) -> BrokerConfig {
    let (given, _) = StaticConfig::check(properties(given)).expect("good settings");
    BrokerConfig::new(given)
}

#[test]
fn tables_are_sorted_and_names_are_unique() {
    for resource in Resource::ALL {
        for table in resource.tables() {
            assert!(table.is_sorted_by(|a, b| a.name < b.name), "{resource:?}");
        }
        let mut names: Vec<_> = resource.keys().map(|key| key.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in names {
            assert_eq!(resource.key(name).map(|key| key.name), Some(name));
        }
    }
}

#[test]
fn every_key_of_kafka_4_4_is_there() {
    let counts = Resource::ALL.map(|resource| resource.keys().count());
    // Some of the broker's are ours.
    assert_eq!(counts, [379 + Resource::own_keys().len(), 38, 27, 3]);
}

#[test]
fn every_default_is_valid_and_every_key_is_explained() {
    for resource in Resource::ALL {
        for key in resource.keys() {
            assert!(key.doc.ends_with('.'), "{}", key.name);
            if let Some(value) = key.default_value()
                && key.valid != Valid::NonEmpty
            {
                assert_eq!(check(key, value), Ok(()), "{}", key.name);
            }
        }
    }
}

#[test]
fn every_key_has_a_status_and_every_row_a_key() {
    for resource in Resource::ALL {
        for key in resource.keys() {
            assert!(status::lookup(resource, key.name).is_some(), "{}", key.name);
        }
        for (pattern, _) in status::rows(resource) {
            let fits = |name: &str| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == *pattern,
            };
            assert!(resource.keys().any(|key| fits(key.name)), "{pattern} stands for no key");
        }
    }
}

#[test]
fn synonyms_are_keys() {
    for key in Resource::Topic.keys() {
        for (synonym, _) in topic_synonyms(key.name) {
            assert!(Resource::Broker.key(synonym).is_some(), "{synonym}");
        }
    }
    for key in Resource::Group.keys() {
        let expected = !matches!(
            key.name,
            "share.auto.offset.reset"
                | "share.isolation.level"
                | "share.renew.acknowledge.enable"
                | "errors.deadletterqueue.copy.record.enable"
                | "errors.deadletterqueue.topic.name"
        );
        assert_eq!(group_synonym(key.name).is_some(), expected, "{}", key.name);
    }
}

fn says(resource: Resource, name: &str, value: &str, expect: &str) {
    let key = resource.key(name).expect("a key");
    let said = check(key, value).map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned());
    assert_eq!(said, expect, "{name}={value}");
}

#[test]
fn values_are_checked_by_type_and_range() {
    use Resource::{Broker, Group, Topic};
    says(Topic, "retention.ms", " 5 ", "ok");
    says(
        Topic,
        "retention.ms",
        "-2",
        "Invalid value -2 for configuration retention.ms: expected a whole number, at least -1, such as 604800000",
    );
    says(
        Topic,
        "retention.ms",
        "soon",
        "Invalid value soon for configuration retention.ms: expected a whole number of 64 bits, such as 604800000",
    );
    says(
        Topic,
        "segment.bytes",
        "3000000000",
        "Invalid value 3000000000 for configuration segment.bytes: expected a whole number of 32 bits, such as \
         1073741824",
    );
    says(Topic, "cleanup.policy", "compact, delete", "ok");
    says(Topic, "cleanup.policy", "", "ok");
    says(
        Topic,
        "cleanup.policy",
        "shred",
        "Invalid value shred for configuration cleanup.policy: expected any of compact, delete, separated by commas, \
         such as delete",
    );
    says(Topic, "min.cleanable.dirty.ratio", "1.0", "ok");
    says(Topic, "compression.gzip.level", "-1", "ok");
    says(
        Topic,
        "compression.gzip.level",
        "0",
        "Invalid value 0 for configuration compression.gzip.level: expected a whole number, 1 to 9, or -1, such as -1",
    );
    says(Topic, "leader.replication.throttled.replicas", "0:1,2:3", "ok");
    says(Topic, "leader.replication.throttled.replicas", "*", "ok");
    says(Topic, "preallocate", "TRUE", "ok");
    says(Broker, "group.consumer.migration.policy", "Upgrade", "ok");
    says(Group, "share.auto.offset.reset", "by_duration:P3DT12H", "ok");
    says(Group, "share.auto.offset.reset", "by_duration:PT0.5S", "ok");
    says(
        Group,
        "share.auto.offset.reset",
        "by_duration:P",
        "Invalid value by_duration:P for configuration share.auto.offset.reset: expected latest, earliest, or \
         by_duration: and a duration like P3DT12H, such as latest",
    );
}

#[test]
fn an_unknown_key_is_warned_of_with_the_nearest_one() {
    let given = properties(&[
        ("log.retention.hour", "1"),
        ("zookeeper.connect", "z:2181"),
        ("listener.name.internal.ssl.client.auth", "none"),
    ]);
    let (_, warnings) = StaticConfig::check(given).expect("no refusal");
    let said: Vec<_> = warnings.iter().map(Warning::to_string).collect();
    assert_eq!(
        said,
        [
            "unknown configuration key log.retention.hour; did you mean log.retention.hours?",
            "unknown configuration key zookeeper.connect",
        ]
    );
}

#[test]
fn protecting_key_of_a_listener_that_is_not_there_does_not_pass_unseen() {
    let with = |name: &str, value: &str| {
        let given = [("listeners", "TLS://:9092,CONTROLLER://:9093"), (name, value)];
        StaticConfig::check(properties(&given))
    };
    for (name, meant) in [
        ("listener.name.TLS.ssl.client.auth", "listener.name.tls.ssl.client.auth"),
        ("listener.name.controler.ssl.client.auth", "listener.name.controller.ssl.client.auth"),
    ] {
        let refusals = with(name, "required").unwrap_err();
        let said = refusals.iter().map(ConfigRefusal::to_string).collect::<String>();
        assert!(said.contains(&format!("{meant} would protect this node")), "{said}");
    }
    let (_, warnings) = with("listener.name.gone.ssl.client.auth", "required").expect("starts");
    let said = "listener.name.gone.ssl.client.auth has no effect: no listener of this node is named gone";
    assert_eq!(warnings[0].to_string(), said);
    for (name, value) in [
        ("listener.name.tls.ssl.client.auth", "required"),
        ("listener.name.gone.ssl.client.auth", "none"),
        ("listener.name.gone.ssl.keystore.location", "/there"),
    ] {
        assert_eq!(with(name, value).expect("starts").1, [], "{name}");
    }
    let console = [
        ("listeners", "TLS://:9092"),
        ("console.listener", "127.0.0.1:8080"),
        ("listener.name.console.ssl.client.auth", "required"),
    ];
    assert_eq!(StaticConfig::check(properties(&console)).expect("starts").1, []);
}

#[test]
fn a_value_that_cannot_be_refuses_the_start() {
    let refusals = StaticConfig::check(properties(&[("num.partitions", "0"), ("node.id", "x")])).unwrap_err();
    assert_eq!(refusals.len(), 2);
    let contradiction = properties(&[("broker.id", "1"), ("node.id", "2")]);
    assert!(StaticConfig::check(contradiction).is_err());
}

#[test]
fn an_authorizer_that_would_be_ignored_refuses_the_start() {
    let refused = [
        ("org.example.RangerKafkaAuthorizer", "every client could do everything without it"),
        ("kafka.security.authorizer.AclAuthorizer", "ZooKeeper"),
    ];
    for (class, why) in refused {
        let refusals = StaticConfig::check(properties(&[("authorizer.class.name", class)])).unwrap_err();
        let said = refusals[0].to_string();
        assert!(said.contains(class) && said.contains(why), "{said}");
    }
    assert!(StaticConfig::check(properties(&[("authorizer.class.name", "")])).is_ok());
}

#[test]
fn topology_plug_in_other_than_the_built_in_one_has_no_effect() {
    let key = "group.streams.topology.description.plugin.class";
    let built_in = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin";
    let warned = |class: &str| StaticConfig::check(properties(&[(key, class)])).expect("no refusal").1.len();
    assert_eq!((warned(""), warned(built_in), warned("org.example.Store")), (0, 0, 1));
    let keeps = |given: &[(&str, &str)]| keeps_topology_descriptions(&broker(given));
    assert!(!keeps(&[]) && !keeps(&[(key, "org.example.Store")]));
    assert!(keeps(&[(key, built_in)]));
}

#[test]
fn settings_of_the_authorizer_count_with_it() {
    let given = properties(&[
        ("authorizer.class.name", " org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:admin"),
        ("allow.everyone.if.no.acl.found", "true"),
    ]);
    let (config, warnings) = StaticConfig::check(given).expect("no refusal");
    assert_eq!(warnings, []);
    assert_eq!(config.get("super.users"), Some("User:admin"));
}

#[test]
fn policies_that_would_be_ignored_refuse_the_start() {
    for key in ["create.topic.policy.class.name", "alter.config.policy.class.name"] {
        let refusals = StaticConfig::check(properties(&[(key, "org.example.TwoReplicas")])).unwrap_err();
        let said = refusals[0].to_string();
        assert!(
            said.starts_with(key) && said.contains("TwoReplicas") && said.contains("remove the key"),
            "{said}"
        );
        let (_, warnings) = StaticConfig::check(properties(&[(key, "")])).expect("as if it were not set");
        assert_eq!(warnings, []);
    }
}

#[test]
fn settings_that_protect_nothing_here_are_warned_of() {
    let given = [("allow.everyone.if.no.acl.found", "false"), ("super.users", "User:admin")];
    for (key, value) in given {
        let (_, warnings) = StaticConfig::check(properties(&[(key, value)])).expect("no refusal");
        assert!(
            matches!(&warnings[..], [Warning::NoEffect { name, .. }] if name == key),
            "{key}: {warnings:?}"
        );
        // A secret stays out of the log.
        assert!(!warnings[0].to_string().contains(&format!("={value}")), "{}", warnings[0]);
    }
    let quiet = [
        // As in Kafka, keys of TLS are of no consequence where no listener has TLS.
        ("listener.name.plaintext.ssl.keystore.location", "/keys"),
        ("ssl.client.auth", "required"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512"),
        ("listener.name.plaintext.sasl.kerberos.service.name", "kafka"),
        ("listener.name.plaintext.plain.sasl.jaas.config", "x"),
        ("listener.name.plaintext.plain.connections.max.reauth.ms", "60000"),
        ("config.providers.file.class", "X"),
    ];
    let (_, warnings) = StaticConfig::check(properties(&quiet)).expect("no refusal");
    assert_eq!(warnings, []);
}

#[test]
fn a_key_that_cannot_work_here_is_warned_of() {
    let (_, warnings) =
        StaticConfig::check(properties(&[("metric.reporters", "org.example.Near")])).expect("no refusal");
    assert!(matches!(&warnings[..], [Warning::NoEffect { name, .. }] if name == "metric.reporters"));
}

#[test]
fn retention_is_taken_from_the_smallest_unit_that_is_set() {
    let retention = |given: &[(&str, &str)]| broker(given).topic_defaults().retention_ms;
    assert_eq!(retention(&[]), 604_800_000);
    assert_eq!(retention(&[("log.retention.hours", "1")]), 3_600_000);
    assert_eq!(retention(&[("log.retention.hours", "1"), ("log.retention.minutes", "2")]), 120_000);
    assert_eq!(retention(&[("log.retention.minutes", "2"), ("log.retention.ms", "3")]), 3);
    assert_eq!(broker(&[("log.retention.hours", "1")]).long("log.retention.ms"), 3_600_000);
    for below in ["-1", "-5"] {
        assert_eq!(retention(&[("log.retention.hours", below)]), -1);
        assert_eq!(retention(&[("log.retention.ms", below)]), -1);
    }
}

#[test]
fn topic_values_come_from_five_levels() {
    let dynamic = DynamicConfigs {
        broker: properties(&[("message.max.bytes", "30")]),
        default: properties(&[("message.max.bytes", "20"), ("log.retention.bytes", "7")]),
    };
    let config =
        broker(&[("message.max.bytes", "10"), ("log.segment.bytes", "2000000")]).with_dynamic(dynamic);
    let topic = config.topic_config([("max.message.bytes", "40"), ("cleanup.policy", "compact")]);
    assert_eq!(topic.max_message_bytes, 40);
    assert_eq!(topic.cleanup_policy, CleanupPolicy { delete: false, compact: true });
    assert_eq!(config.topic_defaults().max_message_bytes, 30);
    assert_eq!((topic.retention_bytes, topic.segment_bytes), (7, 2_000_000));
    assert_eq!(config.topic_config([]), *config.topic_defaults());
    let levels = config.levels("message.max.bytes");
    let values: Vec<_> = levels.iter().map(|level| (level.value, level.source)).collect();
    assert_eq!(
        values,
        [
            ("30", ConfigSource::DynamicBroker),
            ("20", ConfigSource::DynamicDefaultBroker),
            ("10", ConfigSource::StaticBroker),
            ("1048588", ConfigSource::Default),
        ]
    );
}

#[test]
fn a_dynamic_value_that_may_not_be_dynamic_has_no_effect() {
    let dynamic = DynamicConfigs {
        broker: properties(&[("num.partitions", "9"), ("log.retention.ms", "nonsense")]),
        default: Properties::new(),
    };
    let config = broker(&[]).with_dynamic(dynamic);
    assert_eq!(config.int("num.partitions"), 1);
    assert_eq!(config.topic_defaults().retention_ms, 604_800_000);
}

#[test]
fn defaults_of_a_topic_are_kafkas() {
    let topic = TopicConfig::default();
    assert_eq!(topic.max_message_bytes, 1_048_588);
    assert_eq!(topic.segment_bytes, 1 << 30);
    assert_eq!(topic.flush_ms, i64::MAX);
    assert_eq!(topic.min_cleanable_dirty_ratio, 0.5);
    assert_eq!(&topic, &**broker(&[]).topic_defaults());
}

#[test]
fn topic_configs_are_checked_together() {
    let check = |pairs: &[(&str, &str)]| {
        let checked = validate_topic_configs(&properties(pairs), &TopicConfig::default());
        checked.map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned())
    };
    assert_eq!(check(&[("retention.ms", "1")]), "ok");
    assert_eq!(
        check(&[("retension.ms", "1")]),
        "Unknown topic config name: retension.ms; did you mean retention.ms?"
    );
    assert_eq!(
        check(&[("min.compaction.lag.ms", "9"), ("max.compaction.lag.ms", "8")]),
        "conflict in topic configs: min.compaction.lag.ms (9) is above max.compaction.lag.ms (8)"
    );
    assert!(check(&[("remote.storage.enable", "true")]).contains("tiered storage"));
}

#[test]
fn levels_of_other_units_show_only_after_ones_own() {
    let config = broker(&[("log.retention.ms", "1"), ("log.retention.hours", "2")]);
    let of = |name| -> Vec<(String, String)> {
        let levels = config.levels(name);
        levels.iter().map(|level| (level.name.to_owned(), level.value.to_owned())).collect()
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        of("log.retention.hours"),
        [pair("log.retention.hours", "2"), pair("log.retention.hours", "168")]
    );
    assert_eq!(of("log.retention.ms")[0], pair("log.retention.ms", "1"));
    assert_eq!(broker(&[]).levels("log.retention.ms"), []);
}

#[test]
fn values_are_shown_as_java_prints_them() {
    let shown = |resource: Resource, name, value| canonical(resource.key(name).expect("a key"), value);
    assert_eq!(shown(Resource::Topic, "preallocate", "TRUE"), "true");
    assert_eq!(shown(Resource::Topic, "retention.ms", " +5 "), "5");
    assert_eq!(shown(Resource::Topic, "min.cleanable.dirty.ratio", "1"), "1.0");
    assert_eq!(shown(Resource::Topic, "cleanup.policy", "compact , delete"), "compact,delete");
    let key = "log.cleaner.io.max.bytes.per.second";
    assert_eq!(shown(Resource::Broker, key, "1.7976931348623157e308"), "1.7976931348623157E308");
    assert_eq!(shown(Resource::Broker, key, "1e-5"), "1.0E-5");
    assert_eq!(shown(Resource::Broker, key, "12345678"), "1.2345678E7");
}

#[test]
fn how_much_of_a_record_is_looked_at_is_the_brokers_choice() {
    let validation = |given: &[(&str, &str)]| broker(given).topic_config([]).record_validation;
    assert_eq!(validation(&[]), RecordValidation::Header);
    assert_eq!(validation(&[("record.validation", "structure")]), RecordValidation::Structure);
    assert_eq!(validation(&[("record.validation", "full")]), RecordValidation::Full);
}

#[test]
fn one_id_stands_for_both() {
    assert_eq!(broker(&[("node.id", "7")]).int("broker.id"), 7);
    assert_eq!(broker(&[("broker.id", "7")]).int("node.id"), 7);
}

#[test]
fn a_groups_configs_stay_within_the_brokers_bounds() {
    let says = |pairs: &[(&str, &str)], given: &[(&str, &str)]| {
        let checked = validate_group_configs(&properties(pairs), &broker(given));
        checked.map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned())
    };
    let session = "consumer.session.timeout.ms";
    assert_eq!(says(&[(session, "50000")], &[]), "ok");
    assert_eq!(
        says(&[(session, "5")], &[]),
        "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms"
    );
    assert_eq!(
        says(&[(session, "50")], &[("group.consumer.min.session.timeout.ms", "10")]),
        "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    );
    assert_eq!(
        says(&[("share.session.timout.ms", "5")], &[]),
        "Unknown group config name: share.session.timout.ms; did you mean share.session.timeout.ms?"
    );
    assert!(says(&[("streams.assignor.name", "mine")], &[]).contains("none of this cluster's: sticky"));
    assert_eq!(says(&[("streams.assignor.name", "sticky")], &[]), "ok");
    assert!(says(&[("errors.deadletterqueue.topic.name", "__dlq")], &[]).contains("must not start with"));
    assert!(says(&[("streams.rack.aware.assignment.tags", "a, b,a")], &[]).contains("duplicate"));
    assert_eq!(
        says(&[("streams.num.standby.replicas", "3")], &[]),
        "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"
    );
}

#[test]
fn group_number_out_of_bounds_is_the_nearest_bound() {
    let number = |key: &str, value: &str, given: &[(&str, &str)]| group_number(key, value, &broker(given));
    let session = "consumer.session.timeout.ms";
    assert_eq!(number(session, "50000", &[]), Some(50_000));
    assert_eq!(number(session, " 5 ", &[]), Some(45_000));
    assert_eq!(number(session, "50000", &[("group.consumer.max.session.timeout.ms", "46000")]), Some(46_000));
    let turned =
        [("group.consumer.min.session.timeout.ms", "9"), ("group.consumer.max.session.timeout.ms", "8")];
    assert_eq!(number(session, "5", &turned), Some(9));
    assert_eq!(number("streams.num.standby.replicas", "-1", &[]), Some(-1), "it has no lower bound");
    assert_eq!(number("streams.num.standby.replicas", "9", &[]), Some(2));
    assert_eq!(number("streams.acceptable.recovery.lag", "9", &[]), Some(9), "it has no bounds");
    assert_eq!(number(session, "soon", &[]), None);
}

#[test]
fn bounds_of_groups_are_keys() {
    // An unknown key would read as -1 and refuse everything.
    for key in Resource::Group.keys().filter(|key| key.kind == Kind::Int || key.kind == Kind::Long) {
        let value = key.default_value().expect("a default");
        assert_eq!(
            validate_group_configs(&properties(&[(key.name, value)]), &broker(&[])),
            Ok(()),
            "{}",
            key.name
        );
    }
}

#[test]
fn a_subscription_is_checked() {
    let says = |key: &str, value: &str| {
        let checked = validate_client_metrics_configs(&properties(&[(key, value)]));
        checked.map_or_else(|refusal| refusal.to_string(), |()| "ok".to_owned())
    };
    assert_eq!(says("interval.ms", "100"), "ok");
    assert_eq!(says("interval.ms", "99"), "interval.ms must be in the range 100 to 3600000 inclusive.");
    assert_eq!(
        says("intervall.ms", "1"),
        "Unknown client metrics config name: intervall.ms; did you mean interval.ms?"
    );
}
