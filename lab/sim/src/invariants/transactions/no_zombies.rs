//! No producer writes under an epoch once a later one was given out or its transaction has ended; and no batch gets
//! into a transaction of another attempt.

use barnabas_partition::ReplicaKey;

use super::{Ledger, Violation};
use crate::batch::{Batch, Value};
use crate::clients::transactional::attempt_of;

pub(super) fn check(ledger: &Ledger, key: ReplicaKey, batch: &Batch, value: Value) -> Result<(), Violation> {
    if let Some(fenced) = ledger.fenced.get(&batch.producer)
        && batch.producer_epoch < *fenced
    {
        return Err(format!("a zombie's {batch:?} is in {key:?}, where epoch {fenced} was given out"));
    }
    let open = ledger.open.get(&(key, batch.producer)).into_iter().flatten();
    let others = |part: &&super::Open| attempt_of(part.value) != attempt_of(value);
    if let Some(other) = open.clone().find(others) {
        return Err(format!("{batch:?} of {key:?} gets into the transaction of {other:?}"));
    }
    // An offset may come twice: it has no sequence, and does no harm.
    let is_twice = open.clone().any(|part| part.value == value && part.group.is_none());
    if is_twice || ledger.fates.contains_key(&value) {
        return Err(format!("{batch:?} of {key:?} was there before"));
    }
    Ok(())
}
