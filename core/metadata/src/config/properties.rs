//! A node's settings as given, checked one by one; unknown keys named, with the nearest known one.
//!
//! Not here: the syntax of `.properties` files and the command line (shell), settings that contradict each other
//! (contradictions.rs, and the shell for what it reads itself).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use barnabas_base::Text;

use super::status::{TOPOLOGY_PLUG_IN, is_built_in_plug_in, of_authorizer, of_plug_in, refused_authorizer};
use super::suggest::{misspelled, near_listener, protects};
use super::{Resource, Status, ValueError, check, nearest, status};

/// Names and values.
pub type Properties = BTreeMap<Text, Text>;

/// Settings of the file and the command line, checked one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StaticConfig {
    values: Arc<Properties>,
}

/// Something the operator should know, that does not keep the node from starting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("unknown configuration key {name}{}", suggestion(*nearest))]
    Unknown { name: String, nearest: Option<&'static str> },
    #[error("{name} has no effect: {reason}")]
    NoEffect { name: String, reason: &'static str },
    #[error("{name} has no effect: no listener of this node is named {listener}")]
    NoListener { name: String, listener: String },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |key| format!("; did you mean {key}?"))
}

/// Why a node's settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigRefusal {
    #[error(transparent)]
    Value(#[from] ValueError),
    #[error("broker.id is {broker_id} and node.id is {node_id}: they mean the same; leave broker.id out")]
    NodeIds { broker_id: String, node_id: String },
    /// Kafka starts without what the key was to protect.
    #[error(
        "{name} is no configuration key, and {meant} would protect this node: correct the name, or remove the line"
    )]
    Misspelled { name: String, meant: String },
    /// Ignoring an authorizer, or a policy, would open the cluster to everybody behind the operator's back.
    #[error("{name} is set to {value}, but {reason}; remove the key to accept this")]
    Unprotected { name: String, value: String, reason: &'static str },
}

impl StaticConfig {
    /// Checks each setting by itself. What contradicts another: [`contradictions`](super::contradictions).
    ///
    /// # Errors
    /// Every value that cannot be, not only the first.
    pub fn check(given: Properties) -> Result<(Self, Vec<Warning>), Vec<ConfigRefusal>> {
        let mut warnings = Vec::new();
        let mut refusals = Vec::new();
        let authorizer = given.get(AUTHORIZER).map_or("", |class| class.trim());
        if let Some(reason) = refused_authorizer(authorizer).filter(|_| !authorizer.is_empty()) {
            let (name, value) = (AUTHORIZER.to_owned(), authorizer.to_owned());
            refusals.push(ConfigRefusal::Unprotected { name, value, reason });
        }
        let listeners = all_listeners(&given);
        for (name, value) in &given {
            let Some(key) = Resource::Broker.key(base_name(name)) else {
                if let Some(meant) = misspelled(name) {
                    refusals.push(ConfigRefusal::Misspelled { name: name.to_string(), meant });
                    continue;
                }
                if authorizer.is_empty() || !of_authorizer(name) {
                    warnings.extend(warning_of_unknown(name));
                }
                continue;
            };
            if let Err(refusal) = check(key, value) {
                refusals.push(refusal.into());
                continue;
            }
            let (name, value) = (name.to_string(), value.trim());
            // A class that is not named is Kafka's null.
            if value == key.default_value().unwrap_or_default() {
                continue;
            }
            match of_no_listener(&name, key.name, &listeners) {
                Some(Ok(warning)) => warnings.push(warning),
                Some(Err(refusal)) => refusals.push(refusal),
                None => {}
            }
            match status(Resource::Broker, key) {
                Status::Refused(reason) => {
                    refusals.push(ConfigRefusal::Unprotected { name, value: value.to_owned(), reason });
                }
                Status::NotAvailable(reason) => warnings.push(Warning::NoEffect { name, reason }),
                Status::Emulated(reason) if key.name == TOPOLOGY_PLUG_IN && !is_built_in_plug_in(value) => {
                    warnings.push(Warning::NoEffect { name, reason });
                }
                Status::Applied | Status::Emulated(_) | Status::Ignored(_) => {}
            }
        }
        if let (Some(broker_id), Some(node_id)) = (given.get("broker.id"), given.get("node.id"))
            && broker_id.trim() != node_id.trim()
            && broker_id.trim() != "-1"
        {
            let (broker_id, node_id) = (broker_id.to_string(), node_id.to_string());
            refusals.push(ConfigRefusal::NodeIds { broker_id, node_id });
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        Ok((Self { values: Arc::new(with_both_ids(given)) }, warnings))
    }

    /// What the file or the command line says, blanks around it taken off.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|value| value.trim())
    }

