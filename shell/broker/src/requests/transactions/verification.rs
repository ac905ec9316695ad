//! The transaction coordinator's word before a transaction begins on a partition that is led here (KIP-890): from a
//! shard of this node, or by AddPartitionsToTxn from the broker that leads it, questions for one broker gathered.
//!
//! Always true: the word rests on a guard that the partition gave out before the coordinator was asked, so that a
//! marker that is written meanwhile takes it away (core/partition/src/partition/verification.rs).
//!
//! Asked by: produce.rs, and transactions.rs for the offsets of a group. After: coordinator_worker.rs,
//! node/peers/broker_links.rs.
//!
//! Source: Kafka 4.4 `AddPartitionsToTxnManager`, `ReplicaManager.maybeSendPartitionsToTransactionCoordinator`.

use super::send;
use crate::mailbox::{AskItem, PartitionKey, Question, Said, Standing};
use crate::node::Node;
use crate::node::peers::broker_links::{Purpose, Verification};
use crate::requests::call::Call;
use crate::routing::broker_requests::{Parcel, patience};
use crate::routing::owners;
use barnabas_api::k24_add_partitions_to_txn::{self as add_partitions, BROKERS_SINCE, JOINS_SINCE, Part};
use barnabas_api::transactions;
use barnabas_base::{BrokerId, ErrorCode, Map, PartitionIndex, ProducerEpoch, ProducerId, TopicPartition};
use barnabas_coordinator::{AddPartitions, TransactionCaller, TransactionRequest, TransactionResponse};
use barnabas_net::links::{Link, LinkError};
use barnabas_wire::Str;
use barnabas_wire::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A version of AddPartitionsToTxn that stands for a client whose partitions join by being written to.
const BUMPS: i16 = JOINS_SINCE;

/// Who wants to write in which transaction.
#[derive(Debug)]
pub struct Wish {
    pub transactional_id: Str,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// The partitions join the transaction with this (KIP-890, `transaction.version` 2).
    pub joins: bool,
}

/// Whether the transaction may be written to these partitions, in their order: what their batches stand on, or the
/// coordinator's refusal.
///
/// Partitions on which the transaction is open need no verification. One request asks the coordinator about the
/// others.
///
/// # Source
/// Kafka 4.4 `ReplicaManager.maybeSendPartitionsToTransactionCoordinator`.
pub async fn verify(
    call: &Call,
    wish: &Wish,
    partitions: Vec<(PartitionKey, TopicPartition)>,
) -> Vec<Result<Standing, ErrorCode>> {
    let is_enabled =
        call.session.node.cluster.config.load().boolean("transaction.partition.verification.enable");
    if !is_enabled && !wish.joins {
        return vec![Ok(Standing::Waived); partitions.len()];
    }
    let question = Question::Guard {
        producer_id: wish.producer_id,
        epoch: wish.producer_epoch,
        starts_at_zero: wish.joins,
    };
    let known = &call.session.open_transactions;
    let producer = (wish.producer_id, wish.producer_epoch);
    // An owner that says nothing is gone: the node is stopping.
    let mut verdicts = vec![Err(ErrorCode::NotLeaderOrFollower); partitions.len()];
    let mut items = Vec::with_capacity(partitions.len());
    for (slot, (partition, _)) in partitions.iter().enumerate() {
        if wish.joins && known.borrow().has(*partition, producer) {
            verdicts[slot] = Ok(Standing::Open);
        } else {
            items.push(AskItem { slot: slot as u32, partition: *partition, leader_epoch: None, question });
        }
    }
    let said = owners::ask(&call.session.node, items).await.all().await;
    let mut asked = Vec::new();
    for outcome in said {
        let slot = outcome.slot as usize;
        verdicts[slot] = match outcome.result {
            Ok(Said::Guard(None)) => {
                known.borrow_mut().note(partitions[slot].0, producer);
                Ok(Standing::Open)
            }
            Ok(Said::Guard(Some(word))) => {
                asked.push((slot, partitions[slot].1.clone()));
                Ok(Standing::Verified(word))
            }
            Ok(_) => Err(ErrorCode::UnknownServerError),
            Err(declined) => Err(declined.code()),
        };
    }
    if !asked.is_empty() {
        let refusals = ask_coordinator(call, wish, &asked).await;
        for (slot, partition) in asked {
            if let Some(code) = refusals.of(&partition) {
                verdicts[slot] = Err(code);
            }
        }
    }
    verdicts
}

/// What the transaction's coordinator said.
enum Word {
    All(ErrorCode),
    Each(Map<TopicPartition, ErrorCode>),
}

impl Word {
    fn of(&self, partition: &TopicPartition) -> Option<ErrorCode> {
        let code = match self {
            Self::All(code) => *code,
            Self::Each(codes) => codes.get(partition).copied().unwrap_or(ErrorCode::UnknownServerError),
        };
        (code != ErrorCode::None).then_some(code)
    }
}

impl From<AddPartitionsToTxnResult> for Word {
    fn from(result: AddPartitionsToTxnResult) -> Self {
        let codes = result.topic_results.iter().flat_map(|topic| {
            topic.results_by_partition.iter().map(|partition| {
                let index = PartitionIndex(partition.partition_index);
                let code = ErrorCode::from_code(partition.partition_error_code);
                (TopicPartition::new(topic.name.text(), index), code)
            })
        });
        Self::Each(codes.collect())
    }
}

