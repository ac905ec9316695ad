//! Work for partitions and coordinators that is led elsewhere: by another worker of this node, or by another broker.
//!
//! | file | answers |
//! |---|---|
//! | `routing/addresses.rs` | where do other brokers listen |
//! | `routing/audit_topic.rs` | how do lines of the audit log reach their topic |
//! | `routing/broker_requests.rs` | how is another broker asked |
//! | `routing/dead_letters.rs` | how do dead letters of share groups reach their topic |
//! | `routing/own_records.rs` | how does the node write records of its own, wherever their partition is led |
//! | `routing/owners.rs` | how is a worker of this node asked, and its answer gathered |
//! | `routing/share_persister.rs` | where is the state of share-partitions kept |

pub mod addresses;
pub mod audit_topic;
pub mod broker_requests;
pub mod dead_letters;
pub mod own_records;
pub mod owners;
pub mod share_persister;
