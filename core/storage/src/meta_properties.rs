//! `meta.properties`: which cluster, node and directory a log directory belongs to.
//!
//! Version 0 (Kafka before KRaft: `broker.id`) and version 1 (`node.id`, `directory.id`) are read; version 1 is written.
//! Source: Kafka `MetaProperties`, KIP-631, KIP-858.

use barnabas_base::{BrokerId, DirectoryId, Text};

/// The contents of `meta.properties`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// 0 or 1, as the file says.
    pub version: i32,
    /// Missing in some version-0 files.
    pub cluster_id: Option<Text>,
    pub node_id: Option<BrokerId>,
    /// Missing in files from before Kafka 3.7.
    pub directory_id: Option<DirectoryId>,
}
