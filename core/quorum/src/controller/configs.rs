//! AlterConfigs and IncrementalAlterConfigs: what may be set on topics, brokers, groups and client-metrics
//! subscriptions.
//!
//! Log levels (BROKER_LOGGER) never come here: a broker keeps its own.
//!
//! Sources: KIP-133, KIP-339, KIP-966; Kafka `ConfigurationControlManager`, `ControllerConfigurationValidator`,
//! `ControllerApis.incrementalAlterConfigs`, `ConfigAdminManager`.

use std::collections::BTreeMap;

use barnabas_base::{BrokerId, ErrorCode, Map, Set, Text, check_topic_name};
use barnabas_metadata::config::{
    self, BrokerConfig, ConfigKey, ConfigSource, Kind, Properties, TopicConfig, Unit, topic_synonyms,
};
use barnabas_metadata::{Image, Resource, ResourceType};
use barnabas_wire::messages::alter_configs_request::AlterConfigsResource as ReplacedResource;
use barnabas_wire::messages::alter_configs_response::AlterConfigsResourceResponse as Altered;
use barnabas_wire::messages::incremental_alter_configs_request::AlterConfigsResource;
use barnabas_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse as IncrementallyAltered;
use barnabas_wire::messages::{
    AlterConfigsRequest, AlterConfigsResponse, ClearElrRecord, ConfigRecord, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, ResponseBody,
};
use barnabas_wire::{MetadataRecord, Str};

use super::{Case, Outcome, Refusal, Sentences, limits};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;
const MIN_ISR: &str = "min.insync.replicas";
const UNCLEAN: &str = "unclean.leader.election.enable";
/// Kafka's limit on a value, which its older formats could not carry beyond.
const VALUE_BYTES_MAX: usize = i16::MAX as usize;

/// One change of one key: `None` unsets it.
type KeyChanges = BTreeMap<Text, Option<Text>>;

/// A resource of the request, and why it stays as it is.
type Decided = (i8, Str, Option<Refusal>);

pub(super) fn alter(case: &mut Case<'_>, request: &AlterConfigsRequest) -> Outcome {
    let id = |resource: &ReplacedResource| (resource.resource_type, resource.resource_name.clone());
    let image = case.image;
    let changes = |target: &Resource, resource: &ReplacedResource| all_changes(image, target, resource);
    alter_each(case, &request.resources, request.validate_only, id, changes, |decided| {
        let mut sentences = Sentences::default();
        let answer = |(resource_type, resource_name, refusal): &Decided| {
            let (error_code, error_message) = sentences.fields(refusal.as_ref());
            let resource_name = resource_name.clone();
            Altered {
                error_code,
                error_message,
                resource_type: *resource_type,
                resource_name,
                ..Altered::default()
            }
        };
        let responses = decided.iter().map(answer).collect();
        AlterConfigsResponse { responses, ..AlterConfigsResponse::default() }.into()
    })
}

pub(super) fn incremental_alter(case: &mut Case<'_>, request: &IncrementalAlterConfigsRequest) -> Outcome {
    let id = |resource: &AlterConfigsResource| (resource.resource_type, resource.resource_name.clone());
    let image = case.image;
    let changes =
        |target: &Resource, resource: &AlterConfigsResource| incremental_changes(image, target, resource);
    alter_each(case, &request.resources, request.validate_only, id, changes, |decided| {
        let mut sentences = Sentences::default();
        let answer = |(resource_type, resource_name, refusal): &Decided| {
            let (error_code, error_message) = sentences.fields(refusal.as_ref());
            let resource_name = resource_name.clone();
            IncrementallyAltered {
                error_code,
                error_message,
                resource_type: *resource_type,
                resource_name,
                ..IncrementallyAltered::default()
            }
        };
        let responses = decided.iter().map(answer).collect();
        IncrementalAlterConfigsResponse { responses, ..IncrementalAlterConfigsResponse::default() }.into()
    })
}

