//! CreateTopics: any number of topics and partitions in one request.
//!
//! Kafka refuses more than 10,000 partitions at once; here they go into as many batches as it takes, between the two
//! records of a metadata transaction. What one request and the cluster may have: [`crate::controller::limits`].
//!
//! Order of checks, as in Kafka: names named twice, the name, collision ('.' and '_' are one in metrics' names),
//! existence, null values among configs, the configs, then assignments or numbers, then placement.
//!
//! Sources: KIP-4, KIP-464, KIP-525; Kafka `ControllerApis.createTopics`, `ReplicationControlManager.createTopics`.

use barnabas_base::{BrokerId, ErrorCode, Map, PartitionIndex, Set, TopicId, Uuid, check_topic_name, name};
use barnabas_metadata::config::{BrokerConfig, Properties};
use barnabas_metadata::snapshot::partition_record;
use barnabas_metadata::{Image, LeaderRecoveryState, Partition, Placement, Resource, ResourceType};
use barnabas_wire::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use barnabas_wire::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use barnabas_wire::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicRecord};
use barnabas_wire::{MetadataRecord, Str};
use std::sync::Arc;

use crate::controller::configs::{self, config_record};
use crate::controller::placement::{Placer, candidates, directory_for, takes_replicas};
use crate::controller::{Case, Outcome, Refusal, Sentences, limits};

/// From this version on the answer tells partitions, replicas and configs.
const CONFIGS_SINCE: i16 = 5;

pub(crate) fn create(case: &mut Case<'_>, request: &CreateTopicsRequest) -> Outcome {
    let mut count: Map<&str, u32> = Map::default();
    for topic in &request.topics {
        *count.entry(&*topic.name).or_default() += 1;
    }
    let mut records = Vec::new();
    let mut results = Vec::new();
    let mut last = Vec::new();
    let within_bounds = check_bounds(case, request);
    let mut shown = ShownConfigs::new(case.config);
    let mut sentences = Sentences::default();
    for topic in &request.topics {
        if count.get(&*topic.name).is_some_and(|&count| count > 1) {
            continue;
        }
        if topic.name == *name::CLUSTER_METADATA {
            let message = format!("Creation of internal topic {} is prohibited.", name::CLUSTER_METADATA);
            last.push(refused(
                &topic.name,
                &Refusal::new(ErrorCode::InvalidRequest, message),
                &mut sentences,
            ));
            continue;
        }
        let created =
            within_bounds.clone().and_then(|()| create_one(case, topic, request.validate_only, &mut records));
        results.push(match created {
            Ok((mut result, own)) => {
                shown.show(case, topic, &own, &mut result);
                result
            }
            Err(refusal) => refused(&topic.name, &refusal, &mut sentences),
        });
    }
    let mut told = Set::default();
    let twice = request.topics.iter().filter(|topic| count.get(&*topic.name).is_some_and(|&count| count > 1));
    for topic in twice {
        if told.insert(topic.name.clone()) {
            let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
            last.push(refused(&topic.name, &refusal, &mut sentences));
        }
    }
    results.extend(last);
    let names: Vec<Str> = results.iter().map(|result| result.name.clone()).collect();
    let throttle_time_ms = case.budget.throttle_ms();
    let response =
        CreateTopicsResponse { topics: results, throttle_time_ms, ..CreateTopicsResponse::default() };
    Outcome::atomic(records, response, move |why| {
        let refusal = Refusal::new(ErrorCode::PolicyViolation, why);
        let mut sentences = Sentences::default();
        let topics = names.iter().map(|name| refused(name, &refusal, &mut sentences)).collect();
        CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }.into()
    })
}

fn check_bounds(case: &Case<'_>, request: &CreateTopicsRequest) -> Result<(), Refusal> {
    let partitions = |topic: &CreatableTopic| {
        if !topic.assignments.is_empty() {
            return topic.assignments.len() as i64;
        }
        let default = i64::from(case.config.int("num.partitions"));
        if topic.num_partitions == -1 { default } else { i64::from(topic.num_partitions.max(0)) }
    };
    limits::check_request(case.config, limits::TOPICS_PER_REQUEST, request.topics.len() as i64, "topics")?;
    let total: i64 = request.topics.iter().map(partitions).sum();
    limits::check_request(case.config, limits::PARTITIONS_PER_REQUEST, total, "partitions")
}

