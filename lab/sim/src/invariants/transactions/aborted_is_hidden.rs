//! Who reads at read_committed, as far as the last stable offset and without what the transaction index names, is given
//! what was committed, all of it, and nothing else.

use barnabas_partition::ReplicaKey;

use super::stable_offset::ending;
use super::{Ledger, Violation, offset_of};
use crate::batch::{Batch, Contents};

pub(super) fn check(
    ledger: &Ledger,
    key: ReplicaKey,
    read: &[(Batch, bool)],
    loaded: &[Batch],
) -> Result<(), Violation> {
    for (batch, is_hidden) in read {
        let value = match &batch.contents {
            Contents::Value(value) => Some(*value),
            Contents::Records { records, in_transaction: true } => {
                records.iter().find_map(|record| offset_of(record).map(|(_, value)| value))
            }
            _ => None,
        };
        let Some(value) = value else { continue };
        let shown = ledger.fates.get(&value).copied();
        let fate = shown.or_else(|| fate_by(ending(batch.producer, batch.base, loaded)?));
        if fate != Some(!*is_hidden) {
            let word = if *is_hidden { "hidden from" } else { "given to" };
            return Err(format!("{batch:?} of {key:?} is {word} readers, and committed: {fate:?}"));
        }
    }
    Ok(())
}

fn fate_by(marker: &Batch) -> Option<bool> {
    match marker.contents {
        Contents::Marker { commit, .. } => Some(commit),
        _ => None,
    }
}
