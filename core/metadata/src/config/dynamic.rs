//! Which configurations of a broker may be set while it runs: for one broker, for all, for one listener.
//!
//! Order of checks and words: Kafka's `DynamicBrokerConfig.validateConfigs`. What each key is, key by key as Apache
//! Kafka has it, stands in `dynamic_keys.tsv`, and a test compares.

use std::collections::BTreeSet;

use super::key::{ConfigKey, Scope};
use super::properties::{base_name, listener_names};
use super::status::of_authorizer;
use super::suggest::{near_listener, slip};
use super::{Resource, StaticConfig, Status, ValueError, broker_rate, check, check_broker_rate, status};

/// Why broker configurations cannot be set: error code `INVALID_REQUEST` (KAFKA-13609).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DynamicRefusal {
    #[error("Cannot update these configs dynamically: [{0}]")]
    NotDynamic(String),
    #[error(
        "These security configs can be dynamically updated only per-listener using the listener prefix: [{0}]"
    )]
    OnlyForAListener(String),
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("{name} cannot be {value}: {reason}")]
    Unprotected { name: String, value: String, reason: &'static str },
    #[error("Cannot update these configs at default cluster level, broker id must be specified: [{0}]")]
    NotForAll(String),
    #[error("{name} would have no effect: {reason}")]
    NoEffect { name: String, reason: String },
}

/// Whether these configurations may be set together, for one broker or for all of them. Keys that are not known pass,
/// as in Kafka.
pub fn check_dynamic_configs<'a>(
    configs: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    for_one_broker: bool,
) -> Result<(), DynamicRefusal> {
    let named = |fits: &dyn Fn(&str, Option<&ConfigKey>) -> bool| {
        let names = configs.clone().map(|(name, _)| name);
        let named: Vec<&str> = names.filter(|name| fits(name, Resource::Broker.key(name))).collect();
        (!named.is_empty()).then(|| named.join(", "))
    };
    let is_fixed = |_: &str, key: Option<&ConfigKey>| key.is_some_and(|key| key.scope == Scope::ReadOnly);
    if let Some(names) = named(&is_fixed) {
        return Err(DynamicRefusal::NotDynamic(names));
    }
    if let Some(names) = named(&|name, _| is_of_a_listener(name)) {
        return Err(DynamicRefusal::OnlyForAListener(names));
    }
    for (name, value) in configs.clone() {
        check_broker_rate(name, value)?;
        if let Some(key) = Resource::Broker.key(base_name(name)) {
            check(key, value)?;
            check_here(name, key, value)?;
        }
    }
    let is_of_one = |name: &str, key: Option<&ConfigKey>| {
        let of_a_listener = base_name(name) != name || name.starts_with("listener.name.");
        if of_a_listener {
            !is_limit_of_a_listener(name)
        } else {
            key.is_some_and(|key| key.scope == Scope::PerBroker)
        }
    };
    match named(&is_of_one).filter(|_| !for_one_broker) {
        Some(names) => Err(DynamicRefusal::NotForAll(names)),
        None => Ok(()),
    }
}

/// Whether a change of `name` would do something at a broker. Kafka accepts each of these, and does nothing:
/// settings of the authorizer, of a listener that is not there, of a listener and not dynamic, of no listener with a
/// listener's prefix, misspelled ones. Keys that open listeners have an effect in Kafka, and none here.
/// A name that is like no key passes, as in Kafka.
///
/// `listeners`: the broker's ([`listeners_of`]), where this node is the broker. `for_all`: other brokers may have
/// others.
///
/// # Errors
/// [`DynamicRefusal::NoEffect`], with the place to set it. Values that are in the metadata log already are not asked.
pub fn check_effect(
    name: &str,
    listeners: Option<&BTreeSet<String>>,
    for_all: bool,
) -> Result<(), DynamicRefusal> {
    let reason = match name.strip_prefix("listener.name.").and_then(|rest| rest.split_once('.')) {
        Some((listener, rest)) => {
            no_effect_of_key(name, rest).or_else(|| no_effect_of_listener(listener, listeners?, for_all))
        }
        None => no_effect_at_run_time(name),
    };
    reason.map_or(Ok(()), |reason| Err(DynamicRefusal::NoEffect { name: name.to_owned(), reason }))
}

