//! Records deleted up to an offset.

use barnabas_base::PartitionIndex;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::DeleteRecordsRequest;
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use std::time::Duration;

const TIMEOUT_MS: i32 = 15_000;

/// Deletes the records of a partition below `offset`; returns the first offset that is left.
///
/// # Errors
/// The leader refuses: `POLICY_VIOLATION` for a compacted topic, `TOPIC_AUTHORIZATION_FAILED` …
pub async fn delete(
    cluster: &mut Cluster,
    (topic, partition): (&str, i32),
    offset: i64,
) -> Result<i64, ClientError> {
    let asked = DeleteRecordsPartition { partition_index: partition, offset, ..Default::default() };
    let topics =
        vec![DeleteRecordsTopic { name: topic.into(), partitions: vec![asked], ..Default::default() }];
    let request = DeleteRecordsRequest { topics, timeout_ms: TIMEOUT_MS, ..Default::default() };
    cluster.forget(topic);
    let leader = cluster.leader(topic, PartitionIndex(partition)).await?;
    // The answer waits for the other replicas.
    let patience = Duration::from_millis(TIMEOUT_MS.unsigned_abs().into());
    let answer = cluster.ask_patiently(leader, &request, patience).await?;
    let row = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
    let row = row.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
    check(format!("{topic}-{partition}"), row.error_code, None)?;
    Ok(row.low_watermark)
}
