//! A cluster of the real core crates in one thread: the same seed, the same day.
//!
//! Real: partitions, their fetchers and questions (core/partition), Fetch with its sessions and AlterPartition as messages (core/api,
//! core/wire), the controller and its image (core/quorum, core/metadata). Played: time, the network, disks, clients, and the one process
//! that the controller runs in, which neither dies nor loses a record: the quorum has a simulation of its own.
//!
//! In a day of transactions there are also their coordinator and the groups' (core/coordinator), beside the partitions of
//! `__transaction_state` and `__consumer_offsets`; their questions and answers are values, and arrive late, twice and in another order.
//!
//! What goes wrong: messages are late or lost, lines are cut one way, brokers die with what they had not synced, lose their disks, are taken
//! for dead while they live; replicas are moved while all that happens. What must hold stands in `invariants/`, one per file.
//!
//! One partition alone, with planted mistakes, is simulated in core/partition (`sim`).

mod batch;
mod broker;
mod clients;
mod controller;
mod counts;
pub mod hunt;
mod invariants;
mod mistake;
mod network;
mod random;
mod replica;
mod share;
mod transactional;
mod world;

pub use barnabas_coordinator::TransactionVersion;
pub use counts::{Checks, Fault, Faults};
pub use mistake::Mistake;
pub use share::{ShareDay, ShareMistake, ShareWorld};
pub use world::{Day, World};