/// The key behind a listener's own setting, where listeners have it: `ssl.client.auth`, and not `log.retention.ms`.
pub fn listener_setting(name: &str) -> Option<&'static ConfigKey> {
    let key = Resource::Broker.listener_key(name)?;
    let is_one = key.name.starts_with("ssl.")
        || key.name.starts_with("sasl.")
        || matches!(key.name, "connections.max.reauth.ms" | "principal.builder.class")
        || is_limit_of_a_listener(name);
    is_one.then_some(key)
}

/// The listeners, in small letters, whose settings this broker reads again while it runs.
pub fn listeners_of(given: &StaticConfig) -> BTreeSet<String> {
    let get = |key: &str| given.get(key).or_else(|| Resource::Broker.key(key)?.default_value());
    listener_names(get, &["listeners", "controller.listener.names", "inter.broker.listener.name"])
}

const JAAS: &str = "sasl.jaas.config";
const JAAS_KEY: &str = "a login module is read from listener.name.LISTENER.MECHANISM.sasl.jaas.config. Set that key, \
     such as listener.name.sasl_ssl.plain.sasl.jaas.config";

fn no_effect_at_run_time(name: &str) -> Option<String> {
    if of_authorizer(name) {
        let reason = "the authorizer reads it at its start. Set it in server.properties of every broker and controller, and \
             restart them one by one";
        return Some(reason.to_owned());
    }
    if matches!(name, "listener.security.protocol.map" | "listeners") {
        let reason = "a node opens its listeners at its start. Set it in the broker's server.properties, and restart it";
        return Some(reason.to_owned());
    }
    if name == JAAS {
        return Some(JAAS_KEY.to_owned());
    }
    if Resource::Broker.key(name).is_some() || broker_rate(name).is_some() {
        return None;
    }
    slip(name).map(|meant| format!("it is no configuration key. Did you mean {meant}?"))
}

/// Of a key under a listener's prefix. `rest`: what follows the listener's name.
fn no_effect_of_key(name: &str, rest: &str) -> Option<String> {
    let base = base_name(name);
    let Some(key) = Resource::Broker.key(base) else {
        return slip(rest).map(|meant| format!("{rest} is no configuration key. Did you mean {meant}?"));
    };
    if listener_setting(name).is_none() {
        return Some(format!("{base} is no setting of a listener. Set {base} without the prefix"));
    }
    if rest == JAAS {
        return Some(JAAS_KEY.to_owned());
    }
    let is_fixed = key.scope == Scope::ReadOnly && !key.name.starts_with("ssl.");
    is_fixed.then(|| {
        "it is read at the start. Set it in the broker's server.properties, and restart it".to_owned()
    })
}

fn no_effect_of_listener(listener: &str, listeners: &BTreeSet<String>, for_all: bool) -> Option<String> {
    if listeners.contains(listener) || (for_all && near_listener(listener, listeners).is_none()) {
        return None;
    }
    let names = listeners.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    Some(format!("no listener of this broker is named {listener}. Its listeners are {names}"))
}

/// A class that protects, and cannot run here, is refused as it is at a start. Kafka refuses one that it cannot load.
/// A policy concerns no listener: with a listener's prefix it is no key, as in Kafka.
fn check_here(name: &str, key: &ConfigKey, value: &str) -> Result<(), DynamicRefusal> {
    if base_name(name) != name && key.name.ends_with(".policy.class.name") {
        return Ok(());
    }
    match status(Resource::Broker, key) {
        Status::Refused(reason) if value.trim() != key.default_value().unwrap_or_default() => {
            let (name, value) = (name.to_owned(), value.trim().to_owned());
            Err(DynamicRefusal::Unprotected { name, value, reason })
        }
        _ => Ok(()),
    }
}

