//! Levels of this node's loggers: the resource BROKER_LOGGER of DescribeConfigs and IncrementalAlterConfigs.
//!
//! Only the node itself knows and changes them; they are not in the metadata log and end with the process, as in Kafka.
//! The shell hands in the levels as they are ([`Levels`]) and carries a checked change out.
//!
//! Source: Kafka 4.3 `RuntimeLoggerManager`, `ConfigHelper`, `LogLevelConfig`.

use crate::Access;
use crate::Refusal;
use crate::access::refusal;
use crate::altered::Operation;
pub use crate::context::Levels;
use crate::k18_api_versions::Listener;
use barnabas_base::{BrokerId, ErrorCode, Map};
use barnabas_metadata::ResourceType;
use barnabas_security::Operation as Permitted;
use barnabas_wire::Str;
use barnabas_wire::messages::IncrementalAlterConfigsRequest;
use barnabas_wire::messages::incremental_alter_configs_request::AlterConfigsResource;
use barnabas_wire::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;

/// The logger that stands for all others. Its level cannot be removed.
const ROOT: &str = "root";
/// Kafka's levels, sorted as its refusal names them.
const VALID: [&str; 6] = ["DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN"];

/// One logger's new level; `None`: what the configuration says.
pub type Change = (Str, Option<Str>);

/// What became of a request's BROKER_LOGGER resources.
#[derive(Debug, Default)]
pub struct Decided {
    /// To be carried out by the node, at once.
    pub changes: Vec<Change>,
    pub responses: Vec<AlterConfigsResourceResponse>,
}

/// Takes the BROKER_LOGGER resources out of `request` and decides them; the rest is for the controller.
pub fn decide(
    request: &mut IncrementalAlterConfigsRequest,
    node: BrokerId,
    levels: impl FnOnce() -> Levels,
    listener: Listener,
    access: &Access<'_>,
) -> Decided {
    let is_logger = |resource: &AlterConfigsResource| {
        ResourceType::from_code(resource.resource_type) == Some(ResourceType::BrokerLogger)
    };
    let mut decided = Decided::default();
    if !request.resources.iter().any(is_logger) {
        return decided;
    }
    let (loggers, rest): (Vec<_>, Vec<_>) =
        std::mem::take(&mut request.resources).into_iter().partition(is_logger);
    request.resources = rest;
    // Source: Kafka 4.4 `KafkaApis.handleIncrementalAlterConfigsRequest`, `ControllerApis`.
    let is_allowed = access.cluster(match listener {
        Listener::Broker => Permitted::AlterConfigs,
        Listener::Controller => Permitted::ClusterAction,
    });
    let known = levels();
    let mut times: Map<Str, u32> = Map::default();
    loggers.iter().for_each(|resource| *times.entry(resource.resource_name.clone()).or_default() += 1);
    for resource in loggers {
        let checked = if times.get(&resource.resource_name).is_some_and(|times| *times > 1) {
            Err(Refusal::new(ErrorCode::InvalidRequest, "Each resource must appear at most once."))
        } else if !is_allowed {
            Err(refusal(ErrorCode::ClusterAuthorizationFailed))
        } else {
            check(&resource, node, &known)
        };
        let (error_code, error_message) = match checked {
            Ok(changes) => {
                decided.changes.extend(changes);
                (ErrorCode::None.code(), None)
            }
            Err(refusal) => (refusal.code.code(), refusal.text()),
        };
        decided.responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            ..AlterConfigsResourceResponse::default()
        });
    }
    if request.validate_only {
        decided.changes.clear();
    }
    decided
}

