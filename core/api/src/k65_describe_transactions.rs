//! # DescribeTransactions, key 65, version 0
//!
//! Shows transactions: state, producer, timeout and partitions.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-664) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleDescribeTransactionsRequest`.

use std::collections::BTreeMap;

use barnabas_base::{ErrorCode, Map, PartitionIndex};
use barnabas_security::Operation;
use barnabas_wire::Str;
use barnabas_wire::messages::describe_transactions_request::DescribeTransactionsRequest;
use barnabas_wire::messages::describe_transactions_response::{
    DescribeTransactionsResponse, TransactionState,
};

use crate::groups::ToShard;
use crate::transactions::shard_here;
use crate::{Access, AnswerRoom, Context, Plan};

#[derive(Debug)]
pub struct Work {
    pub parts: Vec<ToShard<DescribeTransactionsRequest>>,
    pub pending: Pending,
}

/// The answer as far as it is known: in the order of the request, however often an id stands in it.
#[derive(Debug, Default)]
pub struct Pending {
    states: Vec<TransactionState>,
    places: Map<Str, Vec<usize>>,
}

/// Splits a request by shard.
pub fn plan(
    request: DescribeTransactionsRequest,
    ctx: &Context<'_>,
) -> Plan<Work, DescribeTransactionsResponse> {
    let mut pending = Pending::default();
    let mut by_shard: BTreeMap<PartitionIndex, Vec<Str>> = BTreeMap::new();
    for id in request.transactional_ids {
        let shard = match ctx.access.transactional_id(Operation::Describe, &id) {
            true => shard_here(&id, ctx),
            false => Err(ErrorCode::TransactionalIdAuthorizationFailed),
        };
        let places = pending.places.entry(id.clone()).or_default();
        places.push(pending.states.len());
        pending.states.push(TransactionState {
            error_code: shard.err().unwrap_or_default().code(),
            transactional_id: id.clone(),
            ..TransactionState::default()
        });
        if let Ok(shard) = shard
            && places.len() == 1
        {
            by_shard.entry(shard).or_default().push(id);
        }
    }
    let parts = by_shard.into_iter().map(|(shard, transactional_ids)| ToShard {
        shard,
        request: DescribeTransactionsRequest { transactional_ids, ..DescribeTransactionsRequest::default() },
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { Plan::Answer(pending.respond()) } else { Plan::Work(Work { parts, pending }) }
}

impl Pending {
    /// Takes over one shard's answer, without the topics that the client may not describe.
    pub fn add(&mut self, response: DescribeTransactionsResponse, room: &AnswerRoom, access: &Access<'_>) {
        for mut state in response.transaction_states {
            state.topics.retain(|topic| access.sees_topic(Operation::Describe, &topic.topic));
            for place in self.places.get(&state.transactional_id).into_iter().flatten() {
                match room.take_struct(&state, 0) {
                    Ok(()) => self.states[*place] = state.clone(),
                    Err(large) => {
                        self.states[*place].error_code =
                            large.code(ErrorCode::CoordinatorLoadInProgress).code();
                    }
                }
            }
        }
    }

    /// The answer, once every shard's is in.
    pub fn respond(self) -> DescribeTransactionsResponse {
        DescribeTransactionsResponse {
            transaction_states: self.states,
            ..DescribeTransactionsResponse::default()
        }
    }
}

#[cfg(test)]
mod tests;