    /// Every setting as given, unknown ones included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// `broker.id` and `node.id` are synonyms: setting one sets both (Kafka `populateSynonyms`).
fn with_both_ids(mut given: Properties) -> Properties {
    for (from, to) in [("broker.id", "node.id"), ("node.id", "broker.id")] {
        if let Some(id) = given.get(from).cloned() {
            given.entry(Text::from(to)).or_insert(id);
        }
    }
    given
}

/// The key behind a listener's own setting: `listener.name.external.ssl.client.auth` → `ssl.client.auth`; with a
/// mechanism (`listener.name.external.plain.sasl.jaas.config`) that too is taken off.
pub(super) fn base_name(name: &str) -> &str {
    let Some((_, rest)) = name.strip_prefix(LISTENER_PREFIX).and_then(|rest| rest.split_once('.')) else {
        return name;
    };
    if Resource::Broker.key(rest).is_some() {
        return rest;
    }
    match rest.split_once('.') {
        Some((_, key)) if Resource::Broker.key(key).is_some_and(is_of_mechanism) => key,
        _ => rest,
    }
}

/// The listeners that the settings name, in small letters, as prefixes have them.
fn all_listeners(given: &Properties) -> BTreeSet<String> {
    let keys = [
        "advertised.listeners",
        "controller.listener.names",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
    ];
    let mut all = listener_names(|key| given.get(key).map(|value| &**value), &keys);
    // Beside Kafka's: each is set by a key of its own, and has this name as a listener's.
    if !all.is_empty() {
        let beside = ["amqp", "console", "mq"].into_iter();
        all.extend(beside.filter(|name| given.contains_key(&*format!("{name}.listener"))).map(str::to_owned));
    }
    all
}

/// The listeners, in small letters, that these keys name.
pub(super) fn listener_names<'a>(get: impl Fn(&str) -> Option<&'a str>, keys: &[&str]) -> BTreeSet<String> {
    let entries = keys.iter().flat_map(|key| get(key).unwrap_or_default().split(','));
    // NAME, NAME:PROTOCOL, NAME://HOST:PORT
    let names = entries.map(|entry| entry.split_once(':').map_or(entry, |(name, _)| name).trim());
    names.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect()
}

/// A protecting key of a listener that is not there: refused if it is almost another one's, else warned of. Kafka
/// ignores it. A file may name listeners that its node does not have (yet), so no other key is looked at.
fn of_no_listener(
    name: &str,
    key: &str,
    listeners: &BTreeSet<String>,
) -> Option<Result<Warning, ConfigRefusal>> {
    let (listener, rest) = name.strip_prefix(LISTENER_PREFIX)?.split_once('.')?;
    if !protects(key) || listeners.is_empty() || listeners.contains(listener) {
        return None;
    }
    let name = name.to_owned();
    Some(match near_listener(listener, listeners) {
        Some(near) => {
            Err(ConfigRefusal::Misspelled { name, meant: format!("{LISTENER_PREFIX}{near}.{rest}") })
        }
        None => Ok(Warning::NoListener { name, listener: listener.to_owned() }),
    })
}

/// Whether a key may be set for one mechanism of a listener.
fn is_of_mechanism(key: &super::ConfigKey) -> bool {
    key.name.starts_with("sasl.") || key.name == "connections.max.reauth.ms"
}

const AUTHORIZER: &str = "authorizer.class.name";
const LISTENER_PREFIX: &str = "listener.name.";

/// Of a setting that is no key.
fn warning_of_unknown(name: &str) -> Option<Warning> {
    let name = name.to_owned();
    match of_plug_in(&name) {
        None => Some(Warning::Unknown { nearest: nearest(Resource::Broker, &name), name }),
        Some(Status::NotAvailable(reason)) => Some(Warning::NoEffect { name, reason }),
        Some(_) => None,
    }
}
