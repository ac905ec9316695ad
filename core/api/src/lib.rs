//! One file per Kafka API: what a request asks of this node, and what the answer looks like in each version.
//!
//! Each `kNN_name.rs` has a `plan`: the request, its version and a [`Context`] in, a [`Plan`] out. A plan is either the
//! answer, or work for others (partitions, the controller, a group coordinator) together with what is needed to make
//! the answer from their results. The work is done by the shell; here is no clock, no socket, no state but the cache of
//! fetch sessions.
//!
//! Not here: bytes (barnabas_wire), what a partition, the controller or a coordinator decides.
//!
//! Always true:
//! 1. the checks of an API come in Kafka's order and refuse with Kafka's codes
//! 2. a field that a version lacks is left at the default that Kafka's encoder leaves there
//!
//! Produce path 2 of 5, fetch path 2 of 4. Before: shell/broker/src/requests/connection.rs. After: partition_worker.rs.

mod access;
mod altered;
mod answer_room;
pub mod audited;
mod auto_create;
mod context;
mod current_leader;
pub mod dead_letters;
mod described;
mod described_groups;
mod gate;
pub mod groups;
pub mod headers;
pub mod k00_produce;
pub mod k01_fetch;
pub mod k02_list_offsets;
pub mod k03_metadata;
pub mod k08_offset_commit;
pub mod k09_offset_fetch;
pub mod k10_find_coordinator;
pub mod k11_join_group;
pub mod k12_heartbeat;
pub mod k13_leave_group;
pub mod k14_sync_group;
pub mod k15_describe_groups;
pub mod k16_list_groups;
pub mod k17_sasl_handshake;
pub mod k18_api_versions;
pub mod k19_create_topics;
pub mod k20_delete_topics;
pub mod k21_delete_records;
pub mod k22_init_producer_id;
pub mod k23_offset_for_leader_epoch;
pub mod k24_add_partitions_to_txn;
pub mod k25_add_offsets_to_txn;
pub mod k26_end_txn;
pub mod k27_write_txn_markers;
pub mod k28_txn_offset_commit;
pub mod k29_describe_acls;
pub mod k30_create_acls;
pub mod k31_delete_acls;
pub mod k32_describe_configs;
pub mod k33_alter_configs;
pub mod k34_alter_replica_log_dirs;
pub mod k35_describe_log_dirs;
pub mod k36_sasl_authenticate;
pub mod k37_create_partitions;
pub mod k38_create_delegation_token;
pub mod k39_renew_delegation_token;
pub mod k40_expire_delegation_token;
pub mod k41_describe_delegation_token;
pub mod k42_delete_groups;
pub mod k43_elect_leaders;
pub mod k44_incremental_alter_configs;
pub mod k45_alter_partition_reassignments;
pub mod k46_list_partition_reassignments;
pub mod k47_offset_delete;
pub mod k48_describe_client_quotas;
pub mod k49_alter_client_quotas;
pub mod k50_describe_user_scram_credentials;
pub mod k51_alter_user_scram_credentials;
pub mod k55_describe_quorum;
pub mod k56_alter_partition;
pub mod k57_update_features;
pub mod k58_envelope;
pub mod k60_describe_cluster;
pub mod k61_describe_producers;
pub mod k62_broker_registration;
pub mod k63_broker_heartbeat;
pub mod k64_unregister_broker;
pub mod k65_describe_transactions;
pub mod k66_list_transactions;
pub mod k67_allocate_producer_ids;
pub mod k68_consumer_group_heartbeat;
pub mod k69_consumer_group_describe;
pub mod k70_controller_registration;
pub mod k71_get_telemetry_subscriptions;
pub mod k72_push_telemetry;
pub mod k73_assign_replicas_to_dirs;
pub mod k74_list_config_resources;
pub mod k75_describe_topic_partitions;
pub mod k76_share_group_heartbeat;
pub mod k77_share_group_describe;
pub mod k78_share_fetch;
pub mod k79_share_acknowledge;
pub mod k80_add_raft_voter;
pub mod k81_remove_raft_voter;
pub mod k83_initialize_share_group_state;
pub mod k84_read_share_group_state;
pub mod k85_write_share_group_state;
pub mod k86_delete_share_group_state;
pub mod k87_read_share_group_state_summary;
pub mod k88_streams_group_heartbeat;
pub mod k89_streams_group_describe;
pub mod k90_describe_share_group_offsets;
pub mod k91_alter_share_group_offsets;
pub mod k92_delete_share_group_offsets;
pub mod k93_streams_group_topology_description_update;
pub mod k94_unregister_controller;
pub mod loggers;
mod own_topics;
mod pieces;
mod repeats;
pub mod replication;
mod session_memory;
pub mod share;
pub mod share_partitions;
pub mod share_state;
pub mod throttled;
mod tokens;
pub mod transactions;

#[cfg(test)]
mod testing;

pub use access::{Access, Decisions, Denials, Judge};
pub use altered::Route;
pub use answer_room::{AnswerRoom, Lender, TooLarge, Unlimited};
pub use auto_create::{Admitted, AutoCreation, auto_created_topic, internal_topic_configs};
pub use context::{Client, Context, Leader, Node, OfflineReplicas};
pub use gate::{Gate, Rule, gate, rule};
pub use pieces::InPieces;
pub use session_memory::SessionShare;

use barnabas_base::ErrorCode;
use barnabas_wire::{Str, sentence};

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan<Work, Response> {
    /// The request needs no other thread or node.
    Answer(Response),
    /// Others have to do something first.
    Work(Work),
}

/// An answer that is a refusal: for one topic, partition or resource, with a sentence where the version carries one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl Refusal {
    /// A long message is cut: it may hold a name that a client chose, once for each of many entries.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: Some(sentence(message.into()).into_owned()) }
    }

    /// The sentence, for the field of an answer.
    pub fn text(&self) -> Option<Str> {
        self.message.as_ref().map(Str::from)
    }
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, message: None }
    }
}

/// Where a part of a request's work belongs in its answer. Given out by `plan`, handed back with the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    pub(crate) topic: u32,
    pub(crate) partition: u32,
}

impl Slot {
    pub(crate) fn new(topic: usize, partition: usize) -> Self {
        // A frame holds fewer than 2^32 of anything.
        Self { topic: topic as u32, partition: partition as u32 }
    }

    pub(crate) fn topic(self) -> usize {
        self.topic as usize
    }

    pub(crate) fn partition(self) -> usize {
        self.partition as usize
    }
}
