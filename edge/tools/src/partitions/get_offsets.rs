//! `get-offsets`, as Kafka's `kafka-get-offsets`: offsets of partitions by time.
//!
//! Source: Kafka 4.3 `GetOffsetShell`.

use crate::asking::waiting::telling;
use crate::command_line::args::{excludes, switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::output::kafka_errors;
use crate::output::table::{Layout, Table, is_json, output};
use crate::{ToolError, block_on, say, tell};
use barnabas_base::Offset;
use barnabas_client::{ClientError, Cluster};
use clap::{Arg, ArgMatches};
use regex::Regex;

/// Kafka's names for offsets that are not found by time.
const TIMES: [(&str, i64); 6] = [
    ("latest", -1),
    ("earliest", -2),
    ("max-timestamp", -3),
    ("earliest-local", -4),
    ("latest-tiered", -5),
    ("earliest-pending-upload", -6),
];

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        value("topic-partitions", "patterns", "What to show: topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3"),
        value("topic", "expression", "The topics; all where it is left out"),
        value("partitions", "ids", "Only these partitions, with commas between"),
        value(
            "time",
            "timestamp",
            "The first offset at or after a time in ms, or: latest (the default), earliest, max-timestamp, \
             earliest-local, latest-tiered, earliest-pending-upload",
        ),
        switch("exclude-internal-topics", "Leave out the cluster's own topics"),
        output(),
    ]
}

/// Which partitions of the topics that an expression matches as a whole.
#[derive(Debug)]
struct Rule {
    topic: Regex,
    numbers: Numbers,
}

#[derive(Debug, PartialEq, Eq)]
enum Numbers {
    All,
    These(Vec<i32>),
    /// From the first on, below the second.
    Range(i32, i32),
}

impl Rule {
    fn new(topic: &str, numbers: Numbers) -> Result<Self, ToolError> {
        let expression = topic.trim().replace(',', "|").replace(' ', "");
        let regex = Regex::new(&format!("^(?:{expression})$"));
        let topic = regex.map_err(|error| failed(&format!("'{topic}' is no expression: {error}")))?;
        Ok(Self { topic, numbers })
    }

    fn has(&self, topic: &str, partition: i32) -> bool {
        self.topic.is_match(topic)
            && match &self.numbers {
                Numbers::All => true,
                Numbers::These(numbers) => numbers.contains(&partition),
                Numbers::Range(from, below) => (*from..*below).contains(&partition),
            }
    }
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    excludes(matches, "topic-partitions", &["topic", "partitions"])?;
    let rules = rules(matches)?;
    let time = time(text(matches, "time").unwrap_or("latest"))?;
    let config = cluster_config(matches, "barnabas-get-offsets")?;
    let mut cluster = Cluster::new(config.clone());
    block_on(async {
        let partitions =
            partitions(&mut cluster, &rules, matches.get_flag("exclude-internal-topics")).await?;
        if partitions.is_empty() {
            return Err(failed("Could not match any topic-partitions with the specified filters"));
        }
        let mut table =
            Table::new(Layout::Blanks).text("TOPIC", 0).number("PARTITION", 0).number("OFFSET", 0);
        let asked = async { Ok(cluster.list_offsets(partitions.iter().cloned(), time).await) };
        let mut answers = telling("get-offsets", config, asked).await?;
        for partition in partitions {
            let Some(answer) = answers.remove(&partition) else { continue };
            let (topic, partition) = partition;
            match answer {
                Ok(Offset(..0)) => {}
                Ok(offset) if is_json(matches) => {
                    table.row([topic, partition.to_string(), offset.to_string()]);
                }
                Ok(offset) => say(&format!("{topic}:{partition}:{offset}"))?,
                Err(error) => tell(&skipped(&topic, partition, &error)),
            }
        }
        if is_json(matches) { table.print(matches) } else { Ok(()) }
    })
}

fn failed(why: &str) -> ToolError {
    ToolError::Plain(format!("Error occurred: {why}"))
}

fn time(word: &str) -> Result<i64, ToolError> {
    if let Some((_, time)) = TIMES.iter().find(|(known, _)| *known == word) {
        return Ok(*time);
    }
    word.parse().map_err(|_| {
        failed(&format!(
            "Malformed time argument {word}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / \
             -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long format timestamp"
        ))
    })
}

fn rules(matches: &ArgMatches) -> Result<Vec<Rule>, ToolError> {
    if let Some(patterns) = text(matches, "topic-partitions") {
        return patterns.split(',').map(rule).collect();
    }
    let numbers = match text(matches, "partitions").filter(|list| !list.is_empty()) {
        None => Numbers::All,
        Some(list) => {
            let numbers: Result<Vec<i32>, _> = list.split(',').map(|word| word.trim().parse()).collect();
            let refused = || {
                failed(&format!(
                    "--partitions expects a comma separated list of numeric partition ids, but received: {list}"
                ))
            };
            Numbers::These(numbers.map_err(|_| refused())?)
        }
    };
    Ok(vec![Rule::new(text(matches, "topic").unwrap_or(".*"), numbers)?])
}