fn refused(name: &Str, refusal: &Refusal, sentences: &mut Sentences) -> CreatableTopicResult {
    let (error_code, error_message) = sentences.fields(Some(refusal));
    CreatableTopicResult { name: name.clone(), error_code, error_message, ..CreatableTopicResult::default() }
}

/// Adds the records of one topic, all of them or none. The result lacks what depends on who asks; its own configs go
/// along.
fn create_one(
    case: &mut Case<'_>,
    topic: &CreatableTopic,
    validate_only: bool,
    records: &mut Vec<MetadataRecord>,
) -> Result<(CreatableTopicResult, Properties), Refusal> {
    check_name(case.image, &topic.name)?;
    let values = own_configs(case, topic)?;
    let spread = if topic.assignments.is_empty() { automatic(case, topic)? } else { manual(case, topic)? };
    let partitions = spread.count();
    limits::check_directory_name(&topic.name, partitions)?;
    // Configs first: what they take is little, where partitions are then refused.
    case.room.take_configs(case.image, &Resource::topic(topic.name.text()), &values)?;
    case.room.take_partitions(partitions)?;
    case.budget.take(partitions)?;
    let topic_id = Uuid::from_random((case.random)());
    let replicas = spread.replication_factor();
    if !validate_only {
        let record = TopicRecord { name: topic.name.clone(), topic_id, ..TopicRecord::default() };
        records.push(record.into());
        for (key, value) in &values {
            records.push(config_record(ResourceType::Topic, &topic.name, key, Some(value)));
        }
        spread.write(case, topic_id, PartitionIndex(0), records);
    }
    let result = CreatableTopicResult {
        name: topic.name.clone(),
        topic_id,
        error_message: None,
        num_partitions: partitions as i32,
        replication_factor: replicas as i16,
        ..CreatableTopicResult::default()
    };
    Ok((result, values))
}

/// The configs that an answer shows: those of topics that have none of their own are worked out once for all topics of
/// a request.
struct ShownConfigs {
    plain: Option<Vec<CreatableTopicConfigs>>,
    /// Bytes that may still be shown, of `answer.bytes.max`.
    left: usize,
}

impl ShownConfigs {
    fn new(config: &BrokerConfig) -> Self {
        Self { plain: None, left: usize::try_from(config.long("answer.bytes.max")).unwrap_or(0) }
    }

    /// Adds what later versions tell of a new topic, and takes out what this one does not.
    fn show(
        &mut self,
        case: &Case<'_>,
        topic: &CreatableTopic,
        own: &Properties,
        result: &mut CreatableTopicResult,
    ) {
        let describable = case.asked.describable.as_ref();
        let is_shown = describable.is_none_or(|names| names.iter().any(|name| topic.name == *name));
        if case.asked.version < CONFIGS_SINCE || !is_shown {
            let bare = CreatableTopicResult::default();
            (result.num_partitions, result.replication_factor) =
                (bare.num_partitions, bare.replication_factor);
        }
        if case.asked.version < CONFIGS_SINCE {
            return;
        }
        if !is_shown {
            result.topic_config_error_code = ErrorCode::TopicAuthorizationFailed.code();
        } else if own.is_empty() {
            let plain = self.plain.get_or_insert_with(|| effective_configs(case, own));
            let bytes = configs_bytes(plain);
            self.take(bytes, result, |shown| shown.plain.clone().unwrap_or_default());
        } else {
            let own = effective_configs(case, own);
            self.take(configs_bytes(&own), result, |_| own);
        }
    }

    /// The topic is there all the same where its configs have no place in the answer.
    fn take(
        &mut self,
        bytes: usize,
        result: &mut CreatableTopicResult,
        configs: impl FnOnce(&Self) -> Vec<CreatableTopicConfigs>,
    ) {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                result.configs = Some(configs(self));
            }
            None => result.topic_config_error_code = ErrorCode::InvalidRequest.code(),
        }
    }
}

/// About the memory that configs take in an answer, encoded beside.
fn configs_bytes(configs: &[CreatableTopicConfigs]) -> usize {
    let text =
        |each: &CreatableTopicConfigs| each.name.len() + each.value.as_ref().map_or(0, |value| value.len());
    size_of_val(configs) + 2 * configs.iter().map(text).sum::<usize>()
}

