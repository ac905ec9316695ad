//! EndTxn, and the transactions that the coordinator ends itself: timeouts and fencing.
//!
//! Up to version 4 a client keeps its epoch from one transaction to the next, and must name it exactly. From version
//! 5 on (`transaction.version` 2, KIP-890) the decision bumps the epoch and the answer returns it; a retry names the
//! epoch before. The answers to a client of version 2 without an open transaction:
//!
//! | state | abort, epoch before | abort, epoch now | commit, epoch before | commit, epoch now |
//! |---|---|---|---|---|
//! | Empty | PRODUCER_FENCED | aborts nothing, bumps | PRODUCER_FENCED | INVALID_TXN_STATE |
//! | CompleteAbort | yes, again | aborts nothing, bumps | PRODUCER_FENCED | INVALID_TXN_STATE |
//! | CompleteCommit | INVALID_TXN_STATE | aborts nothing, bumps | yes, again | INVALID_TXN_STATE |
//!
//! A commit under the epoch before in CompleteAbort can only mean that the coordinator aborted first (a client repeats
//! what it asked for): PRODUCER_FENCED, from which a client recovers (KAFKA-20785), where Kafka 4.4 still says
//! INVALID_TXN_STATE.
//!
//! Up to version 4 a repetition says what the end of the next transaction says. A coordinator that has been replaced
//! and has not heard of it would answer from memory that the next one is committed, when that is open elsewhere and
//! will be aborted, as Kafka's does. So the end is written again, and the answer waits for that. From version 5 on the
//! epoch says which transaction is meant.
//!
//! # Source
//! Kafka 4.4 `TransactionCoordinator.endTransaction`, `endTransactionWithTV1`, `abortTimedOutTransactions`.

use barnabas_base::{ErrorCode, ProducerEpoch, ProducerId, Text};
use barnabas_wire::messages::{EndTxnRequest, EndTxnResponse};

use super::{No, TimerKey, TransactionShard};
use crate::framework::Ticket;
use crate::transactions::transaction::{EPOCH_MAX, Transaction};
use crate::transactions::{TransactionResponse, TransactionState, TransactionVersion};

/// What an EndTxn that may go on comes to.
enum Verdict {
    Decide,
    /// It has been done before.
    Again,
}

impl TransactionShard {
    pub(super) fn end_txn(
        &mut self,
        version: i16,
        request: &EndTxnRequest,
        ticket: Ticket,
    ) -> Result<(), No> {
        let id = request.transactional_id.text();
        if id.is_empty() {
            return Err(ErrorCode::InvalidRequest.into());
        }
        let version = TransactionVersion::of_end_txn(version);
        let verdict =
            if version.bumps_epoch() { self.judge_v2(&id, request) } else { self.judge_v1(&id, request) }?;
        let Some(known) = self.known(&id) else { return Err(ErrorCode::InvalidProducerIdMapping.into()) };
        match verdict {
            Verdict::Again => {
                let answer = ended(version, known.producer_id, known.producer_epoch);
                if version.bumps_epoch() {
                    self.answer(ticket, answer);
                } else {
                    let next = known.ended_again(self.now.wall);
                    self.change(&id, next, Some((ticket, answer)));
                }
                Ok(())
            }
            Verdict::Decide => self.decide(&id, request.committed, version, false, |next| {
                let after = next.completed(next.last_update);
                Some((ticket, ended(version, after.producer_id, after.producer_epoch)))
            }),
        }
    }

