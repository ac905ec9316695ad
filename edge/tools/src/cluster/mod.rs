//! The tools that show and change the cluster.

pub mod configs;
pub mod leader_election;
pub mod log_dirs;
pub mod metadata_quorum;
pub mod topics;
