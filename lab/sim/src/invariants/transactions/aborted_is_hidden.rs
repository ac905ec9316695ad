//! Who reads at read_committed, as far as the last stable offset and without what the transaction index names, is given what was
//! committed, all of it, and nothing else.

use barnabas_base::Offset;
use barnabas_partition::ReplicaKey;

use super::{Ledger, Violation, offset_of};
use crate::batch::Contents;
use crate::replica::Replica;

pub(super) fn check(
    ledger: &Ledger,
    key: ReplicaKey,
    replica: &Replica,
    from: Offset,
    to: Offset,
) -> Result<(), Violation> {
    for batch in replica.log.iter().filter(|batch| batch.base >= from && batch.base < to) {
        let value = match &batch.contents {
            Contents::Value(value) => Some(*value),
            Contents::Records { records, in_transaction: true } => {
                records.iter().find_map(|record| offset_of(record).map(|(_, value)| value))
            }
            _ => None,
        };
        let Some(value) = value else { continue };
        let is_hidden = replica.aborted.iter().any(|aborted| {
            aborted.producer_id == batch.producer && (aborted.first..=aborted.last).contains(&batch.base)
        });
        let fate = ledger.fates.get(&value).copied();
        if fate != Some(!is_hidden) {
            let word = if is_hidden { "hidden from" } else { "given to" };
            return Err(format!("{batch:?} of {key:?} is {word} readers, and committed: {fate:?}"));
        }
    }
    Ok(())
}