    fn judge_v1(&self, id: &str, request: &EndTxnRequest) -> Result<Verdict, ErrorCode> {
        let known = self.known(id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        if known.producer_id != ProducerId(request.producer_id) {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        if known.producer_epoch != ProducerEpoch(request.producer_epoch) {
            return Err(ErrorCode::ProducerFenced);
        }
        if self.is_busy(id) {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        match (known.state, request.committed) {
            (TransactionState::Ongoing, _) => Ok(Verdict::Decide),
            (TransactionState::CompleteCommit, true) | (TransactionState::CompleteAbort, false) => {
                Ok(Verdict::Again)
            }
            _ => Err(ErrorCode::InvalidTxnState),
        }
    }

    fn judge_v2(&self, id: &str, request: &EndTxnRequest) -> Result<Verdict, ErrorCode> {
        // Before the epoch is looked at, for a client that goes on faster than its last transaction ends (KAFKA-18464,
        // KAFKA-18660).
        if self.is_busy(id) {
            return Err(ErrorCode::ConcurrentTransactions);
        }
        let known = self.known(id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        let repeats = repeats(known, request);
        if known.producer_id != ProducerId(request.producer_id) && !repeats {
            return Err(ErrorCode::InvalidProducerIdMapping);
        }
        let is_current = known.producer_epoch == ProducerEpoch(request.producer_epoch);
        let may_repeat = known.state.is_idle() && known.state != TransactionState::Empty;
        if repeats && !may_repeat || !repeats && !is_current {
            return Err(ErrorCode::ProducerFenced);
        }
        match (known.state, request.committed, repeats) {
            (TransactionState::Ongoing, _, _) => Ok(Verdict::Decide),
            (TransactionState::CompleteCommit, true, true)
            | (TransactionState::CompleteAbort, false, true) => Ok(Verdict::Again),
            (TransactionState::CompleteAbort, true, true) => Err(ErrorCode::ProducerFenced),
            (state, false, false) if state.is_idle() => Ok(Verdict::Decide),
            _ => Err(ErrorCode::InvalidTxnState),
        }
    }

    /// Decides the transaction, whatever anybody wished, and fences its producer.
    pub(super) fn abort(
        &mut self,
        id: &Text,
        answer: Option<(Ticket, TransactionResponse)>,
    ) -> Result<(), No> {
        let version =
            if self.config.version.bumps_epoch() { TransactionVersion::V2 } else { TransactionVersion::V0 };
        self.decide(id, false, version, true, |_| answer)
    }

    fn decide(
        &mut self,
        id: &Text,
        commit: bool,
        version: TransactionVersion,
        fences: bool,
        answer: impl FnOnce(&Transaction) -> Option<(Ticket, TransactionResponse)>,
    ) -> Result<(), No> {
        let known = self.known(id).ok_or(ErrorCode::InvalidProducerIdMapping)?.clone();
        // The bump uses up the last epoch (KAFKA-19367, KAFKA-20090): what comes next has another producer id.
        let next_id = if version.bumps_epoch() && known.is_epoch_exhausted() {
            self.next_id()?
        } else {
            ProducerId::NONE
        };
        let next = known.decided(commit, version, next_id, fences, self.now.wall);
        let answer = answer(&next);
        self.timers.cancel(&TimerKey::Timeout(id.clone()));
        self.change(id, next, answer);
        Ok(())
    }

    /// The transaction has been open for longer than its producer asked for.
    pub(super) fn time_out(&mut self, id: &Text) {
        let is_ongoing = self.known(id).is_some_and(|known| known.state == TransactionState::Ongoing);
        if !is_ongoing {
            return;
        }
        let refusal = if self.is_busy(id) || self.is_full() {
            Err(No::Refused(ErrorCode::ConcurrentTransactions))
        } else {
            self.abort(id, None)
        };
        if refusal.is_err() {
            self.set_timer(TimerKey::Timeout(id.clone()), self.config.retry_backoff);
        }
        if refusal == Err(No::NeedsId) {
            self.ask_for_ids();
        }
    }
}

/// Whether this is the request that led to what is known: its epoch is the one before.
fn repeats(known: &Transaction, request: &EndTxnRequest) -> bool {
    let (id, epoch) = (ProducerId(request.producer_id), ProducerEpoch(request.producer_epoch));
    let bumped = id == known.producer_id && epoch.get().checked_add(1) == Some(known.producer_epoch.get());
    let rotated = id == known.previous_producer_id
        && id != known.producer_id
        && epoch == EPOCH_MAX
        && known.producer_epoch == ProducerEpoch(0);
    bumped || rotated
}

/// Versions before 5 have no place for what the client goes on with, as it does not change.
fn ended(version: TransactionVersion, id: ProducerId, epoch: ProducerEpoch) -> TransactionResponse {
    let mut response = EndTxnResponse::default();
    if version.bumps_epoch() {
        response.producer_id = id.get();
        response.producer_epoch = epoch.get();
    }
    TransactionResponse::EndTxn(response)
}
