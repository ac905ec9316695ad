//! Topics: made, listed, described, enlarged, deleted.

use crate::error::check;
use crate::{ClientError, Cluster};
use barnabas_base::TopicId;
use barnabas_wire::messages::create_partitions_request::CreatePartitionsTopic;
use barnabas_wire::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::describe_configs_request::DescribeConfigsResource;
use barnabas_wire::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
};

/// A topic's own configs, in a describe.
const RESOURCE_TOPIC: i8 = 2;
/// DescribeConfigs: the value was set for this topic (Kafka `ConfigSource.TOPIC_CONFIG`).
const SOURCE_TOPIC: i8 = 1;

/// A topic to be made. `None` and −1 leave the choice to the cluster.
#[derive(Debug, Clone, Default)]
pub struct NewTopic {
    pub name: String,
    pub partitions: Option<i32>,
    pub replication_factor: Option<i16>,
    pub configs: Vec<(String, String)>,
}

/// What `--describe` shows of a topic.
#[derive(Debug, Clone)]
pub struct TopicDescription {
    pub name: String,
    pub id: TopicId,
    pub is_internal: bool,
    pub configs: Vec<(String, String)>,
    pub partitions: Vec<PartitionDescription>,
}

#[derive(Debug, Clone)]
pub struct PartitionDescription {
    pub partition: i32,
    pub leader: i32,
    pub replicas: Vec<i32>,
    pub isr: Vec<i32>,
}

/// Administration of one cluster.
#[derive(Debug)]
pub struct Admin<'a> {
    cluster: &'a mut Cluster,
}

impl<'a> Admin<'a> {
    pub fn new(cluster: &'a mut Cluster) -> Self {
        Self { cluster }
    }

    /// # Errors
    /// The cluster's refusal: `TOPIC_ALREADY_EXISTS`, `INVALID_CONFIG` …
    pub async fn create_topic(&mut self, topic: &NewTopic) -> Result<(), ClientError> {
        let config = |(name, value): &(String, String)| CreatableTopicConfig {
            name: name.as_str().into(),
            value: Some(value.as_str().into()),
            ..Default::default()
        };
        let wanted = CreatableTopic {
            name: topic.name.as_str().into(),
            num_partitions: topic.partitions.unwrap_or(-1),
            replication_factor: topic.replication_factor.unwrap_or(-1),
            configs: topic.configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![wanted], timeout_ms: 30_000, ..Default::default() };
        let tries = self.cluster.tries(format!("creating topic {}", topic.name));
        loop {
            let asked = self.cluster.ask_controller(|_| request.clone()).await;
            let done = asked.and_then(|answer| match answer.topics.first() {
                Some(told) => {
                    check(format!("topic {}", topic.name), told.error_code, told.error_message.as_deref())
                }
                None => Err(ClientError::Invalid("the answer names no topic".to_owned())),
            });
            match done {
                Ok(()) => return Ok(()),
                Err(error) => tries.after(error).await?,
            }
        }
    }

    /// # Errors
    /// The cluster's refusal, `UNKNOWN_TOPIC_OR_PARTITION` for instance.
    pub async fn delete_topic(&mut self, name: &str) -> Result<(), ClientError> {
        let state = DeleteTopicState { name: Some(name.into()), ..Default::default() };
        let request = |version: i16| DeleteTopicsRequest {
            topics: if version >= 6 { vec![state.clone()] } else { Vec::new() },
            topic_names: vec![name.into()],
            timeout_ms: 30_000,
            ..Default::default()
        };
        let answer = self.cluster.ask_controller(request).await?;
        let told = answer.responses.first();
        let told = told.ok_or_else(|| ClientError::Invalid("the answer names no topic".to_owned()))?;
        self.cluster.forget(name);
        check(format!("topic {name}"), told.error_code, told.error_message.as_deref())
    }

    /// Enlarges a topic to `count` partitions.
    ///
    /// # Errors
    /// The cluster's refusal: a topic cannot shrink.
    pub async fn create_partitions(&mut self, name: &str, count: i32) -> Result<(), ClientError> {
        let topic =
            CreatePartitionsTopic { name: name.into(), count, assignments: None, ..Default::default() };
        let request =
            CreatePartitionsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() };
        let answer = self.cluster.ask_controller(|_| request.clone()).await?;
        let told = answer.results.first();
        let told = told.ok_or_else(|| ClientError::Invalid("the answer names no topic".to_owned()))?;
        self.cluster.forget(name);
        check(format!("topic {name}"), told.error_code, told.error_message.as_deref())
    }

    /// The names of all topics that this client may see, in order.
    ///
    /// # Errors
    /// No node answers.
    pub async fn list_topics(&mut self) -> Result<Vec<(String, bool)>, ClientError> {
        let answer = self.cluster.refresh(None, false).await?;
        let named = |topic: barnabas_wire::messages::metadata_response::MetadataResponseTopic| {
            topic.name.map(|name| (name.to_string(), topic.is_internal))
        };
        let mut names: Vec<_> = answer.topics.into_iter().filter_map(named).collect();
        names.sort();
        Ok(names)
    }

    /// # Errors
    /// The topic's error.
    pub async fn describe_topic(&mut self, name: &str) -> Result<TopicDescription, ClientError> {
        self.cluster.forget(name);
        let topic = self.cluster.topic(name, false).await?.clone();
        let resource = DescribeConfigsResource {
            resource_type: RESOURCE_TOPIC,
            resource_name: name.into(),
            configuration_keys: None,
            ..Default::default()
        };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let answer = self.cluster.ask_any(&request).await?;
        let told = answer.results.first();
        let told = told.ok_or_else(|| ClientError::Invalid("the answer names no topic".to_owned()))?;
        check(format!("configs of topic {name}"), told.error_code, told.error_message.as_deref())?;
        let own = told.configs.iter().filter(|config| config.config_source == SOURCE_TOPIC);
        let shown =
            |config: &barnabas_wire::messages::describe_configs_response::DescribeConfigsResourceResult| {
                (config.name.to_string(), config.value.as_deref().unwrap_or_default().to_owned())
            };
        let mut partitions: Vec<_> = topic
            .partitions
            .iter()
            .map(|partition| PartitionDescription {
                partition: partition.partition_index,
                leader: partition.leader_id,
                replicas: partition.replica_nodes.clone(),
                isr: partition.isr_nodes.clone(),
            })
            .collect();
        partitions.sort_by_key(|partition| partition.partition);
        Ok(TopicDescription {
            name: name.to_owned(),
            id: topic.topic_id,
            is_internal: topic.is_internal,
            configs: own.map(shown).collect(),
            partitions,
        })
    }
}