/// `topic`, `topic:3`, `topic:3-5`, `topic:3-`, `topic:-5`, each also without a topic.
fn rule(pattern: &str) -> Result<Rule, ToolError> {
    let refused = || failed(&format!("Invalid rule specification: {pattern}"));
    let (topic, numbers) = pattern.split_once(':').unwrap_or((pattern, ""));
    let number = |word: &str, left_out: i32| match word {
        "" => Ok(left_out),
        word if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().map_err(|_| refused()),
        _ => Err(refused()),
    };
    let numbers = match numbers.split_once('-') {
        None if numbers.is_empty() => Numbers::All,
        None => Numbers::These(vec![number(numbers, 0)?]),
        Some((from, below)) => Numbers::Range(number(from, 0)?, number(below, i32::MAX)?),
    };
    Rule::new(if topic.is_empty() { ".*" } else { topic }, numbers)
}

/// Those that a rule names, in the order of Kafka's tool: by `topic-partition` as text.
async fn partitions(
    cluster: &mut Cluster,
    rules: &[Rule],
    leave_out_internal: bool,
) -> Result<Vec<(String, i32)>, ToolError> {
    let known = cluster.refresh(None, false).await?;
    let mut found = Vec::new();
    for topic in known.topics.iter().filter(|topic| !(leave_out_internal && topic.is_internal)) {
        let Some(name) = topic.name.as_ref().map(ToString::to_string) else { continue };
        let wanted = topic.partitions.iter().map(|row| row.partition_index);
        let wanted = wanted.filter(|partition| rules.iter().any(|rule| rule.has(&name, *partition)));
        found.extend(wanted.map(|partition| (name.clone(), partition)));
    }
    found.sort_by_key(|(topic, partition)| format!("{topic}-{partition}"));
    Ok(found)
}

fn skipped(topic: &str, partition: i32, error: &ClientError) -> String {
    let (class, message) = kafka_errors::class_and_message(error);
    format!("Skip getting offsets for topic-partition {topic}-{partition} due to error: {class}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_base::ErrorCode;

    #[test]
    fn patterns_name_partitions_as_in_kafka() {
        let has = |pattern: &str, topic: &str, partition| rule(pattern).expect(pattern).has(topic, partition);
        assert!(has("orders", "orders", 7) && !has("orders", "orders2", 7));
        assert!(has("ord.*:1", "orders", 1) && !has("ord.*:1", "orders", 2));
        assert!(has("a:2-4", "a", 2) && has("a:2-4", "a", 3) && !has("a:2-4", "a", 4));
        assert!(has("a:2-", "a", 900) && !has("a:2-", "a", 1));
        assert!(has(":-2", "any", 1) && !has(":-2", "any", 2));
        for pattern in ["a:b", "a:1-x", "a:1:2"] {
            let refused = rule(pattern).expect_err(pattern).to_string();
            assert_eq!(refused, format!("Error occurred: Invalid rule specification: {pattern}"));
        }
    }

    #[test]
    fn partition_without_an_answer_is_skipped_as_in_kafka() {
        let last = "KAFKA_STORAGE_ERROR".to_owned();
        let late =
            ClientError::TimedOut { what: "asking for an offset of t-1".to_owned(), after_ms: 60_000, last };
        let wanted = "Skip getting offsets for topic-partition t-1 due to error: \
                      org.apache.kafka.common.errors.TimeoutException: asking for an offset of t-1 was not done within \
                      60000 ms; last answer: KAFKA_STORAGE_ERROR";
        assert_eq!(skipped("t", 1, &late), wanted);
        let refused = ClientError::refused("t-1", ErrorCode::TopicAuthorizationFailed.code(), None);
        let wanted = "Skip getting offsets for topic-partition t-1 due to error: \
                      org.apache.kafka.common.errors.TopicAuthorizationException: Topic authorization failed.";
        assert_eq!(skipped("t", 1, &refused), wanted);
    }

    #[test]
    fn times_are_words_or_milliseconds() {
        assert_eq!(time("earliest-local").expect("a word"), -4);
        assert_eq!(time("-2").expect("a number"), -2);
        assert_eq!(time("1700000000000").expect("a time"), 1_700_000_000_000);
        assert!(
            time("soon")
                .expect_err("no time")
                .to_string()
                .starts_with("Error occurred: Malformed time argument soon.")
        );
    }
}
