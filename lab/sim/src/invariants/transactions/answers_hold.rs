//! A client's producer id, epoch and the end of its transaction rest on records that no election can revert.

use barnabas_base::{ProducerEpoch, ProducerId};
use barnabas_coordinator::TransactionResponse;

use super::{Ledger, Violation};
use crate::clients::transactional::{TxnClient, attempt_asking};
use crate::network::Answer;

pub(super) fn check(
    ledger: &Ledger,
    client: &TxnClient,
    number: u64,
    answer: &Answer,
) -> Result<(), Violation> {
    let Answer::Transaction(response) = answer else { return Ok(()) };
    match response {
        TransactionResponse::InitProducerId(response) if response.error_code == 0 => {
            let (producer, epoch) =
                (ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch));
            let known = ledger.standings.get(&producer);
            if known.is_none_or(|known| known.epoch < epoch) {
                return Err(format!("{producer}:{epoch} is given to {}, where {known:?} is safe", client.id));
            }
        }
        TransactionResponse::EndTxn(response)
            if response.error_code == 0 && attempt_asking(number) == client.attempts.len() =>
        {
            let Some(wish) = client.attempts.last().and_then(|attempt| attempt.wish) else { return Ok(()) };
            let told = (ProducerId(response.producer_id), ProducerEpoch(response.producer_epoch));
            // Before version 2 the answer says nothing of them.
            let (producer, epoch) = if told.0.is_some() { told } else { client.producer };
            if !ledger.decided.contains(&(producer, epoch, wish)) {
                return Err(format!("{} is told that {producer}:{epoch} is ended ({wish})", client.id));
            }
        }
        _ => {}
    }
    Ok(())
}