fn check_name(image: &Image, topic: &str) -> Result<(), Refusal> {
    if image.topics.by_name(topic).is_some() {
        let message = format!("Topic '{topic}' already exists.");
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, message));
    }
    if let Err(error) = check_topic_name(topic) {
        return Err(Refusal::new(ErrorCode::InvalidTopicException, error.to_string()));
    }
    if let Some(other) = image.topics.colliding(topic) {
        let message = format!("Topic '{topic}' collides with existing topic: {other}");
        return Err(Refusal::new(ErrorCode::InvalidTopicException, message));
    }
    Ok(())
}

fn own_configs(case: &Case<'_>, topic: &CreatableTopic) -> Result<Properties, Refusal> {
    limits::check_configs_named(topic.configs.len())?;
    let nulls: Vec<&str> =
        topic.configs.iter().filter(|config| config.value.is_none()).map(|config| &*config.name).collect();
    if !nulls.is_empty() {
        let message = format!("Null value not supported for topic configs: {}", nulls.join(","));
        return Err(Refusal::new(ErrorCode::InvalidConfig, message));
    }
    let value = |config: &barnabas_wire::messages::create_topics_request::CreatableTopicConfig| {
        (config.name.text(), config.value.as_ref().map(Str::text).unwrap_or_default())
    };
    let values: Properties = topic.configs.iter().map(value).collect();
    configs::check_topic_values(case.config, &values)?;
    Ok(values)
}

/// The effective configs of a topic with these of its own, as CreateTopics and Kafka's tools show them.
fn effective_configs(case: &Case<'_>, own: &Properties) -> Vec<CreatableTopicConfigs> {
    configs::effective_topic_configs(case.config, own)
        .map(|entry| CreatableTopicConfigs {
            name: Str::from_static(entry.name),
            value: entry.value.map(Str::from),
            read_only: false,
            config_source: entry.source as i8,
            is_sensitive: false,
            ..CreatableTopicConfigs::default()
        })
        .collect()
}

/// Which brokers hold which new partition.
pub(crate) enum Spread {
    /// Given by the request, in the order of partitions.
    Manual(Vec<Vec<BrokerId>>),
    /// Found by the placer as the records are written.
    Automatic { placer: Placer, partitions: usize, replicas: usize },
}

impl Spread {
    fn count(&self) -> usize {
        match self {
            Self::Manual(all) => all.len(),
            Self::Automatic { partitions, .. } => *partitions,
        }
    }

    fn replication_factor(&self) -> usize {
        match self {
            Self::Manual(all) => all.first().map_or(0, Vec::len),
            Self::Automatic { replicas, .. } => *replicas,
        }
    }

    /// Adds the partitions' records, numbered from `first` on.
    pub fn write(
        self,
        case: &Case<'_>,
        topic: TopicId,
        first: PartitionIndex,
        records: &mut Vec<MetadataRecord>,
    ) {
        let count = self.count();
        records.reserve(count);
        let mut placed: Box<dyn Iterator<Item = Vec<BrokerId>>> = match self {
            Self::Manual(all) => Box::new(all.into_iter()),
            Self::Automatic { mut placer, .. } => Box::new(std::iter::repeat_with(move || placer.place())),
        };
        for offset in 0..count {
            let Some(replicas) = placed.next() else { break };
            let index = PartitionIndex(first.get() + offset as i32);
            records.push(new_partition(case, topic, index, replicas));
        }
    }
}

fn new_partition(
    case: &Case<'_>,
    topic: TopicId,
    index: PartitionIndex,
    replicas: Vec<BrokerId>,
) -> MetadataRecord {
    let image = case.image;
    let isr: Vec<BrokerId> =
        replicas.iter().copied().filter(|&broker| image.cluster.is_active(broker)).collect();
    let impairment = |&broker: &BrokerId| {
        case.impaired.of(image, broker, (topic, index), Some(directory_for(image, broker)))
    };
    let leader = isr.iter().copied().min_by_key(impairment).unwrap_or(BrokerId::NONE);
    let directories = replicas.iter().map(|&broker| directory_for(image, broker)).collect();
    let placement = Placement {
        replicas,
        directories,
        isr,
        recovery: LeaderRecoveryState::Recovered,
        ..Placement::default()
    };
    let partition = Partition {
        leader,
        leader_epoch: 0.into(),
        partition_epoch: 0.into(),
        placement: Arc::new(placement),
    };
    partition_record(topic, index, &partition, image.metadata_version())
}

