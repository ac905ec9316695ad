//! What requests may add to the metadata: partitions, topics, configurations, nodes. All of it is in the memory of
//! every node, and a request of a few bytes can ask for very much of it.
//!
//! A refusal names the key of the limit. What is there when a limit is lowered stays.
//!
//! Different from Kafka, which has one bound, 10,000 partitions in a request, and none for the cluster.

use barnabas_base::{ErrorCode, Text};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::resource::resource_bytes;
use barnabas_metadata::{Image, Resource, ResourceType};

use super::Refusal;

pub(in crate::controller) const PARTITIONS: &str = "metadata.partitions.max";
pub(in crate::controller) const PARTITIONS_PER_REQUEST: &str = "metadata.partitions.request.max";
pub(in crate::controller) const TOPICS_PER_REQUEST: &str = "metadata.topics.request.max";
const CONFIG_BYTES: &str = "metadata.configs.bytes.max";
const RESOURCE_BYTES: &str = "metadata.configs.resource.bytes.max";
const NODES: &str = "metadata.nodes.max";

/// Bounds of one registration, far above what a node has: they keep a record within a batch.
const LISTENERS_MAX: usize = 100;
const FEATURES_MAX: usize = 1000;
const LOG_DIRS_MAX: usize = 10_000;
const REGISTRATION_TEXT_BYTES_MAX: usize = 65_536;

/// Configurations that one request names for one resource: far more than any has.
const CONFIGS_NAMED_MAX: usize = 10_000;
/// Features that one request updates.
pub(in crate::controller) const FEATURES_NAMED_MAX: usize = FEATURES_MAX;

/// The longest name of a directory that Linux's file systems take: a partition's is `topic-partition`.
const DIRECTORY_NAME_BYTES_MAX: usize = 255;

fn refuse(message: String) -> Refusal {
    Refusal::new(ErrorCode::PolicyViolation, message)
}

/// Whether one request may ask for so many.
pub(in crate::controller) fn check_request(
    config: &BrokerConfig,
    key: &'static str,
    asked: i64,
    of: &str,
) -> Result<(), Refusal> {
    let max = config.long(key);
    if asked > max {
        return Err(refuse(format!("{asked} {of} in one request; at most {max} are taken at once ({key})")));
    }
    Ok(())
}

/// Whether one request may name so many, which are there or not.
pub(in crate::controller) fn check_named(
    config: &BrokerConfig,
    named: usize,
    of: &str,
) -> Result<(), Refusal> {
    check_request(config, PARTITIONS_PER_REQUEST, named as i64, of)
}

/// Whether one request may name so many configurations of one resource.
pub(in crate::controller) fn check_configs_named(named: usize) -> Result<(), Refusal> {
    if named <= CONFIGS_NAMED_MAX {
        return Ok(());
    }
    let message =
        format!("{named} configurations of one resource are named; at most {CONFIGS_NAMED_MAX} are taken");
    Err(refuse(message))
}

/// A topic's last partition needs a directory that the file system takes.
pub(in crate::controller) fn check_directory_name(topic: &str, partitions: usize) -> Result<(), Refusal> {
    let last = partitions.saturating_sub(1).to_string();
    if topic.len() + 1 + last.len() <= DIRECTORY_NAME_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "A topic whose name has {} characters cannot have {partitions} partitions: the directory of partition {last} would \
         have a name of more than {DIRECTORY_NAME_BYTES_MAX} characters.",
        topic.len()
    );
    Err(Refusal::new(ErrorCode::InvalidPartitions, message))
}

/// What is left for one request: what its parts have taken before is counted.
#[derive(Debug)]
pub(crate) struct Room {
    partitions: i64,
    partitions_max: i64,
    config_bytes: i64,
    config_bytes_max: i64,
    resource_bytes_max: i64,
}

impl Room {
    pub fn new(image: &Image, config: &BrokerConfig) -> Self {
        Self {
            partitions: image.topics.partition_count() as i64,
            partitions_max: config.long(PARTITIONS),
            config_bytes: image.configs.bytes() as i64,
            config_bytes_max: config.long(CONFIG_BYTES),
            resource_bytes_max: config.long(RESOURCE_BYTES),
        }
    }

    /// Takes room for new partitions.
    pub fn take_partitions(&mut self, more: usize) -> Result<(), Refusal> {
        let (have, max) = (self.partitions, self.partitions_max);
        let will = have.saturating_add(more as i64);
        if will > max {
            return Err(refuse(format!(
                "The cluster has {have} partitions, and may have {max} ({PARTITIONS}); {more} more are too many."
            )));
        }
        self.partitions = will;
        Ok(())
    }

    /// Takes room for the configurations that a resource will have, in the place of those that it has.
    pub fn take_configs<'a>(
        &mut self,
        image: &Image,
        target: &Resource,
        all: impl IntoIterator<Item = (&'a Text, &'a Text)>,
    ) -> Result<(), Refusal> {
        let now = image.configs.of(target);
        let now = now.map_or(0, |values| resource_bytes(&target.name, values.iter())) as i64;
        let will = resource_bytes(&target.name, all) as i64;
        let total = self.config_bytes + will - now;
        if will > now && will > self.resource_bytes_max {
            let max = self.resource_bytes_max;
            let kind = target.kind.name();
            return Err(refuse(format!(
                "The configurations of this {kind} would take {will} bytes; at most {max} are allowed ({RESOURCE_BYTES})."
            )));
        }
        // Brokers are few, and a limit is raised through their configurations.
        if target.kind != ResourceType::Broker && will > now && total > self.config_bytes_max {
            let max = self.config_bytes_max;
            return Err(refuse(format!(
                "All configurations of the cluster would take {total} bytes; at most {max} are allowed ({CONFIG_BYTES})."
            )));
        }
        self.config_bytes = total;
        Ok(())
    }
}

/// Whether a node may register that has not registered before. `known`: how many of its kind there are.
pub(in crate::controller) fn check_new_node(config: &BrokerConfig, known: usize) -> Result<(), Refusal> {
    let max = config.long(NODES);
    if known as i64 >= max {
        let message = format!("{known} nodes of this kind are registered; at most {max} may be ({NODES})");
        return Err(Refusal::new(ErrorCode::InvalidRegistration, message));
    }
    Ok(())
}

/// Whether what a node brings with its registration is no more than a node has.
pub(in crate::controller) fn check_registration<'a>(
    listeners: usize,
    features: usize,
    log_dirs: usize,
    texts: impl Iterator<Item = &'a str>,
) -> Result<(), Refusal> {
    let bytes: usize = texts.map(str::len).sum();
    let bounds = [
        (listeners, LISTENERS_MAX, "listeners"),
        (features, FEATURES_MAX, "features"),
        (log_dirs, LOG_DIRS_MAX, "log directories"),
        (bytes, REGISTRATION_TEXT_BYTES_MAX, "bytes of names"),
    ];
    match bounds.into_iter().find(|(given, max, _)| given > max) {
        None => Ok(()),
        Some((given, max, of)) => {
            let message = format!("a registration has {given} {of}; at most {max} are taken");
            Err(Refusal::new(ErrorCode::InvalidRegistration, message))
        }
    }
}
