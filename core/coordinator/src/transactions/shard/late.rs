//! Requests that come too late: over a connection that their producer has given up.
//!
//! Before version 2 all transactions of a producer have one epoch, so that nothing in a request says which of them it
//! is of. A client whose connection is cut sends its request again over a new one, is answered, and goes on with the
//! next transaction. When the network is whole again, the kernel brings what it still held of the old connection: an
//! end of the last transaction, which would be taken for the end of the next one, and commit half of it.
//!
//! So once a producer has used a connection, the coordinator ignores its requests over older ones. It closes such a
//! connection without an answer: a client that has given it up would not read one, and a client that uses both comes
//! back with a new connection. Each transactional id remembers one connection number, for as long as the shard stays
//! on this broker; another broker knows nothing of the old connection.
//!
//! A request under an unknown producer id or epoch is refused as such, over any connection. A request that takes the
//! transactional id over names neither: over an older connection it is probably late, and would fence the holder of
//! the id.
//!
//! # Source
//! KIP-890 has the problem, and mends it with epochs for clients of version 2 alone. This is not in Kafka.

use barnabas_base::{ProducerEpoch, ProducerId, Text};

use super::TransactionShard;
use crate::transactions::{TransactionCaller, TransactionRequest};

impl TransactionShard {
    /// Whether the request's producer has been heard over a newer connection than the one that it came by.
    pub(super) fn is_late(&self, caller: TransactionCaller, request: &TransactionRequest) -> bool {
        let Some(connection) = caller.connection else { return false };
        let Some(entry) = request.id().and_then(|id| self.entries.get(id)) else { return false };
        let known = || [entry.transaction.committed(), entry.transaction.latest()].into_iter().flatten();
        let is_of = |producer| known().any(|known| (known.producer_id, known.producer_epoch) == producer);
        entry.heard.is_some_and(|heard| connection < heard) && producer(request).is_none_or(is_of)
    }

    /// The request has not been refused.
    pub(super) fn hear(&mut self, caller: TransactionCaller, request: &TransactionRequest) {
        if caller.connection.is_none() {
            return;
        }
        let id = request.id().map(Text::from);
        if let Some(entry) = id.and_then(|id| self.entries.get_mut(&id)) {
            entry.heard = entry.heard.max(caller.connection);
        }
    }
}

/// Under which producer id and epoch a transaction is to be changed.
fn producer(request: &TransactionRequest) -> Option<(ProducerId, ProducerEpoch)> {
    match request {
        TransactionRequest::AddPartitions(add) => Some((add.producer_id, add.producer_epoch)),
        TransactionRequest::AddOffsets(add) => Some((add.producer_id, add.producer_epoch)),
        TransactionRequest::EndTxn(end) => {
            Some((ProducerId(end.producer_id), ProducerEpoch(end.producer_epoch)))
        }
        TransactionRequest::InitProducerId(_)
        | TransactionRequest::Describe(_)
        | TransactionRequest::List(_)
        | TransactionRequest::ListParts(_)
        | TransactionRequest::ListSome { .. } => None,
    }
}
