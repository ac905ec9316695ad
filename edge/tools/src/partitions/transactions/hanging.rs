//! Open transactions that no coordinator will end: no coordinator lists the producer, or the transaction that it lists
//! does not contain the partition.

use super::producers::producers_of;
use super::{failed, listed, state_of};
use crate::command_line::args::{number, text};
use crate::output::table::{Layout, Table};
use crate::{ToolError, now_ms};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::ListTransactionsRequest;
use barnabas_wire::messages::describe_producers_response::ProducerState;
use clap::ArgMatches;
use std::collections::BTreeMap;

const TIMEOUT_MIN: i64 = 15;
const MINUTE_MS: i64 = 60_000;

type Partition = (String, i32);

pub async fn find(cluster: &mut Cluster, matches: &ArgMatches) -> Result<(), ToolError> {
    let (topic, partition) = (text(matches, "topic"), number::<i32>(matches, "partition")?);
    let broker = number::<i32>(matches, "broker-id")?.map(BrokerId);
    if topic.is_none() && broker.is_none() {
        return Err(ToolError::Usage(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
                .to_owned(),
        ));
    }
    if topic.is_none() && partition.is_some() {
        return Err(ToolError::Usage("The --partition argument requires --topic to be provided".to_owned()));
    }
    let longer_than_ms = number(matches, "max-transaction-timeout")?.unwrap_or(TIMEOUT_MIN) * MINUTE_MS;
    let partitions = match (topic, partition) {
        (Some(topic), Some(partition)) => vec![(topic.to_owned(), partition)],
        _ => partitions(cluster, topic, broker)
            .await
            .map_err(|error| failed("Failed to describe topics", error))?,
    };
    let now = now_ms();
    let mut open = Vec::new();
    for partition in partitions {
        let producers = producers_of(cluster, &partition, broker).await.map_err(|error| {
            failed(
                &format!("Failed to describe producers for partition {}-{}", partition.0, partition.1),
                error,
            )
        })?;
        let is_old = |row: &ProducerState| {
            row.current_txn_start_offset >= 0 && now - row.last_timestamp > longer_than_ms
        };
        open.extend(producers.into_iter().filter(is_old).map(|row| (partition.clone(), row)));
    }
    let hanging = hanging(cluster, open).await?;
    table(&hanging, now).print(matches)
}

async fn partitions(
    cluster: &mut Cluster,
    topic: Option<&str>,
    broker: Option<BrokerId>,
) -> Result<Vec<Partition>, ClientError> {
    let named = topic.map(|topic| [topic]);
    let known = cluster.refresh(named.as_ref().map(|named| &named[..]), false).await?;
    let mut found = Vec::new();
    for topic in &known.topics {
        let Some(name) = &topic.name else { continue };
        if topic.error_code != 0 {
            return Err(ClientError::refused(format!("topic {}", &**name), topic.error_code, None));
        }
        let is_there = |replicas: &[i32]| broker.is_none_or(|broker| replicas.contains(&broker.0));
        let here = topic.partitions.iter().filter(|row| is_there(&row.replica_nodes));
        found.extend(here.map(|row| (name.to_string(), row.partition_index)));
    }
    found.sort();
    Ok(found)
}

async fn hanging(
    cluster: &mut Cluster,
    open: Vec<(Partition, ProducerState)>,
) -> Result<Vec<(Partition, ProducerState)>, ToolError> {
    if open.is_empty() {
        return Ok(open);
    }
    let mut producers: Vec<i64> = open.iter().map(|(_, row)| row.producer_id).collect();
    producers.sort_unstable();
    producers.dedup();
    let request = ListTransactionsRequest {
        producer_id_filters: producers.clone(),
        duration_filter: -1,
        ..Default::default()
    };
    let count = producers.len();
    let listed = listed(cluster, &request)
        .await
        .map_err(|error| failed(&format!("Failed to list transactions for {count} producers"), error))?;
    let mut counted: BTreeMap<i64, Vec<Partition>> = BTreeMap::new();
    for row in listed {
        match state_of(cluster, &row.id).await {
            Ok((_, state)) => {
                let partitions = state.topics.iter().flat_map(|topic| {
                    topic
                        .partitions
                        .iter()
                        .map(|&number| (topic.topic.to_string(), number))
                        .collect::<Vec<_>>()
                });
                counted.insert(row.producer_id, partitions.collect());
            }
            Err(error) if error.code() == Some(ErrorCode::TransactionalIdNotFound) => {}
            Err(error) => return Err(failed("Failed to describe transactions", error)),
        }
    }
    let is_hanging = |(partition, row): &(Partition, ProducerState)| {
        counted.get(&row.producer_id).is_none_or(|partitions| !partitions.contains(partition))
    };
    Ok(open.into_iter().filter(is_hanging).collect())
}

fn table(hanging: &[(Partition, ProducerState)], now_ms: i64) -> Table {
    let mut table = Table::new(Layout::Tabs)
        .text("Topic", 0)
        .number("Partition", 0)
        .number("ProducerId", 0)
        .number("ProducerEpoch", 0)
        .number("CoordinatorEpoch", 0)
        .number("StartOffset", 0)
        .number("LastTimestamp", 0)
        .number("Duration(min)", 0);
    for ((topic, partition), row) in hanging {
        table.row([
            topic.clone(),
            partition.to_string(),
            row.producer_id.to_string(),
            row.producer_epoch.to_string(),
            row.coordinator_epoch.max(-1).to_string(),
            row.current_txn_start_offset.to_string(),
            row.last_timestamp.to_string(),
            ((now_ms - row.last_timestamp) / MINUTE_MS).to_string(),
        ]);
    }
    table
}
