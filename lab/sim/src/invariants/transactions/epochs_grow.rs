//! A producer's epochs only grow: in what its coordinator writes, and in each partition.

use barnabas_base::{ProducerEpoch, ProducerId};
use barnabas_partition::ReplicaKey;

use super::{Ledger, Violation};
use crate::batch::Batch;

pub(super) fn check_holder(
    ledger: &Ledger,
    id: &str,
    producer: ProducerId,
    epoch: ProducerEpoch,
) -> Result<(), Violation> {
    let Some(holder) = ledger.holders.get(id) else { return Ok(()) };
    let before = ledger.standings.get(holder).map(|standing| standing.epoch);
    // No epoch is used up in a day, so the producer id stays.
    if *holder != producer || before.is_some_and(|before| epoch < before) {
        return Err(format!("{id} goes back from {holder}:{before:?} to {producer}:{epoch}"));
    }
    Ok(())
}

pub(super) fn check_partition(ledger: &Ledger, key: ReplicaKey, batch: &Batch) -> Result<(), Violation> {
    match ledger.seen.get(&(key, batch.producer)) {
        Some(seen) if batch.producer_epoch < *seen => {
            Err(format!("{batch:?} of {key:?} comes after epoch {seen}"))
        }
        _ => Ok(()),
    }
}
