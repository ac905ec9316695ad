//! InitProducerId with a transactional id: the newest caller holds the id, and the former holder is fenced.
//!
//! An open transaction is aborted first; the client gets CONCURRENT_TRANSACTIONS and retries.
//!
//! A client that says which producer id and epoch it has (version 3 on, KIP-360) wants to go on after an error. It may
//! if it is the one that holds the id now, or if it is the one that was given what is held now and did not hear of it.
//!
//! # Source
//! Kafka 4.4 `TransactionCoordinator.handleInitProducerId`, `prepareInitProducerIdTransit`.

use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId};
use barnabas_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::{No, TransactionShard};
use crate::framework::Ticket;
use crate::transactions::transaction::{EPOCH_MAX, Transaction};
use crate::transactions::{TransactionResponse, TransactionState};

/// Who the client says it is.
type Expected = Option<(ProducerId, ProducerEpoch)>;

impl TransactionShard {
    pub(super) fn init_producer_id(
        &mut self,
        request: &InitProducerIdRequest,
        ticket: Ticket,
    ) -> Result<(), No> {
        let id = request.transactional_id.as_ref().filter(|id| !id.is_empty());
        let id = id.ok_or(ErrorCode::InvalidRequest)?.text();
        self.check_wishes(request)?;
        let said = (ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch));
        let is_unset = said.0 == ProducerId::NONE;
        if is_unset != (said.1 == ProducerEpoch::NONE) {
            return Err(ErrorCode::InvalidRequest.into());
        }
        let expected: Expected = (!is_unset).then_some(said);
        if self.is_busy(&id) {
            return Err(ErrorCode::ConcurrentTransactions.into());
        }
        let Some(known) = self.known(&id) else {
            if self.entries.len() >= self.config.ids_max {
                return Err(ErrorCode::CoordinatorNotAvailable.into());
            }
            self.find_room(&id, None)?;
            let producer_id = self.next_id()?;
            let next = Transaction::new(producer_id, request.transaction_timeout_ms, self.now.wall);
            let answer = given(&next);
            return self.change_if_small(&id, next, ticket, answer);
        };
        if expected.is_some_and(|expected| !may_hold(known, expected)) {
            return Err(ErrorCode::ProducerFenced.into());
        }
        if known.state == TransactionState::Ongoing {
            let refusal = super::super::request::init_refused(ErrorCode::ConcurrentTransactions);
            return self.abort(&id, Some((ticket, TransactionResponse::InitProducerId(refusal))));
        }
        let next = self.restarted(&known.clone(), expected, request.transaction_timeout_ms)?;
        let answer = given(&next);
        self.change(&id, next, Some((ticket, answer)));
        Ok(())
    }

    fn check_wishes(&self, request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
        let timeout = i64::from(request.transaction_timeout_ms);
        if request.enable2_pc {
            Err(ErrorCode::TransactionalIdAuthorizationFailed)
        } else if request.keep_prepared_txn {
            Err(ErrorCode::UnsupportedVersion)
        } else if timeout <= 0 || timeout > self.config.timeout_max.0 {
            Err(ErrorCode::InvalidTransactionTimeout)
        } else {
            Ok(())
        }
    }

    /// No transaction is open.
    fn restarted(
        &mut self,
        known: &Transaction,
        expected: Expected,
        timeout_ms: i32,
    ) -> Result<Transaction, No> {
        let now = self.now.wall;
        let holds = expected.is_none_or(|(_, epoch)| epoch == known.producer_epoch);
        if holds && known.is_epoch_exhausted() {
            let id = self.next_id()?;
            return Ok(known.rotated(id, expected.is_some(), timeout_ms, now));
        }
        if holds {
            return Ok(known.bumped(expected.is_some(), timeout_ms, now));
        }
        let asks_again = expected.is_some_and(|(_, epoch)| epoch == known.last_producer_epoch);
        if asks_again {
            return Ok(known.repeated(timeout_ms, now));
        }
        Err(ErrorCode::ProducerFenced.into())
    }
}

/// Whether a client with this producer id can be the one that holds the transactional id. The epoch is looked at later.
fn may_hold(known: &Transaction, (id, epoch): (ProducerId, ProducerEpoch)) -> bool {
    id == known.producer_id || (id == known.previous_producer_id && epoch >= EPOCH_MAX)
}

fn given(next: &Transaction) -> TransactionResponse {
    TransactionResponse::InitProducerId(InitProducerIdResponse {
        producer_id: next.producer_id.get(),
        producer_epoch: next.producer_epoch.get(),
        ..Default::default()
    })
}
