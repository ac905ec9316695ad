//! `log-dirs`, as Kafka's `kafka-log-dirs`: the replicas in each broker's log directories, as one line of JSON.
//!
//! Source: Kafka 4.3 `LogDirsCommand`.

use crate::command_line::args::{switch, text, value};
use crate::command_line::connection::{bootstrap_server, cluster_config, command_config};
use crate::{ToolError, block_on, say};
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster};
use barnabas_wire::messages::DescribeLogDirsRequest;
use barnabas_wire::messages::describe_log_dirs_response::{DescribeLogDirsResult, DescribeLogDirsTopic};
use clap::{Arg, ArgMatches};
use std::fmt::Write;

pub fn flags() -> Vec<Arg> {
    vec![
        bootstrap_server().required(true),
        command_config(),
        switch("describe", "Describe the log directories").required(true),
        value("topic-list", "names", "Only these topics, with commas between; all where it is left out"),
        value("broker-list", "ids", "Only these brokers, with commas between; all where it is left out"),
    ]
}

pub fn run(matches: &ArgMatches) -> Result<(), ToolError> {
    let mut cluster = Cluster::new(cluster_config(matches, "barnabas-log-dirs")?);
    let topics: Vec<&str> = words(text(matches, "topic-list"));
    let wanted: Vec<&str> = words(text(matches, "broker-list"));
    block_on(async {
        let known = cluster.refresh(Some(&[]), false).await?.brokers;
        let mut brokers: Vec<i32> = known.iter().map(|broker| broker.node_id).collect();
        brokers.sort_unstable();
        if !wanted.is_empty() {
            let missing = wanted.iter().find(|id| !brokers.iter().any(|known| known.to_string() == **id));
            if let Some(missing) = missing {
                return Err(ToolError::Usage(format!("--broker-list: there is no broker {missing}")));
            }
            brokers.retain(|id| wanted.contains(&id.to_string().as_str()));
        }
        let ids: Vec<String> = brokers.iter().map(ToString::to_string).collect();
        say("Querying brokers for log directories information")?;
        let mut described = Vec::new();
        for id in brokers {
            let request = DescribeLogDirsRequest { topics: None, ..Default::default() };
            let answer = cluster.ask(BrokerId(id), &request).await?;
            if answer.error_code != 0 {
                let what = format!("log directories of broker {id}");
                Err(ClientError::refused(what, answer.error_code, None))?;
            }
            described.push((id, answer.results));
        }
        say(&format!("Received log directory information from brokers {}", ids.join(",")))?;
        say(&json(&described, &topics))
    })
}

fn words(list: Option<&str>) -> Vec<&str> {
    list.into_iter().flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty()).collect()
}

/// One line, in the shape of Kafka's `LogDirsCommand`.
fn json(brokers: &[(i32, Vec<DescribeLogDirsResult>)], topics: &[&str]) -> String {
    let broker = |(id, dirs): &(i32, Vec<DescribeLogDirsResult>)| {
        let dirs: Vec<String> = dirs.iter().map(|dir| directory(dir, topics)).collect();
        format!(r#"{{"broker":{id},"logDirs":[{}]}}"#, dirs.join(","))
    };
    let brokers: Vec<String> = brokers.iter().map(broker).collect();
    format!(r#"{{"version":1,"brokers":[{}]}}"#, brokers.join(","))
}

fn directory(dir: &DescribeLogDirsResult, topics: &[&str]) -> String {
    let error = match ErrorCode::from_code(dir.error_code) {
        ErrorCode::None => "null".to_owned(),
        code => quoted(code.name()),
    };
    let is_wanted = |topic: &&DescribeLogDirsTopic| topics.is_empty() || topics.contains(&&*topic.name);
    let rows = dir.topics.iter().filter(is_wanted).flat_map(|topic| {
        topic.partitions.iter().map(|row| {
            let name = quoted(&format!("{}-{}", &*topic.name, row.partition_index));
            let (size, lag, future) = (row.partition_size, row.offset_lag, row.is_future_key);
            format!(r#"{{"partition":{name},"size":{size},"offsetLag":{lag},"isFuture":{future}}}"#)
        })
    });
    let rows: Vec<String> = rows.collect();
    let path = quoted(&dir.log_dir);
    format!(r#"{{"logDir":{path},"error":{error},"partitions":[{}]}}"#, rows.join(","))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            // Writing into a string cannot fail.
            letter if letter < ' ' => drop(write!(quoted, "\\u{:04x}", letter as u32)),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use barnabas_wire::messages::describe_log_dirs_response::DescribeLogDirsPartition;

    #[test]
    fn the_line_is_as_kafkas() {
        let row = DescribeLogDirsPartition {
            partition_index: 3,
            partition_size: 42,
            offset_lag: 7,
            is_future_key: true,
            ..Default::default()
        };
        let topic = |name: &str| DescribeLogDirsTopic {
            name: name.into(),
            partitions: vec![row.clone()],
            ..Default::default()
        };
        let good = DescribeLogDirsResult {
            log_dir: "/d\"1".into(),
            topics: vec![topic("t"), topic("other")],
            ..Default::default()
        };
        let dead = DescribeLogDirsResult { log_dir: "/d2".into(), error_code: 56, ..Default::default() };
        assert_eq!(
            json(&[(1, vec![good, dead])], &["t"]),
            r#"{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/d\"1","error":null,"partitions":[{"partition":"t-3","size":42,"offsetLag":7,"isFuture":true}]},{"logDir":"/d2","error":"KAFKA_STORAGE_ERROR","partitions":[]}]}]}"#
        );
    }
}
