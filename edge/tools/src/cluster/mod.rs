//! The tools that show and change the cluster.

pub mod broker_api_versions;
pub mod client_metrics;
pub mod cluster_tool;
pub mod configs;
pub mod features;
pub mod jmx;
pub mod leader_election;
pub mod log_dirs;
pub mod metadata_quorum;
pub mod topics;