/// Keys, certificates and revocation lists, which change for one listener at a time (Kafka
/// `SslConfigs.RECONFIGURABLE_CONFIGS`).
fn is_of_a_listener(name: &str) -> bool {
    const STORES: [&str; 3] = ["ssl.crl.", "ssl.keystore.", "ssl.truststore."];
    name == "ssl.key.password" || STORES.iter().any(|store| name.starts_with(store))
}

/// What may be set for a listener of all brokers (Kafka `DynamicBrokerConfig.CLUSTER_LEVEL_LISTENER_CONFIGS`).
pub(super) fn is_limit_of_a_listener(name: &str) -> bool {
    matches!(base_name(name), "max.connection.creation.rate" | "max.connections" | "num.network.threads")
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::Text;
    use std::collections::BTreeMap;

    /// Dynamic in Kafka 4.4, and not there yet in 4.3.1.
    const NEWER: [&str; 5] = [
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.topic.name.prefix",
        "max.decompressed.message.bytes",
        "log.remote.copy.lag.bytes",
        "log.remote.copy.lag.ms",
    ];

    fn recorded() -> BTreeMap<&'static str, (&'static str, bool)> {
        let lines = include_str!("dynamic_keys.tsv").lines();
        let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
        fields.map(|fields| (fields[0], (fields[1], fields[2] == "listener"))).collect()
    }

    #[test]
    fn each_key_may_change_when_apaches_may() {
        let recorded = recorded();
        let ours = |key: &ConfigKey| match key.scope {
            Scope::ReadOnly => "read-only",
            Scope::PerBroker => "per-broker",
            Scope::ClusterWide => "cluster-wide",
        };
        for (name, (scope, of_a_listener)) in &recorded {
            let key = Resource::Broker.key(name).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(ours(key), *scope, "{name}");
            assert_eq!(is_of_a_listener(name), *of_a_listener, "{name}");
        }
        let is_own = |name: &str| Resource::own_keys().iter().any(|own| own.name == name);
        let others =
            Resource::Broker.keys().filter(|key| !recorded.contains_key(key.name) && !is_own(key.name));
        let dynamic = others.filter(|key| key.scope != Scope::ReadOnly && !key.internal).map(|key| key.name);
        assert_eq!(dynamic.collect::<Vec<_>>(), NEWER);
    }

    #[test]
    fn each_key_is_refused_as_apache_refuses_it() {
        let says = |name: &str, value: &str, one: bool| {
            check_dynamic_configs([(name, value)].into_iter(), one).err().map(|error| error.to_string())
        };
        for (name, (scope, of_a_listener)) in recorded() {
            let key = Resource::Broker.key(name).expect("known");
            let values = key.default_value().into_iter().chain(["1", "broker"]);
            let value = values.into_iter().find(|value| check(key, value).is_ok()).expect("a value");
            let fixed = (scope == "read-only")
                .then(|| format!("Cannot update these configs dynamically: [{name}]"))
                .or_else(|| {
                    of_a_listener.then(|| {
                        format!(
                            "These security configs can be dynamically updated only per-listener using the listener \
                             prefix: [{name}]"
                        )
                    })
                });
            let not_for_all = |name: &str| {
                format!(
                    "Cannot update these configs at default cluster level, broker id must be specified: [{name}]"
                )
            };
            assert_eq!(says(name, value, true), fixed);
            let for_all = fixed.or_else(|| (scope == "per-broker").then(|| not_for_all(name)));
            assert_eq!(says(name, value, false), for_all);
            let prefixed = format!("listener.name.external.{name}");
            assert_eq!(says(&prefixed, value, true), None);
            let for_all = (!is_limit_of_a_listener(name)).then(|| not_for_all(&prefixed));
            assert_eq!(says(&prefixed, value, false), for_all);
        }
        assert_eq!(says("no.such.key", "1", false), None);
        let class = "principal.builder.class";
        for name in [class.to_owned(), format!("listener.name.external.{class}")] {
            let said = says(&name, "com.example.Builder", true).expect("refused");
            assert!(said.starts_with(&format!("{name} cannot be com.example.Builder")), "{said}");
        }
    }

    #[test]
    fn setting_without_effect_is_refused_with_its_place() {
        let file =
            [("listeners", "SASL_SSL://:9092,External://:9093"), ("controller.listener.names", "CONTROLLER")];
        let file = file.map(|(key, value)| (Text::from(key), Text::from(value)));
        let (given, _) = StaticConfig::check(file.into()).expect("settings");
        let listeners = listeners_of(&given);
        assert_eq!(
            listeners.iter().map(String::as_str).collect::<Vec<_>>(),
            ["controller", "external", "sasl_ssl"]
        );
        let says = |name: &str, for_all| {
            check_effect(name, Some(&listeners), for_all)
                .err()
                .map_or(String::new(), |error| error.to_string())
        };
        for (name, reason) in [
            ("super.users", "the authorizer reads it at its start"),
            ("allow.everyone.if.no.acl.found", "server.properties of every broker and controller"),
            ("super.usres", "Did you mean super.users?"),
            ("log.retention.mss", "Did you mean log.retention.ms?"),
            ("listeners", "opens its listeners at its start"),
            ("sasl.jaas.config", "listener.name.LISTENER.MECHANISM.sasl.jaas.config"),
            ("listener.name.external.sasl.jaas.config", "listener.name.LISTENER.MECHANISM.sasl.jaas.config"),
            ("listener.name.typo.ssl.keystore.location", "Its listeners are controller, external, sasl_ssl"),
            ("listener.name.EXTERNAL.ssl.keystore.location", "no listener of this broker is named EXTERNAL"),
            ("listener.name.external.ssl.keystore.locaton", "Did you mean ssl.keystore.location?"),
            ("listener.name.external.plain.connections.max.reauth.ms", "it is read at the start"),
            ("listener.name.external.sasl.server.max.receive.size", "it is read at the start"),
            ("listener.name.external.log.retention.ms", "Set log.retention.ms without the prefix"),
            ("listener.name.external.alter.config.policy.class.name", "without the prefix"),
        ] {
            let said = says(name, false);
            assert!(
                said.starts_with(&format!("{name} would have no effect: ")) && said.contains(reason),
                "{said}"
            );
        }
        for name in [
            "no.such.key",
            "com.example.plugin.setting",
            "log.retention.ms",
            "leader.replication.throttled.rate",
            "sasl.enabled.mechanisms",
            "listener.name.external.sasl.enabled.mechanisms",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config",
            "listener.name.sasl_ssl.ssl.keystore.location",
            "listener.name.controller.ssl.principal.mapping.rules",
            "listener.name.external.max.connections",
        ] {
            assert_eq!(says(name, false), "", "{name}");
        }
        assert_eq!(says("listener.name.elsewhere.max.connections", true), "", "other brokers may have it");
        assert!(says("listener.name.externl.max.connections", true).contains("is named externl"));
        assert!(
            check_effect("listener.name.typo.ssl.keystore.location", None, false).is_ok(),
            "a controller"
        );
        assert!(check_effect("super.users", None, false).is_err());
    }

    #[test]
    fn several_keys_are_named_together() {
        let configs = [("broker.id", "1"), ("log.retention.ms", "1"), ("node.id", "1")];
        let refusal = check_dynamic_configs(configs.into_iter(), true).expect_err("refused");
        assert_eq!(refusal.to_string(), "Cannot update these configs dynamically: [broker.id, node.id]");
    }
}
