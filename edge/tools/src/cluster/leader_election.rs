//! `leader-election`, as Kafka's `kafka-leader-election`: elects the preferred leaders, or unclean ones, which can lose
//! records.
//!
//! Source: Kafka 4.3 `LeaderElectionCommand`.

use crate::command_line::args::{exactly_one, number, renamed, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config_of, command_config};
use crate::waiting::telling;
use crate::{ToolError, block_on, say, tell};
use barnabas_base::ErrorCode;
use barnabas_client::Cluster;
use barnabas_wire::messages::elect_leaders_request::TopicPartitions;
use barnabas_wire::messages::elect_leaders_response::PartitionResult;
use barnabas_wire::messages::{ElectLeadersRequest, ElectLeadersResponse};
use clap::{Arg, ArgMatches};
use serde_json::Value;

const TOOL: &str = "leader-election";
const TIMEOUT_MS: i32 = 30_000;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        value("admin.config", "path", "The older name of --command-config"),
        value(
            "election-type",
            "PREFERRED|UNCLEAN",
            "The preferred replica; or any that is alive: records that it lacks are lost",
        )
        .required(true)
        .ignore_case(true)
        .value_parser(["PREFERRED", "UNCLEAN"]),
        value("topic", "topic", "The topic of the partition"),
        value("partition", "number", "The partition"),
        switch("all-topic-partitions", "All partitions that have no such leader"),
        value(
            "path-to-json-file",
            "path",
            r#"A file with partitions: {"partitions": [{"topic": "orders", "partition": 0}]}"#,
        ),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let topic_partitions = partitions(matches)?;
    let kind = text(matches, "election-type").unwrap_or_default().to_uppercase();
    let request = ElectLeadersRequest {
        election_type: i8::from(kind == "UNCLEAN"),
        topic_partitions,
        timeout_ms: TIMEOUT_MS,
        ..Default::default()
    };
    let file = renamed(matches, "command-config", "admin.config")?;
    let config = cluster_config_of(matches, "barnabas-leader-election", file)?;
    let answer = block_on(async {
        let mut cluster = Cluster::new(config.clone());
        Ok(telling(TOOL, config, cluster.ask_controller(|_| request.clone())).await?)
    })?;
    report(&answer, &kind)
}

/// The partitions that are meant; `None`: all.
fn partitions(matches: &ArgMatches) -> Result<Option<Vec<TopicPartitions>>, ToolError> {
    let way = exactly_one(matches, &["topic", "all-topic-partitions", "path-to-json-file"])?;
    let partition = number::<i32>(matches, "partition")?;
    match (way, partition) {
        ("topic", Some(partition)) => {
            let topic = text(matches, "topic").unwrap_or_default().into();
            Ok(Some(vec![TopicPartitions { topic, partitions: vec![partition], ..Default::default() }]))
        }
        ("topic", None) => {
            Err(ToolError::Usage("--topic needs --partition. Example: --partition 0".to_owned()))
        }
        (_, Some(_)) => Err(ToolError::Usage("--partition goes with --topic".to_owned())),
        ("path-to-json-file", None) => {
            let path = text(matches, "path-to-json-file").unwrap_or_default();
            let read = std::fs::read_to_string(path);
            let read = read.map_err(|error| ToolError::Usage(format!("{path} cannot be read: {error}")))?;
            let parsed = parse(&read);
            parsed.map(Some).map_err(|why| {
                ToolError::Usage(format!(
                    r#"{path}: {why}. Example: {{"partitions": [{{"topic": "orders", "partition": 0}}]}}"#
                ))
            })
        }
        _ => Ok(None),
    }
}

fn parse(text: &str) -> Result<Vec<TopicPartitions>, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    let list = json.get("partitions").and_then(Value::as_array).ok_or(r#"it has no list "partitions""#)?;
    let mut topics: Vec<TopicPartitions> = Vec::new();
    for entry in list {
        let topic = entry.get("topic").and_then(Value::as_str);
        let partition = entry.get("partition").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
        let (Some(topic), Some(partition)) = (topic, partition) else {
            return Err(format!("{entry} is no partition"));
        };
        let at = topics.iter().position(|known| *known.topic == *topic).unwrap_or_else(|| {
            topics.push(TopicPartitions { topic: topic.into(), ..Default::default() });
            topics.len() - 1
        });
        if topics[at].partitions.contains(&partition) {
            return Err(format!("{topic}-{partition} is named twice"));
        }
        topics[at].partitions.push(partition);
    }
    Ok(topics)
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
    for failure in failed {
        tell(&format!("{TOOL}: Error completing leader election ({kind}) for partition {failure}"));
    }
    Err(ToolError::Reported)
}

