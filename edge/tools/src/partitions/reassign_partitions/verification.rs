//! `--verify`: the progress of a reassignment.

use super::plan::{Partition, Plan};
use super::{FILE, file, ids, log_dirs, name, ongoing, throttles};
use crate::{ToolError, say};
use barnabas_base::ErrorCode;
use barnabas_client::{ClientError, Cluster};
use clap::ArgMatches;
use std::collections::BTreeMap;

pub async fn verify(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let plan = Plan::parse(&file(matches, FILE)?)?;
    let under_way = ongoing(cluster).await?;
    let mut lines = BTreeMap::new();
    for (partition, target) in &plan.partitions {
        let line = if under_way.contains_key(partition) {
            format!("Reassignment of partition {} is still in progress.", name(partition))
        } else {
            done(partition, target, &replicas(cluster, partition).await?)
        };
        lines.insert(partition, line);
    }
    say("Status of partition reassignment:")?;
    lines.values().try_for_each(|line| say(line))?;
    let places = log_dirs::places(cluster, &plan.log_dirs).await?;
    let moves: Vec<String> =
        plan.log_dirs.iter().map(|(replica, dir)| log_dirs::words(replica, dir, &places[replica])).collect();
    say(&moves.join("\n"))?;
    let is_moving = places.values().any(|place| place.future.is_some());
    if under_way.is_empty() && !is_moving && !matches.get_flag("preserve-throttles") {
        throttles::clear(cluster, &plan.partitions).await?;
    }
    Ok(())
}

/// The line of a partition without an active reassignment.
pub fn done(partition: &Partition, target: &[i32], replicas: &[i32]) -> String {
    if replicas == target {
        return format!("Reassignment of partition {} is completed.", name(partition));
    }
    format!(
        "There is no active reassignment of partition {}, but replica set is {} rather than {}.",
        name(partition),
        ids(replicas),
        ids(target)
    )
}

/// The partition's replicas; none where it does not exist.
async fn replicas(cluster: &mut Cluster, (topic, number): &Partition) -> Result<Vec<i32>, ClientError> {
    match cluster.topic(topic, false).await {
        Ok(known) => {
            let row = known.partitions.iter().find(|row| row.partition_index == *number);
            Ok(row.map(|row| row.replica_nodes.clone()).unwrap_or_default())
        }
        Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
