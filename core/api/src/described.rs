//! Configurations as DescribeConfigs and CreateTopics show them: value in force, where it comes from, what else says
//! so.
//!
//! Source: Kafka 4.4 `ConfigHelper`.

use std::collections::BTreeMap;

use barnabas_metadata::config::{
    BrokerConfig, ConfigKey, ConfigSource, Kind, Level, Resource, Scope, broker_rate, canonical,
    group_synonym, topic_synonyms,
};

/// The type that DescribeConfigs gives a key that is not in the tables.
const UNKNOWN_TYPE: i8 = 0;

/// One configuration of one resource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub name: String,
    /// `None` for Kafka's null, and for secrets.
    pub value: Option<String>,
    pub source: ConfigSource,
    pub read_only: bool,
    pub is_sensitive: bool,
    pub kind: i8,
    pub doc: &'static str,
    pub synonyms: Vec<Synonym>,
}

/// A level that has a value for the configuration, or for one that says the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Synonym {
    pub name: String,
    pub value: Option<String>,
    pub source: ConfigSource,
}

fn synonyms(levels: Vec<Level<'_>>, is_sensitive: bool) -> Vec<Synonym> {
    let of = |level: Level<'_>| Synonym {
        name: level.name.to_owned(),
        value: (!is_sensitive).then(|| level.value.to_owned()),
        source: level.source,
    };
    levels.into_iter().map(of).collect()
}

fn entry(key: &'static ConfigKey, value: Option<&str>, synonyms: Vec<Synonym>) -> Entry {
    Entry {
        name: key.name.to_owned(),
        value: value.filter(|_| !key.is_sensitive()).map(|value| canonical(key, value)),
        source: synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source),
        read_only: false,
        is_sensitive: key.is_sensitive(),
        kind: key.kind.wire_id(),
        doc: key.doc,
        synonyms,
    }
}

/// Levels of a node's loggers.
pub(crate) fn logger_entries(levels: crate::loggers::Levels) -> Vec<Entry> {
    let shown = levels.into_iter().map(|(logger, level)| Entry {
        name: logger.to_owned(),
        value: Some(level.to_owned()),
        source: ConfigSource::DynamicBrokerLogger,
        read_only: false,
        is_sensitive: false,
        kind: UNKNOWN_TYPE,
        doc: "",
        synonyms: Vec::new(),
    });
    shown.collect()
}

/// A topic's configurations, `own` being those that are its own.
pub(crate) fn topic_entries<'a>(own: &dyn Fn(&str) -> Option<&'a str>, broker: &BrokerConfig) -> Vec<Entry> {
    // Internal ones are shown where they are set, as in Kafka.
    let shown = Resource::Topic.keys().filter(|key| !key.internal || own(key.name).is_some());
    let described = shown.map(|key| {
        let set = own(key.name);
        let levels = topic_synonyms(key.name).first().map(|(name, _)| broker.levels(name));
        let mut synonyms = synonyms(levels.unwrap_or_default(), key.is_sensitive());
        if let Some(value) = set {
            let value = Some(canonical(key, value));
            synonyms.insert(0, Synonym { name: key.name.to_owned(), value, source: ConfigSource::Topic });
        }
        let from_broker = topic_value(key, broker);
        entry(key, set.or(from_broker.as_deref()), synonyms)
    });
    described.collect()
}

/// The value of a topic key for a topic that sets nothing itself.
fn topic_value(key: &ConfigKey, broker: &BrokerConfig) -> Option<String> {
    for (name, unit) in topic_synonyms(key.name) {
        let Some(value) = broker.value(name) else { continue };
        return match value.trim().parse::<i64>() {
            Ok(number) => Some(unit.to_ms(number).to_string()),
            Err(_) => Some(value.to_owned()),
        };
    }
    key.default_value().map(str::to_owned)
}

