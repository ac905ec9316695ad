//! Topics: made, listed, enlarged, deleted.

use crate::error::check;
use crate::{ClientError, Cluster};
use barnabas_base::ErrorCode;
use barnabas_wire::messages::create_partitions_request::{CreatePartitionsAssignment, CreatePartitionsTopic};
use barnabas_wire::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use barnabas_wire::messages::delete_topics_request::DeleteTopicState;
use barnabas_wire::messages::{CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};

/// A topic to be made. `None` and −1 leave the choice to the cluster.
#[derive(Debug, Clone, Default)]
pub struct NewTopic {
    pub name: String,
    pub partitions: Option<i32>,
    pub replication_factor: Option<i16>,
    pub configs: Vec<(String, String)>,
    /// The replicas of each partition, the preferred leader first. Then the two numbers above stay `None`.
    pub assignments: Vec<Vec<i32>>,
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
        let assignment = |(partition, brokers): (usize, &Vec<i32>)| CreatableReplicaAssignment {
            partition_index: partition as i32,
            broker_ids: brokers.clone(),
            ..Default::default()
        };
        let wanted = CreatableTopic {
            name: topic.name.as_str().into(),
            num_partitions: topic.partitions.unwrap_or(-1),
            replication_factor: topic.replication_factor.unwrap_or(-1),
            configs: topic.configs.iter().map(config).collect(),
            assignments: topic.assignments.iter().enumerate().map(assignment).collect(),
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
                Err(error) if !is_worth_a_try(&error) => return Err(error),
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

    /// Enlarges a topic to `count` partitions. `assignments`: the replicas of each new one; `None`: the cluster's
    /// choice.
    ///
    /// # Errors
    /// The cluster's refusal: a topic cannot shrink.
    pub async fn create_partitions(
        &mut self,
        name: &str,
        count: i32,
        assignments: Option<&[Vec<i32>]>,
    ) -> Result<(), ClientError> {
        let assignment = |brokers: &Vec<i32>| CreatePartitionsAssignment {
            broker_ids: brokers.clone(),
            ..Default::default()
        };
        let assignments = assignments.map(|replicas| replicas.iter().map(assignment).collect());
        let topic = CreatePartitionsTopic { name: name.into(), count, assignments, ..Default::default() };
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
}

/// Whether the same request may succeed in a moment. Not with a full disk: the caller gets that
/// error at once.
fn is_worth_a_try(error: &ClientError) -> bool {
    error.code() != Some(ErrorCode::KafkaStorageError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_broker::{fake_broker, nodes};
    use crate::{Cluster, ClusterConfig};
    use barnabas_wire::RequestBody;
    use barnabas_wire::messages::create_topics_response::{CreatableTopicResult, CreateTopicsResponse};
    use std::sync::Arc;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A full disk is no matter of a moment.
    #[tokio::test]
    async fn create_topic_on_a_full_disk_is_not_retried() {
        let (address, asked) = (Arc::new(OnceLock::<String>::new()), Arc::new(AtomicU32::new(0)));
        let (known, count) = (address.clone(), asked.clone());
        let says = move |request| match request {
            RequestBody::Metadata(_) => Some(nodes(&[(1, known.get().expect("known"))]).into()),
            RequestBody::CreateTopics(_) => {
                count.fetch_add(1, Ordering::Relaxed);
                let told = CreatableTopicResult {
                    name: "t".into(),
                    error_code: ErrorCode::KafkaStorageError.code(),
                    error_message: Some("The disk is full.".into()),
                    ..Default::default()
                };
                Some(CreateTopicsResponse { topics: vec![told], ..Default::default() }.into())
            }
            other => panic!("{other:?}"),
        };
        address.set(fake_broker(&[(3, 12), (19, 7)], says).await).expect("once");
        let mut cluster = Cluster::new(ClusterConfig::new(address.get().expect("set"), "test"));
        let topic = NewTopic { name: "t".to_owned(), ..NewTopic::default() };
        let error = Admin::new(&mut cluster).create_topic(&topic).await.expect_err("it is refused");
        assert!(error.to_string().contains("The disk is full."), "{error}");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}