/// What both requests do: each resource by itself, all of its changes or none.
fn alter_each<R>(
    case: &mut Case<'_>,
    resources: &[R],
    validate_only: bool,
    id: impl Fn(&R) -> (i8, Str),
    changes: impl Fn(&Resource, &R) -> Result<KeyChanges, Refusal>,
    respond: fn(&[Decided]) -> ResponseBody,
) -> Outcome {
    let twice = named_twice(resources.iter().map(&id));
    let within_bounds = limits::check_named(case.config, resources.len(), "resources");
    let mut records = Vec::new();
    let mut decided: Vec<Decided> = Vec::new();
    for resource in resources {
        let key = id(resource);
        let done = match &within_bounds {
            Err(refusal) => Err(refusal.clone()),
            Ok(()) if twice.contains_key(&key) => Err(appear_once()),
            Ok(()) => resource_of(key.0, &key.1),
        };
        let done = done.and_then(|target| {
            let changes = changes(&target, resource)?;
            change(case, &target, changes, &mut records)
        });
        decided.push((key.0, key.1, done.err()));
    }
    if validate_only {
        records.clear();
    }
    clear_elr(case.image, &mut records);
    let response = respond(&decided);
    Outcome::atomic(records, response, move |why| {
        let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
        decided.iter_mut().for_each(|each| each.2 = Some(refusal.clone()));
        respond(&decided)
    })
}

/// What each key will be: what is not named goes back to its default.
fn all_changes(image: &Image, target: &Resource, resource: &ReplacedResource) -> Result<KeyChanges, Refusal> {
    limits::check_configs_named(resource.configs.len())?;
    let mut changes = KeyChanges::new();
    for config in &resource.configs {
        let Some(value) = &config.value else {
            let message = format!("Null value not supported for : {}", config.name);
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        };
        changes.insert(config.name.text(), Some(value.text()));
    }
    let current = image.configs.of(target);
    for key in current.into_iter().flat_map(|values| values.keys()) {
        changes.entry(key.clone()).or_insert(None);
    }
    Ok(changes)
}

fn named_twice(named: impl Iterator<Item = (i8, Str)>) -> Map<(i8, Str), u32> {
    let mut count: Map<(i8, Str), u32> = Map::default();
    for key in named {
        *count.entry(key).or_default() += 1;
    }
    count.retain(|_, count| *count > 1);
    count
}

fn appear_once() -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, "Each resource must appear at most once.")
}

fn resource_of(kind: i8, name: &Str) -> Result<Resource, Refusal> {
    match ResourceType::from_code(kind) {
        Some(ResourceType::BrokerLogger) => {
            let message = "log levels are changed at their broker, not at the controller";
            Err(Refusal::new(ErrorCode::InvalidRequest, message))
        }
        Some(kind) => Ok(Resource::new(kind, name.text())),
        None => {
            let message = format!("Unknown resource type {kind}.");
            Err(Refusal::new(ErrorCode::UnsupportedVersion, message))
        }
    }
}

/// What each key will be, operations on lists carried out.
fn incremental_changes(
    image: &Image,
    target: &Resource,
    resource: &AlterConfigsResource,
) -> Result<KeyChanges, Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    limits::check_configs_named(resource.configs.len())?;
    let mut changes = KeyChanges::new();
    for config in &resource.configs {
        let key = config.name.text();
        let value = match (config.config_operation, &config.value) {
            (DELETE, _) => None,
            (SET | APPEND | SUBTRACT, None) => {
                return invalid(format!("Null value not supported for : {key}"));
            }
            (SET, Some(value)) => Some(value.text()),
            (APPEND, Some(value)) => Some(edit_list(image, target, &key, value, true)?),
            (SUBTRACT, Some(value)) => Some(edit_list(image, target, &key, value, false)?),
            (other, _) => return invalid(format!("Unknown operation type {other}")),
        };
        if changes.insert(key.clone(), value).is_some() {
            return invalid(format!("Error due to duplicate config keys: {key}"));
        }
    }
    Ok(changes)
}

