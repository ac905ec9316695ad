//! Requests that one shard can answer alone, their answers, and how each says no.
//!
//! AddPartitionsToTxn and DescribeTransactions concern several transactional ids: core/api splits them, and a shard
//! sees its own only.

use barnabas_base::{ConnectionNumber, ErrorCode, ProducerEpoch, ProducerId, Text, TopicPartition};
use barnabas_wire::Str;
use barnabas_wire::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use barnabas_wire::messages::describe_transactions_response::TransactionState as DescribedTransaction;
use barnabas_wire::messages::{
    AddOffsetsToTxnResponse, DescribeTransactionsRequest, DescribeTransactionsResponse, EndTxnRequest,
    EndTxnResponse, InitProducerIdRequest, InitProducerIdResponse, ListTransactionsRequest,
    ListTransactionsResponse,
};

use crate::framework::Refusable;
use crate::framework::{ID_BYTES_MAX, Part};

/// One transaction of an AddPartitionsToTxn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPartitions {
    pub transactional_id: Str,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    /// Only to be asked about (KIP-890).
    pub verify_only: bool,
    pub partitions: Vec<TopicPartition>,
}

/// An AddOffsetsToTxn, with the partition of `__consumer_offsets` that the group falls on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddOffsets {
    pub transactional_id: Str,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub partition: TopicPartition,
}

/// How a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionCaller {
    pub version: i16,
    /// The producer's connection; `None`: another node asks, such as the leader of a partition.
    pub connection: Option<ConnectionNumber>,
    /// Bytes that the answer may take ([`Part`]); `None`: as many as it takes.
    pub room: Option<usize>,
}

impl TransactionCaller {
    /// No producer of a transaction.
    pub fn other(version: i16) -> Self {
        Self { version, connection: None, room: None }
    }
}

/// One shard's share of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum TransactionRequest {
    /// With a transactional id; without one no coordinator is asked.
    InitProducerId(InitProducerIdRequest),
    AddPartitions(AddPartitions),
    AddOffsets(AddOffsets),
    EndTxn(EndTxnRequest),
    Describe(DescribeTransactionsRequest),
    List(ListTransactionsRequest),
    /// The parts of a long list, each a [`TransactionRequest::ListSome`].
    ListParts(ListTransactionsRequest),
    /// Of these ids, those that pass.
    ListSome {
        list: ListTransactionsRequest,
        ids: Vec<Text>,
    },
}

/// One shard's share of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum TransactionResponse {
    InitProducerId(InitProducerIdResponse),
    AddPartitions(AddPartitionsToTxnResult),
    AddOffsets(AddOffsetsToTxnResponse),
    EndTxn(EndTxnResponse),
    Describe(DescribeTransactionsResponse),
    List(ListTransactionsResponse),
    /// The answer would take more than there is room for. These requests are to be asked instead.
    Parts(Vec<Part<TransactionRequest>>),
    /// The request came too late to be heard: its connection is closed, and that is the answer.
    Close,
}

impl AddPartitions {
    /// The answer, from what is to be said of each partition.
    pub(crate) fn respond(&self, of: impl Fn(&TopicPartition) -> ErrorCode) -> AddPartitionsToTxnResult {
        let mut topics: Vec<AddPartitionsToTxnTopicResult> = Vec::new();
        for partition in &self.partitions {
            let result = AddPartitionsToTxnPartitionResult {
                partition_index: partition.partition.get(),
                partition_error_code: of(partition).code(),
                ..Default::default()
            };
            match topics.last_mut().filter(|topic| *topic.name == *partition.topic) {
                Some(topic) => topic.results_by_partition.push(result),
                None => topics.push(AddPartitionsToTxnTopicResult {
                    name: Str::from(&partition.topic),
                    results_by_partition: vec![result],
                    ..Default::default()
                }),
            }
        }
        AddPartitionsToTxnResult {
            transactional_id: self.transactional_id.clone(),
            topic_results: topics,
            ..Default::default()
        }
    }
}

