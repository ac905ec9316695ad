//! Topics that brokers write to themselves, dead letters and audit lines: which partition takes a record, and how a
//! missing topic is created.

use barnabas_base::{BrokerId, PartitionIndex, Text, TopicId};
use barnabas_metadata::config::BrokerConfig;
use barnabas_metadata::{Image, Resource};
use barnabas_wire::messages::create_topics_request::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};

/// Prefix of internal topics, which none of these may be.
pub(crate) const INTERNAL: &str = "__";
/// The controller applies its own default, for partitions and for replicas.
const DEFAULT: i32 = -1;

/// Where records go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub topic: TopicId,
    pub partition: PartitionIndex,
    /// [`BrokerId::NONE`]: it has no leader now.
    pub leader: BrokerId,
    /// Of a batch.
    pub bytes_max: usize,
}

impl Place {
    /// The partition of topic `name` that `number` falls to, so that all its records keep their order. `None`: there is
    /// no such topic.
    pub(crate) fn of(name: &Text, number: i32, image: &Image, config: &BrokerConfig) -> Option<Self> {
        let topic = image.topics.by_name(name)?;
        let count = i32::try_from(topic.partition_count()).unwrap_or(i32::MAX).max(1);
        let partition = PartitionIndex(number.max(0) % count);
        let leader = topic.partition(partition).map_or(BrokerId::NONE, |state| state.leader);
        let own = image.configs.of(&Resource::topic(name.clone()));
        let own = own.and_then(|own| own.get("max.message.bytes")?.trim().parse::<i64>().ok());
        let bytes_max = own.unwrap_or_else(|| config.long("message.max.bytes"));
        Some(Self { topic: topic.id, partition, leader, bytes_max: usize::try_from(bytes_max).unwrap_or(0) })
    }
}

/// The request that creates a topic with these configs; partitions, replicas and all else are the cluster's defaults.
pub(crate) fn creation(name: &Text, configs: &[(&str, &str)], config: &BrokerConfig) -> CreateTopicsRequest {
    let set = |&(key, value): &(&str, &str)| CreatableTopicConfig {
        name: key.into(),
        value: Some(value.into()),
        ..CreatableTopicConfig::default()
    };
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: DEFAULT,
        replication_factor: DEFAULT as i16,
        configs: configs.iter().map(set).collect(),
        ..CreatableTopic::default()
    };
    let timeout_ms = config.int("request.timeout.ms");
    CreateTopicsRequest { topics: vec![topic], timeout_ms, ..CreateTopicsRequest::default() }
}
