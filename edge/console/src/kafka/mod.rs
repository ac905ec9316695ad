//! What the routes ask of the cluster, in requests of Kafka's protocol: shared by `/v3` and `/api/v1`.
//!
//! | file | answers |
//! |---|---|
//! | `metadata` | which brokers, topics and partitions are there; may a topic be created |
//! | `configs` | which configurations has a resource, and where do they come from |
//! | `groups` | which groups are there, who is in one and what does each member read |
//! | `rights` | may the caller do this to a topic |
//! | `offsets` | where do partitions begin and end, what has a group committed |
//! | `acls` | which ACLs are there |
//! | `records` | which records are stored, come, are made, are deleted |
//! | `log_dirs` | how many bytes do partitions take, and how many are left |
//! | `quorum` | who leads the metadata quorum, who follows |

pub mod acls;
pub mod configs;
pub mod groups;
pub mod log_dirs;
pub mod metadata;
pub mod offsets;
pub mod quorum;
pub mod records;
pub mod rights;

/// A topic's partition.
pub type Partition = (String, i32);