/// The list under `key` with entries added or taken away.
fn edit_list(image: &Image, target: &Resource, key: &Text, edit: &str, add: bool) -> Result<Text, Refusal> {
    let known = config_key(target.kind, key);
    if known.is_none_or(|known| known.kind != Kind::List) {
        let operation = if add { "APPEND" } else { "SUBTRACT" };
        let message = format!("Can't {operation} to key {key} because its type is not LIST.");
        return Err(Refusal::new(ErrorCode::InvalidConfig, message));
    }
    let current = image.configs.value(target, key).map(|value| &**value);
    let current = current.or_else(|| known.and_then(ConfigKey::default_value)).unwrap_or_default();
    let mut entries: Vec<&str> = current.split(',').filter(|entry| !entry.is_empty()).collect();
    if add {
        let mut known: Set<&str> = entries.iter().copied().collect();
        entries.extend(edit.split(',').filter(|entry| known.insert(entry)));
    } else {
        // Each takes one away.
        let mut gone: Map<&str, usize> = Map::default();
        edit.split(',').for_each(|entry| *gone.entry(entry).or_default() += 1);
        entries.retain(|entry| match gone.get_mut(entry) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        });
    }
    Ok(Text::from(entries.join(",")))
}

fn config_key(kind: ResourceType, key: &str) -> Option<&'static ConfigKey> {
    let of = match kind {
        ResourceType::Topic => config::Resource::Topic,
        ResourceType::Broker => config::Resource::Broker,
        ResourceType::Group => config::Resource::Group,
        ResourceType::ClientMetrics => config::Resource::ClientMetrics,
        ResourceType::BrokerLogger => return None,
    };
    of.key(key)
}

/// Adds the records of one resource's changes, all of them or none.
fn change(
    case: &mut Case<'_>,
    target: &Resource,
    changes: KeyChanges,
    records: &mut Vec<MetadataRecord>,
) -> Result<(), Refusal> {
    let mut all: Properties = match case.image.configs.of(target) {
        None => Properties::new(),
        Some(values) => values.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
    };
    for (key, value) in &changes {
        check_change(case.image, target, key, value.as_ref())?;
        match value {
            Some(value) => all.insert(key.clone(), value.clone()),
            None => all.remove(key),
        };
    }
    check_resource(case, target, &all, &changes)?;
    case.room.take_configs(case.image, target, &all)?;
    for (key, value) in changes {
        let same = case.image.configs.value(target, &key) == value.as_ref();
        // A broker's own is written even if it is the same: it makes the broker read the file behind it again
        // (KAFKA-14136).
        if !same || target.kind == ResourceType::Broker {
            records.push(config_record(target.kind, &Str::from(&target.name), &key, value.as_ref()));
        }
    }
    Ok(())
}

fn check_change(image: &Image, target: &Resource, key: &str, value: Option<&Text>) -> Result<(), Refusal> {
    let refuse = |message: &str| Err(Refusal::new(ErrorCode::InvalidConfig, message));
    let broker = target.kind == ResourceType::Broker;
    if broker && key == MIN_ISR && image.features.elr_enabled() {
        if !target.name.is_empty() {
            return refuse("Broker-level min.insync.replicas cannot be altered while ELR is enabled.");
        }
        if value.is_none() {
            return refuse("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.");
        }
    }
    if broker && key == "cordoned.log.dirs" && !image.metadata_version().has_cordoned_log_dirs() {
        return refuse("cordoned.log.dirs needs metadata.version 4.3-IV0 or later");
    }
    if value.is_some_and(|value| value.len() > VALUE_BYTES_MAX) {
        return refuse(
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        );
    }
    Ok(())
}

