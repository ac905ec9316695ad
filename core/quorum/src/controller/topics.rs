//! Topics and their number of partitions.
//!
//! | file | answers |
//! |---|---|
//! | `topics/create_partitions.rs` | CreatePartitions |
//! | `topics/create_topics.rs` | CreateTopics |
//! | `topics/delete_topics.rs` | DeleteTopics |

pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_topics;
