//! The tables of keys: name, type, default, valid values, when a key may change, how much it matters, and a sentence in
//! our words. A broker's are split by subject.

pub(crate) mod broker_coordinators;
pub(crate) mod broker_group_coordinators;
pub(crate) mod broker_logs;
pub(crate) mod broker_network;
pub(crate) mod broker_own;
pub(crate) mod broker_quorum;
pub(crate) mod broker_security;
pub(crate) mod broker_tiered;
pub(crate) mod client_metrics_keys;
pub(crate) mod group_keys;
pub(crate) mod topic_keys;
