//! A producer as an application runs it: one transaction after the other, requests repeated until they are answered.

use std::collections::BTreeSet;

use barnabas_base::ErrorCode;
use barnabas_coordinator::{TransactionRequest, TransactionResponse};
use barnabas_wire::messages::{EndTxnRequest, InitProducerIdRequest};

use super::partition::Value;

/// What the client believes of one transaction.
#[derive(Debug, Clone, Default)]
pub struct Attempt {
    /// For the reader of a failure.
    #[allow(dead_code)]
    pub who: (usize, i64, i16),
    pub values: Vec<(usize, Value)>,
    pub acked: BTreeSet<Value>,
    pub wish: Option<bool>,
    /// What it was told in the end.
    pub told: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Wants a producer id; says who it was if it is to go on after an error.
    Starts { says: bool },
    /// Writes its transaction.
    Writes,
    /// Waits for the end.
    Ends,
}

#[derive(Debug, Clone)]
pub struct Client {
    pub id: usize,
    pub state: State,
    pub producer: i64,
    pub epoch: i16,
    pub attempts: Vec<Attempt>,
    /// Before version 2 the epoch stays.
    pub bumps: bool,
}

impl Client {
    pub fn name(&self) -> String {
        format!("id-{}", self.id)
    }

    /// What it asks its coordinator now, if anything.
    pub fn asks(&self) -> Option<(i16, TransactionRequest)> {
        match self.state {
            State::Starts { says } => Some((
                5,
                TransactionRequest::InitProducerId(InitProducerIdRequest {
                    transactional_id: Some(self.name().into()),
                    transaction_timeout_ms: 10_000,
                    producer_id: if says { self.producer } else { -1 },
                    producer_epoch: if says { self.epoch } else { -1 },
                    ..Default::default()
                }),
            )),
            State::Writes => None,
            State::Ends => Some((
                if self.bumps { 5 } else { 4 },
                TransactionRequest::EndTxn(EndTxnRequest {
                    transactional_id: self.name().into(),
                    producer_id: self.producer,
                    producer_epoch: self.epoch,
                    committed: self.attempts.last().and_then(|attempt| attempt.wish).unwrap_or(false),
                    ..Default::default()
                }),
            )),
        }
    }

    pub fn begin(&mut self) {
        self.state = State::Writes;
        self.attempts.push(Attempt { who: (self.id, self.producer, self.epoch), ..Attempt::default() });
    }

    /// Takes in an answer to what it asked in this state. `asked` is what it is the answer to.
    pub fn hears(&mut self, asked: &TransactionRequest, response: &TransactionResponse) {
        // Only the answer to what it asks now: what is late is passed over.
        if self.asks().is_none_or(|(_, asks)| asks != *asked) {
            return;
        }
        match response {
            TransactionResponse::InitProducerId(response) => {
                match ErrorCode::from_code(response.error_code) {
                    ErrorCode::None => {
                        (self.producer, self.epoch) = (response.producer_id, response.producer_epoch);
                        self.begin();
                    }
                    ErrorCode::ProducerFenced => self.state = State::Starts { says: false },
                    _ => {}
                }
            }
            TransactionResponse::EndTxn(response) => match ErrorCode::from_code(response.error_code) {
                ErrorCode::None => {
                    if let Some(attempt) = self.attempts.last_mut() {
                        attempt.told = attempt.wish;
                    }
                    if self.bumps {
                        (self.producer, self.epoch) = (response.producer_id, response.producer_epoch);
                    }
                    self.begin();
                }
                error if error.is_retriable() => {}
                _ => self.state = State::Starts { says: false },
            },
            _ => {}
        }
    }
}