/// Checks the changes of one BROKER_LOGGER resource: all of them are sound, or none is carried out.
///
/// # Errors
/// INVALID_REQUEST: another node, or an operation that levels do not have. INVALID_CONFIG: no such logger or level.
pub fn check(
    resource: &AlterConfigsResource,
    node: BrokerId,
    known: &Levels,
) -> Result<Vec<Change>, Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::InvalidRequest, message);
    let name = resource.resource_name.as_str();
    let id: i32 =
        name.parse().map_err(|_| invalid(format!("Node id must be an integer, but it is: {name}")))?;
    if id != node.get() {
        return Err(invalid(format!("Unexpected node id. Expected {node}, but received {id}")));
    }
    let mut changes = Vec::with_capacity(resource.configs.len());
    for config in &resource.configs {
        let logger = config.name.as_str();
        let operation = Operation::from_code(config.config_operation);
        if matches!(operation, Some(Operation::Set | Operation::Delete))
            && known.iter().all(|(name, _)| *name != logger)
        {
            return Err(Refusal::new(ErrorCode::InvalidConfig, format!("Logger {logger} does not exist!")));
        }
        let level = match operation {
            Some(Operation::Set) => Some(level(logger, config.value.as_ref())?),
            Some(Operation::Delete) if logger == ROOT => {
                return Err(invalid(format!("Removing the log level of the {ROOT} logger is not allowed")));
            }
            Some(Operation::Delete) => None,
            Some(Operation::Append) => {
                return Err(invalid(
                    "APPEND operation is not allowed for the BROKER_LOGGER resource".to_owned(),
                ));
            }
            Some(Operation::Subtract) => {
                return Err(invalid(
                    "SUBTRACT operation is not allowed for the BROKER_LOGGER resource".to_owned(),
                ));
            }
            None => {
                return Err(invalid(format!(
                    "There is no operation {} on a config.",
                    config.config_operation
                )));
            }
        };
        changes.push((config.name.clone(), level));
    }
    Ok(changes)
}

fn level(logger: &str, value: Option<&Str>) -> Result<Str, Refusal> {
    let given = value.map_or("null", Str::as_str);
    match value {
        Some(value) if VALID.contains(&given) => Ok(value.clone()),
        _ => Err(Refusal::new(
            ErrorCode::InvalidConfig,
            format!(
                "Cannot set the log level of {logger} to {given} as it is not a supported log level. Valid log levels are {}",
                VALID.join(", ")
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::incremental_alter_configs_request::AlterableConfig;

    fn said(node: &str, name: &str, operation: i8, value: Option<&str>) -> String {
        let config = AlterableConfig {
            name: name.into(),
            config_operation: operation,
            value: value.map(Into::into),
            ..Default::default()
        };
        let resource =
            AlterConfigsResource { resource_name: node.into(), configs: vec![config], ..Default::default() };
        match check(&resource, BrokerId(1), &vec![(ROOT, "INFO"), ("barnabas", "INFO")]) {
            Ok(changes) => format!("{:?}", changes.first().map(|(_, level)| level.as_ref().map(Str::as_str))),
            Err(refusal) => format!("{} {}", refusal.code.name(), refusal.text().unwrap_or_default()),
        }
    }

    #[test]
    fn level_changes_are_checked_as_kafka_checks_them() {
        assert_eq!(said("1", "barnabas", 0, Some("DEBUG")), "Some(Some(\"DEBUG\"))");
        assert_eq!(said("1", "barnabas", 1, None), "Some(None)");
        let refused = [
            (
                said("x", "barnabas", 0, Some("INFO")),
                "INVALID_REQUEST Node id must be an integer, but it is: x",
            ),
            (
                said("2", "barnabas", 0, Some("INFO")),
                "INVALID_REQUEST Unexpected node id. Expected 1, but received 2",
            ),
            (said("1", "kafka", 0, Some("INFO")), "INVALID_CONFIG Logger kafka does not exist!"),
            (
                said("1", ROOT, 1, None),
                "INVALID_REQUEST Removing the log level of the root logger is not allowed",
            ),
            (
                said("1", "barnabas", 2, Some("INFO")),
                "INVALID_REQUEST APPEND operation is not allowed for the BROKER_LOGGER resource",
            ),
        ];
        for (said, expected) in refused {
            assert_eq!(said, expected);
        }
        let loud = said("1", "barnabas", 0, Some("LOUD"));
        assert!(loud.starts_with("INVALID_CONFIG Cannot set the log level of barnabas to LOUD"), "{loud}");
    }
}
