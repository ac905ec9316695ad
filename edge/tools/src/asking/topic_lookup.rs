//! Finds the topics that a tool reads or writes, and says on standard error what it waits for.
//!
//! Kafka's producers, and consumers unless `allow.auto.create.topics` is false, have a missing topic made by a cluster
//! that makes topics by itself (`auto.create.topics.enable`); else they wait for it. So do these tools, and say so.

use crate::{ToolError, tell};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use regex::Regex;
use std::time::{Duration, Instant};

/// How long a topic may take to be created.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until the topic is there. `deadline`: without one it waits for ever.
///
/// # Errors
/// What waiting does not cure; the last try's after the deadline.
pub async fn find(
    tool: &str,
    cluster: &mut Cluster,
    topic: &str,
    may_be_made: bool,
    deadline: Option<Instant>,
) -> Result<(), ToolError> {
    let say = |line: &str| tell(&format!("{tool}: {line}"));
    Ok(finding(cluster, topic, may_be_made, (PATIENCE, deadline), say).await?)
}

/// The topics there are now whose whole name `pattern` matches.
///
/// # Errors
/// None does.
pub async fn matching(cluster: &mut Cluster, pattern: &Regex) -> Result<Vec<String>, ToolError> {
    let known = cluster.refresh(None, false).await?;
    let names = known.topics.iter().filter_map(|topic| topic.name.as_ref()).map(|name| name.to_string());
    let mut topics: Vec<String> = names.filter(|name| pattern.is_match(name)).collect();
    topics.sort();
    if topics.is_empty() {
        return Err(ToolError::Usage("--include matches no topic; --topic waits for one".to_owned()));
    }
    Ok(topics)
}

async fn finding(
    cluster: &mut Cluster,
    topic: &str,
    may_be_made: bool,
    (patience, deadline): (Duration, Option<Instant>),
    mut say: impl FnMut(&str),
) -> Result<(), ClientError> {
    let pause = cluster.config().retry_backoff;
    let (started, mut was_missing, mut said) = (Instant::now(), false, Vec::new());
    loop {
        // The first question makes nothing, so that a topic that is made by the second one can be told from another.
        let error = match cluster.topic(topic, may_be_made && was_missing).await {
            Ok(known) if was_missing => {
                say(&format!("topic {topic} was created, partitions: {}", known.partitions.len()));
                return Ok(());
            }
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        let is_missing = error.code() == Some(ErrorCode::UnknownTopicOrPartition);
        let why = match (is_missing, was_missing, may_be_made) {
            (true, false, true) => format!("topic {topic} does not exist; asking the cluster to create it"),
            (true, false, false) => format!("topic {topic} does not exist; waiting for it"),
            (true, true, _) => format!(
                "topic {topic} still does not exist (is auto.create.topics.enable=false?); waiting for it. Create it with: \
                 barnabas topics --create --topic {topic}"
            ),
            (false, ..) => format!("{error}; trying again"),
        };
        if !error.is_retriable() || deadline.is_some_and(|deadline| Instant::now() + pause >= deadline) {
            return Err(error);
        }
        // A cluster that makes topics takes a moment for it.
        let is_early = is_missing && was_missing && started.elapsed() < patience;
        if !is_early && !said.contains(&why) {
            say(&why);
            said.push(why);
        }
        // A topic that may be made is asked for at once.
        if was_missing || !is_missing {
            tokio::time::sleep(pause).await;
        }
        was_missing |= is_missing;
    }
}

#[cfg(test)]
mod tests;
