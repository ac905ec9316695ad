//! Checks of AlterConfigs and IncrementalAlterConfigs that a broker makes before the controller is asked.
//!
//! Source: Kafka 4.4 `ConfigAdminManager.preprocess`, `DynamicBrokerConfig.validate`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{BrokerId, ErrorCode, Map, Set, Text};
use barnabas_metadata::config::{
    BrokerConfig, DynamicConfigs, Kind, Resource as Keys, check_cordoned_log_dirs, check_dynamic_configs,
    check_effect, contradictions, listeners_of,
};
use barnabas_metadata::{Resource, ResourceType};
use barnabas_security::Operation as Permitted;
use barnabas_wire::Str;

use crate::access::refusal;
use crate::{Context, Refusal};

const CORDONED: &str = "cordoned.log.dirs";

/// How an AlterConfigs or IncrementalAlterConfigs reached this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A client sent it to this broker.
    ToBroker,
    /// A broker checked it and forwards it to this controller.
    ThroughBroker,
    /// A client sent it to this controller.
    ToController,
}

/// What happens to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    /// The numbers of `AlterConfigOp.OpType`.
    pub(crate) fn from_code(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Set,
            1 => Self::Delete,
            2 => Self::Append,
            3 => Self::Subtract,
            _ => return None,
        })
    }
}

/// One key's change. `None`: the request names an operation that does not exist.
#[derive(Debug, Clone)]
pub(crate) struct Change<'a> {
    pub name: &'a Str,
    pub operation: Option<Operation>,
    pub value: Option<&'a Str>,
}

/// Every resource of a request in its order, and what was refused before the controller was asked.
#[derive(Debug)]
pub(crate) struct Resources(Vec<(i8, Str, Option<Refusal>)>);

impl Resources {
    /// Leaves in `asked` what the controller is to be asked for: what `check` lets pass and is named once.
    pub(crate) fn sift<R>(
        asked: &mut Vec<R>,
        id: impl Fn(&R) -> (i8, Str),
        check: impl Fn(&R) -> Result<(), Refusal>,
    ) -> Self {
        let mut times: Map<(i8, Str), u32> = Map::default();
        for resource in asked.iter() {
            *times.entry(id(resource)).or_default() += 1;
        }
        let mut all = Vec::with_capacity(asked.len());
        asked.retain(|resource| {
            let id = id(resource);
            let refusal = if times.get(&id).is_some_and(|times| *times > 1) {
                Some(Refusal::new(ErrorCode::InvalidRequest, "Each resource must appear at most once."))
            } else {
                check(resource).err()
            };
            let is_fine = refusal.is_none();
            all.push((id.0, id.1, refusal));
            is_fine
        });
        Self(all)
    }

    /// Refuses what `asked` still holds for this broker itself.
    pub(crate) fn refuse_own<R>(
        &mut self,
        asked: &mut Vec<R>,
        id: impl Fn(&R) -> (i8, Str),
        node: BrokerId,
        refusal: &Refusal,
    ) {
        let is_own =
            |(kind, name): &(i8, Str)| *kind == ResourceType::Broker.code() && name.parse() == Ok(node.get());
        asked.retain(|resource| {
            let id = id(resource);
            if is_own(&id) {
                let known = self.0.iter_mut().filter(|(kind, name, _)| (*kind, name) == (id.0, &id.1));
                known.for_each(|(_, _, refused)| *refused = Some(refusal.clone()));
            }
            !is_own(&id)
        });
    }

    /// An answer for each, from the controller's or from the reason why there is none.
    pub(crate) fn answer<A>(
        self,
        outcome: Result<Vec<A>, Refusal>,
        id: impl Fn(&A) -> (i8, Str),
        refuse: impl Fn(i8, Str, &Refusal) -> A,
    ) -> Vec<A> {
        let (answered, why_not) = match outcome {
            Ok(answered) => (answered, ErrorCode::UnknownServerError.into()),
            Err(refusal) => (Vec::new(), refusal),
        };
        let mut decided: Map<(i8, Str), A> =
            answered.into_iter().map(|answer| (id(&answer), answer)).collect();
        let each = self.0.into_iter().map(|(kind, name, refusal)| match refusal {
            Some(refusal) => refuse(kind, name, &refusal),
            None => decided.remove(&(kind, name.clone())).unwrap_or_else(|| refuse(kind, name, &why_not)),
        });
        each.collect()
    }
}

