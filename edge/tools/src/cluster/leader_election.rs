//! `leader-election`, as Kafka's `kafka-leader-election`: has leaders elected, the preferred ones or, at the price of records, those
//! that are there.
//!
//! Left out: `--path-to-json-file`. Source: Kafka `LeaderElectionCommand`.

use crate::command_line::args::{number, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::waiting::telling;
use crate::{ToolError, block_on, say};
use barnabas_base::ErrorCode;
use barnabas_client::Cluster;
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::elect_leaders_response::PartitionResult;
use barnabas_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};
use clap::{Arg, ArgMatches};

const TIMEOUT_MS: i32 = 30_000;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        value(
            "election-type",
            "PREFERRED|UNCLEAN",
            "The preferred replica; or whichever is alive, in sync or not: what it lacks is lost",
        )
        .required(true)
        .ignore_case(true)
        .value_parser(["PREFERRED", "UNCLEAN"]),
        value("topic", "topic", "The topic of the partition").requires("partition"),
        value("partition", "number", "The partition").requires("topic"),
        switch("all-topic-partitions", "All partitions that have no such leader")
            .conflicts_with("topic")
            .required_unless_present("topic"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let kind = text(matches, "election-type").unwrap_or_default().to_uppercase();
    let partition = number::<i32>(matches, "partition")?;
    let topic_partitions = text(matches, "topic").zip(partition).map(|(topic, partition)| {
        vec![TopicPartitions { topic: topic.into(), partitions: vec![partition], ..Default::default() }]
    });
    let request = ElectLeadersRequest {
        election_type: i8::from(kind == "UNCLEAN"),
        topic_partitions,
        timeout_ms: TIMEOUT_MS,
        ..Default::default()
    };
    let config = cluster_config(matches, "barnabas-leader-election")?;
    let answer = block_on(async {
        let mut cluster = Cluster::new(config.clone());
        Ok(telling("leader-election", config, cluster.ask_controller(|_| request.clone())).await?)
    })?;
    report(&answer, &kind)
}

/// In Kafka's words.
fn report(answer: &ElectLeadersResponse, kind: &str) -> Result<(), ToolError> {
    if answer.error_code != 0 {
        return Err(ToolError::Usage(ErrorCode::from_code(answer.error_code).name().to_owned()));
    }
    let (mut elected, mut valid, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for topic in &answer.replica_election_results {
        for row in &topic.partition_result {
            let name = format!("{}-{}", &*topic.topic, row.partition_id);
            match ErrorCode::from_code(row.error_code) {
                ErrorCode::None => elected.push(name),
                ErrorCode::ElectionNotNeeded => valid.push(name),
                code => failed.push(format!("{name}: {}", why(code, row))),
            }
        }
    }
    if !elected.is_empty() {
        say(&format!(
            "Successfully completed leader election ({kind}) for partitions {}",
            elected.join(", ")
        ))?;
    }
    if !valid.is_empty() {
        say(&format!("Valid replica already elected for partitions {}", valid.join(", ")))?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    let failed: Vec<String> = failed
        .into_iter()
        .map(|failure| format!("Error completing leader election ({kind}) for partition {failure}"))
        .collect();
    Err(ToolError::Usage(failed.join("\n")))
}

fn why(code: ErrorCode, row: &PartitionResult) -> String {
    let message = row.error_message.as_ref().map(|text| format!(": {}", &**text)).unwrap_or_default();
    format!("{}{message}", code.name())
}
