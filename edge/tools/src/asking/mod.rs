//! Requests that several tools send, and what they report while they wait.

pub mod alter_configs;
pub mod signals;
pub mod topic_lookup;
pub mod waiting;