/// One resource's changes. `replaces_all`: keys that are not named are unset (AlterConfigs). What a broker may be set
/// to at run time is checked by that broker, and not by the controller to which it forwards the request (Kafka's
/// `ControllerApis` does not check it either).
///
/// A broker looks at the changes before it asks what the client may do; a controller asks first.
pub(crate) fn check_resource(
    kind: i8,
    name: &str,
    changes: &[Change<'_>],
    replaces_all: bool,
    route: Route,
    ctx: &Context<'_>,
) -> Result<(), Refusal> {
    let is_sound = || check_changes(kind, name, changes, replaces_all, route, ctx);
    let is_permitted = || {
        let kind = ResourceType::from_code(kind);
        match kind.and_then(|kind| denied(Permitted::AlterConfigs, kind, name, ctx)) {
            None => Ok(()),
            Some(code) => Err(refusal(code)),
        }
    };
    match route {
        Route::ToBroker => is_sound().and_then(|()| is_permitted()),
        Route::ThroughBroker | Route::ToController => is_permitted().and_then(|()| is_sound()),
    }
}

/// The code that denies the client this operation on a resource's configuration.
///
/// # Source
/// Kafka 4.4 `ConfigHelper.describeConfigs`, `ControllerApis.authorizeAlterResource`.
pub(crate) fn denied(
    operation: Permitted,
    kind: ResourceType,
    name: &str,
    ctx: &Context<'_>,
) -> Option<ErrorCode> {
    let (is_allowed, code) = match kind {
        ResourceType::Topic => (ctx.access.topic(operation, name), ErrorCode::TopicAuthorizationFailed),
        ResourceType::Group => (ctx.access.group(operation, name), ErrorCode::GroupAuthorizationFailed),
        ResourceType::Broker | ResourceType::BrokerLogger | ResourceType::ClientMetrics => {
            (ctx.access.cluster(operation), ErrorCode::ClusterAuthorizationFailed)
        }
    };
    (!is_allowed).then_some(code)
}

fn check_changes(
    kind: i8,
    name: &str,
    changes: &[Change<'_>],
    replaces_all: bool,
    route: Route,
    ctx: &Context<'_>,
) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let mut seen = Set::default();
    if !changes.iter().all(|change| seen.insert(change.name.as_str())) {
        return invalid("Error due to duplicate config keys".to_owned());
    }
    let null =
        changes.iter().filter(|change| change.operation != Some(Operation::Delete) && change.value.is_none());
    let null: Vec<&str> = null.map(|change| change.name.as_str()).collect();
    if !null.is_empty() {
        return invalid(format!("Null value not supported for : {}", null.join(", ")));
    }
    match ResourceType::from_code(kind) {
        Some(ResourceType::Broker) => match route {
            Route::ToBroker => check_broker(name, changes, replaces_all, ctx),
            Route::ThroughBroker => Ok(()),
            Route::ToController => {
                check_effects(name, changes, None, ctx)?;
                check_uncordoning(name, changes, ctx)
            }
        },
        Some(ResourceType::Topic | ResourceType::ClientMetrics | ResourceType::Group) => Ok(()),
        Some(ResourceType::BrokerLogger) => invalid(
            "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER".to_owned(),
        ),
        None => invalid(format!("Unknown resource type {kind}")),
    }
}

fn check_broker(
    name: &str,
    changes: &[Change<'_>],
    replaces_all: bool,
    ctx: &Context<'_>,
) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    if !name.is_empty() {
        match name.parse::<i32>() {
            Err(_) => return invalid(format!("Node id must be an integer, but it is: {name}")),
            Ok(id) if id != ctx.node.get() => {
                return invalid(format!("Unexpected broker id, expected {}, but received {name}", ctx.node));
            }
            Ok(_) => {}
        }
    }
    if changes.iter().any(|change| change.operation.is_none()) {
        return invalid("Unknown operations type".to_owned());
    }
    let mut props = if replaces_all { BTreeMap::new() } else { dynamic_values(name, ctx) };
    for change in changes {
        apply(change, &mut props, ctx)?;
    }
    let all = props.iter().map(|(name, value)| (&**name, &**value));
    check_dynamic_configs(all, !name.is_empty())
        .map_err(|refusal| Refusal::new(ErrorCode::InvalidRequest, refusal.to_string()))?;
    check_effects(name, changes, Some(&listeners_of(ctx.config.given())), ctx)?;
    check_agreement(name, &props, ctx)?;
    let cordoned = props.get(CORDONED).filter(|_| changes.iter().any(|change| change.name == CORDONED));
    let Some(cordoned) = cordoned else { return Ok(()) };
    let dirs = match ctx.config.list("log.dirs") {
        dirs if dirs.is_empty() => ctx.config.list("log.dir"),
        dirs => dirs,
    };
    check_cordoned_log_dirs(cordoned, &dirs).or_else(invalid)
}

/// Whether each change does something. What is so already, in the metadata log or the broker's file, passes.
/// `listeners`: of the broker, where this node is the broker.
fn check_effects(
    broker: &str,
    changes: &[Change<'_>],
    listeners: Option<&BTreeSet<String>>,
    ctx: &Context<'_>,
) -> Result<(), Refusal> {
    let before = dynamic_values(broker, ctx);
    for change in changes.iter().filter(|change| change.operation != Some(Operation::Delete)) {
        let (name, value) = (change.name.as_str(), change.value.map_or("", Str::as_str));
        let is_set = before.get(name).is_some_and(|before| before == value);
        let is_given = ctx.config.given().get(name) == Some(value.trim());
        if !is_set && !is_given {
            check_effect(name, listeners, broker.is_empty())
                .map_err(|refusal| Refusal::new(ErrorCode::InvalidRequest, refusal.to_string()))?;
        }
    }
    Ok(())
}

/// Whether this broker's settings agree with each other after the change. `props`: all that will be set for the
/// resource.
///
/// # Source
/// Kafka `DynamicBrokerConfig.validate`, which makes a `KafkaConfig` of the new values.
fn check_agreement(name: &str, props: &BTreeMap<String, String>, ctx: &Context<'_>) -> Result<(), Refusal> {
    let set =
        props.iter().map(|(key, value)| (Text::from(key.as_str()), Text::from(value.as_str()))).collect();
    let mut dynamic = ctx.config.dynamic().clone();
    if name.is_empty() {
        dynamic.default = set;
    } else {
        dynamic.broker = set;
    }
    let before = contradictions(ctx.config);
    let after = contradictions(&ctx.config.with_dynamic(dynamic));
    match after.iter().find(|one| !one.is_bearable && !before.contains(one)) {
        None => Ok(()),
        Some(one) => {
            let message = format!(
                "Invalid value for configuration {}: {}, such as {}",
                one.key, one.problem, one.example
            );
            Err(Refusal::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// This broker's configuration as it would be, where the changes concern its TLS: it tries them before the controller
/// is asked. `None`: they do not.
///
/// # Source
/// Kafka `ConfigAdminManager.validateBrokerConfigChange`, `DynamicListenerConfig.validateReconfiguration`.
pub(crate) fn security_after(
    (kind, name): (i8, &str),
    changes: &[Change<'_>],
    replaces_all: bool,
    ctx: &Context<'_>,
) -> Option<BrokerConfig> {
    let is_own = kind == ResourceType::Broker.code() && name.parse() == Ok(ctx.node.get());
    if !is_own {
        return None;
    }
    let before = dynamic_values(name, ctx);
    let mut after = if replaces_all { BTreeMap::new() } else { before.clone() };
    for change in changes {
        // What cannot be applied was refused before.
        apply(change, &mut after, ctx).ok()?;
    }
    let named = changes.iter().map(|change| change.name.as_str());
    let gone = before.keys().map(String::as_str).filter(|name| !after.contains_key(*name));
    if !named.chain(gone).any(is_of_security) {
        return None;
    }
    let broker = after.iter().map(|(key, value)| (Text::from(key.as_str()), Text::from(value.as_str())));
    let dynamic = DynamicConfigs { broker: broker.collect(), ..ctx.config.dynamic().clone() };
    Some(ctx.config.with_dynamic(dynamic))
}

/// `ssl.client.auth`, `listener.name.external.ssl.client.auth`, `listener.name.external.plain.sasl.jaas.config`
fn is_of_security(name: &str) -> bool {
    let of_listener = name.strip_prefix("listener.name.").and_then(|rest| rest.split_once('.'));
    let key = of_listener.map_or(name, |(_, key)| key);
    key.starts_with("ssl.") || key.starts_with("sasl.") || key.contains(".sasl.")
}

/// What is set dynamically for the broker of this name, or for all where it is empty.
fn dynamic_values(name: &str, ctx: &Context<'_>) -> BTreeMap<String, String> {
    let set = ctx.image.configs.of(&Resource::new(ResourceType::Broker, name));
    let set = set.iter().flat_map(|values| values.iter());
    set.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// A controller does not know the log directories of a broker: its clients may uncordon them, and cordon no more of
/// them.
///
/// # Source
/// KIP-1066; Kafka `ConfigurationControlManager.isCordonedLogDirsInvalid`.
fn check_uncordoning(name: &str, changes: &[Change<'_>], ctx: &Context<'_>) -> Result<(), Refusal> {
    let Some(change) = changes.iter().find(|change| change.name == CORDONED) else { return Ok(()) };
    let mut values = dynamic_values(name, ctx);
    let before = values.get(CORDONED).cloned().unwrap_or_default();
    apply(change, &mut values, ctx)?;
    let entries = |list: &str| -> BTreeSet<String> {
        list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
    };
    if values.get(CORDONED).is_none_or(|after| entries(after).is_subset(&entries(&before))) {
        return Ok(());
    }
    let why = "When updating cordoned.log.dirs via controllers,  the new value must be a subset of the current configuration \
               value.";
    Err(Refusal::new(ErrorCode::InvalidConfig, why))
}

/// Source: Kafka `ConfigAdminManager.prepareIncrementalConfigs`.
fn apply(
    change: &Change<'_>,
    props: &mut BTreeMap<String, String>,
    ctx: &Context<'_>,
) -> Result<(), Refusal> {
    let name = change.name.as_str();
    let value = change.value.map_or("", Str::as_str);
    match change.operation {
        Some(Operation::Delete) => {
            props.remove(name);
        }
        Some(Operation::Append | Operation::Subtract) => {
            // A listener's own settings are not known here, as in Kafka.
            let Some(key) = Keys::Broker.key(name) else {
                return Err(Refusal::new(ErrorCode::InvalidConfig, format!("Unknown config name: {name}")));
            };
            if key.kind != Kind::List {
                let what = if change.operation == Some(Operation::Append) { "append" } else { "subtract" };
                let message = format!("Config value {what} is not allowed for config key: {name}");
                return Err(Refusal::new(ErrorCode::InvalidConfig, message));
            }
            let current =
                props.get(name).map(String::as_str).or_else(|| ctx.config.value(name)).unwrap_or("");
            let mut entries: Vec<&str> =
                current.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
            let named = value.split(',').map(str::trim);
            if change.operation == Some(Operation::Append) {
                let mut known: Set<&str> = entries.iter().copied().collect();
                entries.extend(named.filter(|entry| known.insert(entry)));
            } else {
                let gone: Set<&str> = named.collect();
                entries.retain(|entry| !gone.contains(entry));
            }
            let joined = entries.join(",");
            props.insert(name.to_owned(), joined);
        }
        Some(Operation::Set) | None => {
            props.insert(name.to_owned(), value.to_owned());
        }
    }
    Ok(())
}