impl TransactionRequest {
    /// The answer that says `error` and nothing else.
    pub fn refuse(&self, error: ErrorCode) -> TransactionResponse {
        type R = TransactionResponse;
        match self {
            Self::InitProducerId(_) => R::InitProducerId(init_refused(error)),
            Self::AddPartitions(add) => R::AddPartitions(add.respond(|_| error)),
            Self::AddOffsets(_) => {
                R::AddOffsets(AddOffsetsToTxnResponse { error_code: error.code(), ..Default::default() })
            }
            Self::EndTxn(_) => R::EndTxn(EndTxnResponse { error_code: error.code(), ..Default::default() }),
            Self::Describe(request) => {
                let ids = request.transactional_ids.iter().cloned();
                let states = ids.map(|id| described_refused(id, error)).collect();
                R::Describe(DescribeTransactionsResponse { transaction_states: states, ..Default::default() })
            }
            Self::List(_) | Self::ListParts(_) | Self::ListSome { .. } => {
                R::List(ListTransactionsResponse { error_code: error.code(), ..Default::default() })
            }
        }
    }

    /// Whether what the request says can be written into a record.
    pub(crate) fn is_writable(&self) -> bool {
        let fits = |text: &str| text.len() <= ID_BYTES_MAX;
        match self {
            Self::InitProducerId(request) => request.transactional_id.as_deref().is_none_or(fits),
            Self::AddPartitions(add) => {
                add.verify_only || add.partitions.iter().all(|partition| fits(&partition.topic))
            }
            _ => true,
        }
    }

    /// The transactional id that the request is to change.
    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::InitProducerId(init) => init.transactional_id.as_deref(),
            Self::AddPartitions(add) => (!add.verify_only).then_some(&*add.transactional_id),
            Self::AddOffsets(add) => Some(&*add.transactional_id),
            Self::EndTxn(end) => Some(&*end.transactional_id),
            Self::Describe(_) | Self::List(_) | Self::ListParts(_) | Self::ListSome { .. } => None,
        }
    }

    /// Whether it may come to records.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::InitProducerId(_) | Self::AddOffsets(_) | Self::EndTxn(_) => true,
            Self::AddPartitions(add) => !add.verify_only,
            Self::Describe(_) | Self::List(_) | Self::ListParts(_) | Self::ListSome { .. } => false,
        }
    }
}

pub(crate) fn init_refused(error: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: error.code(),
        producer_id: ProducerId::NONE.get(),
        producer_epoch: ProducerEpoch::NONE.get(),
        ..Default::default()
    }
}

pub(crate) fn described_refused(transactional_id: Str, error: ErrorCode) -> DescribedTransaction {
    DescribedTransaction { error_code: error.code(), transactional_id, ..Default::default() }
}

impl Refusable for TransactionResponse {
    /// What was to be said before the records behind it were lost.
    fn refused(self, error: ErrorCode) -> Self {
        let code = error.code();
        match self {
            // What was to be refused anyway stays so, but for the one refusal that rests on a record.
            Self::InitProducerId(_) => Self::InitProducerId(init_refused(error)),
            Self::AddPartitions(mut result) => {
                let topics = result.topic_results.iter_mut();
                let partitions = topics.flat_map(|topic| &mut topic.results_by_partition);
                partitions.for_each(|partition| partition.partition_error_code = code);
                Self::AddPartitions(result)
            }
            Self::AddOffsets(_) => {
                Self::AddOffsets(AddOffsetsToTxnResponse { error_code: code, ..Default::default() })
            }
            Self::EndTxn(_) => Self::EndTxn(EndTxnResponse { error_code: code, ..Default::default() }),
            Self::Describe(mut response) => {
                for state in &mut response.transaction_states {
                    *state = described_refused(std::mem::take(&mut state.transactional_id), error);
                }
                Self::Describe(response)
            }
            Self::List(_) => Self::List(ListTransactionsResponse { error_code: code, ..Default::default() }),
            // No answer was built.
            Self::Parts(parts) => Self::Parts(parts),
            Self::Close => Self::Close,
        }
    }
}
