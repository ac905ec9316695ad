//! Moves of replicas between the log directories of a broker: starts them and reads their state. KIP-113.

use super::plan::{Replica, failed};
use super::plural;
use crate::{ToolError, say};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::alter_replica_log_dirs_request::{AlterReplicaLogDir, AlterReplicaLogDirTopic};
use barnabas_wire::messages::describe_log_dirs_request::DescribableLogDirTopic;
use barnabas_wire::messages::{AlterReplicaLogDirsRequest, DescribeLogDirsRequest};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two tries to begin a move.
const PAUSE: Duration = Duration::from_millis(100);

/// The log directory of a replica, and the one that it moves to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    pub current: Option<String>,
    pub future: Option<String>,
}

/// # Errors
/// A broker does not answer.
pub async fn places(
    cluster: &mut Cluster,
    wanted: &BTreeMap<Replica, String>,
) -> Result<BTreeMap<Replica, Place>, ClientError> {
    let mut places = BTreeMap::new();
    if !wanted.is_empty() {
        cluster.nodes().await?;
    }
    for replica in wanted.keys() {
        let (broker, topic, number) = replica;
        let asked = DescribableLogDirTopic {
            topic: topic.as_str().into(),
            partitions: vec![*number],
            ..Default::default()
        };
        let request = DescribeLogDirsRequest { topics: Some(vec![asked]), ..Default::default() };
        let answer = cluster.ask(BrokerId(*broker), &request).await?;
        let mut place = Place::default();
        for dir in answer.results.iter().filter(|dir| dir.error_code == 0) {
            let topics = dir.topics.iter().filter(|known| *known.name == **topic);
            for row in topics.flat_map(|topic| &topic.partitions).filter(|row| row.partition_index == *number)
            {
                let slot = if row.is_future_key { &mut place.future } else { &mut place.current };
                *slot = Some(dir.log_dir.to_string());
            }
        }
        places.insert(replica.clone(), place);
    }
    Ok(places)
}

/// The line of `--verify` for a move.
pub fn words((broker, topic, number): &Replica, wanted: &str, place: &Place) -> String {
    match (&place.current, &place.future) {
        (None, _) => format!(
            "Partition {topic}-{number} is not found in any live log dir on broker {broker}. There is likely an offline log directory on the broker."
        ),
        (Some(current), None) if current == wanted => {
            format!("Reassignment of replica {topic}-{number}-{broker} completed successfully.")
        }
        (Some(current), None) => format!(
            "Partition {topic}-{number} on broker {broker} is not being moved from log dir {current} to {wanted}."
        ),
        (Some(_), Some(future)) if future == wanted => {
            format!("Reassignment of replica {topic}-{number}-{broker} is still in progress.")
        }
        (Some(_), Some(future)) => format!(
            "Partition {topic}-{number} on broker {broker} is being moved to log dir {future} instead of {wanted}."
        ),
    }
}

/// Begins moves. A replica that its broker does not have yet is tried again: it comes with the reassignment.
///
/// # Errors
/// A broker refuses; not all have begun within `timeout`.
pub async fn begin(
    cluster: &mut Cluster,
    wanted: &BTreeMap<Replica, String>,
    timeout: Duration,
) -> Result<(), ToolError> {
    let started = Instant::now();
    let mut pending = wanted.clone();
    while !pending.is_empty() {
        let mut left = BTreeMap::new();
        for (replica, dir) in pending {
            let (broker, topic, number) = &replica;
            match alter(cluster, &replica, &dir).await? {
                ErrorCode::None => say(&format!(
                    "Successfully started moving log directory to {dir} for replica {topic}-{number} with broker {broker} "
                ))?,
                ErrorCode::ReplicaNotAvailable => {
                    left.insert(replica, dir);
                }
                code => {
                    return Err(failed(&format!(
                        "Failed to alter dir for {topic}-{number}-{broker}: {}",
                        crate::output::kafka_errors::thrown(code, None)
                    )));
                }
            }
        }
        pending = left;
        if !pending.is_empty() && started.elapsed() >= timeout {
            let left: Vec<String> =
                pending.keys().map(|(broker, topic, number)| format!("{topic}-{number}-{broker}")).collect();
            return Err(ToolError::Plain(format!(
                "Timed out before log directory move{} could be started for: {}",
                plural(left.len()),
                left.join(",")
            )));
        }
        if !pending.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

async fn alter(
    cluster: &mut Cluster,
    (broker, topic, number): &Replica,
    dir: &str,
) -> Result<ErrorCode, ClientError> {
    let topic = AlterReplicaLogDirTopic {
        name: topic.as_str().into(),
        partitions: vec![*number],
        ..Default::default()
    };
    let dir = AlterReplicaLogDir { path: dir.into(), topics: vec![topic], ..Default::default() };
    let request = AlterReplicaLogDirsRequest { dirs: vec![dir], ..Default::default() };
    let answer = cluster.ask(BrokerId(*broker), &request).await?;
    let row = answer.results.iter().flat_map(|topic| &topic.partitions).next();
    let row = row.ok_or_else(|| ClientError::Invalid("the answer names no replica".to_owned()))?;
    Ok(ErrorCode::from_code(row.error_code))
}
