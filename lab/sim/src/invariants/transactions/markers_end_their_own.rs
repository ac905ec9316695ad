//! A marker was decided by its coordinator before it came, and ends no transaction but the one that was: when it comes
//! the decision is the last that is known of its producer, and what it ends is one attempt's, of the epoch before (of
//! the same one before version 2).

use barnabas_partition::ReplicaKey;

use super::{Ledger, Open, Violation};
use crate::batch::Batch;
use crate::clients::transactional::attempt_of;

pub(super) fn check(
    ledger: &Ledger,
    key: ReplicaKey,
    marker: &Batch,
    commit: bool,
    ended: &[Open],
) -> Result<(), Violation> {
    let (producer, epoch) = (marker.producer, marker.producer_epoch);
    if !ledger.decided.contains(&(producer, epoch, commit)) {
        return Err(format!("{marker:?} of {key:?} was never decided"));
    }
    let Some(first) = ended.first() else { return Ok(()) };
    let standing = ledger.standings.get(&producer);
    let is_now = standing.is_some_and(|standing| standing.state.is_prepared() && standing.epoch == epoch);
    if !is_now {
        return Err(format!("{marker:?} of {key:?} ends {ended:?} when its producer is {standing:?}"));
    }
    let is_one = ended.iter().all(|part| {
        attempt_of(part.value) == attempt_of(first.value) && part.epoch == first.epoch && part.epoch <= epoch
    });
    if !is_one {
        return Err(format!("{marker:?} of {key:?} ends more than one transaction: {ended:?}"));
    }
    Ok(())
}