fn automatic(case: &mut Case<'_>, topic: &CreatableTopic) -> Result<Spread, Refusal> {
    if topic.replication_factor < -1 || topic.replication_factor == 0 {
        let message = "Replication factor must be larger than 0, or -1 to use the default value.";
        return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
    }
    if topic.num_partitions < -1 || topic.num_partitions == 0 {
        let message = "Number of partitions was set to an invalid non-positive value.";
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    let or_default = |given: i32, key: &'static str| if given == -1 { case.config.int(key) } else { given };
    let partitions = or_default(topic.num_partitions, "num.partitions");
    let replicas = or_default(topic.replication_factor.into(), "default.replication.factor");
    let replicas = i16::try_from(replicas).unwrap_or(i16::MAX);
    place(case, usize::try_from(partitions).unwrap_or(0), replicas)
}

/// New partitions where the placer finds room.
pub(crate) fn place(case: &mut Case<'_>, partitions: usize, replicas: i16) -> Result<Spread, Refusal> {
    let refuse = |why: &str| {
        let message = format!("Unable to replicate the partition {replicas} time(s): {why}");
        Refusal::new(ErrorCode::InvalidReplicationFactor, message)
    };
    let candidates = candidates(case.image, case.impaired);
    let [a, b, c, d, e, f, g, h, ..] = (case.random)();
    let draw = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let placer = Placer::new(&candidates, replicas, draw).map_err(|why| refuse(&why))?;
    Ok(Spread::Automatic { placer, partitions, replicas: usize::try_from(replicas).unwrap_or(0) })
}

fn manual(case: &Case<'_>, topic: &CreatableTopic) -> Result<Spread, Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    if topic.replication_factor != -1 {
        return invalid(
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        );
    }
    if topic.num_partitions != -1 {
        return invalid("A manual partition assignment was specified, but numPartitions was not set to -1.");
    }
    let refuse = |message: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, message);
    let mut by_index: std::collections::BTreeMap<i32, Vec<BrokerId>> = std::collections::BTreeMap::new();
    let mut replicas = None;
    for CreatableReplicaAssignment { partition_index, broker_ids, .. } in &topic.assignments {
        let brokers = check_assignment(case.image, *partition_index, broker_ids, replicas)?;
        replicas = Some(brokers.len());
        if by_index.insert(*partition_index, brokers).is_some() {
            let message =
                format!("Found multiple manual partition assignments for partition {partition_index}");
            return Err(refuse(message));
        }
    }
    if by_index.keys().enumerate().any(|(expected, &index)| index != expected as i32) {
        return Err(refuse("partitions should be a consecutive 0-based integer sequence".into()));
    }
    Ok(Spread::Manual(by_index.into_values().collect()))
}

/// The brokers of an assignment that was given, if it can be.
pub(crate) fn check_assignment(
    image: &Image,
    index: i32,
    brokers: &[i32],
    replicas: Option<usize>,
) -> Result<Vec<BrokerId>, Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
    if brokers.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list.".into());
    }
    let mut sorted: Vec<BrokerId> = brokers.iter().copied().map(BrokerId).collect();
    sorted.sort_unstable();
    for (at, &id) in sorted.iter().enumerate() {
        let Some(broker) = image.cluster.broker(id) else {
            return refuse(format!(
                "The manual partition assignment includes broker {id}, but no such broker is registered."
            ));
        };
        if !takes_replicas(broker) {
            return refuse(format!(
                "The manual partition assignment includes broker {id}, but all its log directories are cordoned."
            ));
        }
        if at > 0 && sorted[at - 1] == id {
            return refuse(format!(
                "The manual partition assignment includes the broker {id} more than once."
            ));
        }
    }
    if let Some(replicas) = replicas.filter(|&replicas| replicas != sorted.len()) {
        return refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is not consistent \
             with previous partitions, which have {replicas} replica(s).",
            sorted.len()
        ));
    }
    if !sorted.iter().any(|&id| image.cluster.is_active(id)) {
        return refuse(format!(
            "All brokers specified in the manual partition assignment for partition {index} are fenced or in \
             controlled shutdown."
        ));
    }
    Ok(brokers.iter().copied().map(BrokerId).collect())
}
