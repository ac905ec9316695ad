//! Producer ids: taken from the controller in blocks of 1000, given out one by one.
//!
//! A block that is not used up when the node stops is lost, as with Kafka: an id is never given out twice.
//! Source: KIP-730; Kafka `RPCProducerIdManager`.

use tokio::sync::Mutex;

/// The block that ids are taken from.
#[derive(Debug, Default)]
pub struct ProducerIds {
    /// Next id, and the end of the block.
    pub block: Mutex<(i64, i64)>,
}