/// Whether the resource exists, and may have all these values.
fn check_resource(
    case: &Case<'_>,
    target: &Resource,
    all: &Properties,
    changes: &KeyChanges,
) -> Result<(), Refusal> {
    let name = &*target.name;
    match target.kind {
        ResourceType::Topic => {
            if name.is_empty() {
                let message = "Default topic resources are not allowed.";
                return Err(Refusal::new(ErrorCode::InvalidRequest, message));
            }
            check_topic_name(name)
                .map_err(|error| Refusal::new(ErrorCode::InvalidTopicException, error.to_string()))?;
            check_topic_values(case.config, all)?;
            if case.image.topics.by_name(name).is_none() {
                let message = format!("The topic '{name}' does not exist.");
                return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message));
            }
            Ok(())
        }
        ResourceType::Broker => check_broker(case, name, changes),
        ResourceType::Group | ResourceType::ClientMetrics => {
            if name.is_empty() {
                let kind = if target.kind == ResourceType::Group { "group" } else { "client metrics" };
                let message = format!("Default {kind} resources are not allowed.");
                return Err(Refusal::new(ErrorCode::InvalidRequest, message));
            }
            let of_config =
                |error: config::GroupConfigRefusal| Refusal::new(ErrorCode::InvalidConfig, error.to_string());
            if target.kind == ResourceType::Group {
                return config::validate_group_configs(all, case.config).map_err(of_config);
            }
            config::validate_client_metrics_configs(all).map_err(of_config)?;
            barnabas_telemetry::check_match(all.get("match").map_or("", |value| value))
                .map_err(|error| Refusal::new(ErrorCode::InvalidConfig, error.to_string()))
        }
        ResourceType::BrokerLogger => Ok(()),
    }
}

fn check_broker(case: &Case<'_>, broker: &str, changes: &KeyChanges) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    if !broker.is_empty() {
        let Ok(id) = broker.parse::<i32>() else {
            return invalid("Unable to parse broker name as a base 10 number.".into());
        };
        if id < 0 {
            return invalid("Invalid negative broker ID.".into());
        }
        if !is_node(case, BrokerId(id)) {
            let message = format!("No node with id {id} found.");
            return Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, message));
        }
    }
    let set = changes.iter().filter_map(|(key, value)| Some((&**key, &**value.as_ref()?)));
    // Brokers have checked it already; a controller that is asked directly refuses the same (Kafka's takes it, and no
    // broker heeds it).
    if let Err(refusal) = config::check_dynamic_configs(set, !broker.is_empty()) {
        return invalid(refusal.to_string());
    }
    Ok(())
}

/// Whether a broker or a controller has this id: controllers register from metadata.version 3.7 on, and before that
/// stand in `controller.quorum.voters` alone.
///
/// # Source
/// Kafka `QuorumController.ConfigResourceExistenceChecker`.
fn is_node(case: &Case<'_>, id: BrokerId) -> bool {
    let cluster = &case.image.cluster;
    let is_registered = cluster.broker(id).is_some() || cluster.controller(id).is_some();
    let voters = || case.config.list("controller.quorum.voters");
    is_registered || voters().iter().any(|voter| voter.split('@').next() == Some(&*id.to_string()))
}

/// Whether a topic may have these values, all that it will have.
pub(super) fn check_topic_values(config: &BrokerConfig, all: &Properties) -> Result<(), Refusal> {
    config::validate_topic_configs(all, config.topic_defaults())
        .map_err(|refusal| Refusal::new(ErrorCode::InvalidConfig, refusal.to_string()))
}

/// Whether a record makes unclean elections of a topic, or of many, a matter of course.
pub(super) fn allows_unclean_elections(record: &MetadataRecord) -> bool {
    matches!(record, MetadataRecord::Config(record) if *record.name == *UNCLEAN && record.value.as_deref() == Some("true"))
}