async fn ask_coordinator(call: &Call, wish: &Wish, partitions: &[(usize, TopicPartition)]) -> Word {
    let node = &call.session.node;
    let shard = {
        let moment = call.moment();
        transactions::coordinated_by(&wish.transactional_id, &call.context(&moment))
    };
    let shard = match shard {
        Ok(shard) => shard,
        Err(code) => return Word::All(code),
    };
    let mut partitions: Vec<TopicPartition> =
        partitions.iter().map(|(_, partition)| partition.clone()).collect();
    partitions.sort();
    match shard.leader.id {
        BrokerId::NONE => Word::All(ErrorCode::CoordinatorNotAvailable),
        leader if leader == node.identity.broker_id => {
            ask_here(call, wish, shard.partition, partitions).await
        }
        leader => ask_away(node, wish, leader, partitions).await,
    }
}

async fn ask_here(call: &Call, wish: &Wish, shard: PartitionIndex, partitions: Vec<TopicPartition>) -> Word {
    let request = TransactionRequest::AddPartitions(AddPartitions {
        transactional_id: wish.transactional_id.clone(),
        producer_id: wish.producer_id,
        producer_epoch: wish.producer_epoch,
        verify_only: !wish.joins,
        partitions,
    });
    match send(call, shard, TransactionCaller::other(BUMPS), request).await.await {
        Ok(TransactionResponse::AddPartitions(result)) => result.into(),
        _ => Word::All(ErrorCode::NotCoordinator),
    }
}

async fn ask_away(node: &Arc<Node>, wish: &Wish, broker: BrokerId, partitions: Vec<TopicPartition>) -> Word {
    let part = Part {
        place: 0,
        transactional_id: wish.transactional_id.clone(),
        producer_id: wish.producer_id,
        producer_epoch: wish.producer_epoch,
        verify_only: !wish.joins,
        partitions,
    };
    let (reply, answer) = oneshot::channel();
    node.peers.broker_links.verification.bring(node, broker, Verification { part, reply }).await;
    match answer.await {
        Ok(Ok(result)) => result.into(),
        Ok(Err(code)) => Word::All(code),
        // The broker was fenced, or the node is stopping.
        Err(_) => Word::All(ErrorCode::NetworkException),
    }
}

impl Parcel for Verification {
    const PURPOSE: Purpose = Purpose::Verification;
    type Name = Str;

    fn name(&self) -> Str {
        self.part.transactional_id.clone()
    }

    fn size(&self) -> usize {
        self.part.partitions.len()
    }

    async fn deliver(node: Arc<Node>, link: Option<Link>, parcels: Vec<Self>) {
        let Some(link) = link else {
            return parcels
                .into_iter()
                .for_each(|parcel| parcel.answer(Err(ErrorCode::CoordinatorNotAvailable)));
        };
        // Older brokers would take who joins for a client of another `transaction.version`.
        let joins = parcels.iter().any(|parcel| !parcel.part.verify_only);
        let since = if joins { JOINS_SINCE } else { BROKERS_SINCE };
        let request = add_partitions::request(parcels.iter().map(|parcel| &parcel.part));
        let answer =
            link.send_with(patience(&node), move |version| (version >= since).then_some(request)).await;
        let said = match answer.map(add_partitions::results) {
            Ok(said) => said,
            // A broker of before KIP-890 verifies nothing.
            Err(LinkError::Unsupported { .. }) if !joins => Ok(parcels.iter().map(Self::agreed).collect()),
            Err(error) => {
                tracing::debug!(%error, "a transaction could not be verified");
                Err(ErrorCode::NetworkException)
            }
        };
        match said {
            Err(code) => parcels.into_iter().for_each(|parcel| parcel.answer(Err(code))),
            Ok(results) => {
                let mut results: Map<Str, AddPartitionsToTxnResult> =
                    results.into_iter().map(|result| (result.transactional_id.clone(), result)).collect();
                for parcel in parcels {
                    let said = results.remove(&parcel.part.transactional_id);
                    parcel.answer(said.ok_or(ErrorCode::UnknownServerError));
                }
            }
        }
    }
}

impl Verification {
    fn answer(self, said: Result<AddPartitionsToTxnResult, ErrorCode>) {
        // Who asked may be gone with its connection.
        drop(self.reply.send(said));
    }

    fn agreed(&self) -> AddPartitionsToTxnResult {
        let topics = self.part.partitions.iter().map(|partition| AddPartitionsToTxnTopicResult {
            name: Str::from(&partition.topic),
            results_by_partition: vec![AddPartitionsToTxnPartitionResult {
                partition_index: partition.partition.get(),
                ..AddPartitionsToTxnPartitionResult::default()
            }],
            ..AddPartitionsToTxnTopicResult::default()
        });
        AddPartitionsToTxnResult {
            transactional_id: self.part.transactional_id.clone(),
            topic_results: topics.collect(),
            ..AddPartitionsToTxnResult::default()
        }
    }
}