fn why(code: ErrorCode, row: &PartitionResult) -> String {
    let message = row.error_message.as_ref().map(|text| format!(": {}", &**text)).unwrap_or_default();
    format!("{}{message}", code.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TOLD;
    use barnabas_wire::messages::elect_leaders_response::ReplicaElectionResult;

    fn meant(words: &str) -> Result<Option<Vec<TopicPartitions>>, String> {
        let begin = ["leader-election", "--bootstrap-server", "h:1", "--election-type", "preferred"];
        let words = begin.into_iter().chain(words.split_whitespace());
        let matches = clap::Command::new("leader-election").args(flags()).try_get_matches_from(words);
        partitions(&matches.expect("flags")).map_err(|error| error.to_string())
    }

    #[test]
    fn failed_election_is_a_line_of_its_own() {
        let row = |partition_id, code: ErrorCode, message: &str| PartitionResult {
            partition_id,
            error_code: code.code(),
            error_message: Some(message.into()),
            ..Default::default()
        };
        let rows = vec![
            row(0, ErrorCode::ElectionNotNeeded, ""),
            row(7, ErrorCode::UnknownTopicOrPartition, "No such partition as t-7"),
            row(8, ErrorCode::UnknownTopicOrPartition, "No such partition as t-8"),
        ];
        let topic = ReplicaElectionResult { topic: "t".into(), partition_result: rows, ..Default::default() };
        let answer = ElectLeadersResponse { replica_election_results: vec![topic], ..Default::default() };
        let ended = report(&answer, "PREFERRED");
        assert!(matches!(ended, Err(ToolError::Reported)), "{ended:?}");
        let lines = [7, 8].map(|partition| {
            format!(
                "leader-election: Error completing leader election (PREFERRED) for partition t-{partition}: \
                 UNKNOWN_TOPIC_OR_PARTITION: No such partition as t-{partition}"
            )
        });
        TOLD.with_borrow(|told| assert_eq!(told[..], lines));
    }

    #[test]
    fn partitions_are_named_in_exactly_one_way() {
        let one = "give exactly one of --topic, --all-topic-partitions and --path-to-json-file";
        for (words, refusal) in [
            ("", one),
            ("--topic t --all-topic-partitions", one),
            ("--topic t", "--topic needs --partition. Example: --partition 0"),
            ("--all-topic-partitions --partition 1", "--partition goes with --topic"),
        ] {
            assert_eq!(meant(words).expect_err(words), refusal, "{words}");
        }
        assert_eq!(meant("--all-topic-partitions"), Ok(None));
        let one = meant("--topic t --partition 3").expect("one").expect("named");
        assert_eq!((&*one[0].topic, &one[0].partitions[..]), ("t", &[3][..]));
    }

    #[test]
    fn files_of_partitions_are_read_as_kafka_reads_them() {
        let named = r#"{"partitions": [{"topic": "a", "partition": 1}, {"topic": "b", "partition": 0}, {"topic": "a", "partition": 2}]}"#;
        let read = parse(named).expect("three");
        let read: Vec<_> = read.iter().map(|topic| (&*topic.topic, &topic.partitions[..])).collect();
        assert_eq!(read, [("a", &[1, 2][..]), ("b", &[0][..])]);
        for (text, why) in [
            ("{}", r#"it has no list "partitions""#),
            (r#"{"partitions": [{"topic": "a"}]}"#, r#"{"topic":"a"} is no partition"#),
            (
                r#"{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}"#,
                "a-1 is named twice",
            ),
        ] {
            assert_eq!(parse(text).expect_err(text), why);
        }
        assert!(parse("a,1").expect_err("text").starts_with("it is no JSON: "));
    }
}
