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
//! The answer is as long as the broker has partitions: from [`crate::pieces::LARGE_MIN`] on it is written piece by
//! piece (large.rs).
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeLogDirsRequest`, `ReplicaManager.describeLogDirs`.

mod large;

use std::collections::{BTreeMap, BTreeSet};

use barnabas_base::{ErrorCode, PartitionIndex, Text};
use barnabas_wire::Str;
use barnabas_wire::messages::describe_log_dirs_request::DescribeLogDirsRequest;
use barnabas_wire::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResponse, DescribeLogDirsResult, DescribeLogDirsTopic,
};

use crate::pieces::LARGE_MIN;

pub use large::Large;

/// What one partition takes while the directories are looked at, about: its name on disk and in the image, its size by
/// its owner, its entry.
pub const LOOK_BYTES: u64 = 512;
/// What of it stays until the answer is written.
pub const KEPT_BYTES: u64 = 64;

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

/// An answer, whole or in pieces.
#[derive(Debug)]
pub enum Response {
    Whole(DescribeLogDirsResponse),
    Large(Large),
}

/// The answer.
pub fn respond(wanted: &Wanted, directories: Vec<Directory>, version: i16) -> Response {
    let partitions: usize = directories.iter().map(|directory| directory.partitions.len()).sum();
    if partitions >= LARGE_MIN {
        return Response::Large(Large::new(wanted, directories, version));
    }
    Response::Whole(whole(wanted, directories, version))
}

fn whole(wanted: &Wanted, directories: Vec<Directory>, version: i16) -> DescribeLogDirsResponse {
    let results = directories.into_iter().map(|directory| describe(wanted, directory, version));
    DescribeLogDirsResponse { results: results.collect(), ..DescribeLogDirsResponse::default() }
}

/// The answer of a node that has no memory for another: REQUEST_TIMED_OUT, as it has waited for some. Before version 3
/// the error is in each directory.
pub fn refuse(paths: impl IntoIterator<Item = Text>, version: i16) -> DescribeLogDirsResponse {
    let error_code = ErrorCode::RequestTimedOut.code();
    if version >= 3 {
        return DescribeLogDirsResponse { error_code, ..DescribeLogDirsResponse::default() };
    }
    let results = paths.into_iter().map(|path| DescribeLogDirsResult {
        error_code,
        log_dir: Str::from(path),
        total_bytes: -1,
        usable_bytes: -1,
        ..DescribeLogDirsResult::default()
    });
    DescribeLogDirsResponse { results: results.collect(), ..DescribeLogDirsResponse::default() }
}

/// A directory without its partitions.
fn head(directory: &Directory, version: i16) -> DescribeLogDirsResult {
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
    result
}

fn entry(replica: &Replica) -> DescribeLogDirsPartition {
    DescribeLogDirsPartition {
        partition_index: replica.partition.get(),
        partition_size: i64::try_from(replica.size_bytes).unwrap_or(i64::MAX),
        offset_lag: replica.offset_lag,
        is_future_key: replica.is_future,
        ..DescribeLogDirsPartition::default()
    }
}

fn describe(wanted: &Wanted, directory: Directory, version: i16) -> DescribeLogDirsResult {
    let mut result = head(&directory, version);
    if directory.is_offline {
        return result;
    }
    let mut topics: BTreeMap<Text, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    let replicas = directory.partitions.into_iter();
    for replica in replicas.filter(|replica| wanted.contains(&replica.topic, replica.partition)) {
        let entry = entry(&replica);
        topics.entry(replica.topic).or_default().push(entry);
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
