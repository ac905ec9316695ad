//! Says on standard error what a tool waits for, once that takes more than a few seconds.
//!
//! Kafka's tools are silent until their `default.api.timeout.ms` is over. This module writes the
//! error of the last attempt to standard error, once for each distinct error. Before the first
//! attempt has ended it reports whether a broker reaches the active controller. It asks with
//! DescribeQuorum over a connection of its own, because brokers forward that request. The tool's
//! result and exit code do not depend on it.

use crate::tell;
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster, ClusterConfig};
use barnabas_wire::messages::DescribeQuorumRequest;
use barnabas_wire::messages::describe_quorum_request::{PartitionData, TopicData};
use std::pin::pin;
use std::time::Duration;

/// How long the tool is silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the active controller may take to be found.
const CONTROLLER_PATIENCE: Duration = Duration::from_secs(2);

/// `work`, done by a client of this configuration; `tool` says meanwhile what it waits for.
pub async fn telling<T>(
    tool: &str,
    config: ClusterConfig,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    watching(&config, PATIENCE, CONTROLLER_PATIENCE, work, |why| tell(&format!("{tool}: {why}"))).await
}

/// Waits until a broker answers Metadata, and reports at once why the first try fails, and each other reason once.
///
/// For tools that work until they are stopped: without it a wrong address looks like a topic without records.
///
/// # Errors
/// The last try's, once the deadline of `config` is over.
pub async fn reached(tool: &str, config: &ClusterConfig) -> Result<(), ClientError> {
    reaching(config, PATIENCE, |why| tell(&format!("{tool}: {why}"))).await
}

async fn reaching(
    config: &ClusterConfig,
    patience: Duration,
    mut say: impl FnMut(&str),
) -> Result<(), ClientError> {
    let mut cluster = Cluster::new(config.clone());
    let tries = cluster.tries(format!("reaching {}", config.bootstrap));
    let mut said = String::new();
    loop {
        let error = {
            let mut asked = pin!(cluster.refresh(Some(&[]), false));
            match tokio::time::timeout(patience, &mut asked).await {
                Ok(answer) => answer.err(),
                Err(_) => {
                    let why = config.progress.waiting();
                    let why = why.unwrap_or_else(|| format!("{} does not answer", config.bootstrap));
                    say(&format!("{why}; still waiting"));
                    asked.await.err()
                }
            }
        };
        let Some(error) = error else { return Ok(()) };
        let why = format!("{error}; trying again for {} s at most", config.deadline.as_secs());
        if error.is_retriable() && why != said {
            say(&why);
            said = why;
        }
        tries.after(error).await?;
    }
}

async fn watching<T>(
    config: &ClusterConfig,
    patience: Duration,
    controller_patience: Duration,
    work: impl Future<Output = Result<T, ClientError>>,
    mut say: impl FnMut(&str),
) -> Result<T, ClientError> {
    let mut work = pin!(work);
    let mut said = String::new();
    loop {
        let waited = async {
            tokio::time::sleep(patience).await;
            match config.last_trouble.get() {
                Some(trouble) => Some(format!("not done yet, and tried again: {trouble}")),
                None if said.is_empty() => no_controller(config, controller_patience).await,
                None => None,
            }
        };
        let why = tokio::select! {
            biased;
            done = &mut work => return done,
            why = waited => why,
        };
        if let Some(why) = why.filter(|why| *why != said) {
            say(&why);
            said = why;
        }
    }
}

/// Why the active controller is not reached, in words; `None`: it is, and works.
async fn no_controller(config: &ClusterConfig, patience: Duration) -> Option<String> {
    if config.is_of_controllers {
        // The active controller itself is asked.
        return None;
    }
    let mut cluster = Cluster::new(config.clone());
    let deadline_s = config.deadline.as_secs();
    let reached = tokio::time::timeout(patience, cluster.refresh(Some(&[]), false)).await;
    match reached {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Some(format!("not done yet: {error}")),
        Err(_) => {
            let why = config.progress.waiting();
            let why = why.unwrap_or_else(|| format!("{} does not answer", config.bootstrap));
            return Some(format!("not done yet: {why}"));
        }
    }
    let partitions = vec![PartitionData::default()];
    let topic = TopicData { topic_name: "__cluster_metadata".into(), partitions, ..TopicData::default() };
    let request = DescribeQuorumRequest { topics: vec![topic], ..DescribeQuorumRequest::default() };
    let what = match tokio::time::timeout(patience, cluster.ask_any(&request)).await {
        Ok(Ok(answer)) => {
            let partition = answer.topics.first().and_then(|topic| topic.partitions.first());
            let code = [answer.error_code, partition.map_or(0, |partition| partition.error_code)];
            match code.into_iter().find(|&code| code != 0).map(ErrorCode::from_code) {
                // A user without DESCRIBE on the cluster: the answer says nothing of the quorum.
                None | Some(ErrorCode::ClusterAuthorizationFailed) => return None,
                Some(code) => code.name().to_owned(),
            }
        }
        // It cannot be asked: an old broker.
        Ok(Err(ClientError::Unsupported { .. })) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} ms", patience.as_millis()),
    };
    Some(format!(
        "not done yet: {} reaches no active controller (DescribeQuorum: {what}). Is half of the metadata quorum gone? Trying \
         for {deadline_s} s at most",
        config.bootstrap
    ))
}

#[cfg(test)]
pub mod tests;
