//! Topics and their number of partitions.
//!
//! | file | answers |
//! |---|---|
//! | `topics/create_partitions.rs` | CreatePartitions |
//! | `topics/create_topics.rs` | CreateTopics |
//! | `topics/delete_topics.rs` | DeleteTopics |
//! | `topics/mutations.rs` | how many partitions a client may create and delete: `controller_mutation_rate` |

pub(crate) mod create_partitions;
pub(crate) mod create_topics;
pub(crate) mod delete_topics;
pub(crate) mod mutations;
