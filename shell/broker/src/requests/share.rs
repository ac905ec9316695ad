//! Share groups: what their members fetch and acknowledge, the groups themselves, and the state of their partitions.

pub mod fetch;
pub mod groups;
pub mod state;
