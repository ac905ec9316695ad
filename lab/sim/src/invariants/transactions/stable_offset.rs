//! The last stable offset never passes a transaction that is open (but see [`Ledger::stable`]), and in the end it
//! stands nowhere but at the high watermark.

use barnabas_base::{BrokerId, Offset, ProducerId};
use barnabas_partition::ReplicaKey;

use super::{Ledger, View, Violation};
use crate::batch::Batch;

pub(super) fn check(
    ledger: &Ledger,
    broker: BrokerId,
    key: ReplicaKey,
    to: Offset,
    loaded: &[Batch],
) -> Result<(), Violation> {
    let of_key = ledger.open.iter().filter(|((of, _), _)| *of == key);
    let mut open = of_key.flat_map(|((_, producer), open)| open.iter().map(|open| (*producer, open)));
    let passed =
        open.find(|(producer, open)| open.base < to && ending(*producer, open.base, loaded).is_none());
    match passed {
        Some((_, open)) => Err(format!("{broker}: the last stable offset of {key:?} is {to}, past {open:?}")),
        None => Ok(()),
    }
}

/// The marker that ended the transaction with a record at `base`.
pub(super) fn ending(producer: ProducerId, base: Offset, loaded: &[Batch]) -> Option<&Batch> {
    loaded.iter().find(|marker| marker.producer == producer && marker.base > base)
}

pub(super) fn at_rest(ledger: &Ledger, view: &View<'_>) -> Result<(), Violation> {
    if let Some(open) = ledger.open.iter().find(|(_, open)| !open.is_empty()) {
        return Err(format!("no marker came for {open:?}"));
    }
    for broker in view.brokers {
        let replicas = broker.process.iter().flat_map(|process| &process.host.replicas);
        for (key, hosted) in replicas {
            let replica = &hosted.replica;
            let (stable, high) = (replica.partition.last_stable(), replica.partition.high_watermark());
            if stable != high {
                return Err(format!("{}: {key:?} is stable up to {stable} of {high}", broker.id));
            }
        }
    }
    Ok(())
}
