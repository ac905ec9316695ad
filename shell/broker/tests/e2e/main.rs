//! The broker's end-to-end tests: one node or several in processes of their own, questioned over sockets.
//!
//! One binary, so that the harness is compiled and linked once. A module per subject; `cargo test -p barnabas --test
//! e2e life::` runs one of them.
#![allow(clippy::disallowed_methods)] // they wait by a clock of their own

mod harness;

mod access_records;
mod all_killed;
mod all_restarted;
mod any_node;
mod any_replica;
mod bad_input;
mod cli;
mod cluster;
mod cluster_dead_letters;
mod cluster_events;
mod cluster_groups;
mod cluster_share_groups;
mod cluster_transactions;
mod compaction;
mod configs_tool;
mod console_tools;
mod consumer_groups;
mod damaged_headers;
mod damaged_replicas;
mod dead_letters;
mod deletes;
mod descriptors;
mod documented_cluster;
mod every_api;
mod extreme_numbers;
mod foreign_disks;
mod full;
mod full_cluster;
mod group_lag;
mod group_memory;
mod groups;
mod hostile_peers;
mod hostile_records;
mod idle_damage;
mod internal_settings;
mod journal;
mod life;
mod limits;
mod log_dir_paths;
mod log_dirs;
mod long_answers;
mod long_lists;
mod long_names;
mod long_texts;
mod lost_segments;
mod memory;
mod metrics;
mod moves;
mod moves_and_kills;
mod offline_replicas;
mod perf_tools;
mod ports;
mod produce_and_fetch;
mod produce_forwarding;
mod quorum_tool;
mod refused_starts;
mod repeated_entries;
mod replicated_transactions;
mod replication;
mod replication_reserve;
mod retries;
mod scrub;
mod session_memory;
mod share_groups;
mod streams_groups;
mod topics_tool;
mod transactions;
mod transactions_and_kills;
mod voters;