/// A group's configurations.
pub(crate) fn group_entries<'a>(own: &dyn Fn(&str) -> Option<&'a str>, broker: &BrokerConfig) -> Vec<Entry> {
    let shown = Resource::Group.keys().filter(|key| !key.internal || own(key.name).is_some());
    let described = shown.map(|key| {
        let set = own(key.name);
        let mut levels = match group_synonym(key.name) {
            Some(name) => synonyms(broker.levels(name), key.is_sensitive()),
            None => default_level(key),
        };
        if let Some(value) = set {
            let value = Some(canonical(key, value));
            levels.insert(0, Synonym { name: key.name.to_owned(), value, source: ConfigSource::Group });
        }
        let from_broker = group_synonym(key.name).and_then(|name| broker.value(name));
        entry(key, set.or(from_broker).or(key.default_value()), levels)
    });
    described.collect()
}

fn default_level(key: &ConfigKey) -> Vec<Synonym> {
    let level = key.default_value().map(|value| Synonym {
        name: key.name.to_owned(),
        value: Some(value.to_owned()),
        source: ConfigSource::Default,
    });
    level.into_iter().collect()
}

/// A client-metrics subscription's configurations.
pub(crate) fn client_metrics_entries<'a>(own: &dyn Fn(&str) -> Option<&'a str>) -> Vec<Entry> {
    let described = Resource::ClientMetrics.keys().map(|key| {
        let set = own(key.name);
        let level = set.map(|value| Synonym {
            name: key.name.to_owned(),
            value: Some(canonical(key, value)),
            source: ConfigSource::ClientMetrics,
        });
        entry(key, set.or(key.default_value()), level.into_iter().collect())
    });
    described.collect()
}

/// Everything in force on this broker, unknown keys and replication rates included where they are set.
pub(crate) fn broker_entries(broker: &BrokerConfig) -> Vec<Entry> {
    let (given, dynamic) = (broker.given(), broker.dynamic());
    let is_set = |name: &str| {
        given.get(name).is_some() || dynamic.broker.contains_key(name) || dynamic.default.contains_key(name)
    };
    let known = Resource::Broker.keys().filter(|key| !key.internal || is_set(key.name));
    let known = known.map(|key| broker_entry(key.name, broker.value(key.name), broker));
    let levels = [&dynamic.broker, &dynamic.default];
    let dynamic = levels.into_iter().flatten().map(|(name, value)| (&**name, &**value));
    // The broker's own value hides the default for all brokers, and that hides the file's.
    let mut others = BTreeMap::new();
    for (name, value) in dynamic.chain(given.iter()).filter(|(name, _)| Resource::Broker.key(name).is_none())
    {
        others.entry(name).or_insert(value);
    }
    let others = others.into_iter().map(|(name, value)| broker_entry(name, Some(value), broker));
    known.chain(others).collect()
}

/// What was set for all brokers.
pub(crate) fn broker_default_entries(broker: &BrokerConfig) -> Vec<Entry> {
    let described = broker.dynamic().default.iter().map(|(name, value)| {
        let mut entry = broker_entry(name, Some(value), broker);
        entry.synonyms.retain(|synonym| synonym.source == ConfigSource::DynamicDefaultBroker);
        entry.source = entry.synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source);
        entry
    });
    described.collect()
}

fn broker_entry(name: &str, value: Option<&str>, broker: &BrokerConfig) -> Entry {
    let rate = broker_rate(name);
    let key = Resource::Broker.key(name).or_else(|| Resource::Broker.listener_key(name)).or(rate);
    // An unknown key may hold a secret.
    let is_sensitive = key.is_none_or(ConfigKey::is_sensitive);
    let synonyms = synonyms(broker.levels(name), is_sensitive);
    let shown = value.filter(|_| !is_sensitive);
    Entry {
        name: name.to_owned(),
        value: shown.map(|value| match key {
            Some(key) if key.kind != Kind::String => canonical(key, value),
            _ => value.to_owned(),
        }),
        source: synonyms.first().map_or(ConfigSource::Default, |synonym| synonym.source),
        read_only: rate.is_none()
            && Resource::Broker.key(name).is_none_or(|key| key.scope == Scope::ReadOnly),
        is_sensitive,
        kind: key.map_or(UNKNOWN_TYPE, |key| key.kind.wire_id()),
        doc: key.map_or("", |key| key.doc),
        synonyms,
    }
}
