//! A cluster of the real core crates in one thread: the same seed, the same day.
//!
//! Real: replicas (core/replica) with their partitions, fetchers and questions (core/partition), their logs,
//! checkpoints, recovery and journal (core/storage) over disks in memory, Fetch with its sessions and AlterPartition as
//! messages (core/api, core/wire), the controller and its image (core/quorum, core/metadata). In a day of transactions
//! there are also their coordinator and the groups' (core/coordinator), beside the partitions of `__transaction_state`
//! and `__consumer_offsets`; their questions and answers are values, and arrive late, twice and in another order.
//! Records are Kafka's bytes from the append to the reader.
//!
//! Played: time, the network, disks, clients, what shell/broker does around core/replica (`host`, `broker`), and the
//! one process that the controller runs in, which neither dies nor loses a record: the quorum has a simulation of its
//! own in core/quorum.
//!
//! What goes wrong: messages are late or lost, lines are cut one way; brokers lose power (what was not synced is kept,
//! lost or torn), are killed, stop cleanly, are taken for dead while they live; disks fill, fail a sync, have bytes
//! changed, are replaced by empty ones; replicas are moved while all that happens. Some days have a climate (world.rs):
//! more damage, late metadata, retention and DeleteRecords, quick leader changes, moving coordinators,
//! compaction, two log directories for each broker with moves between them, acknowledgements that wait for no sync,
//! appends that wait, replicas that are damaged and cannot be spared, files that rot while their broker is down. What
//! must hold stands in `invariants/`, one per file, judged over what is read from the logs.
//!
//! Mistakes are planted one at a time around the core, in `host`, `broker` and `broker/slips`: nothing of them is in
//! product lines.
//!
//! Not simulated: a log directory that fails alone, controllers that die, groups with members, and topics that are
//! deleted. Share partitions (core/replica's, with their coordinator) have a world of their own (`share`), over a log
//! of Kafka's bytes without a disk.

mod batch;
mod broker;
mod clients;
mod controller;
mod counts;
mod host;
mod invariants;
mod mistake;
mod network;
mod random;
mod share;
mod world;

pub use barnabas_coordinator::TransactionVersion;
pub use counts::{Checks, Fault, Faults};
pub use mistake::Mistake;
pub use share::{ShareDay, ShareMistake, ShareWorld};
pub use world::{Climate, Day, World, hunt};
