//! # ListTransactions, key 66, versions 0–2
//!
//! Lists the transactional ids that this broker looks after.
//!
//! | version | what it added |
//! |---|---|
//! | 0 | the request (KIP-664) |
//! | 1 | a filter by how long transactions have been open (KIP-994) |
//! | 2 | a filter by a pattern for the transactional id (KIP-1152) |
//!
//! ## Left out
//! - Nothing.
//!
//! Source: Kafka 4.4 `KafkaApis.handleListTransactionsRequest`, `TransactionStateManager.listTransactionStates`.

use barnabas_base::{ErrorCode, PartitionIndex};
use barnabas_security::{Operation, ResourceType};
use barnabas_wire::Message;
use barnabas_wire::messages::list_transactions_request::ListTransactionsRequest;
use barnabas_wire::messages::list_transactions_response::ListTransactionsResponse;

use crate::repeats::once;
use crate::transactions::shards_here;
use crate::{Access, AnswerRoom, Context, Plan};

#[derive(Debug)]
pub struct Work {
    /// The same request for each of them.
    pub shards: Vec<PartitionIndex>,
    pub request: ListTransactionsRequest,
    pub pending: Pending,
}

/// The answer as far as it is known.
#[derive(Debug, Default)]
pub struct Pending {
    response: ListTransactionsResponse,
}

/// Asks every shard that is here.
pub fn plan(mut request: ListTransactionsRequest, ctx: &Context<'_>) -> Plan<Work, ListTransactionsResponse> {
    // Every shard gets a copy.
    once(&mut request.state_filters);
    once(&mut request.producer_id_filters);
    let shards = shards_here(ctx);
    let pending = Pending::default();
    if shards.is_empty() {
        Plan::Answer(pending.respond())
    } else {
        Plan::Work(Work { shards, request, pending })
    }
}

impl Pending {
    /// Takes over a part of the list, without the ids that the client may not describe. A shard that has gone elsewhere
    /// meanwhile has nothing to say; one that is loading leaves nothing to say for the others. Returns whether there is
    /// to be a list at all.
    pub fn add(
        &mut self,
        mut response: ListTransactionsResponse,
        room: &AnswerRoom,
        access: &Access<'_>,
    ) -> bool {
        let sees = |id: &str| access.sees(Operation::Describe, ResourceType::TransactionalId, id);
        response.transaction_states.retain(|state| sees(&state.transactional_id));
        if let Err(large) = room.take_struct(&response, ListTransactionsResponse::VERSIONS.max) {
            self.response.error_code = large.code(ErrorCode::CoordinatorLoadInProgress).code();
            return false;
        }
        match ErrorCode::from_code(response.error_code) {
            ErrorCode::None => {
                self.response.unknown_state_filters = response.unknown_state_filters;
                self.response.transaction_states.extend(response.transaction_states);
            }
            ErrorCode::NotCoordinator => {}
            code => self.response.error_code = code.code(),
        }
        self.response.error_code == 0
    }

    /// The answer, once every shard's is in.
    pub fn respond(mut self) -> ListTransactionsResponse {
        if self.response.error_code != 0 {
            self.response.transaction_states.clear();
            self.response.unknown_state_filters.clear();
        }
        self.response
    }
}

#[cfg(test)]
mod tests;
