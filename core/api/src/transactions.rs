//! Which shard of the transaction coordinator a transactional id belongs to, and whether it is here.
//!
//! Source: Kafka 4.4 `TransactionStateManager.partitionFor`.

use barnabas_base::{ErrorCode, PartitionIndex, name, partition_for};

use crate::groups::Shard;
use crate::{Context, Plan};

/// `None` where `__transaction_state`, or its partition's leader, is not known yet.
pub fn shard_of(transactional_id: &str, ctx: &Context<'_>) -> Option<Shard> {
    let topic = ctx.image.topics.by_name(name::TRANSACTION_STATE)?;
    let partitions = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
    let partition = partition_for(transactional_id, partitions);
    Some(Shard { partition, leader: ctx.leader_of(topic.partition(partition)?) })
}

/// The shard, wherever it is. Its leader may be [`BrokerId::NONE`](barnabas_base::BrokerId::NONE).
///
/// # Errors
/// INVALID_REQUEST for an invalid id, COORDINATOR_NOT_AVAILABLE if its partition has no leader.
pub fn coordinated_by(transactional_id: &str, ctx: &Context<'_>) -> Result<Shard, ErrorCode> {
    if transactional_id.is_empty() {
        return Err(ErrorCode::InvalidRequest);
    }
    shard_of(transactional_id, ctx).ok_or(ErrorCode::CoordinatorNotAvailable)
}

/// The shard if it is here.
///
/// # Errors
/// INVALID_REQUEST for an id that is none. NOT_COORDINATOR where another broker coordinates the id, or none does
/// because `__transaction_state` does not exist yet (Kafka `TransactionStateManager.getAndMaybeAddTransactionState`).
pub fn shard_here(transactional_id: &str, ctx: &Context<'_>) -> Result<PartitionIndex, ErrorCode> {
    match coordinated_by(transactional_id, ctx) {
        Ok(shard) if shard.leader.id == ctx.node => Ok(shard.partition),
        Ok(_) | Err(ErrorCode::CoordinatorNotAvailable) => Err(ErrorCode::NotCoordinator),
        Err(code) => Err(code),
    }
}

/// Every shard that is here, by number.
pub fn shards_here(ctx: &Context<'_>) -> Vec<PartitionIndex> {
    let topic = ctx.image.topics.by_name(name::TRANSACTION_STATE);
    let partitions = topic.iter().flat_map(|topic| topic.partitions());
    partitions.filter(|(_, state)| state.leader == ctx.node).map(|(index, _)| index).collect()
}

/// Clients before KIP-588 do not know PRODUCER_FENCED and get INVALID_PRODUCER_EPOCH.
pub(crate) fn for_version(code: i16, version: i16, fenced_since: i16) -> i16 {
    if version < fenced_since && code == ErrorCode::ProducerFenced.code() {
        ErrorCode::InvalidProducerEpoch.code()
    } else {
        code
    }
}

/// Maps the coordinator's refusal of a partition to the error code of the write. `knows_abortable`:
/// the client knows TRANSACTION_ABORTABLE.
///
/// # Source
/// Kafka 4.4 `AddPartitionsToTxnManager.AddPartitionsToTxnHandler`.
pub(crate) fn unverified(code: ErrorCode, knows_abortable: bool) -> ErrorCode {
    match code {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        ErrorCode::TransactionAbortable if !knows_abortable => ErrorCode::InvalidTxnState,
        other => other,
    }
}

/// What a shard is asked, or the refusal that `refuse` makes of an error.
pub(crate) fn to_shard<Request, Response>(
    transactional_id: &str,
    request: Request,
    ctx: &Context<'_>,
    refuse: impl FnOnce(ErrorCode) -> Response,
) -> Plan<crate::groups::ToShard<Request>, Response> {
    match shard_here(transactional_id, ctx) {
        Ok(shard) => Plan::Work(crate::groups::ToShard { shard, request }),
        Err(code) => Plan::Answer(refuse(code)),
    }
}
