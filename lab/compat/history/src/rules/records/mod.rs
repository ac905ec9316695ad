//! Records that were sent, and the logs that hold them: A1 to A5, A13, A16, A17.

pub mod a01_lost_write;
pub mod a02_unseen;
pub mod a03_duplicate;
pub mod a04_inconsistent_offset;
pub mod a05_wrong_offset;
pub mod a13_send_order;
pub mod a16_replica_divergence;
pub mod a17_compaction;
