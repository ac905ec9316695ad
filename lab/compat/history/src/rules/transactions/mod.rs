//! Transactions and what is read of them: A6 to A10.

pub mod a06_aborted_read;
pub mod a07_torn_transaction;
pub mod a08_circular_flow;
pub mod a09_write_cycle;
pub mod a10_precommitted_read;
