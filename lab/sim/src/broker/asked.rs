//! What a broker asks of others about transactions, and what it needs once they answer.

use barnabas_base::{Text, TopicPartition};
use barnabas_coordinator::MarkerTicket;
use barnabas_partition::ReplicaKey;
use barnabas_replica::Verified;
use barnabas_wire::messages::TxnOffsetCommitRequest;

use crate::batch::Batch;
use crate::network::{Place, Reply};

/// What this broker has asked of another one.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Whether a batch may begin its transaction here.
    Word {
        reply: Reply,
        key: ReplicaKey,
        batch: Batch,
        verified: Verified,
    },
    /// Likewise, offsets.
    OffsetsWord {
        reply: Reply,
        shard: ReplicaKey,
        version: i16,
        request: TxnOffsetCommitRequest,
        verified: Verified,
    },
    Marker {
        shard: ReplicaKey,
        ticket: MarkerTicket,
        id: Text,
        partition: TopicPartition,
    },
    ProducerIds {
        shard: ReplicaKey,
    },
}

impl Asked {
    /// Who waits for what comes of it.
    pub fn reply_to(&self) -> Option<Place> {
        match self {
            Self::Word { reply, .. } | Self::OffsetsWord { reply, .. } => Some(reply.to),
            Self::Marker { .. } | Self::ProducerIds { .. } => None,
        }
    }
}
