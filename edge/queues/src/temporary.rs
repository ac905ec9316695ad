//! Dynamic nodes: a topic that is made for a link, named in the answer to its attach, and deleted when the link ends.
//!
//! The topic is made with the rights of the peer. Its share group goes with it. Where the node is killed, such topics
//! remain, and their records go after [`RETENTION_MS`].
//!
//! Before: open.rs.

use crate::address::{Address, TEMPORARY_PREFIX};
use crate::link::{Opening, Served};
use crate::{get, put, queue};
use barnabas_base::Uuid;
use barnabas_client::{Admin, ClientError, Cluster, NewTopic};

const RETENTION_MS: &str = "86400000";

/// Serves the link of a dynamic node.
///
/// # Errors
/// What keeps the topic or the link from being, or ends it.
pub async fn serve(opening: Opening, receives: bool) -> Served {
    let topic = format!("{TEMPORARY_PREFIX}{}", fresh()?);
    let mut cluster = Cluster::new(opening.kafka.clone());
    let new = NewTopic {
        name: topic.clone(),
        partitions: Some(1),
        configs: vec![("retention.ms".to_owned(), RETENTION_MS.to_owned())],
        ..NewTopic::default()
    };
    Admin::new(&mut cluster).create_topic(&new).await?;
    let served = match Address::parse(&topic) {
        Some(address) if receives => get::serve(opening, &address, Some(topic.clone())).await,
        _ => put::serve(opening, &topic, Some(topic.clone())).await,
    };
    if let Some(address) = Address::parse(&topic)
        && let Err(error) = queue::remove(&mut cluster, &address.group).await
    {
        tracing::debug!(%error, "the share group of a temporary queue remains");
    }
    if let Err(error) = Admin::new(&mut cluster).delete_topic(&topic).await {
        tracing::warn!(%error, topic, "a temporary queue's topic remains: delete it with kafka-topics");
    }
    served
}

fn fresh() -> Result<String, ClientError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ClientError::Invalid(format!("no random numbers: {error}")))?;
    Ok(Uuid::from_random(bytes).to_string())
}
