//! Offsets: what a group has committed, and where partitions begin and end, one request for each leader.

use super::{Partition, metadata};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::ListOffsetsRequest;
use barnabas_wire::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use std::collections::{BTreeMap, BTreeSet};

/// ListOffsets' timestamps.
pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;

/// What a group has committed.
///
/// # Errors
/// The coordinator refuses.
pub async fn committed(cluster: &mut Cluster, group: &str) -> Result<BTreeMap<Partition, i64>, ClientError> {
    let committed = cluster.committed_offsets(group).await?;
    Ok(committed.into_iter().map(|(partition, committed)| (partition, committed.offset)).collect())
}

/// The offset of each partition at `timestamp`, or at [`LATEST`] or [`EARLIEST`]; the partition's error where it has
/// one. −1: no record is that new.
///
/// # Errors
/// A node does not answer.
pub async fn list(
    cluster: &mut Cluster,
    partitions: &BTreeSet<Partition>,
    timestamp: i64,
) -> Result<BTreeMap<Partition, Result<i64, ErrorCode>>, ClientError> {
    let mut offsets = BTreeMap::new();
    for (leader, led) in by_leader(cluster, partitions, &mut offsets).await? {
        let request = request(&led, timestamp);
        let answer = cluster.ask(leader, &request).await?;
        for topic in &answer.topics {
            for row in &topic.partitions {
                let offset = match row.error_code {
                    0 => Ok(row.offset),
                    code => Err(ErrorCode::from_code(code)),
                };
                offsets.insert((topic.name.to_string(), row.partition_index), offset);
            }
        }
    }
    Ok(offsets)
}

/// The partitions that each node leads. Those without a leader go to `offsets` with their error.
async fn by_leader(
    cluster: &mut Cluster,
    partitions: &BTreeSet<Partition>,
    offsets: &mut BTreeMap<Partition, Result<i64, ErrorCode>>,
) -> Result<BTreeMap<BrokerId, Vec<Partition>>, ClientError> {
    let mut leaders: BTreeMap<BrokerId, Vec<Partition>> = BTreeMap::new();
    if partitions.is_empty() {
        return Ok(leaders);
    }
    let mut names: Vec<&str> = partitions.iter().map(|partition| partition.0.as_str()).collect();
    names.dedup();
    let answer = metadata::ask(cluster, Some(&names)).await?;
    let mut known: BTreeMap<Partition, i32> = BTreeMap::new();
    for topic in &answer.topics {
        let name = topic.name.as_deref().unwrap_or_default();
        known.extend(
            topic.partitions.iter().map(|row| ((name.to_owned(), row.partition_index), row.leader_id)),
        );
    }
    for partition in partitions {
        match known.get(partition) {
            Some(leader) if *leader >= 0 => {
                leaders.entry(BrokerId(*leader)).or_default().push(partition.clone());
            }
            Some(_) => {
                offsets.insert(partition.clone(), Err(ErrorCode::LeaderNotAvailable));
            }
            None => {
                let topic = answer.topics.iter().find(|topic| topic.name.as_deref() == Some(&*partition.0));
                let code = topic.map(|topic| topic.error_code).filter(|code| *code != 0);
                let code = code.map_or(ErrorCode::UnknownTopicOrPartition, ErrorCode::from_code);
                offsets.insert(partition.clone(), Err(code));
            }
        }
    }
    Ok(leaders)
}

/// `partitions`: in order.
fn request(partitions: &[Partition], timestamp: i64) -> ListOffsetsRequest {
    let mut topics: Vec<ListOffsetsTopic> = Vec::new();
    for (name, index) in partitions {
        if topics.last().is_none_or(|last| *last.name != **name) {
            topics.push(ListOffsetsTopic { name: name.as_str().into(), ..Default::default() });
        }
        let row = ListOffsetsPartition {
            partition_index: *index,
            current_leader_epoch: -1,
            timestamp,
            ..Default::default()
        };
        topics.last_mut().expect("invariant: pushed just now").partitions.push(row);
    }
    ListOffsetsRequest { replica_id: -1, topics, ..Default::default() }
}
