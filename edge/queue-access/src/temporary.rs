//! Temporary queues: topics that are made for a link of AMQP or a handle of MQ, and deleted when it ends.
//!
//! The topic is made with the rights of the peer. Its share group goes with it. Where the node is killed, such topics
//! remain, and their records go after [`RETENTION_MS`].
//!
//! Before: edge/queues/src/temporary.rs.

use crate::address::Address;
use crate::group;
use barnabas_client::{Admin, ClientError, Cluster, NewTopic};

const RETENTION_MS: &str = "86400000";

/// Makes a topic whose name begins with `prefix`, of one partition.
///
/// # Errors
/// The caller may not, or the cluster does not answer.
pub async fn make(cluster: &mut Cluster, prefix: &str) -> Result<String, ClientError> {
    let topic = format!("{prefix}{}", fresh()?);
    let new = NewTopic {
        name: topic.clone(),
        partitions: Some(1),
        configs: vec![("retention.ms".to_owned(), RETENTION_MS.to_owned())],
        ..NewTopic::default()
    };
    Admin::new(cluster).create_topic(&new).await?;
    Ok(topic)
}

/// Deletes the topic, and the share group that it may have.
pub async fn remove(cluster: &mut Cluster, topic: &str) {
    if let Some(address) = Address::parse(topic)
        && let Err(error) = group::remove(cluster, &address.group).await
    {
        tracing::debug!(%error, "the share group of a temporary queue remains");
    }
    if let Err(error) = Admin::new(cluster).delete_topic(topic).await {
        tracing::warn!(%error, topic, "a temporary queue's topic remains: delete it with kafka-topics");
    }
}

/// 32 letters and digits: names of MQ take no dash.
fn fresh() -> Result<String, ClientError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ClientError::Invalid(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
