//! How much disk replicas take, and how much each log directory has left, as each broker says.

use super::Partition;
use barnabas_base::{BrokerId, ErrorCode};
use barnabas_client::{ClientError, Cluster, check};
use barnabas_wire::messages::DescribeLogDirsRequest;
use barnabas_wire::messages::describe_log_dirs_request::DescribableLogDirTopic;
use std::collections::BTreeMap;

/// A log directory of a broker.
#[derive(Debug, Clone)]
pub struct LogDir {
    pub broker: BrokerId,
    pub path: String,
    /// −1: the broker does not say.
    pub total_bytes: i64,
    pub usable_bytes: i64,
    /// Why it is offline.
    pub error: Option<ErrorCode>,
}

/// What the brokers say together.
#[derive(Debug, Default)]
pub struct Sizes {
    pub dirs: Vec<LogDir>,
    /// Of the largest replica of each partition.
    pub partitions: BTreeMap<Partition, i64>,
}

/// Of one topic's partitions, or of all where `None`.
///
/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED`; a broker does not answer.
pub async fn describe(cluster: &mut Cluster, topic: Option<(&str, Vec<i32>)>) -> Result<Sizes, ClientError> {
    let named = topic.map(|(name, partitions)| {
        vec![DescribableLogDirTopic { topic: name.into(), partitions, ..Default::default() }]
    });
    let request = DescribeLogDirsRequest { topics: named, ..Default::default() };
    let mut sizes = Sizes::default();
    for broker in cluster.nodes().await? {
        let answer = cluster.ask(broker, &request).await?;
        check(format!("log directories of broker {broker}"), answer.error_code, None)?;
        // Before version 3 a refusal is an answer without directories.
        for dir in answer.results {
            for topic in &dir.topics {
                for row in topic.partitions.iter().filter(|row| !row.is_future_key) {
                    let of = (topic.name.to_string(), row.partition_index);
                    let known = sizes.partitions.entry(of).or_insert(0);
                    *known = row.partition_size.max(*known);
                }
            }
            sizes.dirs.push(LogDir {
                broker,
                path: dir.log_dir.to_string(),
                total_bytes: dir.total_bytes,
                usable_bytes: dir.usable_bytes,
                error: (dir.error_code != 0).then(|| ErrorCode::from_code(dir.error_code)),
            });
        }
    }
    Ok(sizes)
}
