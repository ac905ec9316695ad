//! What is asked of the shards of group, transaction and share coordinators.

use super::{PartitionKey, Standing};
use barnabas_base::{ConnectionNumber, ErrorCode, ProducerId, Text, TopicPartition};
use barnabas_coordinator::{Describable, MarkerOutcome, MarkerTicket};
use tokio::sync::oneshot;

/// A request for one shard of the group coordinator.
#[derive(Debug)]
pub struct GroupCommand {
    /// The shard's partition of `__consumer_offsets`.
    pub shard: PartitionKey,
    pub request: barnabas_coordinator::Request,
    pub version: i16,
    pub client_id: Text,
    /// As Java prints an address: `/127.0.0.1`.
    pub client_host: Text,
    /// `None`: no client asks.
    pub connection: Option<ConnectionNumber>,
    /// Which topics the client may describe, where its request may name an expression and an authorizer decides.
    pub describable: Option<Describable>,
    /// Of the records of a TxnOffsetCommit.
    pub standing: Standing,
    /// Bytes that the answer may take; `None`: as many as it takes.
    pub room: Option<usize>,
    pub reply: oneshot::Sender<barnabas_coordinator::Response>,
}

/// What the metrics ask of the group coordinator's shards on one worker.
#[derive(Debug)]
pub enum GroupAsk {
    /// The groups of each shard that is loaded; the others begin to load.
    Names(oneshot::Sender<Vec<(PartitionKey, Vec<Text>)>>),
    /// Some of them, until they have so many positions; and how many names that was. Not answered if the shard is gone.
    Look {
        shard: PartitionKey,
        names: Vec<Text>,
        positions_max: usize,
        reply: oneshot::Sender<(Vec<barnabas_coordinator::GroupLook>, usize)>,
    },
}

/// For one shard of the transaction coordinator.
#[derive(Debug)]
pub struct TransactionCommand {
    /// The shard's partition of `__transaction_state`.
    pub shard: PartitionKey,
    pub what: ToTransactionShard,
}

#[derive(Debug)]
pub enum ToTransactionShard {
    Request(TransactionAsk),
    /// What became of markers that it had ordered.
    Markers {
        ticket: MarkerTicket,
        transactional_id: Text,
        outcomes: Vec<(TopicPartition, MarkerOutcome)>,
    },
    /// The producer ids that it had asked for.
    ProducerIds(Result<Vec<ProducerId>, ErrorCode>),
}

/// A request of a client, or of a partition's leader.
#[derive(Debug)]
pub struct TransactionAsk {
    pub request: barnabas_coordinator::TransactionRequest,
    pub caller: barnabas_coordinator::TransactionCaller,
    pub reply: oneshot::Sender<barnabas_coordinator::TransactionResponse>,
}

/// For one shard of the share coordinator.
#[derive(Debug)]
pub struct ShareStateCommand {
    /// The shard's partition of `__share_group_state`.
    pub shard: PartitionKey,
    pub ask: ShareStateAsk,
}

/// What is asked of one share-partition's state.
#[derive(Debug)]
pub struct ShareStateAsk {
    pub request: barnabas_coordinator::ShareStateRequest,
    pub reply: oneshot::Sender<barnabas_coordinator::ShareStateResponse>,
}
