//! The metadata log of this node: formats its directory, takes part in the quorum, publishes each image. And what the
//! active controller is asked besides.
//!
//! | file | answers |
//! |---|---|
//! | `controller/broker_probe.rs` | does a broker whose connection closed still listen |
//! | `controller/producer_id_blocks.rs` | where do producer ids come from |
//! | `controller/publisher.rs` | who learns of a new image |
//! | `controller/quorum_worker.rs` | the thread of the metadata log, raft and the controller |
//! | `controller/storage_tool.rs` | `kafka-storage` |

pub mod broker_probe;
pub mod producer_id_blocks;
pub mod publisher;
pub mod quorum_worker;
pub mod storage_tool;
