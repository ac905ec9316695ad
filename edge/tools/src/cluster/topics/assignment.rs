//! `--replica-assignment`: the brokers of each partition.
//!
//! Source: Kafka `TopicCommand.parseReplicaAssignment`.

use crate::ToolError;
use crate::command_line::args::text;
use clap::ArgMatches;

/// The brokers of each partition, where the flag is given.
///
/// # Errors
/// A broker twice in one partition; partitions with different numbers of replicas; words that are no ids.
pub fn read(matches: &ArgMatches) -> Result<Option<Vec<Vec<i32>>>, ToolError> {
    text(matches, "replica-assignment").filter(|list| !list.is_empty()).map(parse).transpose()
}

fn parse(list: &str) -> Result<Vec<Vec<i32>>, ToolError> {
    let refused = |why: String| {
        Err(ToolError::Usage(format!("--replica-assignment: {why}. Example: 1:2,2:3 for two partitions")))
    };
    let mut partitions: Vec<Vec<i32>> = Vec::new();
    for (number, words) in list.split(',').enumerate() {
        let mut brokers = Vec::new();
        for word in words.split(':').map(str::trim) {
            match word.parse::<i32>() {
                Ok(id) if brokers.contains(&id) => {
                    return refused(format!("partition {number} has broker {id} twice"));
                }
                Ok(id) => brokers.push(id),
                Err(_) => return refused(format!("'{word}' is no broker's id")),
            }
        }
        let replicas = partitions.first().map_or(brokers.len(), Vec::len);
        if brokers.len() != replicas {
            return refused(format!(
                "partition {number} has {} replicas, and partition 0 has {replicas}",
                brokers.len()
            ));
        }
        partitions.push(brokers);
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn assignments_are_read_and_nonsense_is_refused() {
        assert_eq!(parse("1:2, 2:3").expect("two"), [[1, 2], [2, 3]]);
        for (list, why) in [
            ("1:1", "partition 0 has broker 1 twice"),
            ("1:2,3", "partition 1 has 1 replicas, and partition 0 has 2"),
            ("1:x", "'x' is no broker's id"),
            ("1,,2", "'' is no broker's id"),
        ] {
            let expected = format!("--replica-assignment: {why}. Example: 1:2,2:3 for two partitions");
            assert_eq!(parse(list).expect_err(list).to_string(), expected);
        }
    }
}
