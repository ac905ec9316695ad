//! # DescribeLogDirs, key 35, versions 0–5
//!
//! Shows the log directories of this broker: how full they are, and which partitions they hold.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-113) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | flexible (KIP-482) |
//! | 3 | an error for the whole answer |
//! | 4 | total and usable bytes (KIP-827) |
//! | 5 | whether a directory is cordoned (KIP-1066) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeLogDirsRequest`, `ReplicaManager.describeLogDirs`.

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{ErrorCode, PartitionIndex, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use barnabas_wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

/// Which partitions are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    All,
    Some(BTreeMap<Str, BTreeSet<i32>>),
}

/// One directory, as the disk and the partitions' owners tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Absolute.
    pub path: Text,
    /// Failed: nothing else is known of it.
    pub is_offline: bool,
    pub is_cordoned: bool,
    /// Of the file system; `None` where it does not say.
    pub total_bytes: Option<u64>,
    pub usable_bytes: Option<u64>,
    pub partitions: Vec<Replica>,
}

/// One partition's log in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub topic: Text,
    pub partition: PartitionIndex,
    pub size_bytes: u64,
    /// How far it is behind the high watermark, or behind the log that it is to replace.
    pub offset_lag: i64,
    /// Is being filled to replace the log in another directory.
    pub is_future: bool,
}

/// What the request asks for.
pub fn plan(request: DescribeLogDirsRequest) -> Wanted {
    let Some(topics) = request.topics else { return Wanted::All };
    let mut wanted: BTreeMap<Str, BTreeSet<i32>> = BTreeMap::new();
    for topic in topics {
        wanted.entry(topic.topic).or_default().extend(topic.partitions);
    }
    Wanted::Some(wanted)
}

impl Wanted {
    /// Whether a partition belongs into the answer.
    pub fn contains(&self, topic: &str, partition: PartitionIndex) -> bool {
        match self {
            Self::All => true,
            Self::Some(wanted) => wanted.get(topic).is_some_and(|wanted| wanted.contains(&partition.get())),
        }
    }
}

/// The answer.
pub fn respond(wanted: &Wanted, directories: Vec<Directory>, version: i16) -> DescribeLogDirsResponse {
    let results = directories.into_iter().map(|directory| describe(wanted, directory, version));
    DescribeLogDirsResponse { results: results.collect(), ..DescribeLogDirsResponse::default() }
}

fn describe(wanted: &Wanted, directory: Directory, version: i16) -> DescribeLogDirsResult {
    let bytes = |bytes: Option<u64>| match bytes {
        Some(bytes) if version >= 4 => i64::try_from(bytes).unwrap_or(i64::MAX),
        _ => -1,
    };
    let mut result = DescribeLogDirsResult {
        log_dir: Str::from(&directory.path),
        total_bytes: -1,
        usable_bytes: -1,
        ..DescribeLogDirsResult::default()
    };
    if directory.is_offline {
        result.error_code = ErrorCode::KafkaStorageError.code();
        return result;
    }
    result.total_bytes = bytes(directory.total_bytes);
    result.usable_bytes = bytes(directory.usable_bytes);
    result.is_cordoned = version >= 5 && directory.is_cordoned;
    let mut topics: BTreeMap<Text, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    let replicas = directory.partitions.into_iter();
    for replica in replicas.filter(|replica| wanted.contains(&replica.topic, replica.partition)) {
        topics.entry(replica.topic).or_default().push(DescribeLogDirsPartition {
            partition_index: replica.partition.get(),
            partition_size: i64::try_from(replica.size_bytes).unwrap_or(i64::MAX),
            offset_lag: replica.offset_lag,
            is_future_key: replica.is_future,
            ..DescribeLogDirsPartition::default()
        });
    }
    let topics = topics.into_iter().map(|(name, partitions)| DescribeLogDirsTopic {
        name: Str::from(name),
        partitions,
        ..DescribeLogDirsTopic::default()
    });
    result.topics = topics.collect();
    result
}

#[cfg(test)]
mod tests;
