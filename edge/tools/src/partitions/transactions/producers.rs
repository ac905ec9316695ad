//! The producers of a partition; aborts the open transaction of one there.

use super::{TOOL, failed, needed, partition};
use crate::ToolError;
use crate::command_line::args::number;
use crate::output::table::{Layout, Table};
use crate::waiting::telling;
use barnabas_base::{BrokerId, PartitionIndex};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::describe_producers_request::TopicRequest;
use barnabas_wire::messages::describe_producers_response::ProducerState;
use barnabas_wire::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use barnabas_wire::messages::{DescribeProducersRequest, WriteTxnMarkersRequest};
use clap::ArgMatches;

/// The producers that a replica of a partition remembers; without `broker` the leader's.
///
/// # Errors
/// The replica refuses, or is not found until the deadline. As in Kafka, a partition that is not there is looked up
/// until then: it may be new.
pub async fn producers_of(
    cluster: &mut Cluster,
    of: &(String, i32),
    broker: Option<BrokerId>,
) -> Result<Vec<ProducerState>, ClientError> {
    telling(TOOL, cluster.config().clone(), described(cluster, of, broker)).await
}

async fn described(
    cluster: &mut Cluster,
    (topic, partition): &(String, i32),
    broker: Option<BrokerId>,
) -> Result<Vec<ProducerState>, ClientError> {
    let asked = TopicRequest {
        name: topic.as_str().into(),
        partition_indexes: vec![*partition],
        ..Default::default()
    };
    let request = DescribeProducersRequest { topics: vec![asked], ..Default::default() };
    let tries = cluster.tries(format!("describing the producers of {topic}-{partition}"));
    loop {
        let node = match broker {
            Some(broker) => {
                cluster.nodes().await?;
                Ok(broker)
            }
            None => cluster.leader(topic, PartitionIndex(*partition)).await,
        };
        let told = match node {
            Ok(node) => cluster.ask(node, &request).await.and_then(|answer| {
                let told = answer.topics.into_iter().flat_map(|topic| topic.partitions).next();
                let told =
                    told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
                let name = format!("{topic}-{partition}");
                check(name, told.error_code, told.error_message.as_deref()).map(|()| told.active_producers)
            }),
            Err(error) => Err(error),
        };
        match told {
            Ok(producers) => return Ok(producers),
            Err(error) => {
                cluster.forget(topic);
                tries.after(error).await?;
            }
        }
    }
}

pub async fn describe(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let of = partition(matches)?;
    let broker = number::<i32>(matches, "broker-id")?;
    let producers = producers_of(cluster, &of, broker.map(BrokerId)).await.map_err(|error| {
        let whose = broker.map_or_else(|| "leader".to_owned(), |id| format!("broker {id}"));
        failed(&format!("Failed to describe producers for partition {}-{} on {whose}", of.0, of.1), error)
    })?;
    let mut table = Table::new(Layout::Tabs)
        .number("ProducerId", 0)
        .number("ProducerEpoch", 0)
        .number("LatestCoordinatorEpoch", 0)
        .number("LastSequence", 0)
        .number("LastTimestamp", 0)
        .number("CurrentTransactionStartOffset", 0);
    for row in producers {
        let start = Some(row.current_txn_start_offset).filter(|offset| *offset >= 0);
        table.row([
            row.producer_id.to_string(),
            row.producer_epoch.to_string(),
            row.coordinator_epoch.max(-1).to_string(),
            row.last_sequence.to_string(),
            row.last_timestamp.to_string(),
            start.map_or_else(|| "None".to_owned(), |offset| offset.to_string()),
        ]);
    }
    table.print(matches)
}

/// The producer of the transaction to abort.
struct Open {
    producer_id: i64,
    producer_epoch: i16,
    coordinator_epoch: i32,
}

pub async fn abort(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let of = partition(matches)?;
    let open = match (number::<i64>(matches, "start-offset")?, number::<i64>(matches, "producer-id")?) {
        (Some(offset), None) => open_at(cluster, &of, offset).await?,
        (None, Some(producer_id)) => {
            needed(matches, "producer-epoch")?;
            needed(matches, "coordinator-epoch")?;
            let coordinator_epoch = number::<i32>(matches, "coordinator-epoch")?.unwrap_or_default();
            Open {
                producer_id,
                producer_epoch: number(matches, "producer-epoch")?.unwrap_or_default(),
                // Of a producer that never ended a transaction describe-producers shows −1.
                coordinator_epoch: coordinator_epoch.max(0),
            }
        }
        _ => {
            return Err(ToolError::Usage(
                "abort needs --start-offset, or --producer-id with --producer-epoch and --coordinator-epoch"
                    .to_owned(),
            ));
        }
    };
    mark(cluster, &of, &open).await
}

async fn open_at(cluster: &mut Cluster, of: &(String, i32), offset: i64) -> Result<Open, ToolError> {
    let name = format!("{}-{}", of.0, of.1);
    let producers = producers_of(cluster, of, None)
        .await
        .map_err(|error| failed(&format!("Failed to validate producer state for partition {name}"), error))?;
    let found = producers.iter().find(|row| row.current_txn_start_offset == offset);
    let found = found.ok_or_else(|| {
        ToolError::Plain(format!(
            "Could not find any open transactions starting at offset {offset} on partition {name}"
        ))
    })?;
    Ok(Open {
        producer_id: found.producer_id,
        producer_epoch: found.producer_epoch as i16,
        coordinator_epoch: found.coordinator_epoch.max(0),
    })
}

/// Sends the abort marker to the partition's leader.
async fn mark(cluster: &mut Cluster, of: &(String, i32), open: &Open) -> Result<(), ToolError> {
    let (topic, partition) = of;
    let marker = WritableTxnMarker {
        producer_id: open.producer_id,
        producer_epoch: open.producer_epoch,
        transaction_result: false,
        topics: vec![WritableTxnMarkerTopic {
            name: topic.as_str().into(),
            partition_indexes: vec![*partition],
            ..Default::default()
        }],
        coordinator_epoch: open.coordinator_epoch,
        ..Default::default()
    };
    let request = WriteTxnMarkersRequest { markers: vec![marker], ..Default::default() };
    let marked = async {
        let leader = cluster.leader(topic, PartitionIndex(*partition)).await?;
        let answer = cluster.ask(leader, &request).await?;
        let told = answer
            .markers
            .iter()
            .flat_map(|marker| &marker.topics)
            .flat_map(|topic| &topic.partitions)
            .next();
        let told = told.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
        check(format!("{topic}-{partition}"), told.error_code, None)
    };
    marked.await.map_err(|error| {
        failed(
            &format!(
                "Failed to abort transaction AbortTransactionSpec(topicPartition={topic}-{partition}, producerId={}, producerEpoch={}, coordinatorEpoch={})",
                open.producer_id, open.producer_epoch, open.coordinator_epoch
            ),
            error,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TOLD;
    use crate::waiting::tests::cluster_without_topics;

    #[tokio::test]
    async fn missing_partition_is_reported_before_the_deadline() {
        let mut cluster = cluster_without_topics().await;
        let ended = producers_of(&mut cluster, &("t".to_owned(), 9), None).await;
        assert!(matches!(ended, Err(ClientError::TimedOut { .. })), "{ended:?}");
        let wanted = "transactions: not done yet, and tried again: t: UNKNOWN_TOPIC_OR_PARTITION";
        TOLD.with_borrow(|lines| assert_eq!(lines[..], [wanted]));
    }
}