/// A changed minimum makes the eligible replicas of before meaningless (KIP-966).
fn clear_elr(image: &Image, records: &mut Vec<MetadataRecord>) {
    if !image.features.elr_enabled() {
        return;
    }
    let of = |record: &MetadataRecord| match record {
        MetadataRecord::Config(record) if record.name == *MIN_ISR => {
            let topic = record.resource_type == ResourceType::Topic.code();
            let topic_name = if topic { record.resource_name.clone() } else { Str::default() };
            Some(ClearElrRecord { topic_name, ..ClearElrRecord::default() }.into())
        }
        _ => None,
    };
    let clears: Vec<MetadataRecord> = records.iter().filter_map(of).collect();
    records.extend(clears);
}

/// What must be so before ELR is switched on: one minimum for the whole cluster, in the log, and none for single
/// brokers (KIP-966).
pub(super) fn for_elr(case: &Case<'_>) -> Vec<MetadataRecord> {
    let key = Text::from(MIN_ISR);
    let of_brokers = case.image.configs.of_kind(ResourceType::Broker);
    let with_minimum = of_brokers.filter(|(_, values)| values.contains_key(MIN_ISR));
    let named: Vec<&Resource> = with_minimum.map(|(resource, _)| resource).collect();
    let mut records = Vec::new();
    if !named.iter().any(|resource| resource.name.is_empty()) {
        let given = case.config.given().get(MIN_ISR).unwrap_or("1");
        records.push(config_record(ResourceType::Broker, &Str::default(), &key, Some(&Text::from(given))));
    }
    for resource in named.iter().filter(|resource| !resource.name.is_empty()) {
        records.push(config_record(ResourceType::Broker, &Str::from(&resource.name), &key, None));
    }
    records
}

pub(super) fn config_record(
    kind: ResourceType,
    resource: &Str,
    key: &Text,
    value: Option<&Text>,
) -> MetadataRecord {
    ConfigRecord {
        resource_type: kind.code(),
        resource_name: resource.clone(),
        name: Str::from(key),
        value: value.map(Str::from),
        ..ConfigRecord::default()
    }
    .into()
}

/// A topic's effective values, typed.
pub(super) fn topic_values(
    image: &Image,
    config: &BrokerConfig,
    topic: &Text,
) -> std::sync::Arc<TopicConfig> {
    let own = image.configs.of(&Resource::topic(topic.clone()));
    let own = own.into_iter().flat_map(|values| values.iter());
    config.topic_config(own.map(|(key, value)| (&**key, &**value)))
}

/// One effective config of a topic.
pub(super) struct Effective {
    pub name: &'static str,
    pub value: Option<String>,
    pub source: ConfigSource,
}

/// Every config of a topic with these of its own, by name, and where each value comes from. Internal ones are shown
/// where they are set.
pub(super) fn effective_topic_configs<'a>(
    config: &'a BrokerConfig,
    own: &'a Properties,
) -> impl Iterator<Item = Effective> + 'a {
    let is_shown = |key: &&ConfigKey| !key.internal || own.contains_key(key.name);
    config::Resource::Topic.keys().filter(is_shown).map(move |key| {
        let name = key.name;
        if let Some(value) = own.get(name) {
            return Effective { name, value: Some(value.to_string()), source: ConfigSource::Topic };
        }
        let of_broker = topic_synonyms(name).iter().find_map(|&(synonym, unit)| {
            let mut levels = config.levels(synonym).into_iter().filter(|level| level.name == synonym);
            let level = levels.next().filter(|level| level.source != ConfigSource::Default)?;
            let in_ms = |value: &str| value.trim().parse::<i64>().map(|value| unit.to_ms(value).to_string());
            let value = if unit == Unit::Same { Ok(level.value.to_owned()) } else { in_ms(level.value) };
            Some(Effective { name, value: value.ok(), source: level.source })
        });
        of_broker.unwrap_or_else(|| Effective {
            name,
            value: key.default_value().map(str::to_owned),
            source: ConfigSource::Default,
        })
    })
}
