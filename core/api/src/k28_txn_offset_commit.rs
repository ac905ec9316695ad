//! # TxnOffsetCommit, key 28, versions 0–6
//!
//! Stores how far a group has read, as part of a transaction.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-98) |
//! | 1 | throttling by the client (KIP-219) |
//! | 2 | leader epochs (KIP-320) |
//! | 3 | member, generation and instance, so that zombies are fenced by their group (KIP-447); flexible |
//! | 4 | TRANSACTION_ABORTABLE (KIP-890) |
//! | 5 | the group's partition adds itself to the transaction (KIP-890) |
//! | 6 | topic ids instead of names (KIP-1319) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleTxnOffsetCommitRequest`.

use barnabas_base::{ErrorCode, PartitionIndex, TopicId};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic,
};
use barnabas_wire::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

use crate::groups::{ToShard, shard_here};
use crate::{Context, Plan};

/// From this version on topics have ids and no names.
const IDS_SINCE: i16 = 6;

/// From this version on clients know TRANSACTION_ABORTABLE.
const ABORTABLE_SINCE: i16 = 4;
/// From this version on the group's partition adds itself to the transaction.
pub const JOINS_SINCE: i16 = 5;

#[derive(Debug)]
pub struct Work {
    /// Topics carry both name and id.
    pub commit: ToShard<TxnOffsetCommitRequest>,
    pub pending: Pending,
}

/// What was refused before the shard was asked.
#[derive(Debug)]
pub struct Pending {
    version: i16,
    refused: Vec<TxnOffsetCommitResponseTopic>,
}

/// Takes out topics and partitions that do not exist, and sends the rest to the group's shard.
pub fn plan(
    mut request: TxnOffsetCommitRequest,
    version: i16,
    ctx: &Context<'_>,
) -> Plan<Work, TxnOffsetCommitResponse> {
    let mut pending = Pending { version, refused: Vec::new() };
    let denied = match () {
        () if !ctx.access.transactional_id(Operation::Write, &request.transactional_id) => {
            Some(ErrorCode::TransactionalIdAuthorizationFailed)
        }
        () if !ctx.access.group(Operation::Read, &request.group_id) => {
            Some(ErrorCode::GroupAuthorizationFailed)
        }
        () => None,
    };
    if let Some(code) = denied {
        request.topics.iter().for_each(|topic| pending.refuse_all(topic, code));
        return Plan::Answer(pending.respond(TxnOffsetCommitResponse::default()));
    }
    request.topics.retain_mut(|topic| pending.sort_out(topic, ctx));
    if request.topics.is_empty() {
        return Plan::Answer(pending.respond(TxnOffsetCommitResponse::default()));
    }
    match shard_here(&request.group_id, ctx) {
        Ok(shard) => Plan::Work(Work { commit: ToShard { shard, request }, pending }),
        Err(code) => {
            for topic in &request.topics {
                pending.refuse_all(topic, code);
            }
            Plan::Answer(pending.respond(TxnOffsetCommitResponse::default()))
        }
    }
}

/// The error code for a group whose part in the transaction could not be verified.
///
/// # Source
/// Kafka 4.4 `GroupCoordinatorService.commitTransactionalOffsets`,
/// `CoordinatorPartitionWriter.maybeStartTransactionVerification`.
pub fn unverified(code: ErrorCode, version: i16) -> ErrorCode {
    match crate::transactions::unverified(code, version >= ABORTABLE_SINCE) {
        ErrorCode::NetworkException => ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::UnknownTopicOrPartition | ErrorCode::NotEnoughReplicas | ErrorCode::RequestTimedOut => {
            ErrorCode::CoordinatorNotAvailable
        }
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        other => other,
    }
}

impl Pending {
    /// Whether anything of the topic goes on to the shard.
    fn sort_out(&mut self, topic: &mut TxnOffsetCommitRequestTopic, ctx: &Context<'_>) -> bool {
        let topics = &ctx.image.topics;
        let by_id = self.version >= IDS_SINCE;
        let known = if by_id { topics.by_id(topic.topic_id) } else { topics.by_name(&topic.name) };
        let name = if by_id { known.map(|known| &*known.name) } else { Some(&*topic.name) };
        let is_denied = name.is_some_and(|name| !ctx.access.topic(Operation::Read, name));
        let Some(known) = known.filter(|_| !is_denied) else {
            let code = match () {
                () if is_denied => ErrorCode::TopicAuthorizationFailed,
                () if by_id => ErrorCode::UnknownTopicId,
                () => ErrorCode::UnknownTopicOrPartition,
            };
            self.refuse_all(topic, code);
            return false;
        };
        topic.name = Str::from(&known.name);
        topic.topic_id = known.id;
        let exists = |index: i32| known.partition(PartitionIndex(index)).is_some();
        let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
        let missing: Vec<i32> = indexes.filter(|index| !exists(*index)).collect();
        if !missing.is_empty() {
            self.refused.push(refuse(topic, missing.into_iter(), ErrorCode::UnknownTopicOrPartition));
            topic.partitions.retain(|partition| exists(partition.partition_index));
        }
        !topic.partitions.is_empty()
    }

    fn refuse_all(&mut self, topic: &TxnOffsetCommitRequestTopic, code: ErrorCode) {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        self.refused.push(refuse(topic, partitions, code));
    }

    /// The answer to the client, from the shard's. Clients of before version 2 do not get over
    /// COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296).
    pub fn respond(self, mut response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse {
        for refused in self.refused {
            let same = |topic: &&mut TxnOffsetCommitResponseTopic| {
                topic.name == refused.name && topic.topic_id == refused.topic_id
            };
            match response.topics.iter_mut().find(same) {
                Some(topic) => topic.partitions.extend(refused.partitions),
                None => response.topics.push(refused),
            }
        }
        for topic in &mut response.topics {
            if self.version >= IDS_SINCE {
                topic.name = Str::default();
            } else {
                topic.topic_id = TopicId::ZERO;
            }
            for partition in &mut topic.partitions {
                let loads = partition.error_code == ErrorCode::CoordinatorLoadInProgress.code();
                if self.version < 2 && loads {
                    partition.error_code = ErrorCode::CoordinatorNotAvailable.code();
                }
            }
        }
        response
    }
}

fn refuse(
    topic: &TxnOffsetCommitRequestTopic,
    partitions: impl Iterator<Item = i32>,
    code: ErrorCode,
) -> TxnOffsetCommitResponseTopic {
    let of = |partition_index| TxnOffsetCommitResponsePartition {
        partition_index,
        error_code: code.code(),
        ..TxnOffsetCommitResponsePartition::default()
    };
    TxnOffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.map(of).collect(),
        ..TxnOffsetCommitResponseTopic::default()
    }
}

#[cfg(test)]
mod tests;
