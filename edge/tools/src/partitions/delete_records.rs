//! `delete-records`, as Kafka's `kafka-delete-records`: deletes the records of partitions below offsets.
//!
//! Source: Kafka 4.3 `DeleteRecordsCommand`.

use crate::command_line::args::{text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::kafka_errors;
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::PartitionIndex;
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::DeleteRecordsRequest;
use barnabas_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use clap::{Arg, ArgMatches};
use serde_json::Value;
use std::time::Duration;

const TOOL: &str = "delete-records";
const TIMEOUT_MS: i32 = 30_000;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        value(
            "offset-json-file",
            "path",
            r#"A file: {"partitions": [{"topic": "orders", "partition": 0, "offset": 42}], "version": 1}; offset -1: all records"#,
        )
        .required(true),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let path = text(matches, "offset-json-file").unwrap_or_default();
    let read = std::fs::read_to_string(path);
    let read = read.map_err(|error| ToolError::Usage(format!("{path} cannot be read: {error}")))?;
    let wanted = parse(&read).map_err(ToolError::Plain)?;
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-delete-records")?);
    say("Executing records delete operation")?;
    say("Records delete operation completed:")?;
    block_on(async {
        for (topic, partition, offset) in &wanted {
            let name = format!("{topic}-{partition}");
            match delete(&mut cluster, topic, *partition, *offset).await {
                Ok(low) => say(&format!("partition: {name}\tlow_watermark: {low}"))?,
                Err(error @ (ClientError::Refused { .. } | ClientError::TimedOut { .. })) => {
                    say(&format!("partition: {name}\terror: {}", kafka_errors::of(&error)))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    })
}

/// The first offset that is left.
///
/// # Errors
/// The leader refuses, or is not found until the deadline. As in Kafka, a partition that is not there is looked up
/// until then: it may be new.
async fn delete(cluster: &mut Cluster, topic: &str, partition: i32, offset: i64) -> Result<i64, ClientError> {
    telling(TOOL, cluster.config().clone(), deleted(cluster, topic, partition, offset)).await
}

async fn deleted(
    cluster: &mut Cluster,
    topic: &str,
    partition: i32,
    offset: i64,
) -> Result<i64, ClientError> {
    let asked = DeleteRecordsPartition { partition_index: partition, offset, ..Default::default() };
    let topics =
        vec![DeleteRecordsTopic { name: topic.into(), partitions: vec![asked], ..Default::default() }];
    let request = DeleteRecordsRequest { topics, timeout_ms: TIMEOUT_MS, ..Default::default() };
    let tries = cluster.tries(format!("deleting records of {topic}-{partition}"));
    loop {
        let told = match cluster.leader(topic, PartitionIndex(partition)).await {
            // The answer waits for the other replicas.
            Ok(leader) => {
                cluster.ask_patiently(leader, &request, Duration::from_millis(TIMEOUT_MS as u64)).await
            }
            Err(error) => Err(error),
        };
        let told = told.and_then(|answer| {
            let row = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
            let row = row.ok_or_else(|| ClientError::Invalid("the answer names no partition".to_owned()))?;
            check(format!("{topic}-{partition}"), row.error_code, None).map(|()| row.low_watermark)
        });
        match told {
            Ok(low) => return Ok(low),
            Err(error) => {
                cluster.forget(topic);
                tries.after(error).await?;
            }
        }
    }
}

/// Topic, partition and offset of each entry.
fn parse(text: &str) -> Result<Vec<(String, i32, i64)>, String> {
    let json: Value =
        serde_json::from_str(text).map_err(|_| "The input string is not a valid JSON".to_owned())?;
    match json.get("version").map(Value::as_i64) {
        None | Some(Some(1)) => {}
        Some(_) => return Err(format!("Not supported version field value {}", json["version"])),
    }
    let list = json.get("partitions").and_then(Value::as_array).ok_or("Missing partitions field")?;
    let mut found = Vec::new();
    for entry in list {
        let topic = entry.get("topic").and_then(Value::as_str);
        let partition = entry.get("partition").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
        let offset = entry.get("offset").and_then(Value::as_i64);
        let (Some(topic), Some(partition), Some(offset)) = (topic, partition, offset) else {
            return Err(format!("{entry} is no topic, partition and offset"));
        };
        if found.iter().any(|(known, number, _)| known == topic && *number == partition) {
            return Err(format!("Offset json file contains duplicate topic partitions: {topic}-{partition}"));
        }
        found.push((topic.to_owned(), partition, offset));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TOLD;
    use crate::waiting::tests::cluster_without_topics;

    #[tokio::test]
    async fn missing_partition_is_reported_before_the_deadline() {
        let mut cluster = cluster_without_topics().await;
        let ended = delete(&mut cluster, "t", 9, -1).await;
        assert!(matches!(ended, Err(ClientError::TimedOut { .. })), "{ended:?}");
        let wanted = "delete-records: not done yet, and tried again: t: UNKNOWN_TOPIC_OR_PARTITION";
        TOLD.with_borrow(|lines| assert_eq!(lines[..], [wanted]));
    }

    #[test]
    fn files_of_offsets_are_read_as_kafka_reads_them() {
        let two = r#"{"partitions": [{"topic": "a", "partition": 0, "offset": 5}, {"topic": "a", "partition": 1, "offset": -1}], "version": 1}"#;
        assert_eq!(parse(two).expect("two"), [("a".to_owned(), 0, 5), ("a".to_owned(), 1, -1)]);
        for (text, why) in [
            ("{}", "Missing partitions field"),
            (r#"{"version": 2, "partitions": []}"#, "Not supported version field value 2"),
            (
                r#"{"partitions": [{"topic": "a", "partition": 0, "offset": 5}, {"topic": "a", "partition": 0, "offset": 6}]}"#,
                "Offset json file contains duplicate topic partitions: a-0",
            ),
            (r#"{"partitions": [{"topic": "a"}]}"#, r#"{"topic":"a"} is no topic, partition and offset"#),
        ] {
            assert_eq!(parse(text).expect_err(text), why);
        }
        assert_eq!(parse("a,0,5").expect_err("text"), "The input string is not a valid JSON");
    }
}
