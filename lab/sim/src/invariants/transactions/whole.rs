//! A transaction is there in all its partitions, its offsets among them, or in none; and as its client was told.

use super::{Fates, Ledger, Violation};
use crate::clients::transactional::TxnClient;

/// What is decided of an attempt so far.
pub(super) fn check(attempt: (usize, usize), fates: Option<&Fates>) -> Result<(), Violation> {
    match fates {
        Some(Fates { committed, aborted }) if !committed.is_empty() && !aborted.is_empty() => Err(format!(
            "attempt {} of client {} is torn: {committed:?} committed, {aborted:?} aborted",
            attempt.1, attempt.0
        )),
        _ => Ok(()),
    }
}

/// Everything is decided. A client commits only what was acknowledged throughout, so what is committed is all of it.
pub(super) fn at_rest(ledger: &Ledger, writers: &[TxnClient]) -> Result<(), Violation> {
    for (number, client) in writers.iter().enumerate() {
        for (at, attempt) in client.attempts.iter().enumerate() {
            let fates = ledger.attempts.get(&(number, at));
            let committed = fates.map_or(0, |fates| fates.committed.len());
            let is_whole = committed == attempt.parts.len();
            let is_true = match attempt.told {
                Some(true) => is_whole,
                Some(false) => committed == 0,
                None => committed == 0 || is_whole,
            };
            if !is_true {
                return Err(format!("client {number}, attempt {at}: {attempt:?} came to {fates:?}"));
            }
        }
    }
    Ok(())
}
