//! The cluster as clients see it: A18, A20.

pub mod a18_metadata;
pub mod a20_liveness;
