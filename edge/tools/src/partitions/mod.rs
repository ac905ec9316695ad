//! The tools for what partitions hold and where they are.

pub mod delete_records;
pub mod dump_log;
pub mod get_offsets;
pub mod reassign_partitions;
pub mod replica_verification;
pub mod transactions;
