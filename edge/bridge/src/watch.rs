//! What an operator sees of a bridge: its log, its counters, and the page and the table that are made of them.

pub mod counters;
pub mod log;
pub mod status;
