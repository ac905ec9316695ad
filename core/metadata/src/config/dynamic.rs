//! Which configurations of a broker may be set while it runs: for one broker, for all, for one listener.
//!
//! Order of checks and words: Kafka's `DynamicBrokerConfig.validateConfigs`. What each key is, key by key as Apache
//! Kafka has it, stands in `dynamic_keys.tsv`, and a test compares.

use super::key::{ConfigKey, Scope};
use super::properties::base_name;
use super::{Resource, Status, ValueError, check, check_broker_rate, status};

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
    fn several_keys_are_named_together() {
        let configs = [("broker.id", "1"), ("log.retention.ms", "1"), ("node.id", "1")];
        let refusal = check_dynamic_configs(configs.into_iter(), true).expect_err("refused");
        assert_eq!(refusal.to_string(), "Cannot update these configs dynamically: [broker.id, node.id]");
    }
}
